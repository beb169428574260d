"""longtake.control.v1 -> a job stopped, or a stopped one continued."""

from dataclasses import replace

from schemas.records import CancelRequested, JobState, RetryRequested, Stage
from schemas.topics import Event
from streams.jobs import FINAL, Step, clipped, frontier, truncated, wanted
from streams.requests import ask_assembly, ask_piece, ask_segment


def cancelled(job: JobState, event: CancelRequested) -> Step | None:
    """Answers that still come in are dropped."""
    if job.stage in FINAL:
        return None
    return replace(job, stage=Stage.CANCELLED, reason=clipped(event.reason or "cancelled")), ()


def retried(job: JobState, event: RetryRequested, now_us: int) -> Step | None:
    """Generate again from the segment asked for, stitch again from the first piece that has not passed. All budgets are new."""
    if job.stage not in (Stage.FAILED, Stage.CANCELLED):
        return None
    segment = max(0, min(event.from_segment, frontier(job)))
    passed = next((i for i, p in enumerate(job.pieces) if not (p.checked and p.video)), len(job.pieces))
    piece = min(passed, segment)
    job = replace(job, reworks=0, segments=tuple(replace(s, failures=0) for s in job.segments))
    job = truncated(job, segment=segment, piece=piece)
    events: list[Event] = []
    if wanted(job):
        job, request = ask_segment(job, segment, now_us)
        events.append(request)
    if piece < segment:
        job, request = ask_piece(job, piece, now_us)
        events.append(request)
    if piece == len(job.pieces):
        job, request = ask_assembly(job, now_us)
        events.append(request)
    return job, tuple(events)
