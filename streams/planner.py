"""longtake.segments.v1 -> longtake.segments.requested.v1, longtake.pieces.requested.v1: the next segment, or the same once more."""

from dataclasses import replace

from gpu_consumers.engines.relief import relieved
from gpu_consumers.faults import Change, changes_after
from schemas.records import FailureKind, JobState, SegmentFailed, SegmentGenerated, Stage
from streams.jobs import (
    Rules,
    Step,
    failed,
    frontier,
    plan_of,
    predecessor_stitched,
    present,
    varied,
    wanted,
    with_segment,
)
from streams.requests import ask_piece, ask_segment, oldest_reference
from streams.rework import segment_lost


def segment_generated(job: JobState, event: SegmentGenerated, now_us: int) -> Step | None:
    """The next segment continues from this one's latents, unless the stitcher is too far behind; the piece is stitched once the one before is."""
    index = event.segment
    if not awaited(job, index, event.attempt):
        return None
    job = with_segment(job, index, latents=event.latents, frames=event.frames)
    job = replace(job, engine_version=event.engine_version)
    events = ()
    if wanted(job):
        job, segment = ask_segment(job, index + 1, now_us)
        events = (segment,)
    if predecessor_stitched(job, index):
        job, piece = ask_piece(job, index, now_us)
        events = (*events, piece)
    return job, events


def segment_failed(job: JobState, event: SegmentFailed, now_us: int, rules: Rules) -> Step | None:
    """Once more: with the same bits after a crash, with others if the picture was bad, with options that need less if there was no room.

    If the latents it continues from are lost, it is their turn: the oldest of them, as the others continue from it.
    """
    index = event.segment
    if not awaited(job, index, event.attempt):
        return None
    if event.kind is FailureKind.STATE_MISSING and (asked_from := oldest_reference(job, index)) < index:
        latents = {blob.uri for blob in event.lost}
        lost = (i for i in range(asked_from, index) if present(job.segments[i].latents).uri in latents)
        return segment_lost(job, next(lost, asked_from), event.reason, now_us, rules)
    failures = job.segments[index].failures + 1
    job = with_segment(job, index, failures=failures)
    changes = changes_after(event.kind, failures)
    if Change.OTHER_SEED in changes:
        job = varied(job, index)
    plan = plan_of(job)
    job = replace(job, plan=replace(plan, engine_options=relieved(plan.engine, plan.engine_options, changes)))
    if not event.retryable or failures >= rules.segment_attempts:
        times = "once" if failures == 1 else f"{failures} times"
        return failed(job, f"segment {index} failed {times}, last with {event.kind}: {event.reason}")
    job, request = ask_segment(job, index, now_us)
    return job, (request,)


def awaited(job: JobState, index: int, attempt: int) -> bool:
    """Whether this attempt is the newest request of a segment, without an answer."""
    return (
        job.stage is Stage.GENERATING
        and 0 <= index < len(job.segments)
        and index == frontier(job)
        and wanted(job)  # else it was asked for before a rework, and not again since
        and attempt == job.segments[index].attempt
    )
