"""Workers of one role, served as `infra/bus/worker.py` serves: a record of a partition at a time, `slots` in hand, partitions in turn."""

from collections import deque
from collections.abc import Callable, Generator, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, Generic, TypeAlias, TypeVar

import simpy

Record = TypeVar("Record")
Steps: TypeAlias = Generator[simpy.Event, Any, None]


def dealt(partitions: int, workers: int) -> tuple[int, ...]:
    """Which worker has each partition: as evenly as it goes."""
    return tuple(partition % workers for partition in range(partitions))


class Role(Generic[Record]):
    """Workers that own partitions. `work` is what one does with a record; a record is gone when its work has ended.

    A worker that is taken away loses what it has in hand, and nothing else: the records come again, at the head of their
    partitions, where those go.
    """

    def __init__(
        self, env: simpy.Environment, owners: Sequence[int], slots: int, work: Callable[[int, Record], Steps]
    ) -> None:
        self._env = env
        self._slots = slots
        self._work = work
        self._home = tuple(owners)
        self._owners = list(owners)
        self._queues: list[deque[Record]] = [deque() for _ in owners]
        self._hands: list[dict[int, simpy.Process]] = [{} for _ in range(max(owners) + 1)]
        """Of each worker: what runs, by partition."""
        self._ready: list[list[tuple[float, int]]] = [[] for _ in self._hands]
        """Of each worker: partitions with a record that could start, the one served longest ago first."""
        self._served = [-1.0] * len(owners)
        self._down: set[int] = set()

    def put(self, partition: int, record: Record) -> None:
        """A record arrives."""
        self._queues[partition].append(record)
        if len(self._queues[partition]) == 1:
            owner = self._owners[partition]
            heappush(self._ready[owner], (self._served[partition], partition))
            self._start(owner)

    def kill(self, worker: int) -> int:
        """The worker is gone; how many records it had in hand."""
        self._down.add(worker)
        hands, self._hands[worker] = self._hands[worker], {}
        for partition, process in hands.items():
            process.interrupt()
            heappush(self._ready[worker], (self._served[partition], partition))
        return len(hands)

    def restart(self, worker: int) -> None:
        """It is back, and takes up where it was."""
        self._down.discard(worker)
        self._start(worker)

    def give_to(self, worker: int, others: Sequence[int]) -> None:
        """The partitions of a worker that is down are dealt to others."""
        places = [place for place, owner in enumerate(self._owners) if owner == worker]
        for number, place in enumerate(places):
            self._move(place, others[number % len(others)])

    def give_back(self, worker: int) -> None:
        """It has its own partitions again, as soon as what is in hand of them is done."""
        for place, home in enumerate(self._home):
            if home == worker:
                self._move(place, worker)

    def _move(self, place: int, to: int) -> None:
        before, self._owners[place] = self._owners[place], to
        waiting = [entry for entry in self._ready[before] if entry[1] == place]
        if waiting:
            self._ready[before].remove(waiting[0])
            heapify(self._ready[before])
            heappush(self._ready[to], waiting[0])
            self._start(to)

    def _start(self, worker: int) -> None:
        hands, ready = self._hands[worker], self._ready[worker]
        while ready and len(hands) < self._slots and worker not in self._down:
            _, partition = heappop(ready)
            self._served[partition] = self._env.now
            hands[partition] = self._env.process(self._serve(worker, partition))

    def _serve(self, worker: int, partition: int) -> Steps:
        try:
            yield from self._work(worker, self._queues[partition][0])
        except simpy.Interrupt:
            return
        del self._hands[worker][partition]
        self._queues[partition].popleft()
        owner = self._owners[partition]
        if self._queues[partition]:
            heappush(self._ready[owner], (self._served[partition], partition))
        self._start(worker)
        if owner != worker:
            self._start(owner)
