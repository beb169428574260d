"""ClickHouse: the client, the migrations, and inserts that wait while it is away and never double.

What is in ClickHouse is a view of the truth that lives in Kafka and the object store, so nothing decides by it, and an
insert that is not acknowledged is repeated with the same deduplication token until it is.
"""

import logging
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar
from urllib.parse import unquote, urlsplit

import clickhouse_connect
import pyarrow as pa
import xxhash
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError, OperationalError

from infra.settings import Settings

log = logging.getLogger(__name__)
T = TypeVar("T")
Value: TypeAlias = str | int | float | bool | Sequence[str] | Sequence[int] | Sequence[float] | None

MIGRATIONS = Path(__file__).parents[1] / "schemas" / "clickhouse"
_PAUSE_S = (0.1, 5.0)
_AWAY = {159, 164, 202, 203, 209, 210, 236, 241, 242, 252, 319, 394, 425, 999}
"""Server errors that pass: time-outs, read-only, too many queries or parts, network, memory, aborted, cancelled, Keeper."""
_ARROW = {
    "String": pa.string(),
    "Bool": pa.bool_(),
    "Float32": pa.float32(),
    "Float64": pa.float64(),
    "Int32": pa.int32(),
    "Int64": pa.int64(),
    "UInt16": pa.uint16(),
    "UInt32": pa.uint32(),
    "UInt64": pa.uint64(),
}


class RowsError(ValueError):
    """A value does not fit its column: a number out of range, or the wrong type."""


class ClosedError(Exception):
    """The database was closed while an insert was waiting for it: the record has to come again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows that are inserted as one or not at all. `token` names them: a second insert with the same token changes nothing."""

    table: str
    token: str
    columns: Mapping[str, Sequence[Value]]


class Database:
    """The database of `settings.clickhouse`, created and migrated when it is first reached. Safe to share between threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._client: Client | None = None
        self._schemas: dict[str, pa.Schema] = {}

    def insert(self, rows: Rows) -> None:
        """Returns when the rows are there, however long ClickHouse is away.

        Raises: RowsError; ClosedError if `close` is called meanwhile; DatabaseError if ClickHouse refuses the rows (a bug).
        """
        self._patiently(lambda client: self._insert(client, rows), rows.token)

    def close(self) -> None:
        """End the waiting inserts. The database cannot be used afterwards."""
        self._closed.set()

    def _insert(self, client: Client, rows: Rows) -> None:
        if not any(rows.columns.values()):
            return
        schema = self._schema(client, rows.table)
        fields = [schema.field(name) for name in rows.columns]
        try:
            arrays = [pa.array(list(rows.columns[field.name]), field.type) for field in fields]
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise RowsError(f"{rows.token}: {error}") from error
        settings = {"insert_deduplication_token": rows.token, "async_insert": 0}
        client.insert_arrow(rows.table, pa.Table.from_arrays(arrays, schema=pa.schema(fields)), settings=settings)

    def _schema(self, client: Client, table: str) -> pa.Schema:  # pyright: ignore[reportUnknownParameterType] (no stubs)
        if table not in self._schemas:
            columns = client.query(f"DESCRIBE TABLE {table}").result_rows
            self._schemas[table] = pa.schema([(name, _arrow_type(kind)) for name, kind, *_ in columns])
        return self._schemas[table]

    def _patiently(self, action: Callable[[Client], T], what: str) -> T:
        pause_s, longest_s = _PAUSE_S
        while not self._closed.is_set():
            try:
                return action(self._connected())
            except DatabaseError as error:
                if not _is_away(error):
                    raise
                log.warning("clickhouse is away, next try in %.1f s: %s: %s", pause_s, what, str(error)[:200])
            self._closed.wait(pause_s)
            pause_s = min(2 * pause_s, longest_s)
        raise ClosedError(what)

    def _connected(self) -> Client:
        with self._lock:
            if self._client is None:
                migrate(self._settings)
                self._client = connect(self._settings)
            return self._client


def connect(settings: Settings) -> Client:
    """A client of the database of `settings.clickhouse`, which has to exist. Safe to share between threads.

    Raises: OperationalError if ClickHouse cannot be reached, DatabaseError if it refuses.
    """
    return _client(settings, database_of(settings))


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
    return tuple(new)


def _apply(client: Client, path: Path, digest: str) -> None:
    for statement in re.split(r";\s*$", path.read_text(), flags=re.MULTILINE):
        if re.sub(r"--.*", "", statement).strip():
            client.command(statement)
    token = {"insert_deduplication_token": f"migrations:{path.name}", "async_insert": 0}
    client.insert("migrations", [[path.name, digest]], column_names=["name", "digest"], settings=token)
    log.info("applied %s", path.name)


_MIGRATIONS = """
CREATE TABLE IF NOT EXISTS migrations (name String, digest String, applied_at DateTime64(6, 'UTC') DEFAULT now64(6))
ENGINE = MergeTree ORDER BY name SETTINGS non_replicated_deduplication_window = 10000
COMMENT 'Files of schemas/clickhouse that were applied'
"""


def _client(settings: Settings, database: str | None) -> Client:
    address = urlsplit(settings.clickhouse)
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


def _is_away(error: DatabaseError) -> bool:
    return isinstance(error, OperationalError) or error.code in _AWAY


def _arrow_type(kind: str) -> pa.DataType:  # pyright: ignore[reportUnknownParameterType] (no stubs)
    outer, _, inner = kind.removesuffix(")").partition("(")
    match outer:
        case "Array":
            return pa.list_(_arrow_type(inner))
        case "LowCardinality" | "Nullable":
            return _arrow_type(inner)
        case _:
            return _ARROW[kind]
