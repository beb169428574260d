"""A dead letter as text that a person can edit: one JSON object with the record's fields, or its bytes where it is none."""

import base64
from typing import Any, cast

import msgspec

from infra.bus.letter import DeadLetter
from infra.bus.outputs import Output
from infra.bus.reader import event_of
from schemas.codec import decode_prompt, encode, to_json
from schemas.errors import BadInputError
from schemas.records import PromptSubmitted
from schemas.topics import EVENTS, TOPICS, Event

_TYPES: dict[str, type[Event]] = {event.__name__: event for event in EVENTS}


class MendError(Exception):
    """What is in the text is no record, and what is wrong with it."""


def readable(letter: DeadLetter) -> dict[str, Any] | None:
    """The record in the letter, if it can be read: `type` and its fields."""
    try:
        return cast("dict[str, Any]", msgspec.json.decode(to_json(event_of(letter.original))))
    except BadInputError:
        pass
    try:
        raw: object = msgspec.json.decode(letter.original.value or b"")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return cast("dict[str, Any]", raw) if isinstance(raw, dict) else None


def to_text(letter: DeadLetter) -> bytes:
    """The letter for an editor. `reason` is for reading only."""
    original = letter.original
    content: dict[str, Any] = {
        "reason": f"{letter.field}: {letter.message} [{letter.rule}]",
        "topic": original.topic,
        "key": original.job_id,
        "headers": {name: (value or b"").decode(errors="replace") for name, value in original.headers},
    }
    record = readable(letter)
    content |= {"record": record} if record else {"value_base64": original.value or b""}
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


def from_text(text: bytes) -> Output:
    """The record to send. Raises: MendError, BadInputError naming the field that is still wrong."""
    try:
        content: object = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MendError(f"it cannot be read: {error}") from error
    fields = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
    topic, key, headers = (fields.get(name) for name in ("topic", "key", "headers"))
    known = [t.name for t in TOPICS]
    if topic not in known or not isinstance(topic, str) or not isinstance(key, str) or not isinstance(headers, dict):
        raise MendError("it has no 'topic' of the line, 'key' and 'headers'")
    pairs = tuple((str(name), str(value).encode()) for name, value in cast("dict[str, Any]", headers).items())
    return Output(topic=topic, key=key.encode(), value=_value(fields), headers=pairs)


def _value(fields: dict[str, Any]) -> bytes:
    record = fields.get("record")
    if isinstance(record, dict):
        event = _event(dict(cast("dict[str, Any]", record)))
        try:
            return encode(event)
        except (ValueError, TypeError, OverflowError) as error:
            raise MendError(f"not a {type(event).__name__}: {error}") from error
    try:
        return base64.b64decode(fields["value_base64"], validate=True)
    except (KeyError, TypeError, ValueError) as error:  # what is not ASCII is a ValueError
        raise MendError("it has neither 'record' nor 'value_base64'") from error


def _event(record: dict[str, Any]) -> Event:
    kind = _TYPES.get(str(record.pop("type", PromptSubmitted.__name__)))
    if kind is None:
        raise MendError(f"'type' of the record is not one of {', '.join(_TYPES)}")
    if kind is PromptSubmitted:
        return decode_prompt(msgspec.json.encode(record))
    try:
        return msgspec.convert(record, kind)
    except msgspec.ValidationError as error:
        raise MendError(f"not a {kind.__name__}: {error}") from error
