"""Sending parts of a job back: a segment to be generated again, a piece to be encoded again, what the store has lost made again."""

from collections.abc import Iterable

from schemas.records import JobState
from schemas.topics import Event
from streams.jobs import Rules, Step, failed, reopened, truncated, with_piece, with_segment
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


def segment_lost(job: JobState, index: int, reason: str, now_us: int, rules: Rules) -> Step:
    """What the store has of the segment cannot be used: it is generated again, with the same bits, and what continued from it too."""
    job, again = _counted(job, index, rules)
    return regenerated(job, index, now_us) if again else failed(job, f"segment {index} was lost too often: {reason}")


def pieces_lost(job: JobState, pieces: Iterable[int], reason: str, now_us: int, rules: Rules) -> Step:
    """What the store has of these pieces cannot be used: they are stitched again, as they were. Their segments may be gone too: the stitcher says so."""
    job, events = reopened(job), list[Event]()
    for index in pieces:
        job, again = _counted(job, index, rules)
        if not again:
            return failed(job, f"piece {index} was lost too often: {reason}")
        job, request = ask_piece(job, index, now_us)
        events.append(request)
    return job, tuple(events)


def _counted(job: JobState, index: int, rules: Rules) -> tuple[JobState, bool]:
    """The row with one more failure of the segment, and whether it may be tried again."""
    failures = job.segments[index].failures + 1
    return with_segment(job, index, failures=failures), failures < rules.segment_attempts
