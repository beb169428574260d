"""What the line has done, seen from outside: how far every group has read, what there is to read, what was said.

Recovery is measured here. A fault hits partitions: those that its process held, or of the groups that it stops those in which a
committed record waits. It counts if a record waited in one of them when it began. The line has recovered when the group's
committed offset has moved on in one that was hit: somebody works there again, and has committed. Time runs from the fault (a
kill, a pause), from its end (the store's faults), or from when the broker answers again.
"""

import contextlib
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaException, TopicPartition

from infra.bus import clients
from infra.bus.groups import GroupOffsets
from infra.bus.message import Message, Partition
from infra.bus.received import received
from infra.local.ports import answers
from infra.settings import Settings
from schemas.topics import TOPICS
from tests.chaos.schedule import Fault

_ASK_S = 1.0
_DRAIN = 10_000
_SETTLE_S = 0.1
"""A transaction that was decided before a kill may be committed this long after it."""

Place = tuple[str, str, int]
"""Group, topic, partition."""


class Tail:
    """Owns a reader of every topic. Knows the last committed record of each partition, and keeps records of some topics."""

    def __init__(self, settings: Settings, keep: Iterable[str]) -> None:
        self._keep = frozenset(keep)
        self._port = int(settings.kafka.rpartition(":")[2])
        self._consumer: Consumer = clients.lone_consumer(settings, "longtake.chaos.tail")
        self._places = [(topic.name, p) for topic in TOPICS for p in range(settings.partitions)]
        self._resting = True
        self.last: dict[Partition, int] = {}
        self.kept: list[Message] = []
        self.counts: Counter[str] = Counter()
        """Records of each topic."""

    def rest(self) -> None:
        """Read nothing until the broker, which is about to be killed, leads every partition again.

        librdkafka can crash the process when a starting broker answers a fetch with "no leader" (librdkafka issue 5280). The
        line's processes are started again, this one is not.
        """
        self._consumer.unassign()
        self._resting = True

    def drain(self) -> None:
        """Read what is there."""
        if self._resting:
            if not self._led():
                return
            self._consumer.assign([TopicPartition(*place, self.last.get(place, -1) + 1) for place in self._places])
            self._resting = False
        for _ in range(_DRAIN):
            record = self._consumer.poll(0)
            if record is None:
                return
            got = received(record)
            if isinstance(got, Message):
                self.last[got.place] = got.offset
                self.counts[got.topic] += 1
                if got.topic in self._keep:
                    self.kept.append(got)

    def close(self) -> None:
        self._consumer.close()

    def _led(self) -> bool:
        if not answers(self._port):
            return False
        with contextlib.suppress(KafkaException):
            topics = self._consumer.list_topics(timeout=_ASK_S).topics
            return all(
                name in topics and p in topics[name].partitions and topics[name].partitions[p].leader >= 0
                for name, p in self._places
            )
        return False


class Groups:
    """Owns clients that ask how far groups are, and one that asks who holds what."""

    def __init__(self, settings: Settings) -> None:
        self._admin = clients.admin(settings)
        self._port = int(settings.kafka.rpartition(":")[2])
        self._offsets = GroupOffsets(settings)
        self._places = [(topic.name, p) for topic in TOPICS for p in range(settings.partitions)]

    def alive(self) -> bool:
        """Whether the broker serves."""
        try:
            return answers(self._port) and bool(self._admin.list_topics(timeout=_ASK_S).brokers)
        except KafkaException:
            return False

    def of_role(self, role: str) -> str:
        """The group of a role. Raises: StopIteration if it has none yet."""
        found = self._admin.list_consumer_groups().result().valid
        names = [group.group_id for group in found]
        return next(name for name in names if name == f"longtake.{role}" or name.startswith(f"longtake.{role}."))

    def committed(self, group: str) -> dict[Place, int]:
        """The next offset of every partition that the group has committed; nothing while the broker is away."""
        if not answers(self._port):
            return {}
        with contextlib.suppress(KafkaException):
            found = self._offsets.of(group, self._places, _ASK_S)
            return {(group, *place): offset for place, offset in found.items()}
        return {}

    def held(self, group: str) -> dict[str, set[Partition]]:
        """The partitions of each process, by its name in the stack."""
        if not self.alive():
            return {}
        with contextlib.suppress(KafkaException):
            described = self._admin.describe_consumer_groups([group])[group].result()
            return {
                _process(member.group_instance_id or ""): {
                    (p.topic, p.partition) for p in member.assignment.topic_partitions
                }
                for member in described.members
                if member.assignment
            }
        return {}

    def close(self) -> None:
        self._offsets.close()


@dataclass(slots=True, kw_only=True)
class Recovery:
    """One fault on its way to being recovered from."""

    fault: Fault
    name: str
    groups: tuple[str, ...]
    began_s: float
    """On the monotonic clock: from here the time is measured."""
    after_broker: bool = False
    """The time is measured from when the broker answers."""
    before: dict[Place, int] = field(default_factory=dict)
    took_s: float | None = None
    idle: bool = False
    """No record was waiting when it happened: the time says nothing."""
    disturbed: bool = False
    """The broker was killed meanwhile: the time is mostly the broker's."""


class Watch:
    """Owns the recoveries under way."""

    def __init__(self, groups: Groups, tail: Tail) -> None:
        self._groups = groups
        self._tail = tail
        self.pending: list[Recovery] = []
        self.done: list[Recovery] = []

    def offsets(self, group: str, held: Iterable[Partition] | None) -> dict[Place, int]:
        """How far the group is in each of these partitions; None: in all."""
        places = None if held is None else set(held)
        found = self._groups.committed(group)
        return {place: offset for place, offset in found.items() if places is None or place[1:] in places}

    def waiting(self, group: str, held: Iterable[Partition] | None) -> dict[Place, int]:
        """Of these partitions those in which a committed record waits."""
        found = self.offsets(group, held)
        return {place: offset for place, offset in found.items() if self._tail.last.get(place[1:], -1) >= offset}

    def add(self, recovery: Recovery, hit: Mapping[Place, int]) -> None:
        """`hit`: how far the groups are in the partitions that the fault hits; none: nothing waited."""
        recovery.before = dict(hit)
        recovery.idle = not hit
        self.pending.append(recovery)

    def unrecovered(self) -> list[Recovery]:
        """Those with work that still waits."""
        return [recovery for recovery in self.pending if not recovery.idle]

    def disturb(self) -> None:
        """The broker goes: who has not recovered yet has to, but is not timed."""
        for recovery in self.pending:
            recovery.disturbed = True

    def look(self) -> None:
        """See who has recovered: a few milliseconds, once per turn."""
        for recovery in list(self.pending):
            now_s = time.monotonic()
            if recovery.after_broker:
                if not self._groups.alive():
                    continue
                recovery.after_broker, recovery.began_s = False, now_s
            offsets = {k: v for group in recovery.groups for k, v in self._groups.committed(group).items()}
            if now_s - recovery.began_s < _SETTLE_S:
                recovery.before |= {place: offsets[place] for place in recovery.before if place in offsets}
            elif self._moved(recovery, offsets):
                recovery.took_s = now_s - recovery.began_s
                self.pending.remove(recovery)
                self.done.append(recovery)
            elif not any(self._tail.last.get(place[1:], -1) >= offset for place, offset in recovery.before.items()):
                recovery.idle = True  # what waited was committed as the fault came: there is nothing to recover

    def _moved(self, recovery: Recovery, offsets: Mapping[Place, int]) -> bool:
        if recovery.idle and not recovery.before:
            recovery.before = dict(offsets)
        return any(offsets.get(place, offset) > offset for place, offset in recovery.before.items())


def _process(instance: str) -> str:
    """`longtake.generate-1` is `generate-1`; a group instance of insights has its generation in it."""
    name = instance.removeprefix("longtake.")
    return f"insights-{name.rpartition('-')[2]}" if name.startswith("insights") else name
