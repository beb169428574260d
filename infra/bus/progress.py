"""Tells a partition that is stuck from one that has nothing to read.

Brokers can leave a transaction hanging for ever when they restart (KAFKA-20734). Its readers then wait, and so does
everybody who wants the group's offsets: no error comes, and no client can cure it.
"""

import logging
import time
from collections.abc import Iterable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import cast

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ListOffsetsResultInfo,  # pyright: ignore[reportPrivateImportUsage] (public, but not in its __all__)
    OffsetSpec,  # pyright: ignore[reportPrivateImportUsage]
)

from infra.bus import clients
from infra.bus.message import Partition
from infra.settings import Settings

LIMIT_S = 20.0
_LOOKS = 4  # per limit

log = logging.getLogger(__name__)
Offsets = dict[Partition, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Where partitions end: `stable` for read_committed, `written` with what open transactions wrote."""

    stable: Offsets
    written: Offsets

    def open(self) -> Offsets:
        """Partitions that an open transaction holds up, and where."""
        return {place: offset for place, offset in self.stable.items() if self.written.get(place, 0) > offset}


class EndsQuery:
    """Asks the broker for the ends of partitions without waiting for the answer."""

    def __init__(self, client: AdminClient, places: Iterable[Partition]) -> None:
        latest = cast(OffsetSpec, OffsetSpec.latest())
        wanted = {TopicPartition(*place): latest for place in places}
        # `stable` is asked for first: what it lacks is then older than the answer to `written`.
        self._stable = client.list_offsets(wanted, isolation_level=IsolationLevel.READ_COMMITTED)
        self._written = client.list_offsets(wanted, isolation_level=IsolationLevel.READ_UNCOMMITTED)

    def done(self) -> bool:
        return all(future.done() for futures in (self._stable, self._written) for future in futures.values())

    def result(self) -> Ends:
        """Waits for every answer: a client must not be destroyed with some under way. Raises: KafkaException if one is an error."""
        wait([future for futures in (self._stable, self._written) for future in futures.values()])
        return Ends(stable=_offsets(self._stable), written=_offsets(self._written))


class ProgressWatch:
    """Fed by the loop; logs an error with a name when a partition is stuck, once."""

    def __init__(self, settings: Settings, limit_s: float = LIMIT_S) -> None:
        self._admin = clients.admin(settings)
        self._limit_s = limit_s
        self._since: dict[Partition, float] = {}
        self._read: Offsets = {}
        self._held: dict[Partition, tuple[int, float]] = {}
        self._query: EndsQuery | None = None
        self._next_look = 0.0
        self.stuck: dict[Partition, str] = {}
        """What is wrong now, for readiness."""

    def moved(self, place: Partition, offset: int) -> None:
        """The partition is read up to `offset`, the next one to come: a record or its end was seen."""
        self._read[place] = offset
        self._since[place] = time.monotonic()
        self._held.pop(place, None)
        if self.stuck.pop(place, None):
            log.warning("%s moves again", _name(place))

    def forget(self, places: Iterable[Partition]) -> None:
        """The partitions were revoked."""
        for place in places:
            for memory in (self._since, self._read, self._held, self.stuck):
                memory.pop(place, None)

    def look(self, waiting: set[Partition]) -> None:
        """`waiting` are the partitions a record should come from: assigned and not paused. Cheap, once per turn."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + self._limit_s / _LOOKS
        if self._query and self._query.done():
            self._judge(waiting, now)
        for place in set(self._since) - waiting:
            del self._since[place]
        quiet = [place for place in waiting if now - self._since.setdefault(place, now) >= self._limit_s / 2]
        self._query = EndsQuery(self._admin, quiet) if quiet else None

    def _judge(self, waiting: set[Partition], now: float) -> None:
        try:
            ends = self._query.result() if self._query else Ends(stable={}, written={})
        except KafkaException as error:
            log.warning("the broker does not say where partitions end: %s", error)
            return
        for place in waiting & set(ends.stable):
            self._hold(place, ends.open().get(place), now)
            problem = self._problem(place, ends, now)
            if problem and place not in self.stuck:
                self.stuck[place] = problem
                log.error("%s is stuck: %s", _name(place), problem)

    def _hold(self, place: Partition, offset: int | None, now: float) -> None:
        if offset is None:
            self._held.pop(place, None)
        elif self._held.get(place, (None, now))[0] != offset:
            self._held[place] = (offset, now)

    def _problem(self, place: Partition, ends: Ends, now: float) -> str:
        if now - self._since.get(place, now) < self._limit_s:
            return ""
        offset, since = self._held.get(place, (0, now))
        if now - since >= self._limit_s / 4:
            records = ends.written[place] - ends.stable[place]
            return f"hanging transaction: open at offset {offset} for {now - since:.0f} s, {records} records wait for its end"
        if place not in self._read:
            return "unstable offsets: the group's committed offset or the partition's leader cannot be had"
        if ends.stable[place] > self._read[place]:
            return (
                f"no record for {self._limit_s:.0f} s with offsets {self._read[place]} to {ends.stable[place]} to read"
            )
        return ""


def _offsets(futures: "dict[TopicPartition, Future[ListOffsetsResultInfo]]") -> Offsets:
    return {(p.topic, p.partition): future.result().offset for p, future in futures.items()}


def _name(place: Partition) -> str:
    return f"{place[0]}/{place[1]}"
