"""A job's row in the director's table: what it says, and what the few ways to change it do. The rules are elsewhere.

Segments are generated in order, so those that are there are a prefix; the first one missing is the *frontier*. Attempts
count up and are never used again, so a late answer to an older request is told by its number.
"""

from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from schemas.records import AssemblyState, JobChanged, JobState, PieceState, Plan, Stage
from schemas.topics import Event

T = TypeVar("T")
Step: TypeAlias = tuple[JobState, tuple[Event, ...]]
"""A changed row and what follows from it, JobChanged apart."""
FINAL = frozenset({Stage.FINISHED, Stage.FAILED, Stage.CANCELLED})
LOOKAHEAD = 4
"""Segments that may be ahead of the stitched pieces: more would only lie in the store, and be made in vain if a seam is rejected."""
_MAX_CHARS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How often the director tries, and how long it waits."""

    segment_attempts: int = 3
    """Times one segment may fail or be rejected at its seam before the job gives up."""
    reencodes: int = 1
    """Of each piece."""
    reworks: int = 1
    """Times the gates may send one job back."""
    stale_us: int = 300_000_000


def present(value: T | None) -> T:
    """A part of the row that its stage guarantees. Raises: LookupError if it is missing, which is a bug."""
    if value is None:
        raise LookupError("a part of the row is missing that its stage guarantees")
    return value


def plan_of(job: JobState) -> Plan:
    """What the job was cut into."""
    return present(job.plan)


def frontier(job: JobState) -> int:
    """The first segment that is not there, or their number."""
    return next((i for i, segment in enumerate(job.segments) if segment.latents is None), len(job.segments))


def wanted(job: JobState) -> bool:
    """Whether the frontier's segment is asked for: always, unless the stitcher is too far behind."""
    stitched = next((i for i, piece in enumerate(job.pieces) if piece.seam is None), len(job.pieces))
    return frontier(job) < min(len(job.segments), stitched + LOOKAHEAD)


def piece_current(job: JobState, piece: int, attempt: int) -> bool:
    """Whether this attempt is the newest request of a piece whose segment and predecessor are there."""
    return (
        job.stage is Stage.GENERATING
        and 0 <= piece < len(job.pieces)
        and job.pieces[piece].attempt == attempt
        and job.segments[piece].frames is not None
        and predecessor_stitched(job, piece)
    )


def predecessor_stitched(job: JobState, piece: int) -> bool:
    """Whether the correction that this piece continues from is known."""
    return piece == 0 or job.pieces[piece - 1].seam is not None


def with_segment(job: JobState, index: int, **changes: Any) -> JobState:
    """The row with fields of one segment changed."""
    segments = list(job.segments)
    segments[index] = replace(segments[index], **changes)
    return replace(job, segments=tuple(segments))


def with_piece(job: JobState, index: int, **changes: Any) -> JobState:
    """The row with fields of one piece changed."""
    pieces = list(job.pieces)
    pieces[index] = replace(pieces[index], **changes)
    return replace(job, pieces=tuple(pieces))


def varied(job: JobState, index: int) -> JobState:
    """The row with another variation of a segment: its next picture will differ."""
    return with_segment(job, index, variation=job.segments[index].variation + 1)


def truncated(job: JobState, *, segment: int, piece: int) -> JobState:
    """The row without what came of segments and pieces from these on. Counts of attempts stay."""
    segments = [replace(s, latents=None, frames=None) if s.latents else s for s in job.segments[segment:]]
    pieces = [PieceState(attempt=p.attempt) for p in job.pieces[piece:]]
    return replace(
        reopened(job),
        segments=(*job.segments[:segment], *segments),
        pieces=(*job.pieces[:piece], *pieces),
    )


def reopened(job: JobState) -> JobState:
    """The row before its assembly was asked for."""
    return replace(job, stage=Stage.GENERATING, reason="", assembly=AssemblyState(attempt=job.assembly.attempt))


def failed(job: JobState, reason: str) -> Step:
    """The end of a job that did not come out. It keeps its parts, so that it can be retried."""
    return replace(job, stage=Stage.FAILED, reason=clipped(reason)), ()


def clipped(text: str) -> str:
    """Words of others, as long as a row can afford."""
    return text if len(text) <= _MAX_CHARS else text[: _MAX_CHARS - 1] + "…"


def changed(job: JobState) -> JobChanged:
    """The job as everybody sees it, in absolute values."""
    plan = plan_of(job)
    total = len(plan.segments)
    finished = job.stage is Stage.FINISHED
    return JobChanged(
        job_id=job.job_id,
        tenant=job.tenant,
        content_hash=job.content_hash,
        stage=job.stage,
        reason=job.reason,
        title=plan.title,
        engine=plan.engine,
        format=plan.format,
        frames=plan.frames,
        segments=total,
        segments_generated=total if finished else frontier(job),
        pieces_stitched=total if finished else sum(piece.video is not None for piece in job.pieces),
        pieces_checked=total if finished else sum(piece.checked for piece in job.pieces),
        attempts=job.attempts,
        lint=plan.lint,
        video=job.assembly.video,
        submitted_us=job.submitted_us,
        changed_us=job.changed_us,
        arm=job.arm,
        assets=plan.assets,
    )
