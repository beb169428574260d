"""Sending parts of a job back: a segment to be generated again, a piece to be encoded again."""

from schemas.records import JobState
from streams.jobs import Step, reopened, truncated, with_piece
from streams.requests import ask_piece, ask_segment


def regenerated(job: JobState, index: int, now_us: int) -> Step:
    """The segment is generated again; all that continued from it is dropped."""
    job, request = ask_segment(truncated(job, segment=index, piece=index), index, now_us)
    return job, (request,)


def reencoded(job: JobState, index: int, now_us: int) -> Step:
    """The piece is encoded again from the same frames, better. Its correction stays, and so does what continued from it."""
    job = with_piece(reopened(job), index, reencodes=job.pieces[index].reencodes + 1)
    job, request = ask_piece(job, index, now_us)
    return job, (request,)
