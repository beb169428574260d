"""longtake.dead-letters.v1 -> the end of a job whose work was put aside: its answer never comes."""

from infra.bus.letter import DeadLetter
from schemas.records import (
    AssemblyRequested,
    JobState,
    PieceRequested,
    PieceStitched,
    SegmentRequested,
    Stage,
    VideoAssembled,
)
from schemas.topics import Event
from streams.jobs import Step, failed, piece_current
from streams.planner import awaited


def put_aside(job: JobState, letter: DeadLetter, event: Event) -> Step | None:
    """The job fails with the letter's reason if it waits for what `event`, the record in the letter, would have led to."""
    match event:
        case SegmentRequested() if awaited(job, event.segment, event.attempt):
            what = f"segment {event.segment}"
        case PieceRequested() if piece_current(job, event.piece, event.attempt) and not job.pieces[event.piece].video:
            what = f"piece {event.piece}"
        case PieceStitched() if piece_current(job, event.piece, event.attempt) and not job.pieces[event.piece].checked:
            what = f"checking piece {event.piece}"
        case AssemblyRequested() if job.stage is Stage.ASSEMBLING and event.attempt == job.assembly.attempt:
            what = "assembly"
        case VideoAssembled() if _unchecked(job) and event.attempt == job.assembly.attempt:
            what = "checking the video"
        case _:
            return None
    return failed(job, f"{what}: {letter.message} [{letter.rule}]")


def _unchecked(job: JobState) -> bool:
    return job.stage in (Stage.ASSEMBLING, Stage.CHECKING) and not job.assembly.checked
