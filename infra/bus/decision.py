"""What the director decides on a record: a new row of its table, events, or that the record is refused."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from infra.bus.message import Message
from schemas.errors import BadInputError
from schemas.records import JobState
from schemas.topics import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """`state` None: the row stays as it is. `refused`: the record also goes to the dead-letter topic, unchanged."""

    state: JobState | None = None
    events: tuple[Event, ...] = ()
    refused: BadInputError | None = None


class Decider(Protocol):
    """The pure part of a table worker: no clients, no clocks, the same answer for the same arguments."""

    def decide(self, message: Message, state: JobState | None, now_us: int) -> Decision:
        """What `message` does to the row of its key. Never raises BadInputError: it is a decision to refuse."""
        ...

    def scan(self, states: Iterable[JobState], now_us: int) -> list[Decision]:
        """What is to be done about rows that nobody wrote about for too long; each decision has a state."""
        ...
