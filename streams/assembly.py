"""longtake.pieces.v1, longtake.videos.v1 -> the next piece, a segment or piece once more, or longtake.assemblies.requested.v1."""

from dataclasses import replace

from schemas.records import AssemblyFailed, JobState, PieceStitched, SeamRejected, Stage, VideoAssembled
from schemas.topics import Event
from streams.finishing import finished
from streams.jobs import Rules, Step, failed, frontier, piece_current, present, varied, wanted, with_piece, with_segment
from streams.requests import ask_assembly, ask_piece, ask_segment
from streams.rework import pieces_lost, regenerated, segment_lost


def piece_stitched(job: JobState, event: PieceStitched, now_us: int) -> Step | None:
    """The piece after it continues from its correction, and a segment that waited for the stitcher is asked for.

    A piece that is only encoded again has been continued already.
    """
    index = event.piece
    if not _awaited(job, index, event.attempt):
        return None
    continued, waited = job.pieces[index].seam is not None, not wanted(job)
    job = with_piece(
        job,
        index,
        video=event.video,
        decoder_config=event.decoder_config,
        correction=event.correction,
        seam=event.seam,
        renditions=event.renditions,
    )
    events: list[Event] = []
    if waited and wanted(job):
        job, segment = ask_segment(job, frontier(job), now_us)
        events.append(segment)
    if not continued and index + 1 < len(job.pieces) and job.segments[index + 1].frames:
        job, piece = ask_piece(job, index + 1, now_us)
        events.append(piece)
    return (job, tuple(events)) if events else assembled_when_checked(job, now_us)


def seam_rejected(job: JobState, event: SeamRejected, now_us: int, rules: Rules) -> Step | None:
    """Its segment is generated again with another variation, a few times. If frames are lost, those that are."""
    index = event.piece
    if not _awaited(job, index, event.attempt):
        return None
    if event.lost:
        lost = {blob.uri for blob in event.lost}
        sides = (i for i in (index - 1, index) if i >= 0 and present(job.segments[i].frames).uri in lost)
        return segment_lost(job, next(sides, index), event.reason, now_us, rules)
    failures = job.segments[index].failures + 1
    job = with_segment(varied(job, index), index, failures=failures)
    if failures >= rules.segment_attempts:
        return failed(
            job, f"segment {index} did not come out {failures} times, last rejected at its seam: {event.reason}"
        )
    return regenerated(job, index, now_us)


def assembled_when_checked(job: JobState, now_us: int) -> Step:
    """Ask for the assembly once every piece is there and has passed."""
    if not all(piece.checked and piece.video for piece in job.pieces):
        return job, ()
    job, request = ask_assembly(job, now_us)
    return job, (request,)


def video_assembled(job: JobState, event: VideoAssembled, now_us: int) -> Step | None:
    """The video waits for its verdict, or has it already."""
    if job.stage is not Stage.ASSEMBLING or event.attempt != job.assembly.attempt:
        return None
    assembly = replace(
        job.assembly,
        video=event.video,
        tracks=event.tracks,
        duration_us=event.duration_us,
        renditions=event.renditions,
        subtitles=event.subtitles,
    )
    job = replace(job, stage=Stage.CHECKING, assembly=assembly)
    return finished(job, now_us) if assembly.checked else (job, ())


def assembly_failed(job: JobState, event: AssemblyFailed, now_us: int, rules: Rules) -> Step | None:
    """The pieces at fault are stitched again."""
    waiting = job.stage in (Stage.ASSEMBLING, Stage.CHECKING)
    if not waiting or event.attempt != job.assembly.attempt:
        return None
    pieces = sorted({index for index in event.pieces if 0 <= index < len(job.pieces)})
    if not pieces:
        return failed(job, f"assembly: {event.reason}")
    return pieces_lost(job, pieces, event.reason, now_us, rules)


def _awaited(job: JobState, index: int, attempt: int) -> bool:
    return piece_current(job, index, attempt) and job.pieces[index].video is None
