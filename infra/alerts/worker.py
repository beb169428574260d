"""longtake.videos.finished.v1, videos.checked.v1, jobs.v1, dead letters -> webhooks. At least once, with an id for each delivery.

Every address has a consumer group of its own, `longtake.alerts-NAME`: one that does not answer keeps nobody else waiting, and the
line waits for none of them. An offset is committed when its alert was delivered, refused for good, or has become too old to be news
(which also keeps a new address from hearing of all that ever happened). So a restart goes on where it was.
"""

import logging
import random
import time
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from threading import Event

import httpx

from infra.alerts.alert import TOPICS, Alert, alert_of
from infra.alerts.attempt import Outcome, Pace, attempt
from infra.alerts.hooks import Hook, hooks_of
from infra.bus import clients
from infra.bus.clients import Member
from infra.bus.membership import Membership
from infra.bus.message import Message, Partition
from infra.bus.process import stop_on_signals
from infra.bus.progress import ProgressWatch
from infra.bus.watchdog import Watchdog
from infra.metrics import meters
from infra.metrics.door import Door, Health
from infra.settings import Settings
from schemas.errors import BadInputError

_TURN_S = 0.2
_LOOK_S = 0.5
_COMMIT_EVERY_S = 1.0
_AFTER_MOST_S = 300.0

log = logging.getLogger(__name__)


def run(settings: Settings, slot: int) -> None:
    """Tell until SIGTERM or SIGINT; without webhooks, wait for it. Raises: HookError; BusError: start the process again."""
    for noisy in ("httpx", "httpcore"):
        logging.getLogger(noisy).setLevel(logging.WARNING)  # they write addresses, which are secrets
    stop, hooks = stop_on_signals(), hooks_of(settings)
    health = Health(age_s=lambda: 0.0, unhealthy=lambda: "", unready=lambda: "")
    log.info("webhooks: %s", ", ".join(f"{hook.name} ({hook.host})" for hook in hooks) or "none is configured")
    with Door(settings, health), ThreadPoolExecutor(max(len(hooks), 1), thread_name_prefix="courier") as pool:
        couriers = [pool.submit(serve, settings, hook, slot, stop, Pace()) for hook in hooks]
        try:
            while not stop.wait(_LOOK_S):
                for ended in wait(couriers, 0, FIRST_EXCEPTION).done if couriers else ():
                    ended.result()
        finally:
            stop.set()


def serve(settings: Settings, hook: Hook, slot: int, stop: Event, pace: Pace) -> None:
    """One address until `stop`. Raises: BusError."""
    member = Member(role=f"alerts-{hook.name}", topics=TOPICS, slot=slot)
    with (
        Watchdog(member.name, settings.watchdog_s) as watchdog,
        httpx.Client(follow_redirects=False) as client,
        ThreadPoolExecutor(1, thread_name_prefix=f"post-{hook.name}") as poster,
    ):
        membership = Membership(clients.worker_consumer(settings, member), ProgressWatch(settings), watchdog)
        courier = _Courier(hook, pace, membership, client, poster)
        membership.join(TOPICS, courier.dropped)
        while not stop.is_set():
            courier.turn()
        courier.finish()
        membership.close()


@dataclass(slots=True, kw_only=True)
class _InHand:
    """An alert on its way: being posted, or waiting for the next try."""

    message: Message
    alert: Alert
    tries: int = 0
    next_s: float = 0.0
    posting: Future[Outcome] | None = None


class _Courier:
    """Owns what is in hand: one alert at a time, so they arrive in order. All partitions are paused meanwhile."""

    def __init__(
        self, hook: Hook, pace: Pace, membership: Membership, client: httpx.Client, poster: ThreadPoolExecutor
    ) -> None:
        self._hook = hook
        self._pace = pace
        self._membership = membership
        self._client = client
        self._poster = poster
        self._waiting: list[Message] = []
        self._hand: _InHand | None = None
        self._offsets: dict[Partition, int] = {}
        self._committed_s = time.monotonic()

    def turn(self) -> None:
        """Poll, take the next record, go on with what is in hand, commit now and then."""
        if message := self._membership.poll(_TURN_S if not self._hand else _TURN_S / 10):
            self._waiting.append(message)
        while self._waiting and not self._hand:
            self._take(self._waiting.pop(0))
        if self._hand:
            self._go_on(self._hand)
            self._membership.pause(set(self._membership.assigned))
        else:
            self._membership.resume(set(self._membership.paused))
        if time.monotonic() - self._committed_s > _COMMIT_EVERY_S:
            self.commit()

    def commit(self) -> None:
        """What was told need not be told again."""
        self._committed_s = time.monotonic()
        if self._offsets and self._membership.commit(self._offsets):
            self._offsets = {}

    def finish(self) -> None:
        """Wait for what is being posted, commit what was told."""
        if self._hand and self._hand.posting:
            wait([self._hand.posting])
            self._go_on(self._hand)
        self.commit()

    def dropped(self, places: set[Partition]) -> None:
        """The partitions are another process's: what is in hand of them is told there."""
        self._waiting = [message for message in self._waiting if message.place not in places]
        self._offsets = {place: offset for place, offset in self._offsets.items() if place not in places}
        if self._hand and self._hand.message.place in places:
            self._hand = None

    def _take(self, message: Message) -> None:
        try:
            alert = alert_of(message) if message.value is not None else None
        except BadInputError as error:
            log.warning("job %s: %s cannot be read: %s", message.job_id, message.id, error)
            alert = None
        if alert is None or alert.kind not in self._hook.on:
            self._done(message)
        elif self._is_old(alert):
            self._end(message, alert, "old", "it happened too long ago")
        else:
            self._hand = _InHand(message=message, alert=alert)

    def _go_on(self, hand: _InHand) -> None:
        if hand.posting is None and time.monotonic() >= hand.next_s:
            hand.posting = self._poster.submit(attempt, self._client, self._hook, hand.alert)
        if hand.posting is None or not hand.posting.done():
            return
        outcome, hand.posting, hand.tries = hand.posting.result(), None, hand.tries + 1
        if outcome.delivered:
            self._end(hand.message, hand.alert, "delivered", f"try {hand.tries}")
        elif not outcome.again:
            self._end(hand.message, hand.alert, "refused", outcome.reason)
        elif self._is_old(hand.alert):
            self._end(hand.message, hand.alert, "old", f"{outcome.reason}, {hand.tries} tries")
        else:
            meters.ALERTS.labels(self._hook.name, "again").inc()
            pause_s = self._pace.wait_s(hand.tries, random.random())  # noqa: S311 (no secret: it spreads retries)
            hand.next_s = time.monotonic() + max(pause_s, min(outcome.after_s, _AFTER_MOST_S))
            log.warning("job %s: %s waits: %s", hand.alert.job_id, self._hook.name, outcome.reason)

    def _end(self, message: Message, alert: Alert, how: str, why: str) -> None:
        level = logging.ERROR if how == "refused" else logging.INFO
        log.log(
            level,
            "job %s: alert %s of %s to %s: %s (%s)",
            alert.job_id,
            alert.id,
            alert.kind,
            self._hook.name,
            how,
            why,
        )
        meters.ALERTS.labels(self._hook.name, how).inc()
        self._done(message)
        self._hand = None

    def _done(self, message: Message) -> None:
        self._offsets[message.place] = message.offset + 1

    def _is_old(self, alert: Alert) -> bool:
        return time.time() - alert.at_us / 1e6 > self._pace.keep_s
