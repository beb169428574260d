"""`ids.lock`: which schema id is which version of which record. Append-only: an id once given never changes.

`python -m schemas.ids` writes the next version of every record whose fields changed, and gives it an id.
"""

import json
import types
import typing
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import fastavro
import fastavro.schema

from schemas.topics import EVENTS

HERE = Path(__file__).parent
LOCK = HERE / "ids.lock"
_PRIMITIVES: dict[object, str] = {str: "string", int: "long", float: "double", bool: "boolean", bytes: "bytes"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One line of the lock. The subject in a registry is `longtake.<record>` (RecordNameStrategy)."""

    id: int
    record: str
    version: int
    fingerprint: str
    """CRC-64-AVRO of the parsing canonical form."""

    @property
    def path(self) -> Path:
        """The schema file."""
        return HERE / "avro" / self.record / f"{self.version}.avsc"


@cache
def versions() -> tuple[Version, ...]:
    """All lines of the lock, in order."""
    rows = (line.split() for line in LOCK.read_text().splitlines() if line and not line.startswith("#"))
    return tuple(Version(id=int(i), record=r, version=int(v), fingerprint=f) for i, r, v, f in rows)


@cache
def parsed_schema(version: Version) -> dict[str, Any]:
    """The schema as fastavro wants it."""
    schema = fastavro.parse_schema(json.loads(version.path.read_text()), named_schemas={})
    return typing.cast("dict[str, Any]", schema)


def schema_of(record: type[object]) -> dict[str, Any]:
    """The Avro schema that says what the frozen record says."""
    return typing.cast("dict[str, Any]", _avro(record, set()))


def fingerprint(schema: dict[str, Any]) -> str:
    """CRC-64-AVRO of the schema's canonical form, 16 hex digits."""
    return fastavro.schema.fingerprint(fastavro.schema.to_parsing_canonical_form(schema), "CRC-64-AVRO")


def _avro(kind: Any, seen: set[str]) -> Any:
    if kind in _PRIMITIVES:
        return _PRIMITIVES[kind]
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return "string"
    if is_dataclass(kind):
        return _record(typing.cast("type[object]", kind), seen)
    arguments = typing.get_args(kind)
    match typing.get_origin(kind):
        case origin if origin is tuple:
            return {"type": "array", "items": _avro(arguments[0], seen)}
        case origin if origin is dict:
            return {"type": "map", "values": _avro(arguments[1], seen)}
        case origin if origin in (types.UnionType, typing.Union):
            (inner,) = (a for a in arguments if a is not types.NoneType)
            return ["null", _avro(inner, seen)]
        case _:
            raise TypeError(f"no Avro type for {kind}")


def _record(record: type[object], seen: set[str]) -> Any:
    if record.__name__ in seen:
        return f"longtake.{record.__name__}"
    seen.add(record.__name__)
    hints = typing.get_type_hints(record)
    schema: dict[str, Any] = {"type": "record", "name": record.__name__, "namespace": "longtake"}
    schema["doc"] = (record.__doc__ or "").split("\n\n")[0].strip()
    schema["fields"] = []
    for field in fields(typing.cast("Any", record)):
        entry: dict[str, Any] = {"name": field.name, "type": _avro(hints[field.name], seen)}
        if field.default_factory is not MISSING:
            entry["default"] = {}
        elif isinstance(field.default, tuple):
            entry["default"] = list(typing.cast("tuple[object, ...]", field.default))
        elif field.default is not MISSING and not is_dataclass(field.default):
            entry["default"] = field.default
        schema["fields"].append(entry)
    return schema


def main() -> None:
    """Write the next version of every record that changed."""
    lock = LOCK.read_text() if LOCK.exists() else "# id record version fingerprint: append only\n"
    known = versions() if LOCK.exists() else ()
    next_id = max((v.id for v in known), default=0) + 1
    for event in EVENTS:
        schema = schema_of(event)
        mark = fingerprint(schema)
        mine = [v for v in known if v.record == event.__name__]
        if mine and mine[-1].fingerprint == mark:
            continue
        new = Version(id=next_id, record=event.__name__, version=len(mine) + 1, fingerprint=mark)
        new.path.parent.mkdir(parents=True, exist_ok=True)
        new.path.write_text(json.dumps(schema, indent=1) + "\n")
        lock += f"{new.id} {new.record} {new.version} {new.fingerprint}\n"
        next_id += 1
    LOCK.write_text(lock)


if __name__ == "__main__":
    main()
