"""The loop of every worker: records in, heavy work elsewhere, then one short transaction.

A crash at any point leaves either nothing or everything of a record: its offset is committed together with its events.
"""

import logging
import threading
import time
from dataclasses import dataclass

from infra.bus import clients
from infra.bus.clients import Member
from infra.bus.dead_letters import DeadLetterCap, dead_letter
from infra.bus.errors import AbortedError
from infra.bus.membership import Membership
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
_BUSY_MIN_S, _BUSY_MAX_S = 0.001, 0.02

log = logging.getLogger(__name__)


def run_worker(settings: Settings, member: Member, work: Work, stop: threading.Event) -> None:
    """Serve the member's topics until `stop`, then finish what is nearly done and leave.

    At most one record of a partition is in the hands of `work`, and `settings.slots` in all; partitions take turns.

    Raises: BusError, or what the work raised. Either way nothing is lost: end the process and start it again.
    """
    transactions = Transactions(clients.transactional_producer(settings, member), settings.watchdog_s * 2 / 3)
    with Watchdog(member.name, settings.watchdog_s) as watchdog:
        consumer = clients.worker_consumer(settings, member)
        membership = Membership(consumer, ProgressWatch(settings), watchdog)
        worker = _Worker(settings, member, work, membership, transactions)
        health = Health(
            age_s=watchdog.age_s, unhealthy=watchdog.stopped, unready=lambda: membership.unready() or work.unready()
        )
        with Door(settings, health):
            while not stop.is_set():
                worker.turn()
            worker.finish()
        work.close()
        membership.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Running:
    message: Message
    answer: Answer
    since: float


class _Worker:
    """Owns what is in hand: records that wait for a slot and records that are being worked at."""

    def __init__(
        self, settings: Settings, member: Member, work: Work, membership: Membership, transactions: Transactions
    ) -> None:
        self._slots = settings.slots
        self._drain_s = settings.drain_s
        self._member = member
        self._work = work
        self._membership = membership
        self._transactions = transactions
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
            self._waiting.append(message)
        self._settle()
        self._start()

    def finish(self) -> None:
        """Start nothing new; wait a while for what is running, commit it, leave the rest to come again."""
        deadline = time.monotonic() + self._drain_s
        while self._running and time.monotonic() < deadline:
            self._membership.poll(_BUSY_MAX_S)
            self._settle()
        if self._running:
            log.info("%s stops; %d records in hand will come again", self._member.name, len(self._running))

    def _start(self) -> None:
        """Fill the slots, the partition first that was served longest ago; pause partitions with a record that waits.

        Only those, not all that are worked at: a resumed partition first waits for a fetch that is under way.
        """
        while len(self._running) < self._slots and not self._work.unready():
            ready = [m for m in self._waiting if m.place not in self._running]
            if not ready:
                break
            message = min(ready, key=lambda m: self._served.get(m.place, 0.0))
            self._waiting.remove(message)
            now = time.monotonic()
            self._running[message.place] = _Running(message=message, answer=self._work.submit(message), since=now)
            self._served[message.place] = now
            self._quiet_turns = 0
        meters.IN_FLIGHT.set(len(self._running))
        waiting = {message.place for message in self._waiting}
        self._membership.pause(waiting)
        self._membership.resume(self._membership.paused - waiting)

    def _settle(self) -> None:
        finished = {place: running for place, running in self._running.items() if running.answer.done()}
        if not finished:
            return
        outputs = [output for running in finished.values() for output in self._outputs(running)]
        offsets = {place: running.message.offset + 1 for place, running in finished.items()}
        for place in finished:
            del self._running[place]
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
        try:
            events = running.answer.result()
        except BadInputError as error:
            log.warning("job %s: %s is a dead letter: %s", message.job_id, message.id, error)
            self._cap.bad(message, error)
            return [dead_letter(message, error, group=self._member.group, time_us=now_us)]
        self._cap.good()
        names = ", ".join(type(event).__name__ for event in events) or "nothing"
        log.info("job %s: %s led to %s in %.3f s", message.job_id, message.id, names, took_s)
        return outputs_of(events, caused_by(message, self._member.source, now_us))

    def _rewind(self) -> None:
        """After an abort: all partitions but those that are being worked at go back to what was committed."""
        self._waiting = [message for message in self._waiting if message.place in self._running]
        self._membership.rewind(self._membership.assigned - set(self._running))

    def _drop(self, places: set[Partition]) -> None:
        """The partitions are another worker's: what is in hand of them is forgotten, and never committed here."""
        self._waiting = [message for message in self._waiting if message.place not in places]
        for place in places & set(self._running):
            self._running.pop(place).answer.cancel()

    def _patience_s(self) -> float:
        """How long a poll may wait. Work cannot wake it, so short work is looked for often, long work seldom."""
        if not self._running:
            return _IDLE_S
        self._quiet_turns += 1
        return min(_BUSY_MAX_S, _BUSY_MIN_S * self._quiet_turns)
