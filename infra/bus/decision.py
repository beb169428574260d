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


class Queue(Protocol):
    """Whose turn it is among the jobs of one partition."""

    def saw(self, before: JobState | None, after: JobState) -> None:
        """A row was new or changed."""
        ...

    def full(self, job: JobState) -> BadInputError | None:
        """Why one more job like this cannot wait, if it cannot."""
        ...

    def next(self) -> str | None:
        """The job that is to be started now. Then its row changes; until it does, the answer is the same."""
        ...


class Decider(Protocol):
    """The pure part of a table worker: no clients, no clocks, the same answer for the same arguments."""

    def decide(self, message: Message, state: JobState | None, now_us: int) -> Decision:
        """What `message` does to the row of its key. Never raises BadInputError: it is a decision to refuse."""
        ...

    def scan(self, states: Iterable[JobState], now_us: int) -> list[Decision]:
        """What is to be done about rows that nobody wrote about for too long; each decision has a state."""
        ...

    def queue(self) -> Queue:
        """An empty one."""
        ...

    def start(self, state: JobState, now_us: int) -> Decision:
        """It is the job's turn: a decision with a state."""
        ...

    def refuse(self, message: Message, state: JobState, error: BadInputError, now_us: int) -> Decision:
        """`message` would make a job wait, as in `state`, where the queue is full."""
        ...
