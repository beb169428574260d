"""Rows of the director's table to bytes, part by part: a row grows with its job, and an event changes little of it."""

import io
import json
import typing
from dataclasses import dataclass, field, fields, replace
from functools import cache
from itertools import chain
from typing import Any

import fastavro
import msgspec

from schemas.codec import framing, oldest_version
from schemas.ids import Version, versions
from schemas.records import JobState, Stage

RESTING = frozenset({Stage.QUEUED, Stage.FINISHED, Stage.FAILED, Stage.CANCELLED})
"""Nothing is asked for such a job. There may be ten thousand of them."""


@dataclass(slots=True)
class _Part:
    """A plan, segment or piece, the number of the oldest version that says it, and its bytes by number of version."""

    value: object
    oldest: int
    written: dict[int, bytes] = field(default_factory=dict)

    def avro(self, version: Version) -> bytes:
        written = self.written.get(version.version)
        if written is None:
            written = self.written[version.version] = _avro(_schema(version, type(self.value).__name__), self.value)
        return written


_Parts = dict[int, _Part]
"""By the identity of a value, which is kept, so that no other object can have it."""


class RowEncoder:
    """Writes what `codec.encode` writes, byte for byte, and remembers the plan and the items of every array of each job's last row.

    What is still the same object is not encoded again: the row of a two-minute job takes a tenth of the time.
    """

    def __init__(self) -> None:
        self._jobs: dict[str, _Parts] = {}

    def encode(self, row: JobState) -> bytes:
        """The row in Confluent framing."""
        known = self._jobs.pop(row.job_id, {})
        arrays = [value for each in fields(row) if isinstance(value := getattr(row, each.name), tuple)]
        values = [value for value in (row.plan, *chain.from_iterable(arrays)) if value is not None]
        parts = {id(v): known.get(id(v)) or _Part(v, oldest_version(JobState, v).version) for v in values}
        rest = oldest_version(JobState, replace(row, plan=None, segments=(), pieces=()))
        version = _version(max({rest.version, *(part.oldest for part in parts.values())}))
        out = [framing(version)]
        for name in _fields(version):
            value = getattr(row, name)
            if isinstance(value, tuple):
                items = typing.cast("tuple[object, ...]", value)
                out += [_avro("long", len(items)), *(parts[id(i)].avro(version) for i in items)] if items else []
                out.append(_END)
            elif name == "plan":
                out += [_AVRO_SECOND, parts[id(value)].avro(version)] if value else [_AVRO_FIRST]
            else:
                out.append(_avro(_schema(version, name), value))
        if row.stage not in RESTING:
            self._jobs[row.job_id] = parts
        return b"".join(out)


_END = b"\0"
"""Of an array: a block of no items."""
_AVRO_FIRST, _AVRO_SECOND = b"\0", b"\2"
"""Branches of the union `["null", Plan]`."""


@cache
def _version(number: int) -> Version:
    return next(v for v in versions() if (v.record, v.version) == (JobState.__name__, number))


def _avro(schema: Any, value: object) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, msgspec.to_builtins(value))
    return out.getvalue()


@cache
def _fields(version: Version) -> dict[str, Any]:
    """Types of the row's fields in that version, by name."""
    return {entry["name"]: entry["type"] for entry in json.loads(version.path.read_text())["fields"]}


@cache
def _schema(version: Version, name: str) -> Any:
    """Of a field of the row, or of a record within it, by its name: complete in itself."""
    fields = _fields(version)
    records = {record["name"]: record for record in _records(list(fields.values()))}
    return fastavro.parse_schema(_whole(fields.get(name) or records[name], records, set()), named_schemas={})


def _records(schema: Any) -> typing.Iterator[dict[str, Any]]:
    """Every record that is defined in a schema, at any depth."""
    if isinstance(schema, list):
        for part in typing.cast("list[Any]", schema):
            yield from _records(part)
    elif isinstance(schema, dict):
        if schema["type"] == "record":
            yield schema
        parts = [entry["type"] for entry in schema.get("fields", ())]
        yield from _records([*parts, schema.get("items"), schema.get("values")])


def _whole(schema: Any, records: dict[str, Any], defined: set[str]) -> Any:
    """The schema with each record defined where it is named first."""
    if isinstance(schema, list):
        return [_whole(part, records, defined) for part in typing.cast("list[Any]", schema)]
    if isinstance(schema, str):
        name = schema.removeprefix("longtake.")
        return _whole(records[name], records, defined) if name in records and name not in defined else schema
    if schema["type"] != "record":
        return {key: _whole(part, records, defined) if key != "type" else part for key, part in schema.items()}
    if schema["name"] in defined:
        return f"longtake.{schema['name']}"
    defined.add(schema["name"])
    entries = [{**entry, "type": _whole(entry["type"], records, defined)} for entry in schema["fields"]]
    return {**schema, "fields": entries}
