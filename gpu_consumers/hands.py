"""The requests that an engine process has in hand: where each is, since when, and for how long that is all right."""

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from gpu_consumers.blame import Stall, Suspect
from gpu_consumers.patience import Patience
from gpu_consumers.pipe import ENGINE_STAGES, Stage
from infra.bus.in_hand import Ids
from infra.bus.work import Answer
from schemas.records import SegmentRequested

STOP_S = 1.0
"""For a process to come to the next step of a request that it has to drop. Then it is killed."""
_START_S = 60.0
"""A new process may say nothing for this long, and then for the limit."""


@dataclass(slots=True, kw_only=True)
class Hand:
    """One request. `beat_s` is the time of its last step on the monotonic clock."""

    number: int
    request: SegmentRequested
    answer: Answer
    trace_id: str = ""
    stage: Stage = Stage.QUEUED
    beat_s: float = 0.0
    crashes: int = 0
    """Processes that ended without a word while the engine worked on it."""
    stop_by_s: float = math.inf
    """The process was told to drop it, and has to have done so by then."""

    @property
    def ids(self) -> Ids:
        """For the log."""
        return Ids(job_id=self.request.job_id, trace_id=self.trace_id)

    def step_kind(self) -> Hashable:
        """Steps of one kind take about the same time."""
        return (self.stage, self.request.engine, self.request.format.width, self.request.format.height)


class Hands:
    """All requests in hand, by number. Times are arguments, in seconds on one monotonic clock."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._patience = Patience(limit_s)
        self._hands: dict[int, Hand] = {}
        self._heard_s = 0.0

    def __iter__(self) -> Iterator[Hand]:
        return iter(self._hands.values())

    def __len__(self) -> int:
        return len(self._hands)

    def add(self, hand: Hand, now_s: float) -> None:
        """A request is given to the process."""
        if not self._hands:
            self._heard_s = max(self._heard_s, now_s)  # an idle process has nothing to say
        self._hands[hand.number] = hand

    def pop(self, number: int) -> Hand:
        """A request is answered."""
        return self._hands.pop(number)

    def stop(self, job_id: str, before_us: int, now_s: float) -> list[Hand]:
        """Those of a job that ended at `before_us` have to be dropped."""
        found = [h for h in self if h.request.job_id == job_id and h.request.requested_us < before_us]
        for hand in found:
            hand.stop_by_s = min(hand.stop_by_s, now_s + STOP_S)
        return found

    def stopping(self) -> list[Hand]:
        """Those that have to be dropped."""
        return [hand for hand in self if hand.stop_by_s < math.inf]

    def restart(self, now_s: float) -> None:
        """A new process has all of them, and has shown nothing yet."""
        self._patience = Patience(self._limit_s)
        self._heard_s = now_s + _START_S
        for hand in self:
            hand.stage = Stage.QUEUED

    def heard(self, now_s: float) -> None:
        """The process has said something."""
        self._heard_s = now_s

    def step(self, number: int, stage: Stage, now_s: float) -> Hand:
        """A request has entered a stage or made a step in it."""
        hand = self._hands[number]
        if stage is hand.stage:
            self._patience.saw(hand.step_kind(), now_s - hand.beat_s)
        hand.stage, hand.beat_s = stage, now_s
        return hand

    def overdue(self, now_s: float) -> Stall | None:
        """What has been silent for too long, if anything."""
        return next((stall for stall, timeout_s in self._silences(now_s) if stall.silent_s >= timeout_s), None)

    def left_s(self, now_s: float) -> float | None:
        """How long until something is overdue or has to be dropped. None: nothing can be."""
        silent_s = [timeout_s - stall.silent_s for stall, timeout_s in self._silences(now_s)]
        stop_s = [hand.stop_by_s - now_s for hand in self.stopping()]
        return min((max(0.0, left_s) for left_s in (*silent_s, *stop_s)), default=None)

    def suspects(self) -> list[Suspect]:
        """As `blame` wants them."""
        return [Suspect(number=hand.number, stage=hand.stage, crashes=hand.crashes) for hand in self]

    def crashed(self) -> None:
        """The process ended without a word: remember which requests the engine worked on."""
        for hand in self:
            hand.crashes += hand.stage in ENGINE_STAGES

    def _silences(self, now_s: float) -> Iterator[tuple[Stall, float]]:
        """Every silence that counts, with its time-out. A request in a queue may wait as long as the process is heard."""
        for hand in self:
            if hand.stage is not Stage.QUEUED:
                silence = Stall(number=hand.number, silent_s=now_s - hand.beat_s)
                yield silence, self._patience.timeout_s(hand.step_kind())
        if self._hands:
            yield Stall(number=None, silent_s=now_s - self._heard_s), self._limit_s
