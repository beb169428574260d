"""The way of a job through the line: segments one after another, pieces behind them, then the video.

The rules are the director's: at most 16 jobs of a partition at once (`jobs_in_flight`), at most four segments ahead of the
stitched pieces, pieces in order, the assembly when all are checked.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import simpy

from benchmarks.simulation.role import Role, Steps
from streams.jobs import LOOKAHEAD


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How long things take, in s. Nothing of it is waiting for a turn."""

    intake_s: float
    """From a prompt to its first request."""
    dispatch_s: float
    """From a request to the engine's first step, of a worker with nothing else to do."""
    engine_s: float
    """Of a segment; one at a time in each engine."""
    store_s: float
    """From the engine's last step to the answer: saved, decoded, stored."""
    hop_s: float
    """From an answer's being there to the request that follows from it: a commit, the director, a commit."""
    stitch_s: float
    check_s: float
    assemble_s: float
    video_check_s: float
    finish_s: float
    """From the last verdict to the finished video."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How many of what."""

    owners: tuple[int, ...]
    """Which generate worker has each partition."""
    others: tuple[int, ...]
    """Which stitcher, checker and assembler has each partition."""
    slots: int = 4
    jobs_in_flight: int = 16

    @property
    def gpus(self) -> int:
        """Generate workers."""
        return max(self.owners) + 1


@dataclass(slots=True, kw_only=True)
class Job:
    """A video on its way."""

    partition: int
    segments: int
    asked: int = 0
    generated: int = 0
    pieces_asked: int = 0
    stitched: int = 0
    checked: int = 0
    finished_s: float = -1.0


@dataclass(slots=True, kw_only=True)
class Totals:
    """What was counted so far: segments by generate worker, when they are stored."""

    segments: list[int]
    finished: list[Job] = field(default_factory=list)


class Line:
    """A line with its workers. `finished` is called with every job that is done."""

    def __init__(
        self, env: simpy.Environment, shape: Shape, times: Times, finished: Callable[[Job], None] = lambda _: None
    ) -> None:
        self.env = env
        self.times = times
        self.totals = Totals(segments=[0] * shape.gpus)
        self._in_flight = shape.jobs_in_flight
        self._finished = finished
        self._engines = [simpy.Resource(env) for _ in range(shape.gpus)]
        self._running = [0] * len(shape.owners)
        self._queued: list[deque[Job]] = [deque() for _ in shape.owners]
        self.generate: Role[Job] = Role(env, shape.owners, shape.slots, self._generate)
        self._stitch = self._role(shape, times.stitch_s, self._stitched)
        self._check = self._role(shape, times.check_s, self._checked)
        self._assemble = self._role(shape, times.assemble_s, self._assembled)
        self._check_video = self._role(shape, times.video_check_s, self._video_checked)

    def submit(self, job: Job) -> None:
        """A prompt is published."""
        self._after(self.times.intake_s, partial(self._accept, job))

    def _accept(self, job: Job) -> None:
        if self._running[job.partition] >= self._in_flight:
            self._queued[job.partition].append(job)
            return
        self._running[job.partition] += 1
        self._ask_segment(job)

    def _ask_segment(self, job: Job) -> None:
        """The next one, if none is asked for and the stitcher is not too far behind."""
        if job.asked == job.generated and job.asked < min(job.segments, job.stitched + LOOKAHEAD):
            job.asked += 1
            self.generate.put(job.partition, job)

    def _ask_piece(self, job: Job) -> None:
        if job.pieces_asked == job.stitched and job.stitched < job.generated:
            job.pieces_asked += 1
            self._stitch.put(job.partition, job)

    def _generate(self, worker: int, job: Job) -> Steps:
        yield self.env.timeout(self.times.dispatch_s)
        with self._engines[worker].request() as turn:
            yield turn
            yield self.env.timeout(self.times.engine_s)
        yield self.env.timeout(self.times.store_s)
        self.totals.segments[worker] += 1
        self._after(self.times.hop_s, partial(self._generated, job))

    def _generated(self, job: Job) -> None:
        job.generated += 1
        self._ask_segment(job)
        self._ask_piece(job)

    def _stitched(self, job: Job) -> None:
        job.stitched += 1
        self._check.put(job.partition, job)
        self._after(self.times.hop_s, partial(self._stitch_known, job))

    def _stitch_known(self, job: Job) -> None:
        self._ask_piece(job)
        self._ask_segment(job)

    def _checked(self, job: Job) -> None:
        job.checked += 1
        if job.checked == job.segments:
            self._after(self.times.hop_s, partial(self._assemble.put, job.partition, job))

    def _assembled(self, job: Job) -> None:
        self._check_video.put(job.partition, job)

    def _video_checked(self, job: Job) -> None:
        self._after(self.times.finish_s, partial(self._finish, job))

    def _finish(self, job: Job) -> None:
        job.finished_s = self.env.now
        self.totals.finished.append(job)
        self._running[job.partition] -= 1
        if self._queued[job.partition]:
            self._accept(self._queued[job.partition].popleft())
        self._finished(job)

    def _role(self, shape: Shape, seconds: float, done: Callable[[Job], None]) -> Role[Job]:
        def work(_: int, job: Job) -> Steps:
            yield self.env.timeout(seconds)
            done(job)

        return Role(self.env, shape.others, shape.slots, work)

    def _after(self, seconds: float, call: Callable[[], None]) -> None:
        event: Any = self.env.timeout(seconds)
        event.callbacks.append(lambda _: call())
