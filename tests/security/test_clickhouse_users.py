"""The writer and the reader on the real engine: what they are for works, and nothing else does.

The engine of the local stack keeps no users made by SQL. It enforces the same rights and limits from configuration; that the
statements for a server say the same, and that this engine's parser takes them, is checked here. That a server then acts on
them is ClickHouse's own promise.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import clickhouse_connect
import pytest
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError

from infra.clickhouse import connect, connect_reader, migrate
from infra.clickhouse_users import FILE, READER, WRITER, rights, users_sql
from infra.inserts import Database, Rows
from infra.local.clickhouse import LocalClickHouse
from infra.local.packages import libchdb
from infra.settings import Settings
from tests.cli.conftest import Longtake

PAY = "not for readers"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalClickHouse]:
    """The line's tables made by the writer, with a row; another database with a table of somebody else's."""
    folder = tmp_path_factory.mktemp("clickhouse")
    engine = LocalClickHouse(library=libchdb(Settings()), folder=folder, log=folder / "clickhouse.log")
    engine.start()
    try:
        engine.ready()
        migrate(as_writer(engine))
        columns = {"job_id": ["harbour"], "segment": [0], "attempt": [1]}
        Database(as_writer(engine)).insert(Rows(table="segment_log", key=("job_id",), since_us=0, columns=columns))
        owner = connect(Settings(clickhouse=engine.url("default"), clickhouse_password=engine.password))
        owner.command("CREATE DATABASE payroll")
        owner.command("CREATE TABLE payroll.people (name String) ENGINE = MergeTree ORDER BY name")
        owner.insert("payroll.people", [[PAY]], column_names=["name"])
        yield engine
    finally:
        engine.kill()


def as_writer(engine: LocalClickHouse) -> Settings:
    return Settings(clickhouse=engine.url_of(WRITER), clickhouse_password=engine.password_of(WRITER))


def as_line(engine: LocalClickHouse) -> Settings:
    """Like the settings of a running stack: the address is the owner's, and the reader's password is known."""
    return Settings(
        clickhouse=engine.url("longtake"),
        clickhouse_password=engine.password,
        clickhouse_reader_password=engine.password_of(READER),
    )


@pytest.fixture
def reader(engine: LocalClickHouse) -> Client:
    return connect_reader(as_line(engine))


def test_the_reader_reads_the_line(reader: Client) -> None:
    assert reader.command("SELECT currentUser()") == READER
    assert reader.query("SELECT job_id, segment FROM segments").result_rows == [("harbour", 0)]
    assert reader.command("SELECT count() FROM system.columns WHERE table = 'frames' AND comment != ''") > 10


def test_longtake_sql_asks_as_the_reader(engine: LocalClickHouse, longtake: Longtake) -> None:
    assert longtake(as_line(engine), "sql", "--json", "SELECT currentUser() AS user").json_lines() == [{"user": READER}]
    assert longtake(as_line(engine), "sql", "SELECT * FROM payroll.people").code == 2


@pytest.mark.parametrize(
    ("query", "refusal"),
    [
        ("SELECT * FROM payroll.people", "payroll.people"),
        ("SELECT * FROM merge('payroll', '.*')", "CANNOT_EXTRACT_TABLE_STRUCTURE|ACCESS_DENIED"),
        ("SELECT * FROM system.users", "SELECT ON system.users"),
        ("SELECT * FROM system.processes", "SELECT ON system.processes"),
        ("SELECT * FROM system.grants", "SELECT ON system.grants"),
        ("SELECT * FROM information_schema.tables", "information_schema.tables"),
        ("SELECT * FROM file('/etc/passwd', LineAsString)", "READ ON FILE"),
        ("SELECT * FROM url('http://127.0.0.1:1/', LineAsString)", "READ ON URL"),
        ("SELECT * FROM remote('127.0.0.1', system.one)", "READ ON REMOTE"),
        ("SELECT * FROM s3('https://bucket.s3.amazonaws.com/key', LineAsString)", "READ ON S3"),
        ("SELECT * FROM mysql('h:1', 'd', 't', 'u', 'p')", "READ ON MYSQL"),
        ("SELECT * FROM executable('id', TSV, 'a String')", "CREATE TEMPORARY TABLE"),
        ("INSERT INTO segment_log (job_id) VALUES ('x')", "READONLY|INSERT"),
        ("INSERT INTO FUNCTION file('x.tsv', TSV, 'a Int8') VALUES (1)", "READONLY|WRITE ON FILE"),
        ("ALTER TABLE segment_log DELETE WHERE 1", "READONLY|ALTER"),
        ("CREATE TEMPORARY TABLE t (x Int8)", "CREATE TEMPORARY TABLE|READONLY|DDL"),
        ("DROP TABLE segment_log", "READONLY|DROP"),
        ("KILL QUERY WHERE 1", "READONLY|KILL|processes"),
        ("SYSTEM SHUTDOWN", "READONLY|SHUTDOWN"),
        ("SET readonly = 0", "READONLY"),
    ],
)
def test_the_reader_reaches_nothing_else(reader: Client, query: str, refusal: str) -> None:
    with pytest.raises(DatabaseError, match=refusal):
        reader.query(query)


def test_the_reader_sees_the_names_of_the_line_only(reader: Client) -> None:
    assert reader.query("SHOW DATABASES").result_rows == [("longtake",)]
    assert reader.command("SELECT count() FROM system.tables WHERE database = 'payroll'") == 0


@pytest.mark.parametrize("setting", ["max_execution_time", "max_memory_usage", "max_rows_to_read", "max_result_rows"])
@pytest.mark.parametrize("value", [0, 1 << 40])
def test_no_query_lifts_its_limits(reader: Client, setting: str, value: int) -> None:
    with pytest.raises(DatabaseError, match="SETTING_CONSTRAINT_VIOLATION"):
        reader.query(f"SELECT 1 SETTINGS {setting} = {value}")


@pytest.mark.parametrize(
    ("query", "limit"),
    [
        ("SELECT count() FROM numbers(100000000000)", "max_rows_to_read|TOO_MANY_ROWS"),
        ("SELECT sleepEachRow(1) FROM numbers(3) SETTINGS max_execution_time = 1, max_block_size = 1", "TIMEOUT|max"),
        ("SELECT * FROM numbers(2000000)", "TOO_MANY_ROWS_OR_BYTES|Limit for result"),
        (
            "SELECT length(groupArray(toString(number) || repeat('x', 1000))) FROM numbers(400000) SETTINGS max_memory_usage = 100000000",
            "MEMORY_LIMIT",
        ),
    ],
)
def test_a_query_that_takes_too_much_is_ended(reader: Client, query: str, limit: str) -> None:
    with pytest.raises(DatabaseError, match=limit):
        reader.query(query)


def test_the_writer_may_do_what_the_line_does_and_see_nothing_else(engine: LocalClickHouse) -> None:
    writer = connect(as_writer(engine))
    assert migrate(as_writer(engine)) == ()
    for query in (
        "SELECT * FROM payroll.people",
        "SELECT * FROM system.users",
        "SELECT * FROM file('/etc/passwd', LineAsString)",
        "DROP TABLE segment_log",
        "CREATE USER guest IDENTIFIED WITH no_password",
        f"GRANT SELECT ON longtake.* TO {READER}",
    ):
        with pytest.raises(DatabaseError, match=r"ACCESS_DENIED|Not enough privileges"):
            writer.query(query)


def test_no_user_reads_files_through_the_function_either(engine: LocalClickHouse) -> None:
    if "no Landlock" in engine.log.read_text():
        pytest.skip("this kernel has no Landlock: docs/security.md says what that means")
    owner = connect(Settings(clickhouse=engine.url("longtake"), clickhouse_password=engine.password))
    for path in ("/etc/passwd", engine.folder / "password", Path(__file__)):
        with pytest.raises(DatabaseError, match="Permission denied"):
            owner.query("SELECT file({path:String})", {"path": str(path)})


def test_the_engine_has_none_of_our_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LONGTAKE_KAFKA_PASSWORD", PAY)
    engine = LocalClickHouse(library=libchdb(Settings()), folder=tmp_path, log=tmp_path / "clickhouse.log")
    engine.start()
    try:
        engine.ready()
        assert PAY not in Path(f"/proc/{engine.process.pid}/environ").read_text()
    finally:
        engine.kill()


def test_the_user_without_a_password_can_run_no_query(engine: LocalClickHouse) -> None:
    port = int(engine.url("x").rpartition(":")[2].partition("/")[0])
    with pytest.raises(DatabaseError, match="Quota for user `default`"):
        clickhouse_connect.get_client(host="127.0.0.1", port=port, username="default")


def test_another_machine_needs_a_password() -> None:
    with pytest.raises(ValueError, match="LONGTAKE_CLICKHOUSE_PASSWORD"):
        connect(Settings(clickhouse="http://default@clickhouse.example:8123/longtake"))


def test_the_statements_for_a_server_are_the_same_rights(engine: LocalClickHouse) -> None:
    assert FILE.read_text() == users_sql(), "python -m infra.clickhouse_users"
    owner = connect(Settings(clickhouse=engine.url("longtake"), clickhouse_password=engine.password))
    statements = [re.sub(r"--.*", "", s).strip() for s in users_sql().split(";\n")]
    digest = "0" * 64
    for statement in filter(None, statements):
        said = statement.replace("WRITER_SHA256", digest).replace("READER_SHA256", digest)
        assert owner.query(f"EXPLAIN AST {said}").result_rows
    for user, granted in rights("longtake").items():
        held = " ".join(row[0] for row in owner.query(f"SHOW GRANTS FOR {user}").result_rows)
        assert held.count("GRANT ") == len(granted)
        assert "WITH GRANT OPTION" not in held
