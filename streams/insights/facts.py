"""What is known of one job, and what follows from it: pure functions, the same answer for the same events in any order.

A job's facts are kept by identity, `(segment, attempt)` and `(piece, attempt)`, never counted: an event that comes twice
changes nothing, one that was missed is corrected by the next and brought back by a replay.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import msgspec

from schemas.records import JobChanged, JobProgress, PieceChecked, SegmentFailed, SegmentGenerated, Stage, Verdict
from schemas.scores import main_scores
from schemas.topics import Event

SOURCES = (SegmentGenerated.topic, JobChanged.topic, PieceChecked.topic)
"""The topics that tell something."""
FINAL = (Stage.FINISHED, Stage.FAILED, Stage.CANCELLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """One attempt at a segment. A failed one has no frames."""

    segment: int
    attempt: int
    succeeded: bool
    engine: str
    engine_version: str
    frames: int
    """Generated, overlaps included."""
    end_frame: int
    """On the job's timeline, behind the last one."""
    busy_us: int
    """Denoising and decoding."""
    started_us: int
    finished_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One attempt at a piece that was measured."""

    piece: int
    attempt: int
    frames: int
    checked_us: int
    population: str = ""
    scores: tuple[float, ...] = ()
    """The main ones, if the piece passed its gates and they compare with others'."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """A row of the table: `job` fields are of the newest JobChanged, `frames` 0 while none was seen."""

    job_id: str
    stage: Stage = Stage.GENERATING
    frames: int = 0
    segments_generated: int = 0
    changed_us: int = 0
    tries: tuple[Try, ...] = ()
    checks: tuple[Check, ...] = ()

    @property
    def updated_us(self) -> int:
        """Time of the newest event seen."""
        return max(self.changed_us, *(t.finished_us for t in self.tries), *(c.checked_us for c in self.checks), 0)


def observe(facts: JobFacts | None, event: Event) -> JobFacts | None:
    """The job's facts after `event`; as they were if it tells nothing new or nothing of interest."""
    match event:
        case JobChanged():
            known = facts or JobFacts(job_id=event.job_id)
            return _changed(known, event) if event.changed_us >= known.changed_us else known
        case SegmentGenerated() | SegmentFailed():
            known = facts or JobFacts(job_id=event.job_id)
            new = _generated(event) if isinstance(event, SegmentGenerated) else _failed(event)
            others = (t for t in known.tries if (t.segment, t.attempt) != (new.segment, new.attempt))
            return replace(known, tries=tuple(sorted((*others, new), key=lambda t: (t.segment, t.attempt))))
        case PieceChecked():
            known = facts or JobFacts(job_id=event.job_id)
            check = _checked(event)
            rest = (c for c in known.checks if (c.piece, c.attempt) != (check.piece, check.attempt))
            return replace(known, checks=tuple(sorted((*rest, check), key=lambda c: (c.piece, c.attempt))))
        case _:
            return facts


def progress(facts: JobFacts) -> JobProgress:
    """How far the job is and how long it will take, as of the newest event seen."""
    generated = _frames_generated(facts)
    good = [t for t in facts.tries if t.succeeded]
    busy_us = sum(t.busy_us for t in good)
    return JobProgress(
        job_id=facts.job_id,
        stage=facts.stage,
        frames=facts.frames,
        frames_generated=generated,
        frames_checked=sum(c.frames for c in _newest_checks(facts).values()),
        generate_fps=sum(t.frames for t in good) * 1e6 / busy_us if busy_us else 0.0,
        remaining_s=_remaining_s(facts, generated),
        updated_us=facts.updated_us,
    )


def dump(facts: JobFacts) -> bytes:
    """The row as it stands in the changelog."""
    return msgspec.json.encode(facts)


def load(data: bytes) -> JobFacts:
    """The row of these bytes. Raises: msgspec.ValidationError if an older program wrote it: rebuild."""
    return msgspec.json.decode(data, type=JobFacts)


def _changed(facts: JobFacts, event: JobChanged) -> JobFacts:
    return replace(
        facts,
        stage=event.stage,
        frames=event.frames,
        segments_generated=event.segments_generated,
        changed_us=event.changed_us,
    )


def _generated(event: SegmentGenerated) -> Try:
    frames = event.frames.shape[0] if event.frames.shape else 0
    return Try(
        segment=event.segment,
        attempt=event.attempt,
        succeeded=True,
        engine=event.engine,
        engine_version=event.engine_version,
        frames=frames,
        end_frame=event.start_frame + frames,
        busy_us=event.denoise_us + event.decode_us,
        started_us=event.started_us,
        finished_us=event.finished_us,
    )


def _failed(event: SegmentFailed) -> Try:
    return Try(
        segment=event.segment,
        attempt=event.attempt,
        succeeded=False,
        engine=event.engine,
        engine_version=event.engine_version,
        frames=0,
        end_frame=0,
        busy_us=0,
        started_us=event.failed_us,
        finished_us=event.failed_us,
    )


def _checked(event: PieceChecked) -> Check:
    counts = event.population and event.verdict is Verdict.PASS and event.scores.frames > 0
    return Check(
        piece=event.piece,
        attempt=event.attempt,
        frames=event.scores.frames,
        checked_us=event.checked_us,
        population=event.population if counts else "",
        scores=main_scores(event.scores) if counts else (),
    )


def _newest_checks(facts: JobFacts) -> dict[int, Check]:
    return {check.piece: check for check in facts.checks}


def _frames_generated(facts: JobFacts) -> int:
    """The director's count where it is newer than the segment: a rework takes segments back."""
    ends = (
        t.end_frame
        for t in facts.tries
        if t.segment < facts.segments_generated or t.finished_us > facts.changed_us or not facts.frames
    )
    end = max(ends, default=0)
    return min(end, facts.frames) if facts.frames else end


def _remaining_s(facts: JobFacts, generated: int) -> float | None:
    """Generation at the job's own pace so far, then the way of the last frame through stitching and checks.

    The pace is in frames of wall time, so it holds also while jobs share an engine.
    """
    if facts.stage in FINAL:
        return 0.0 if facts.stage is Stage.FINISHED else None
    good = [t for t in facts.tries if t.succeeded]
    if not facts.frames or not good or not generated:
        return None
    last_us = max(t.finished_us for t in good)
    pace = generated / max(last_us - min(t.started_us for t in good), 1)
    left_us = (facts.frames - generated) / pace + _lag_us(good, facts.checks)
    return max(last_us + left_us - facts.updated_us, 0.0) / 1e6


def _lag_us(good: list[Try], checks: Iterable[Check]) -> float:
    """From a segment's end to its piece's check, on average; 0 before the first."""
    finished = {t.segment: t.finished_us for t in good}
    lags = [c.checked_us - finished[c.piece] for c in checks if c.piece in finished]
    positive = [lag for lag in lags if lag > 0]
    return sum(positive) / len(positive) if positive else 0.0
