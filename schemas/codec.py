"""Records to bytes and back: Avro in Confluent wire format (0x00, big-endian schema id, body).

Schema ids come from `ids.lock`, so no registry is needed; the same ids can be imported into one. A record is written with
the oldest version of its schema that says all it says, so that workers of the last release read it while a new one is rolled
out, and so that new fields rename no older content: hashes are of these bytes. It is read with whichever it was written with,
resolved to the newest.
"""

import io
import json
import re
import struct
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar, cast

import fastavro
import msgspec
import xxhash

from schemas.errors import BadInputError
from schemas.ids import Version, parsed_schema, versions
from schemas.records import Card, Effect, Music, Narration, PromptSubmitted, Shot, Subtitle
from schemas.topics import EVENTS, Event

T = TypeVar("T", bound=Event)
_HEADER = struct.Struct(">bI")
_PARTS: dict[str, type[object]] = {
    "shots": Shot,
    "music": Music,
    "effects": Effect,
    "narration": Narration,
    "subtitles": Subtitle,
    "title_card": Card,
    "end_card": Card,
}
"""Records inside a prompt, by the field they are in."""
_TYPES: dict[str, type[Event]] = {event.__name__: event for event in EVENTS}
_PATH = re.compile(r"(?P<rule>.*?)(?: - at `\$\.?(?P<path>.*)`)?$", re.DOTALL)


def encode(event: Event) -> bytes:
    """The event in Confluent framing. Raises: ValueError or TypeError if a field has the wrong type (a bug of the caller)."""
    version = oldest_version(type(event), event)
    out = io.BytesIO()
    out.write(_HEADER.pack(0, version.id))
    newest = version == _newest(version.record)
    fastavro.schemaless_writer(out, parsed_schema(version), msgspec.to_builtins(event), strict=newest)
    return out.getvalue()


def framing(version: Version) -> bytes:
    """What comes before a body of that version."""
    return _HEADER.pack(0, version.id)


def oldest_version(record: type[Event], part: object) -> Version:
    """The oldest version of `record` that says all that this part of one says: the whole, or anything in it."""
    known = _known(record.__name__)
    return next((v for v in known[:-1] if _says_nothing(part, _added_since(v))), known[-1])


def is_framed_as(record: type[Event], data: bytes) -> bool:
    """Whether `data` says that it is a `record`, of whichever version. Its body may still be none."""
    version = _by_id().get(_HEADER.unpack_from(data)[1]) if len(data) >= _HEADER.size and data[0] == 0 else None
    return version is not None and version.record == record.__name__


def is_newer(data: bytes) -> bool:
    """Whether `data` has an id that the lock may have given after this release: the next hundred."""
    last = max(_by_id())
    return len(data) >= _HEADER.size and data[0] == 0 and last < _HEADER.unpack_from(data)[1] <= last + 100


def decode(data: bytes) -> Event:
    """The event in `data`. Raises: BadInputError naming what is wrong with the bytes."""
    if len(data) < _HEADER.size or data[0] != 0:
        raise BadInputError(field="value", rule="framing", message="neither Avro in Confluent framing nor JSON")
    schema_id: int = _HEADER.unpack_from(data)[1]
    version = _by_id().get(schema_id)
    if version is None:
        raise BadInputError(field="value", rule="schema_id", message=f"schema id {schema_id} is not in ids.lock")
    body = io.BytesIO(data)
    body.seek(_HEADER.size)
    try:
        fields_ = fastavro.schemaless_reader(body, parsed_schema(version), parsed_schema(_newest(version.record)))
    except (ValueError, TypeError, EOFError, IndexError, KeyError, OverflowError, MemoryError, struct.error) as error:
        raise BadInputError(
            field="value", rule="avro", message=f"not a {version.record}: {error or 'ends too early'}"
        ) from error
    if body.read(1):
        raise BadInputError(field="value", rule="avro", message=f"bytes left over after a {version.record}")
    return cast("Event", _convert(cast("dict[str, Any]", fields_), _TYPES[version.record]))


def decode_prompt(data: bytes) -> Event:
    """Like `decode`, but a JSON object is a PromptSubmitted: a producer with kcat is a producer."""
    if data[:1] == b"\0":
        return decode(data)
    try:
        raw: object = _json(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BadInputError(field="value", rule="framing", message=f"neither Avro nor JSON: {error}") from error
    if not isinstance(raw, dict):
        raise BadInputError(field="value", rule="type", message="a prompt is a JSON object")
    prompt = cast("dict[str, Any]", raw)
    job_id = prompt.get("job_id")
    job_id = job_id if isinstance(job_id, str) else ""
    _refuse_unknown(prompt, PromptSubmitted, "", job_id)
    for name, record in _PARTS.items():
        value = prompt.get(name)
        parts = cast("list[object]", value) if isinstance(value, list) else [value]
        for index, part in enumerate(parts):
            if isinstance(part, dict):
                path = f"{name}[{index}]." if isinstance(value, list) else f"{name}."
                _refuse_unknown(cast("dict[str, Any]", part), record, path, job_id)
    return cast("Event", _convert(prompt, PromptSubmitted))


def _json(data: bytes) -> object:
    """msgspec's, but a number that no float can hold is a number still: it is refused by its field, not with the whole record."""
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        if "out of range" not in str(error):
            raise
        found: object = json.loads(data)
        # Unlike msgspec it lets half a surrogate pair pass: a ValueError.
        json.dumps(found, ensure_ascii=False).encode()
        return found


def to_json(event: Event) -> bytes:
    """The event as one line of JSON, for people and programs on the command line."""
    return msgspec.json.encode({"type": type(event).__name__, **msgspec.to_builtins(event)})


def content_hash(prompt: PromptSubmitted) -> str:
    """Equal for equal wishes, whenever they were submitted. XXH3-128, 32 hex digits."""
    options = dict(sorted(prompt.engine_options.items()))
    return xxhash.xxh3_128_hexdigest(encode(replace(prompt, submitted_us=0, engine_options=options)))


def request_hash(request: Event) -> str:
    """Names the work a request asks for: equal for the same request sent again, whenever that is. XXH3-128, 32 hex digits."""
    fixed: dict[str, Any] = {"request_hash": "", "requested_us": 0}
    return xxhash.xxh3_128_hexdigest(encode(replace(request, **fixed)))


def sealed(request: T) -> T:
    """The request with its `request_hash` filled in."""
    fixed: dict[str, Any] = {"request_hash": request_hash(request)}
    return replace(request, **fixed)


@cache
def _added_since(version: Version) -> dict[str, dict[str, object]]:
    """Name and default of every field, by record, that today's records have and this version has not."""
    then = _fields_by_record(parsed_schema(version))
    now = _fields_by_record(parsed_schema(_newest(version.record)))
    added = {name: set(names) - set(then[name]) for name, names in now.items() if name in then}
    return {name: {field: now[name][field] for field in new} for name, new in added.items() if new}


def _fields_by_record(schema: Any) -> dict[str, dict[str, object]]:
    """Defaults of the fields of every record in a parsed schema."""
    found: dict[str, dict[str, object]] = {}
    if isinstance(schema, list):
        parts: list[Any] = cast("list[Any]", schema)
    elif not isinstance(schema, dict):
        parts = []
    elif schema["type"] == "record":
        found[schema["name"].rpartition(".")[2]] = {f["name"]: f.get("default") for f in schema["fields"]}
        parts = [f["type"] for f in schema["fields"]]
    else:
        parts = [schema.get("items"), schema.get("values"), schema["type"]]
    for part in parts:
        found |= _fields_by_record(part)
    return found


def _says_nothing(value: object, added: dict[str, dict[str, object]]) -> bool:
    """Whether all added fields, at any depth, have their defaults."""
    if isinstance(value, tuple):
        return all(_says_nothing(item, added) for item in cast("tuple[object, ...]", value))
    names = _field_names(type(value))
    new = added.get(type(value).__name__, {}) if names else {}
    for name in names:
        mine = getattr(value, name)
        if _as_read(msgspec.to_builtins(mine)) != new[name] if name in new else not _says_nothing(mine, added):
            return False
    return True


@cache
def _field_names(kind: type[object]) -> tuple[str, ...]:
    """None of what is no record."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()


def _as_read(value: object) -> object:
    """Tuples as lists, which is what Avro has."""
    if isinstance(value, tuple | list):
        return [_as_read(item) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        return {key: _as_read(item) for key, item in cast("dict[str, object]", value).items()}
    return value


def _convert(value: dict[str, Any], to: type[object]) -> object:
    try:
        return msgspec.convert(value, to)
    except msgspec.ValidationError as error:
        match = _PATH.match(str(error))
        path = (match["path"] if match else None) or "value"
        rule = match["rule"] if match else str(error)
        missing = re.search(r"missing required field `(\w+)`", rule)
        if missing:
            path = missing[1] if path == "value" else f"{path}.{missing[1]}"
        job_id = value.get("job_id")
        raise BadInputError(
            field=path,
            rule="required" if missing else "type",
            message=rule,
            job_id=job_id if isinstance(job_id, str) else "",
        ) from error


def _refuse_unknown(value: dict[str, Any], record: type[object], path: str, job_id: str) -> None:
    unknown = sorted(set(value) - set(_field_names(record)))
    if unknown:
        message = f"a {record.__name__} has no such field"
        raise BadInputError(field=path + unknown[0], rule="unknown_field", message=message, job_id=job_id)


@cache
def _by_id() -> dict[int, Version]:
    return {version.id: version for version in versions()}


@cache
def _known(record: str) -> tuple[Version, ...]:
    return tuple(v for v in versions() if v.record == record)


def _newest(record: str) -> Version:
    return _known(record)[-1]
