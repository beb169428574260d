"""longtake.control.v1 -> a job stopped, or a stopped one continued."""

from dataclasses import replace

from schemas.records import CancelRequested, JobState, RetryRequested, Stage
from streams.jobs import FINAL, Step, clipped
from streams.rework import regenerated


def cancelled(job: JobState, event: CancelRequested) -> Step | None:
    """Answers that still come in are dropped."""
    if job.stage in FINAL:
        return None
    return replace(job, stage=Stage.CANCELLED, reason=clipped(event.reason or "cancelled")), ()


def retried(job: JobState, event: RetryRequested, now_us: int) -> Step | None:
    """From the segment asked for, or earlier: from the first one whose piece has not passed. All budgets are new."""
    if job.stage not in (Stage.FAILED, Stage.CANCELLED):
        return None
    unchecked = next((i for i, piece in enumerate(job.pieces) if not (piece.checked and piece.video)), len(job.pieces))
    first = max(0, min(event.from_segment, unchecked, len(job.segments) - 1))
    job = replace(job, reworks=0, segments=tuple(replace(segment, failures=0) for segment in job.segments))
    return regenerated(job, first, now_us)
