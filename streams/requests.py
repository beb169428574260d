"""What a row asks of the workers: the same request for the same row, however often it is built.

`ask_*` make a new request, with an attempt of its own; `outstanding` repeats those without an answer.
"""

from collections.abc import Iterator
from dataclasses import replace

from schemas.codec import sealed
from schemas.records import (
    AssemblyRequested,
    Captions,
    Correction,
    JobState,
    PieceRef,
    PieceRequested,
    Plan,
    PlannedShot,
    SeamKind,
    SegmentRequested,
    Stage,
    Transition,
)
from schemas.topics import Event
from streams.captions.wishes import BURNT
from streams.cards import designed_frames
from streams.jobs import frontier, plan_of, predecessor_stitched, present, wanted, with_piece, with_segment

_CRF_STEP = 4.0
"""Lower by it for each re-encode: about twice the bits, 2 dB."""


def ask_segment(job: JobState, index: int, now_us: int) -> tuple[JobState, SegmentRequested]:
    """Have the segment generated from those before it."""
    attempt = job.segments[index].attempt
    job = with_segment(job, index, attempt=attempt + 1)
    job = replace(job, attempts=job.attempts + (attempt > 0))
    return job, _segment(job, index, now_us)


def ask_piece(job: JobState, index: int, now_us: int) -> tuple[JobState, PieceRequested]:
    """Have the piece of a segment stitched to the one before and encoded."""
    job = with_piece(
        job, index, attempt=job.pieces[index].attempt + 1, video=None, checked=False, scores=None, renditions=()
    )
    return job, _piece(job, index, now_us)


def ask_assembly(job: JobState, now_us: int) -> tuple[JobState, AssemblyRequested]:
    """Have the checked pieces joined."""
    assembly = replace(job.assembly, attempt=job.assembly.attempt + 1)
    job = replace(job, stage=Stage.ASSEMBLING, assembly=assembly)
    return job, _assembly(job, now_us)


def outstanding(job: JobState, now_us: int) -> Iterator[Event]:
    """Every request without its last answer. A piece or video without verdict is asked for again: it is announced again, then checked."""
    if job.stage in (Stage.ASSEMBLING, Stage.CHECKING):
        yield _assembly(job, now_us)
    if job.stage is not Stage.GENERATING:
        return
    generated = frontier(job)
    if wanted(job):
        yield _segment(job, generated, now_us)
    for index in range(generated):
        if not (job.pieces[index].checked and job.pieces[index].video) and predecessor_stitched(job, index):
            yield _piece(job, index, now_us)


def oldest_reference(job: JobState, index: int) -> int:
    """The first segment whose latents this one continues from; itself if it begins a take."""
    plan = plan_of(job)
    return max(0, index - plan.state_segments) if plan.state_segments else _take_start(plan, index)


def _segment(job: JobState, index: int, now_us: int) -> SegmentRequested:
    plan = plan_of(job)
    segment = plan.segments[index]
    return sealed(
        SegmentRequested(
            job_id=job.job_id,
            segment=index,
            attempt=job.segments[index].attempt,
            request_hash="",
            variation=job.segments[index].variation,
            engine=plan.engine,
            engine_options=plan.engine_options,
            format=plan.format,
            start_frame=segment.start_frame,
            frames=segment.frames,
            head_overlap=segment.head_overlap,
            tail_overlap=segment.tail_overlap,
            shots=_shots(plan, index),
            negative=plan.negative,
            seed=plan.seed,
            latent_ref=tuple(present(s.latents) for s in job.segments[oldest_reference(job, index) : index]),
            requested_us=now_us,
        )
    )


def _take_start(plan: Plan, index: int) -> int:
    """The first segment of the take that a segment belongs to: no engine continues over a cut or dissolve."""
    return max(k for k in range(index + 1) if plan.segments[k].seam is not SeamKind.CONTINUOUS)


def _shots(plan: Plan, index: int) -> tuple[PlannedShot, ...]:
    """The shots that a segment shows, and the one that its first grows out of. The tail of a dissolve or wipe belongs to the old shot."""
    segment = plan.segments[index]
    end = segment.start_frame + segment.frames
    if index + 1 < len(plan.segments) and plan.segments[index + 1].seam in (SeamKind.DISSOLVE, SeamKind.WIPE):
        end -= segment.tail_overlap
    first = max(k for k, shot in enumerate(plan.shots) if shot.start_frame <= segment.start_frame)
    grown = first > 0 and plan.shots[first].transition is Transition.CONTINUOUS
    return tuple(shot for shot in plan.shots[first - grown :] if shot.start_frame < end)


def _piece(job: JobState, index: int, now_us: int) -> PieceRequested:
    plan = plan_of(job)
    segment, piece = plan.segments[index], job.pieces[index]
    start, end = piece_span(plan, index)
    return sealed(
        PieceRequested(
            job_id=job.job_id,
            piece=index,
            attempt=piece.attempt,
            request_hash="",
            format=plan.format,
            start_frame=start,
            frames=end - start,
            head_overlap=segment.head_overlap,
            tail_overlap=segment.tail_overlap,
            seam=segment.seam,
            segment_frames=present(job.segments[index].frames),
            previous_frames=job.segments[index - 1].frames if index else None,
            previous_correction=job.pieces[index - 1].correction if index else Correction(),
            encode=replace(plan.encode, crf=plan.encode.crf - _CRF_STEP * piece.reencodes),
            requested_us=now_us,
            engine=plan.engine,
            engine_version=job.engine_version,
            renditions=plan.renditions,
            cards=tuple(card for card in plan.cards if start <= card.start_frame < end),
            curtains=tuple(c for c in plan.curtains if start <= c.frame + c.frames and c.frame - c.frames <= end),
            captions=_burnt(plan, start, end),
        )
    )


def _burnt(plan: Plan, start: int, end: int) -> Captions | None:
    """Captions to be drawn into these frames or the one on each side, which the reference shows as well."""
    captions, frame_us = plan.captions, 1_000_000 * plan.format.fps_den / plan.format.fps_num
    if captions is None or captions.shown != BURNT:
        return None
    begin_us, end_us = (start - 1) * frame_us, (end + 1) * frame_us
    lines = tuple(line for line in captions.lines if begin_us <= line.end_us and line.start_us <= end_us)
    return replace(captions, lines=lines) if lines or captions.asset else None


def piece_span(plan: Plan, index: int) -> tuple[int, int]:
    """First frame and end of a piece: its segment without the tail overlap, with the card before or behind all segments."""
    segment = plan.segments[index]
    last = index == len(plan.segments) - 1
    end = plan.frames if last else segment.start_frame + segment.frames - segment.tail_overlap
    return (segment.start_frame if index else 0), end


def _assembly(job: JobState, now_us: int) -> AssemblyRequested:
    plan = plan_of(job)
    return sealed(
        AssemblyRequested(
            job_id=job.job_id,
            attempt=job.assembly.attempt,
            request_hash="",
            format=plan.format,
            frames=plan.frames,
            pieces=tuple(_piece_ref(job, index) for index in range(len(job.pieces))),
            requested_us=now_us,
            sounds=plan.sounds,
            captions=plan.captions if plan.captions and plan.captions.shown != BURNT else None,
            designed_frames=designed_frames(plan.cards, plan.curtains),
        )
    )


def _piece_ref(job: JobState, index: int) -> PieceRef:
    piece = job.pieces[index]
    start, end = piece_span(plan_of(job), index)
    return PieceRef(
        piece=index,
        start_frame=start,
        frames=end - start,
        video=present(piece.video),
        decoder_config=piece.decoder_config,
        renditions=piece.renditions,
    )
