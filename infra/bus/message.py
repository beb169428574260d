"""A record as it came from Kafka, before anything is known about it."""

from dataclasses import dataclass

from schemas.headers import Headers


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Raw bytes and where they came from. `timestamp_us` is the broker's, since the epoch."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_us: int
