"""The loop of the director: records in, decisions on the row of their key, all that one turn brought in one transaction.

Rows, events and input offsets are written together. Memory changes after the commit, so that an abort leaves it right.
"""

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable

from confluent_kafka import murmur2

from infra.bus import clients
from infra.bus.batch import Batch
from infra.bus.clients import Member
from infra.bus.dead_letters import DeadLetterCap
from infra.bus.decision import Decider, Decision, Queue
from infra.bus.errors import AbortedError, TopicsError
from infra.bus.in_hand import in_hand
from infra.bus.letter import dead_letter
from infra.bus.membership import Membership
from infra.bus.message import Message, Partition
from infra.bus.outputs import Cause, Output, caused_by
from infra.bus.progress import ProgressWatch
from infra.bus.rows import RowReader, Rows
from infra.bus.topics import partition_counts
from infra.bus.transaction import Transactions
from infra.bus.watchdog import Watchdog
from infra.metrics.door import Door, Health
from infra.settings import Settings
from schemas.records import JobState, Stage
from schemas.rows import RowEncoder

BATCH = 100
_IDLE_S = 0.2

log = logging.getLogger(__name__)


def run_table(
    settings: Settings,
    member: Member,
    decider: Decider,
    stop: threading.Event,
    has_room: Callable[[], bool] = lambda: True,
) -> None:
    """Decide on the records of the member's topics until `stop`, and every `settings.scan_s` on rows nobody wrote about.

    While there is no room, jobs that wait are not started; `has_room` is asked at every turn.

    Raises: BusError, or what the decider raised. Either way nothing is lost: end the process and start it again.
    """
    # First: it waits for a broker that is away, where asking for metadata would end the process.
    transactions = Transactions(clients.transactional_producer(settings, member), settings.watchdog_s * 2 / 3)
    partitions = _partitions(settings, member)
    with Watchdog(member.name, settings.watchdog_s) as watchdog:
        membership = Membership(clients.table_consumer(settings, member), ProgressWatch(settings), watchdog)
        reader = RowReader(settings, member.name, watchdog)
        table = _Table(member, decider, membership, transactions, reader, partitions, has_room)
        next_scan = time.monotonic() + settings.scan_s
        health = Health(age_s=watchdog.age_s, unhealthy=watchdog.stopped, unready=membership.unready)
        with Door(settings, health):
            while not stop.is_set():
                table.turn()
                if time.monotonic() >= next_scan:
                    table.scan()
                    next_scan = time.monotonic() + settings.scan_s
        reader.close()
        membership.close()


class _Table:
    """Owns the rows of the assigned partitions and the records of this turn."""

    def __init__(
        self,
        member: Member,
        decider: Decider,
        membership: Membership,
        transactions: Transactions,
        reader: RowReader,
        partitions: int,
        has_room: Callable[[], bool],
    ) -> None:
        self._member = member
        self._decider = decider
        self._membership = membership
        self._transactions = transactions
        self._reader = reader
        self._partitions = partitions
        self._has_room = has_room
        self._held_up = False
        """Jobs wait for room."""
        self._cap = DeadLetterCap()
        self._encoder = RowEncoder()
        self._polled: list[Message] = []
        self._rows: dict[int, Rows] = {}
        self._queues: dict[int, Queue] = {}
        self._positions: dict[Partition, int] = {}
        membership.join(member.topics, self._drop)

    def turn(self) -> None:
        """Take what is there to be read, decide on it, commit."""
        message = self._membership.poll(_IDLE_S)
        while message:
            self._polled.append(message)
            message = self._membership.poll(0) if len(self._polled) < BATCH else None
        self._transactions.serve()
        self._load()
        if self._polled:
            self._decide()
        if self._held_up and self._has_room():
            self._held_up = False
            self._start_all(self._rows)

    def scan(self) -> None:
        """Decide on rows that nobody wrote about."""
        now_us = time.time_ns() // 1000
        for partition, rows in self._rows.items():
            decisions = self._decider.scan(rows.awake(), now_us)
            for start in range(0, len(decisions), BATCH):
                batch = self._batch(partition)
                for decision in decisions[start : start + BATCH]:
                    self._add(partition, decision, batch, now_us)
                self._commit(batch)

    def _load(self) -> None:
        """Read the rows of partitions that are new here, before anything is decided on them."""
        new = {partition for _, partition in self._membership.assigned} - set(self._rows)
        if new:
            _check_copartitioned(self._membership.assigned, self._member)
            committed = self._membership.committed({p for p in self._membership.assigned if p[1] in new})
            self._positions |= {place: max(0, offset) for place, offset in committed.items()}
            self._rows |= self._reader.read(new)
            self._queue_up(new)
            self._start_all(new)

    def _decide(self) -> None:
        now_us = time.time_ns() // 1000
        batch = Batch(self._rows, self._encoder)
        for message in self._polled:
            batch.offsets[message.place] = message.offset + 1
            home = murmur2(message.key, self._partitions) if message.key else message.partition
            if home == message.partition:
                with in_hand(message):
                    self._decide_one(message, batch, now_us)
            else:
                batch.outputs.append(_forward(message, home))
        self._polled.clear()
        self._commit(batch)

    def _decide_one(self, message: Message, batch: Batch, now_us: int) -> None:
        row = batch.row(message.partition, message.job_id)
        decision = self._decider.decide(message, row, now_us)
        decision = self._with_room(message, row, decision, now_us)
        if decision.refused:
            log.warning("job %.100s: %s is a dead letter: %.1000s", message.job_id, message.id, decision.refused)
            self._cap.bad(message, decision.refused)
            batch.outputs.append(dead_letter(message, decision.refused, group=self._member.group, time_us=now_us))
        else:
            self._cap.good()
        if decision.state and decision.state.job_id != message.job_id:
            raise ValueError(f"a record of job {message.job_id} changed the row of job {decision.state.job_id}")
        if decision.state:
            self._queues[message.partition].saw(row, decision.state)
        batch.add(message.partition, decision, caused_by(message, self._member.source, now_us))
        self._start(message.partition, batch, now_us)

    def _with_room(self, message: Message, row: JobState | None, decision: Decision, now_us: int) -> Decision:
        """The decision, or a refusal if a job would have to wait and there is no room for it."""
        state = decision.state
        if state is None or state.stage is not Stage.QUEUED or (row and row.stage is Stage.QUEUED):
            return decision
        full = self._queues[message.partition].full(state)
        return self._decider.refuse(message, state, full, now_us) if full else decision

    def _start_all(self, partitions: Iterable[int]) -> None:
        """Start the jobs whose turn it is though no record came."""
        for partition in list(partitions):
            batch = self._batch(partition)
            self._start(partition, batch, time.time_ns() // 1000)
            if batch.outputs:
                self._commit(batch)

    def _start(self, partition: int, batch: Batch, now_us: int) -> None:
        """Start the jobs whose turn it is."""
        queue = self._queues[partition]
        while (job_id := queue.next()) is not None and (row := batch.row(partition, job_id)):
            if not self._has_room():
                self._held_up = True
                return
            decision = self._decider.start(row, now_us)
            if decision.state:
                queue.saw(row, decision.state)
            self._add(partition, decision, batch, now_us)

    def _add(self, partition: int, decision: Decision, batch: Batch, now_us: int) -> None:
        """A decision that no record led to."""
        if decision.state:
            batch.add(partition, decision, self._unasked(decision.state, now_us))

    def _batch(self, partition: int) -> Batch:
        """Of decisions that no record led to. With the offsets that are committed already, the broker refuses a member that lost the partition."""
        batch = Batch(self._rows, self._encoder)
        batch.offsets = {place: offset for place, offset in self._positions.items() if place[1] == partition}
        return batch

    def _queue_up(self, partitions: Iterable[int]) -> None:
        """Queues as they follow from the rows."""
        for partition in partitions:
            queue = self._queues[partition] = self._decider.queue()
            for row in self._rows[partition]:
                queue.saw(None, row)

    def _commit(self, batch: Batch) -> None:
        try:
            self._transactions.commit(batch.records(), batch.offsets, self._membership.group)
        except AbortedError:
            self._membership.rewind(self._membership.assigned)
            self._queue_up(self._rows)
        else:
            batch.apply()
            self._positions |= batch.offsets

    def _drop(self, places: set[Partition]) -> None:
        """The partitions are another member's: their rows are no longer ours to know."""
        self._polled = [message for message in self._polled if message.place not in places]
        for place in places:
            self._rows.pop(place[1], None)
            self._queues.pop(place[1], None)
            self._positions.pop(place, None)
        self._encoder = RowEncoder()

    def _unasked(self, state: JobState, now_us: int) -> Cause:
        cause_id = f"{self._member.role}/{state.job_id}/{now_us}"
        return Cause(id=cause_id, traceparent=state.traceparent, source=self._member.source, time_us=now_us)


def _forward(message: Message, home: int) -> Output:
    """Its producer has another partitioner (librdkafka's default is CRC32): send it to where the job's records are."""
    return Output(topic=message.topic, key=message.key, value=message.value, headers=message.headers, partition=home)


def _partitions(settings: Settings, member: Member) -> int:
    counts = partition_counts(clients.admin(settings), [*member.topics, JobState.topic])
    if len(set(counts.values())) != 1:
        raise TopicsError(f"the table and its input topics need the same number of partitions: {counts}")
    return counts[JobState.topic]


def _check_copartitioned(assigned: set[Partition], member: Member) -> None:
    """The records of a job are in one partition number of all topics: all or none of them are ours."""
    numbers: defaultdict[str, set[int]] = defaultdict(set)
    for topic, partition in assigned:
        numbers[topic].add(partition)
    if any(numbers[topic] != numbers[member.topics[0]] for topic in member.topics):
        found = {topic: sorted(numbers[topic]) for topic in member.topics}
        raise TopicsError(f"{member.group} was not assigned the same partitions of every topic: {found}")
