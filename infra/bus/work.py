"""What a worker does with a record: heavy work that ends in events. The loop (`worker.py`) does everything else."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, TypeAlias

from infra.bus.in_hand import in_hand
from infra.bus.message import Message
from schemas.topics import Event

Answer: TypeAlias = "Future[Sequence[Event]]"
Handler = Callable[[Message], Sequence[Event]]
"""Raises BadInputError: the record is dead-lettered. Any other error ends the process, and the record comes again."""


class Work(Protocol):
    """Records in, futures of events out. At most one record of a partition is in flight."""

    def submit(self, message: Message) -> Answer:
        """Start the work and return at once. A future that gets cancelled is no longer waited for: its partition is gone."""
        ...

    def unready(self) -> str:
        """Why no new record should be submitted now; empty: submit."""
        ...

    def close(self) -> None:
        """Give up what is in hand: it will come again."""
        ...


class ThreadWork:
    """A handler that spends its time in subprocesses or in code that releases the interpreter lock."""

    def __init__(self, handler: Handler, slots: int) -> None:
        self._handler = handler
        self._pool = ThreadPoolExecutor(slots, thread_name_prefix="work")

    def submit(self, message: Message) -> Answer:
        return self._pool.submit(self._handled, message)

    def _handled(self, message: Message) -> Sequence[Event]:
        with in_hand(message):
            return self._handler(message)

    def unready(self) -> str:
        return ""

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
