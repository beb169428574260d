"""The loop of every worker: records in, heavy work elsewhere, then one short transaction.

A crash at any point leaves either nothing or everything of a record: its offset is committed together with its events.
"""

import logging
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from infra.bus import clients, later
from infra.bus.clients import Member
from infra.bus.dead_letters import DeadLetterCap
from infra.bus.errors import AbortedError, LostWorkerError
from infra.bus.in_hand import in_hand
from infra.bus.letter import dead_letter
from infra.bus.marks import DEATHS, Marks, condemned
from infra.bus.membership import Held, Membership, nobody
from infra.bus.message import Message, Partition
from infra.bus.outputs import Output, caused_by, outputs_of
from infra.bus.progress import ProgressWatch
from infra.bus.transaction import Transactions
from infra.bus.watchdog import Watchdog
from infra.bus.work import Answer, Work
from infra.metrics import meters
from infra.metrics.door import Door, Health
from infra.settings import Settings
from schemas.errors import BadInputError

_IDLE_S = 0.2
_NOTED_S = 0.02
_TAIL_BYTES = 2000
_BUSY_MIN_S, _BUSY_MAX_S = 0.001, 0.02

log = logging.getLogger(__name__)


def run_worker(settings: Settings, member: Member, work: Work, stop: threading.Event, held: Held = nobody) -> None:
    """Serve the member's topics until `stop`, then finish what is nearly done and leave.

    At most one record of a partition is in the hands of `work`, and `settings.slots` in all; partitions take turns. `held` is
    told which they are.

    Raises: BusError, or what the work raised. Either way nothing is lost: end the process and start it again.
    """
    transactions = Transactions(clients.transactional_producer(settings, member), settings.watchdog_s * 2 / 3)
    with Watchdog(member.name, settings.watchdog_s) as watchdog:
        consumer = clients.worker_consumer(settings, member)
        membership = Membership(consumer, ProgressWatch(settings), watchdog, held)
        marks = Marks(member.name, uuid.uuid4().hex[:8])
        worker = _Worker(settings, member, work, membership, transactions, marks)
        health = Health(
            age_s=watchdog.age_s, unhealthy=watchdog.stopped, unready=lambda: membership.unready() or work.unready()
        )
        with Door(settings, health):
            while not stop.is_set():
                worker.turn()
            worker.finish()
        work.close()
        membership.close()


def log_tail(file: Path) -> str:
    """The last lines of a log, if there is one."""
    if not file.is_file():
        return ""
    with file.open("rb") as log_file:
        log_file.seek(max(0, file.stat().st_size - _TAIL_BYTES))
        return log_file.read().decode(errors="replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Running:
    message: Message
    answer: Answer
    since: float


class _Worker:
    """Owns what is in hand: records that wait for a slot and records that are being worked at."""

    def __init__(
        self,
        settings: Settings,
        member: Member,
        work: Work,
        membership: Membership,
        transactions: Transactions,
        marks: Marks,
    ) -> None:
        self._slots = settings.slots
        self._drain_s = settings.drain_s
        self._member = member
        self._work = work
        self._membership = membership
        self._transactions = transactions
        self._marks = marks
        self._log = settings.state / "logs" / f"{member.role}-{member.slot}.log"
        """Of the local stack, if it started this process."""
        self._cap = DeadLetterCap()
        self._waiting: list[Message] = []
        self._running: dict[Partition, _Running] = {}
        self._served: dict[Partition, float] = {}
        self._quiet_turns = 0
        membership.join(member.topics, self._drop)

    def turn(self) -> None:
        """Poll, commit what is finished, start what can start."""
        message = self._membership.poll(self._patience_s())
        self._transactions.serve()
        if message:
            if not self._marks.known(message.place):
                self._marks.found(message, *self._membership.noted(message.place))
            self._waiting.append(message)
        self._settle()
        self._note()
        self._make_way()
        self._start()

    def finish(self) -> None:
        """Start nothing new; wait a while for what is running, commit it, leave the rest to come again."""
        deadline = time.monotonic() + self._drain_s
        while self._running and time.monotonic() < deadline:
            self._membership.poll(_BUSY_MAX_S)
            self._settle()
        if self._running:
            running = [running.message for running in self._running.values()]
            self._commit_marks(self._marks.give_back(running), running)
            log.info("%s stops; %d records in hand will come again", self._member.name, len(self._running))

    def _start(self) -> None:
        """Fill the slots, the partition first that was served longest ago; pause partitions with a record that waits.

        Only those, not all that are worked at: a resumed partition first waits for a fetch that is under way.
        """
        while len(self._running) < self._slots and not self._work.unready():
            message = self._next()
            if message is None or (self._marks.first(message) and not self._begin([message])):
                break
            self._waiting.remove(message)
            now = time.monotonic()
            self._running[message.place] = _Running(message=message, answer=self._answer(message), since=now)
            self._served[message.place] = now
            self._quiet_turns = 0
        meters.IN_FLIGHT.set(len(self._running))
        self._membership.pause(holding := self._holding())
        self._membership.resume(self._membership.paused - holding)

    def _next(self) -> Message | None:
        """The record to start. One that somebody died of runs alone: if it happens again, it is to blame and no other."""
        now_us = time.time_ns() // 1000
        firsts = {m.place: m for m in reversed(self._waiting) if m.place not in self._running}
        ready = [m for m in firsts.values() if later.is_due(m, now_us)]
        suspects = [m for m in ready if self._marks.past(m)]
        if self._running and (suspects or any(self._marks.past(r.message) for r in self._running.values())):
            return None
        return min(suspects or ready, key=lambda m: self._served.get(m.place, 0.0), default=None)

    def _answer(self, message: Message) -> Answer:
        past = self._marks.past(message)
        if len(past) < DEATHS:
            return self._work.submit(message)
        refused: Answer = Future()
        refused.set_exception(condemned(past, log_tail(self._log)))
        return refused

    def _holding(self) -> set[Partition]:
        """Partitions from which no more should come: a record waits for a slot, or many for their time."""
        now_us = time.time_ns() // 1000
        places = Counter(message.place for message in self._waiting)
        due = {m.place for m in self._waiting if later.is_due(m, now_us)}
        return due | {place for place, count in places.items() if count >= later.HELD}

    def _note(self) -> None:
        """Note that records are begun, those that are in hand for a moment: short work costs nothing."""
        before = time.monotonic() - _NOTED_S
        running = [r.message for r in self._running.values() if r.since <= before and not self._marks.noted(r.message)]
        if running:
            self._begin(running)

    def _begin(self, messages: Sequence[Message]) -> bool:
        return self._commit_marks(self._marks.begin(messages, time.time_ns() // 1000), messages)

    def _commit_marks(self, texts: Mapping[Partition, str], messages: Iterable[Message]) -> bool:
        """False: the transaction was aborted."""
        offsets = {m.place: m.offset for m in messages if m.place in texts}
        try:
            if offsets:
                self._transactions.commit((), offsets, self._membership.group, texts)
        except AbortedError:
            self._marks.ended(offsets)
            self._rewind()
            return False
        return True

    def _make_way(self) -> None:
        """Records that wait for their time go behind those that need not."""
        now_us = time.time_ns() // 1000
        due = {m.place for m in self._waiting if later.is_due(m, now_us)} - set(self._running)
        behind: list[Message] = []
        for message in list(self._waiting):
            if message.place in due and later.is_due(message, now_us):
                due.discard(message.place)
            elif message.place in due:
                behind.append(message)
                self._waiting.remove(message)
        if behind:
            try:
                offsets = {m.place: m.offset + 1 for m in behind}
                self._transactions.commit([later.put_behind(m) for m in behind], offsets, self._membership.group)
            except AbortedError:
                self._rewind()

    def _settle(self) -> None:
        finished = {place: running for place, running in self._running.items() if running.answer.done()}
        if not finished:
            return
        outputs: list[Output] = []
        for running in finished.values():
            with in_hand(running.message):
                outputs += self._outputs(running)
        offsets = {place: running.message.offset + 1 for place, running in finished.items()}
        for place in finished:
            del self._running[place]
        self._marks.ended(finished)
        try:
            self._transactions.commit(outputs, offsets, self._membership.group)
        except AbortedError:
            self._rewind()
            return
        for topic, _ in finished:
            meters.CONSUMED.labels(topic).inc()

    def _outputs(self, running: _Running) -> list[Output]:
        """What a finished record leads to. Raises: what the work raised, or TooManyDeadLettersError."""
        message, now_us = running.message, time.time_ns() // 1000
        took_s = time.monotonic() - running.since
        meters.HANDLER_S.labels(message.topic).observe(took_s)
        error = running.answer.exception()
        if isinstance(error, later.TRANSIENT) and not later.given_up(message, now_us):
            log.warning("job %s: %s comes again later: %r", message.job_id, message.id, error)
            return [later.put_back(message, now_us)]
        if isinstance(error, later.TRANSIENT):
            error = BadInputError(field="value", rule="retries", message=f"given up after hours: {error!r}")
        if isinstance(error, BadInputError):
            log.warning("job %.100s: %s is a dead letter: %.1000s", message.job_id, message.id, error)
            self._cap.bad(message, error)
            return [dead_letter(message, error, group=self._member.group, time_us=now_us)]
        if error:
            self._last_words(message, error, now_us)
        events = running.answer.result()
        self._cap.good()
        names = ", ".join(type(event).__name__ for event in events) or "nothing"
        log.info("job %s: %s led to %s in %.3f s", message.job_id, message.id, names, took_s)
        return outputs_of(events, caused_by(message, self._member.source, now_us))

    def _last_words(self, message: Message, error: BaseException, now_us: int) -> None:
        """Note what ends this process, and that nothing else in hand is to blame."""
        running = [running.message for running in self._running.values()]
        texts = self._marks.give_back(running)
        if not isinstance(error, LostWorkerError):
            texts |= self._marks.died(message, now_us, repr(error))
        self._commit_marks(texts, running)

    def _rewind(self) -> None:
        """After an abort: all partitions but those that are being worked at go back to what was committed."""
        self._waiting = [message for message in self._waiting if message.place in self._running]
        self._membership.rewind(self._membership.assigned - set(self._running))

    def _drop(self, places: set[Partition]) -> None:
        """The partitions are another worker's: what is in hand of them is forgotten, and never committed here."""
        self._waiting = [message for message in self._waiting if message.place not in places]
        self._marks.forget(places)
        for place in places & set(self._running):
            self._running.pop(place).answer.cancel()

    def _patience_s(self) -> float:
        """How long a poll may wait. Work cannot wake it, so short work is looked for often, long work seldom."""
        if not self._running:
            return _IDLE_S
        self._quiet_turns += 1
        return min(_BUSY_MAX_S, _BUSY_MIN_S * self._quiet_turns)
