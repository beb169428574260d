"""A job whose turn it is -> its first requests, or those that it goes on with after a retry."""

from dataclasses import replace

from schemas.records import JobState, Stage
from schemas.topics import Event
from streams.jobs import Step, frontier, wanted
from streams.requests import ask_assembly, ask_piece, ask_segment


def started(job: JobState, now_us: int) -> Step:
    """Ask for the first missing segment, the first piece that has not passed, or the assembly."""
    job = replace(job, stage=Stage.GENERATING)
    segment = frontier(job)
    piece = next((i for i, p in enumerate(job.pieces) if not (p.checked and p.video)), len(job.pieces))
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
