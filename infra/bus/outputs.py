"""What is produced: events with their headers, ready for a transaction."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from infra.bus.message import Message
from schemas.codec import encode
from schemas.headers import RawHeaders, event_headers, traceparent_of
from schemas.topics import Event, key_of

E = TypeVar("E", bound=Event)
BY_KEY = -1
"""The partitioner decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A record as it will be written."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: RawHeaders
    partition: int = BY_KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Where events come from. The same cause gives the same `ce_id`s, so a subscriber can drop what is sent twice."""

    id: str
    traceparent: str
    source: str
    time_us: int


def caused_by(message: Message, source: str, time_us: int) -> Cause:
    """The cause of what a record leads to: its trace goes on."""
    traceparent = traceparent_of(message.headers, otherwise=message.job_id or message.id)
    return Cause(id=message.id, traceparent=traceparent, source=source, time_us=time_us)


def outputs_of(events: Iterable[E], cause: Cause, to_bytes: Callable[[E], bytes] = encode) -> list[Output]:
    """The records of `events`, in order."""
    return [_output(event, to_bytes(event), f"{cause.id}/{index}", cause) for index, event in enumerate(events)]


def _output(event: Event, value: bytes, event_id: str, cause: Cause) -> Output:
    headers = event_headers(
        event, event_id=event_id, traceparent=cause.traceparent, source=cause.source, time_us=cause.time_us
    )
    return Output(topic=event.topic, key=key_of(event).encode(), value=value, headers=headers)
