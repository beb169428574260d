"""Jobs on a real line, and what their events say of it. Every time is that of an event: the clock is one machine's."""

import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TypeVar

from benchmarks.simulation.line import Times
from infra.bus.reader import Reader, event_of
from infra.bus.writer import Writer
from infra.local.services import Services, filled
from infra.local.stack import down, up
from infra.settings import Settings
from schemas import records as r
from schemas.headers import trace_root
from schemas.topics import Event

_LONGEST_S = 300.0
_ROLES = ("director", "stitch", "assemble", "check-pieces", "check-videos", "insights")
_TOPICS = sorted(
    {
        event.topic
        for event in (
            r.SegmentRequested,
            r.SegmentGenerated,
            r.PieceRequested,
            r.PieceStitched,
            r.PieceChecked,
            r.AssemblyRequested,
            r.VideoAssembled,
            r.VideoChecked,
            r.VideoFinished,
            r.JobChanged,
        )
    }
)
E = TypeVar("E", bound=Event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What was published at `begun_us`, and all that was said of it until the last video was finished."""

    begun_us: int
    events: tuple[Event, ...]
    partitions: Mapping[str, int]
    """By job."""

    def of(self, kind: type[E]) -> list[E]:
        """The events of a kind, in the order in which they were read."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def makespan_s(self) -> float:
        """From the publication to the last finished video."""
        return (max(event.finished_us for event in self.of(r.VideoFinished)) - self.begun_us) / 1e6

    @property
    def frames(self) -> int:
        """Of all videos."""
        return sum(event.frames for event in self.of(r.VideoFinished))

    @property
    def jobs(self) -> list[tuple[int, int]]:
        """Partition and segments of each."""
        counts = defaultdict[str, int](int)
        for event in self.of(r.SegmentGenerated):
            counts[event.job_id] += 1
        return [(self.partitions[job], count) for job, count in counts.items()]

    @property
    def owners(self) -> dict[int, int]:
        """Which generate worker had each partition."""
        return {self.partitions[e.job_id]: slot_of(e.worker) for e in self.of(r.SegmentGenerated)}


def slot_of(worker: str) -> int:
    """`longtake.generate-3` is in slot 3."""
    return int(worker.rpartition("-")[2])


@contextmanager
def line(folder: Path, *, generate: int, partitions: int) -> Generator[tuple[Settings, Services]]:
    """A stack of its own with so many generate workers and one of each other role that a video needs; nothing is swept."""
    settings = Settings(kafka="", clickhouse="", objects="", state=folder / "state", partitions=partitions)
    services = up(settings, {**dict.fromkeys(_ROLES, 1), "generate": generate})
    try:
        yield filled(settings, services), services
    finally:
        down(settings)


def run(settings: Settings, prompts: Sequence[r.PromptSubmitted]) -> Run:
    """Publish all at once and wait for the videos. Raises: TimeoutError, RuntimeError if a job fails."""
    waiting, events, partitions = {prompt.job_id for prompt in prompts}, list[Event](), dict[str, int]()
    with Reader.from_now(settings, _TOPICS) as reader, Writer(settings) as writer:
        begun_us = time.time_ns() // 1000
        writer.publish(prompts, trace_root(prompts[0].job_id))
        deadline = time.monotonic() + _LONGEST_S
        while waiting:
            if time.monotonic() > deadline:
                raise TimeoutError(f"not finished in {_LONGEST_S:.0f} s: {sorted(waiting)}; see {settings.state}/logs")
            message = reader.poll(0.5)
            if message is None:
                continue
            event = event_of(message)
            events.append(event)
            partitions[message.job_id] = message.partition
            if isinstance(event, r.JobChanged) and event.stage in (r.Stage.FAILED, r.Stage.CANCELLED):
                raise RuntimeError(f"{event.job_id} failed: {event.reason}")
            if isinstance(event, r.VideoFinished):
                waiting.discard(event.job_id)
    return Run(begun_us=begun_us, events=tuple(events), partitions=partitions)


def times_of(run: Run) -> Times:
    """Medians over the segments of a job that was alone: nothing of it waited for a turn."""
    asked = {e.segment: e.requested_us for e in run.of(r.SegmentRequested)}
    made = sorted(run.of(r.SegmentGenerated), key=lambda e: e.segment)
    wanted = {(e.piece, e.attempt): e.requested_us for e in run.of(r.PieceRequested)}
    stitched = {(e.piece, e.attempt): e.finished_us for e in run.of(r.PieceStitched)}
    assembled, verdict = run.of(r.VideoAssembled)[0], run.of(r.VideoChecked)[0]
    return Times(
        intake_s=(asked[0] - run.begun_us) / 1e6,
        dispatch_s=_median_s(e.started_us - asked[e.segment] for e in made),
        engine_s=_median_s(e.denoise_us for e in made),
        store_s=_median_s(e.finished_us - e.started_us - e.denoise_us for e in made),
        hop_s=_median_s(asked[after.segment] - before.finished_us for before, after in pairwise(made)),
        stitch_s=_median_s(at_us - wanted[piece] for piece, at_us in stitched.items()),
        check_s=_median_s(e.checked_us - stitched[e.piece, e.attempt] for e in run.of(r.PieceChecked)),
        assemble_s=(assembled.finished_us - run.of(r.AssemblyRequested)[0].requested_us) / 1e6,
        video_check_s=(verdict.checked_us - assembled.finished_us) / 1e6,
        finish_s=(run.of(r.VideoFinished)[0].finished_us - verdict.checked_us) / 1e6,
    )


def gaps_s(run: Run) -> list[float]:
    """For how long an engine stood still between two segments although the second had been asked for before the first ended."""
    asked = {(e.job_id, e.segment): e.requested_us for e in run.of(r.SegmentRequested)}
    by_worker = defaultdict[str, list[r.SegmentGenerated]](list)
    for event in run.of(r.SegmentGenerated):
        by_worker[event.worker].append(event)
    found: list[float] = []
    for events in by_worker.values():
        for before, after in pairwise(sorted(events, key=lambda e: e.started_us)):
            end_us = before.started_us + before.denoise_us
            if asked[after.job_id, after.segment] < end_us:
                found.append((after.started_us - end_us) / 1e6)
    return found


def busy_share(run: Run) -> float:
    """Of the time from the first segment's start to the last one's end, on all workers, what engines worked."""
    made = run.of(r.SegmentGenerated)
    first, last = min(e.started_us for e in made), max(e.started_us + e.denoise_us for e in made)
    return sum(e.denoise_us for e in made) / (last - first) / len({e.worker for e in made})


def fairness(run: Run) -> float:
    """Jain's index of the segments that each job has when half of all are made: 1 is equal, 1/n is one job first."""
    made = sorted(run.of(r.SegmentGenerated), key=lambda e: e.finished_us)
    counts = dict.fromkeys((e.job_id for e in made), 0)
    for event in made[: len(made) // 2]:
        counts[event.job_id] += 1
    return sum(counts.values()) ** 2 / len(counts) / sum(count**2 for count in counts.values())


def _median_s(values_us: Iterable[int]) -> float:
    return median(values_us) / 1e6
