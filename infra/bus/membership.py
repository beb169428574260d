"""The reading side of a slot: which partitions it holds, one record after the other, and back to what was committed."""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from infra.bus.clients import TRANSACTION_TIMEOUT_MS
from infra.bus.errors import BusError
from infra.bus.message import Message, Partition
from infra.bus.progress import ProgressWatch
from infra.bus.received import End, received
from infra.bus.transaction import Group
from infra.bus.watchdog import Watchdog
from infra.metrics import meters

_COMMITTED_S = 1.0
_STABLE_S = 2 * TRANSACTION_TIMEOUT_MS / 1000

log = logging.getLogger(__name__)
Dropped = Callable[[set[Partition]], None]
"""Told before the partitions go. Must not block: forget what is in hand of them, it comes again elsewhere."""
Held = Callable[[frozenset[Partition]], None]
"""Told which partitions are held, when that changes. Must not block."""


def nobody(_: Collection[Partition]) -> None:
    """Does not need to know."""


class Membership:
    """Owns the consumer of a slot. Not for threads: callbacks run inside `poll`."""

    def __init__(self, consumer: Consumer, progress: ProgressWatch, watchdog: Watchdog, held: Held = nobody) -> None:
        self._consumer = consumer
        self._progress = progress
        self._watchdog = watchdog
        self._dropped: Dropped = nobody
        self._held = held
        self._read: set[Partition] = set()
        self.assigned: set[Partition] = set()
        self.paused: set[Partition] = set()
        self.group: Group = None
        """Generation of the last `poll`. Asking later may block for ever: a fatal consumer does not answer."""

    def join(self, topics: Iterable[str], dropped: Dropped) -> None:
        """Become a member of the group. Partitions come with later polls."""
        self._dropped = dropped
        self._consumer.subscribe(
            list(topics), on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def poll(self, timeout_s: float) -> Message | None:
        """The next record of a partition that is not paused: one turn of the loop. Raises: FatalClientError, BusError."""
        self._watchdog.beat()
        record = self._consumer.poll(timeout_s)
        got = None if record is None else received(record)
        self.group = self._consumer.consumer_group_metadata()
        self._progress.look(self.assigned - self.paused)
        meters.STUCK.set(len(self._progress.stuck))
        if got is None:
            return None
        if isinstance(got, End):
            self._progress.moved(got.place, got.offset)
            return None
        self._read.add(got.place)
        self._progress.moved(got.place, got.offset + 1)
        return got

    def unready(self) -> str:
        """What is wrong if no partition is assigned, or one is stuck."""
        if not self.assigned:
            return "no partition is assigned"
        return "; ".join(
            f"{topic}/{partition}: {why}" for (topic, partition), why in list(self._progress.stuck.items())
        )

    def pause(self, places: set[Partition]) -> None:
        """Hold the partitions' records back."""
        fresh = places - self.paused
        if fresh:
            self._consumer.pause([TopicPartition(*place) for place in fresh])
            self.paused |= fresh

    def resume(self, places: set[Partition]) -> None:
        """Let those of `places` go on that are paused."""
        paused = self.paused & places
        if paused:
            self._consumer.resume([TopicPartition(*place) for place in paused])
            self.paused -= paused

    def committed(self, places: Iterable[Partition]) -> dict[Partition, int]:
        """The next offset to read of each partition; OFFSET_BEGINNING where nothing was committed.

        Offsets inside an open transaction are waited for: the answer is the last word of whoever had the partition
        before. Raises: BusError if there is no answer in time.
        """
        found = self._committed(places)
        return {(p.topic, p.partition): p.offset if p.offset >= 0 else OFFSET_BEGINNING for p in found}

    def noted(self, place: Partition) -> tuple[int, str]:
        """The next offset to read of a partition, and the text that was committed with it. Raises: BusError."""
        (found,) = self._committed([place])
        return found.offset, found.metadata or ""

    def _committed(self, places: Iterable[Partition]) -> list[TopicPartition]:
        asked = [TopicPartition(*place) for place in places]
        deadline = time.monotonic() + _STABLE_S
        while True:
            self._watchdog.beat()
            try:
                return self._consumer.committed(asked, _COMMITTED_S)
            except KafkaException as error:
                cause: KafkaError = error.args[0]
                if cause.code() == cause._TIMED_OUT and time.monotonic() < deadline:  # pyright: ignore[reportPrivateUsage]
                    continue
                raise BusError(f"the group's committed offsets cannot be read: {cause.str()}") from error

    def commit(self, offsets: Mapping[Partition, int]) -> bool:
        """For members that write nothing: the next offset to read of each partition. False: not now, they may come again."""
        try:
            self._consumer.commit(
                offsets=[TopicPartition(*place, offset) for place, offset in offsets.items()], asynchronous=False
            )
        except KafkaException as error:
            cause: KafkaError = error.args[0]
            log.warning("offsets are not committed: %s", cause.str())
            return False
        return True

    def rewind(self, places: set[Partition]) -> None:
        """After an abort: read `places` again from what was committed. Raises: BusError."""
        self.resume(places)
        for (topic, partition), offset in self.committed(places & self._read).items():
            self._consumer.seek(TopicPartition(topic, partition, offset))

    def close(self) -> None:
        """Stop. A static member keeps its partitions for the time of a session: its restart goes on with them."""
        self._consumer.close()

    def _on_assign(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        places = _places(partitions)
        self._assign(self.assigned | places)
        log.info("assigned: %s", _names(places))

    def _on_revoke(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        log.info("revoked: %s", _names(_places(partitions)))
        self._drop(_places(partitions))

    def _on_lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        log.warning("lost, others have them already: %s", _names(_places(partitions)))
        self._drop(_places(partitions))

    def _assign(self, places: set[Partition]) -> None:
        self.assigned = places
        meters.ASSIGNED.set(len(places))
        self._held(frozenset(places))

    def _drop(self, places: set[Partition]) -> None:
        self.resume(places)  # a pause would outlive the assignment and hold the partition when it comes back
        self._assign(self.assigned - places)
        self._read -= places
        self._progress.forget(places)
        self._dropped(places)


def _places(partitions: list[TopicPartition]) -> set[Partition]:
    return {(p.topic, p.partition) for p in partitions}


def _names(places: set[Partition]) -> str:
    return ", ".join(f"{topic}/{partition}" for topic, partition in sorted(places)) or "nothing"
