"""ClickHouse: the client, and the migrations of `schemas/clickhouse/`.

What is in ClickHouse is a view of the truth that lives in Kafka and the object store: nothing decides by it.
"""

import logging
import re
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

import clickhouse_connect
import xxhash
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError

from infra.clickhouse_users import READER
from infra.settings import Settings

log = logging.getLogger(__name__)

_UNDER_WAY = frozenset({218, 517, 521})
"""TABLE_IS_DROPPED, CANNOT_ASSIGN_ALTER, ATOMIC_RENAME_FAIL: another process replaces the same view or alters the same table."""
_ALTER_S, _PAUSE_S = 30.0, 0.1
MIGRATIONS = Path(__file__).parents[1] / "schemas" / "clickhouse"


def connect(settings: Settings) -> Client:
    """A client of the database of `settings.clickhouse`, which has to exist. Safe to share between threads.

    Raises: OperationalError if ClickHouse cannot be reached, DatabaseError if it refuses.
    """
    return _client(settings, database_of(settings))


def connect_reader(settings: Settings) -> Client:
    """A client for other people's queries: as `longtake_reader` if its password is known, else as the user of the address.

    Raises: like `connect`.
    """
    if not settings.clickhouse_reader_password.get_secret_value():
        return connect(settings)
    address = urlsplit(settings.clickhouse)
    as_reader = address._replace(netloc=f"{READER}@{address.netloc.rpartition('@')[2]}").geturl()
    return connect(
        settings.model_copy(
            update={"clickhouse": as_reader, "clickhouse_password": settings.clickhouse_reader_password}
        )
    )


def database_of(settings: Settings) -> str:
    """Name of the database in `settings.clickhouse`. Raises: ValueError naming what is wrong with the address."""
    address = urlsplit(settings.clickhouse)
    if address.scheme not in {"http", "https"} or not address.hostname:
        raise ValueError("LONGTAKE_CLICKHOUSE is not http(s)://user@host:port/database")
    if address.password:
        raise ValueError("the password belongs in LONGTAKE_CLICKHOUSE_PASSWORD, not in the address")
    name = address.path.strip("/") or "longtake"
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError(f"not a database name: {name!r}")
    return name


def migrate(settings: Settings) -> tuple[str, ...]:
    """Create the database if it is missing and apply what is new of `schemas/clickhouse/*.sql`, in order; the names of those.

    Any number of processes may do it at once: every statement of a migration can run twice, and its entry in the table
    `migrations` has a deduplication token.

    Raises: DatabaseError; ValueError if a migration was changed after it had been applied.
    """
    name = database_of(settings)
    server = _client(settings, None)
    if not server.command(f"EXISTS DATABASE {name}"):
        server.command(f"CREATE DATABASE IF NOT EXISTS {name}")
    client = connect(settings)
    if not client.command("EXISTS TABLE migrations"):
        client.command(_MIGRATIONS)
    entries: Sequence[Sequence[str]] = client.query("SELECT name, digest FROM migrations").result_rows
    applied = {entry[0]: entry[1] for entry in entries}
    new: list[str] = []
    for path in sorted(MIGRATIONS.glob("*.sql")):
        digest = xxhash.xxh3_128_hexdigest(path.read_bytes())
        if path.name not in applied:
            _apply(client, path, digest)
            new.append(path.name)
        elif applied[path.name] != digest:
            raise ValueError(f"{path.name} was changed after it had been applied")
    if new:
        _comment_views(client)
    return tuple(new)


def _apply(client: Client, path: Path, digest: str) -> None:
    for statement in re.split(r";\s*$", path.read_text(), flags=re.MULTILINE):
        if re.sub(r"--.*", "", statement).strip():
            _command(client, statement)
    token = {"insert_deduplication_token": f"migrations:{path.name}", "async_insert": 0}
    client.insert("migrations", [[path.name, digest]], column_names=["name", "digest"], settings=token)
    log.info("applied %s", path.name)


def _command(client: Client, statement: str) -> None:
    """A change of a table is refused while another process makes one: it is tried again. Raises: DatabaseError."""
    deadline_s = time.monotonic() + _ALTER_S
    while True:
        try:
            client.command(statement)
        except DatabaseError as error:
            if error.code not in _UNDER_WAY or time.monotonic() > deadline_s:
                raise
            time.sleep(_PAUSE_S)
        else:
            return


def _comment_views(client: Client) -> None:
    """Give the columns of each view the comments of the logs it reads: views are what analysts describe."""
    columns = client.query("SELECT table, name, comment FROM system.columns WHERE database = currentDatabase()")
    said: dict[tuple[str, str], str] = {(table, name): comment for table, name, comment in columns.result_rows}
    for view in {table for table, _ in said if (_log_of(table), "job_id") in said}:
        logs = _log_of(view), "finish_log"
        comments = [
            f"COMMENT COLUMN {name} '{said.get((logs[0], name)) or said.get((logs[1], name), '')}'"
            for table, name in said
            if table == view
        ]
        _command(client, f"ALTER TABLE {view} {', '.join(comments)}")


def _log_of(view: str) -> str:
    return "qoe_log" if view == "plays" else f"{view[:-1]}_log"


_MIGRATIONS = """
CREATE TABLE IF NOT EXISTS migrations (name String, digest String, applied_at DateTime64(6, 'UTC') DEFAULT now64(6))
ENGINE = MergeTree ORDER BY name SETTINGS non_replicated_deduplication_window = 10000
COMMENT 'Files of schemas/clickhouse that were applied'
"""


def _client(settings: Settings, database: str | None) -> Client:
    address = urlsplit(settings.clickhouse)
    _check_user(address, settings)
    return clickhouse_connect.get_client(
        interface=address.scheme,
        host=address.hostname,
        port=address.port or (8443 if address.scheme == "https" else 8123),
        username=unquote(address.username or "default"),
        password=settings.clickhouse_password.get_secret_value(),
        database=database or "default",
        autogenerate_session_id=False,
        connect_timeout=5,
        send_receive_timeout=60,
    )


def _check_user(address: SplitResult, settings: Settings) -> None:
    """A user without a password may exist on this machine only."""
    if address.hostname in {"localhost", "127.0.0.1", "::1"}:
        return
    if not settings.clickhouse_password.get_secret_value():
        raise ValueError(f"no password for ClickHouse on {address.hostname}: set LONGTAKE_CLICKHOUSE_PASSWORD")
