"""ClickHouse as the line uses it: migrated once, waited for, and never doubled, whatever is killed when."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from clickhouse_connect.driver.exceptions import DatabaseError, OperationalError

from infra import clickhouse
from infra.clickhouse import connect, database_of, migrate
from infra.inserts import ClosedError, Database, Rows, RowsError, Value
from infra.local.clickhouse import LocalClickHouse
from infra.settings import Settings

PATIENCE_S = 30
FAR_FUTURE_US = 1 << 60


def rows(job_id: str, rows: int = 3, since_us: int = 0, **changes: list[Value]) -> Rows:
    columns: dict[str, list[Value]] = {
        "job_id": [job_id] * rows,
        "segment": list(range(rows)),
        "attempt": [1] * rows,
    }
    return Rows(table="segment_log", key=("job_id",), since_us=since_us, columns={**columns, **changes})


def in_table(table: str, columns: dict[str, list[Value]]) -> Rows:
    return Rows(table=table, key=("job_id",), since_us=0, columns=columns)


def count(settings: Settings, table: str = "segment_log") -> int:
    return connect(settings).query("SELECT count() FROM {table:Identifier}", {"table": table}).result_rows[0][0]


def test_the_database_and_its_tables_are_made_once_in_order(clickhouse_settings: Settings) -> None:
    settings = clickhouse_settings.model_copy(update={"clickhouse": clickhouse_settings.clickhouse + "_new"})
    names = tuple(path.name for path in sorted(clickhouse.MIGRATIONS.glob("*.sql")))
    assert migrate(settings) == names
    assert migrate(settings) == ()
    assert connect(settings).query("SELECT name FROM migrations ORDER BY applied_at").result_columns[0] == list(names)
    connect(settings).command(f"DROP DATABASE {database_of(settings)}")


def test_many_may_migrate_at_the_same_time(clickhouse_settings: Settings) -> None:
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: migrate(clickhouse_settings), range(6)))
    client = connect(clickhouse_settings)
    assert client.command("SELECT count() - uniqExact(name) FROM migrations") == 0
    assert count(clickhouse_settings, "migrations") == len(list(clickhouse.MIGRATIONS.glob("*.sql")))


def test_a_migration_that_was_changed_is_refused(
    clickhouse_settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "0001_a.sql").write_text("CREATE TABLE IF NOT EXISTS a (x Int64) ENGINE = MergeTree ORDER BY x;\n")
    monkeypatch.setattr(clickhouse, "MIGRATIONS", tmp_path)
    assert migrate(clickhouse_settings) == ("0001_a.sql",)
    (tmp_path / "0002_b.sql").write_text("-- two\nALTER TABLE a ADD COLUMN IF NOT EXISTS y Int64;\nSELECT 1;\n")
    assert migrate(clickhouse_settings) == ("0002_b.sql",)
    (tmp_path / "0001_a.sql").write_text("SELECT 1;\n")
    with pytest.raises(ValueError, match=r"0001_a\.sql was changed"):
        migrate(clickhouse_settings)


def test_every_table_and_column_says_what_it_is(clickhouse_settings: Settings) -> None:
    migrate(clickhouse_settings)
    client = connect(clickhouse_settings)
    silent = client.query(
        "SELECT table, name FROM system.columns"
        " WHERE database = currentDatabase() AND comment = '' AND table != 'migrations'"
    )
    assert silent.result_rows == []


def test_every_table_remembers_its_tokens(clickhouse_settings: Settings) -> None:
    migrate(clickhouse_settings)
    tables = connect(clickhouse_settings).query(
        "SELECT name, engine_full FROM system.tables WHERE database = currentDatabase() AND name LIKE '%_log'"
    )
    assert len(tables.result_rows) == 8
    assert all("non_replicated_deduplication_window = 100000" in engine for _, engine in tables.result_rows)


def test_the_same_token_changes_nothing(clickhouse_settings: Settings) -> None:
    database = Database(clickhouse_settings)
    for _ in range(3):
        database.insert(rows("a"))
    database.insert(rows("a", 5, since_us=FAR_FUTURE_US))
    assert count(clickhouse_settings) == 3
    database.insert(rows("b"))
    assert count(clickhouse_settings) == 6


def test_rows_whose_token_is_known_but_which_are_not_there_are_inserted_again(clickhouse_settings: Settings) -> None:
    database, client = Database(clickhouse_settings), connect(clickhouse_settings)
    for _ in range(2):
        database.insert(rows("film"))
        database.insert(rows("other", 2))
        client.command("ALTER TABLE segment_log DELETE WHERE job_id = 'film' SETTINGS mutations_sync = 1")
        database.insert(rows("film", since_us=FAR_FUTURE_US))
        assert count(clickhouse_settings) == 2, "ClickHouse keeps the token of deleted rows, as after a kill"
    database.insert(rows("film"))
    database.insert(rows("film"))
    assert count(clickhouse_settings) == 5


def test_tokens_are_remembered_over_a_restart(own_clickhouse: LocalClickHouse, tmp_path: Path) -> None:
    settings = Settings(clickhouse=own_clickhouse.url("line"), clickhouse_password=own_clickhouse.password)
    database = Database(settings)
    database.insert(rows("a"))
    own_clickhouse.kill()
    own_clickhouse.restart()
    database.insert(rows("a"))
    assert count(settings) == 3


def test_an_insert_of_no_rows_does_nothing(clickhouse_settings: Settings) -> None:
    migrate(clickhouse_settings)
    Database(clickhouse_settings).insert(in_table("frame_log", {}))
    assert count(clickhouse_settings, "frame_log") == 0


@pytest.mark.parametrize("bad", [{"segment": [-1, 1, 2]}, {"segment": [0, 1, 1 << 40]}, {"worker": [1, 2, 3]}])
def test_values_that_do_not_fit_are_refused_before_they_are_sent(
    clickhouse_settings: Settings, bad: dict[str, list[Value]]
) -> None:
    with pytest.raises(RowsError):
        Database(clickhouse_settings).insert(rows("a", **bad))
    assert count(clickhouse_settings) == 0


def test_an_error_that_waiting_does_not_cure_is_raised(clickhouse_settings: Settings) -> None:
    with pytest.raises(DatabaseError, match="nowhere"):
        Database(clickhouse_settings).insert(in_table("nowhere", {"job_id": ["film"]}))


def test_a_wrong_password_is_no_reason_to_wait(clickhouse_settings: Settings) -> None:
    settings = Settings(clickhouse=clickhouse_settings.clickhouse)
    with pytest.raises(DatabaseError):
        Database(settings).insert(rows("a"))


def test_an_insert_waits_for_a_clickhouse_that_is_away(own_clickhouse: LocalClickHouse) -> None:
    settings = Settings(clickhouse=own_clickhouse.url("line"), clickhouse_password=own_clickhouse.password)
    own_clickhouse.kill()
    with pytest.raises(OperationalError):
        connect(settings)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(Database(settings).insert, rows("a"))
        time.sleep(0.5)  # it has to be refused at least once
        assert not waiting.done()
        own_clickhouse.restart()
        waiting.result(PATIENCE_S)
    assert count(settings) == 3


def test_closing_ends_the_wait(tmp_path: Path) -> None:
    database = Database(Settings(clickhouse="http://127.0.0.1:1/line"))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(database.insert, rows("a"))
        database.close()
        with pytest.raises(ClosedError):
            waiting.result(PATIENCE_S)


def test_kills_in_the_middle_of_inserts_lose_and_double_nothing(own_clickhouse: LocalClickHouse) -> None:
    settings = Settings(clickhouse=own_clickhouse.url("line"), clickhouse_password=own_clickhouse.password)
    database, inserts, kills = Database(settings), 240, 3
    started_us = time.time_ns() // 1000
    done = threading.Semaphore(0)

    def insert(number: int) -> None:
        database.insert(rows(f"film {number}", 50, started_us))
        done.release()

    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(insert, number) for number in range(inserts)]
        for _ in range(kills):
            for _ in range(inserts // (kills + 1)):
                assert done.acquire(timeout=PATIENCE_S)
            own_clickhouse.kill()
            own_clickhouse.restart()
        for future in futures:
            future.result(PATIENCE_S)
    for number in range(0, inserts, 7):  # a worker that died does it again
        database.insert(rows(f"film {number}", 50, started_us))
    assert count(settings) == 50 * inserts


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:8123", "ftp://x/y", "http://user:secret@host/x", "http://host/a;b", "http://host/a/b"]
)
def test_an_address_that_is_none_says_so_and_keeps_the_secret(url: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 (the message is the point)
        database_of(Settings(clickhouse=url))
    assert "secret" not in str(error.value)
