"""Rows into ClickHouse, exactly once: inserts that wait while it is away, and that look whether a token kept its promise."""

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import count
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError, OperationalError
from prometheus_client import Counter, Histogram

from infra.clickhouse import connect, migrate
from infra.settings import Settings

INSERT_S = Histogram("longtake_insert_seconds", "One insert into ClickHouse, answered.", ("table",))
ROWS = Counter("longtake_rows_inserted_total", "Rows that ClickHouse took, or had taken before.", ("table",))
log = logging.getLogger(__name__)
T = TypeVar("T")
Value: TypeAlias = str | int | float | bool | date | Sequence[str] | Sequence[int] | Sequence[float] | None

_PAUSE_S = (0.1, 5.0)
_SERVER_TRUST_S = 10.0
"""Shorter than a session of Kafka: within it nobody else is given a record whose insert was under way when all died."""
_SKEW_US = 5_000_000
"""Between the clocks of Kafka and ClickHouse."""
_COMMIT_S = 0.5
"""How long rows may be on their way whose token is already known."""
_AWAY = {159, 164, 202, 203, 209, 210, 236, 241, 242, 252, 319, 394, 425, 999}
"""Server errors that pass: time-outs, read-only, too many queries or parts, network, memory, aborted, cancelled, Keeper."""
_ARROW = {
    "String": pa.string(),
    "Bool": pa.bool_(),
    "Date": pa.date32(),
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
    """Rows that are inserted as one or not at all, and once, however often they are inserted."""

    table: str
    key: tuple[str, ...]
    """Columns that are the same in all the rows, and that no other rows of the table share."""
    since_us: int
    """When they can have been inserted for the first time: the time of the record that they are made of."""
    columns: Mapping[str, Sequence[Value]]

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.columns.values()), ()))

    @property
    def token(self) -> str:
        """The deduplication token: `table:job:piece:attempt`."""
        return ":".join([self.table, *(str(self.columns[name][0]) for name in self.key)])


class Database:
    """The database of `settings.clickhouse`, created and migrated when it is first reached. Safe to share between threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._client: Client | None = None
        self._schemas: dict[str, pa.Schema] = {}
        self._server_since_us = 0
        self._server_asked_s = -math.inf

    def insert(self, rows: Rows) -> None:
        """Returns when the rows are there, however long ClickHouse is away.

        1. Insert with the token: if it is known, ClickHouse does nothing. 2. If ClickHouse was started after the rows can
        have been inserted first, look whether they are there. A server that is killed between the entry in its log of
        tokens and the commit of the rows (1 of 50 kills under load) remembers a token without rows, and would drop them
        for good. 3. If they are not there, insert them with a token of the next number.

        Raises: RowsError; ClosedError if `close` is called meanwhile; DatabaseError if ClickHouse refuses the rows (a bug).
        """
        if not rows.count:
            return
        token = rows.token
        for number in count(1):
            name = token if number == 1 else f"{token}:{number}"
            self._patiently(lambda client, name=name: self._insert(client, rows, name), name)
            if self._patiently(lambda client: self._landed(client, rows), token):
                return
            log.warning("clickhouse knows the token but not the rows, again: %s", name)

    def close(self) -> None:
        """End the waiting inserts. The database cannot be used afterwards."""
        self._closed.set()

    def _insert(self, client: Client, rows: Rows, token: str) -> None:
        schema = self._schema(client, rows.table)
        fields = [schema.field(name) for name in rows.columns]
        try:
            arrays = [pa.array(list(rows.columns[field.name]), field.type) for field in fields]
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise RowsError(f"{token}: {error}") from error
        settings = {"insert_deduplication_token": token, "async_insert": 0}
        with INSERT_S.labels(rows.table).time():
            client.insert_arrow(rows.table, pa.Table.from_arrays(arrays, schema=pa.schema(fields)), settings=settings)
        ROWS.labels(rows.table).inc(rows.count)

    def _landed(self, client: Client, rows: Rows) -> bool:
        if rows.since_us > self._server_since(client) + _SKEW_US:
            return True
        where = " AND ".join(f"{name} = {{{name}:{kind}}}" for name, kind in _key_types(rows).items())
        query = f"SELECT count() FROM {rows.table} WHERE {where}"  # noqa: S608 (names of our own, values are bound)
        parameters = {name: rows.columns[name][0] for name in rows.key}
        deadline = time.monotonic() + _COMMIT_S
        while not (found := _answer(client, query, parameters)[0][0] >= rows.count):
            if time.monotonic() > deadline:
                break
            self._closed.wait(_PAUSE_S[0])
        return found

    def _server_since(self, client: Client) -> int:
        """When the server was started, asked for anew now and then and after every error."""
        if time.monotonic() - self._server_asked_s > _SERVER_TRUST_S:
            query = "SELECT toUnixTimestamp64Micro(now64(6)) - 1000000 * toInt64(uptime())"
            self._server_since_us = _answer(client, query, {})[0][0]
            self._server_asked_s = time.monotonic()
        return self._server_since_us

    def _schema(self, client: Client, table: str) -> pa.Schema:  # pyright: ignore[reportUnknownParameterType] (no stubs)
        if table not in self._schemas:
            columns = _answer(client, f"DESCRIBE TABLE {table}", {})
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
                self._server_asked_s = -math.inf
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


def _answer(client: Client, query: str, parameters: Mapping[str, Value]) -> Sequence[Sequence[Any]]:
    """The rows of an answer that has some. A server that is killed while it answers can send none and no error."""
    rows = client.query(query, dict(parameters)).result_rows
    if not rows:
        raise OperationalError(f"no answer to {query}")
    return rows


def _key_types(rows: Rows) -> dict[str, str]:
    return {name: "Int64" if isinstance(rows.columns[name][0], int) else "String" for name in rows.key}


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
