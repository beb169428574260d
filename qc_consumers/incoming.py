"""A record of Kafka as QC takes it: the event, and the trace it belongs to."""

import re
import time
from dataclasses import dataclass

from infra.bus.message import Message
from schemas.codec import decode
from schemas.errors import BadInputError
from schemas.headers import trace_id, traceparent_of
from schemas.records import PieceStitched, VideoAssembled
from schemas.topics import Event, key_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where rows come from."""

    trace_id: str
    since_us: int
    """When the record was written: its rows cannot be older."""


def opened(message: Message) -> tuple[Event, Origin]:
    """The event and where it comes from. Raises: BadInputError."""
    event = decode(message.value or b"")
    key = key_of(event)
    if message.key != key.encode():
        raise BadInputError(field="key", rule="key", message=f"the key is not the job_id {key!r}", job_id=key)
    trace = trace_id(traceparent_of(message.headers, otherwise=key))
    return event, Origin(trace_id=trace, since_us=message.timestamp_us)


def manifest_key(event: PieceStitched | VideoAssembled) -> str:
    """Where the verdict on this file is kept in the object store. Raises: BadInputError if the event makes no sense."""
    rules = {
        "request_hash": re.fullmatch(r"[0-9a-f]{32}", event.request_hash) is not None,
        "frames": event.frames > 0,
        "format": min(event.format.fps_num, event.format.fps_den, event.format.width, event.format.height) > 0,
    }
    if isinstance(event, PieceStitched):
        times = (event.generated_us, event.decoded_us, event.encoded_us)
        rules["generated_us"] = {len(column) for column in times} == {event.frames}
        rules["start_frame"] = event.start_frame >= 0
        rules["reference_head_context"] = min(event.reference_head_context, event.reference_tail_context) >= 0
    for field, holds in rules.items():
        if not holds:
            value = str(getattr(event, field))[:80]
            raise BadInputError(field=field, rule="range", message=f"cannot be {value}", job_id=event.job_id)
    return f"checked-{event.request_hash}"


def unexpected(event: Event, topic: str) -> BadInputError:
    """What to raise for a record that does not belong on its topic."""
    return BadInputError(
        field="value", rule="type", message=f"a {type(event).__name__} on {topic}", job_id=key_of(event)
    )


def now_us() -> int:
    """Microseconds since the epoch."""
    return time.time_ns() // 1000
