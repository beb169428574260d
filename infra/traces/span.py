"""What is known of one span before OpenTelemetry's classes: times are microseconds since the epoch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import xxhash

Attribute = str | int | float | bool | tuple[str, ...]


class Key(NamedTuple):
    """Names one try of one kind of work on a job, for ever: attempts never go back."""

    kind: str
    """`segment`, `stitch`, `check piece`, `assemble` or `check video`: the span's name."""
    number: int
    """Of the segment or piece; 0 for the whole video."""
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Something at one point in time inside a span."""

    name: str
    at_us: int
    attributes: Mapping[str, Attribute]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A span of a job's trace. `links`: spans of the same trace that it had to wait for."""

    trace_id: int
    span_id: int
    parent_id: int
    """0: the root."""
    name: str
    service: str
    worker: str
    start_us: int
    end_us: int
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    links: tuple[int, ...] = ()
    moments: tuple[Moment, ...] = ()
    error: str = ""
    """Why it failed; empty: it did not."""


def span_id_of(*parts: object) -> int:
    """The same parts give the same id, so that a job that is read again has the same tree. Never 0."""
    return xxhash.xxh3_64_intdigest("\0".join(map(str, parts)).encode()) or 1
