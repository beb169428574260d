"""longtake.control.v1 -> a job stopped, or a stopped one back in the queue."""

from dataclasses import replace

from schemas.headers import trace_root
from schemas.records import AssemblyState, CancelRequested, JobState, RetryRequested, Stage
from streams.jobs import FINAL, Step, clipped, frontier, truncated

EARLY_US = 3_600_000_000
"""How long a cancellation that came before its prompt is remembered: topics are not read in order."""


def cancelled(job: JobState, event: CancelRequested) -> Step | None:
    """Whatever is under way is dropped. None: the job has ended."""
    if job.stage in FINAL:
        return None
    return replace(job, stage=Stage.CANCELLED, reason=clipped(event.reason or "cancelled")), ()


def cancelled_early(event: CancelRequested, now_us: int) -> JobState:
    """The row of a job that was cancelled before it was submitted: nothing but that."""
    return JobState(
        job_id=event.job_id,
        tenant="",
        content_hash="",
        traceparent=trace_root(event.job_id),
        stage=Stage.CANCELLED,
        reason=clipped(event.reason or "cancelled"),
        plan=None,
        segments=(),
        pieces=(),
        assembly=AssemblyState(),
        engine_version="",
        reworks=0,
        attempts=0,
        submitted_us=0,
        changed_us=now_us,
        rescanned_us=0,
    )


def retried(job: JobState, event: RetryRequested) -> Step | None:
    """Generate again from the segment asked for, stitch again from the first piece that has not passed. All budgets are new."""
    if job.stage not in (Stage.FAILED, Stage.CANCELLED):
        return None
    segment = max(0, min(event.from_segment, frontier(job)))
    passed = next((i for i, p in enumerate(job.pieces) if not (p.checked and p.video)), len(job.pieces))
    job = replace(job, reworks=0, segments=tuple(replace(s, failures=0) for s in job.segments))
    job = truncated(job, segment=segment, piece=min(passed, segment))
    return replace(job, stage=Stage.QUEUED), ()
