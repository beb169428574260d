"""A record as it came from Kafka, before anything is known about it."""

from dataclasses import dataclass
from typing import TypeAlias

from schemas.headers import RawHeaders

Partition: TypeAlias = tuple[str, int]
"""Topic and partition number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Raw bytes and where they came from. `timestamp_us` is the broker's, since the epoch."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: RawHeaders
    timestamp_us: int

    @property
    def place(self) -> Partition:
        """Where it came from, without the offset."""
        return self.topic, self.partition

    @property
    def id(self) -> str:
        """`topic/partition/offset`: names this record for ever."""
        return f"{self.topic}/{self.partition}/{self.offset}"

    @property
    def job_id(self) -> str:
        """The key as text, which by contract is the job's id; empty if there is none."""
        return (self.key or b"").decode(errors="replace")
