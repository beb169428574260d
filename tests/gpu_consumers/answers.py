"""Ask a worker for segments and get what it answers."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future

from gpu_consumers.generate import Generate
from schemas.records import SegmentFailed, SegmentGenerated, SegmentRequested
from schemas.topics import Event
from tests.gpu_consumers.requests import message_of

ANSWER_S = 60.0
Start = Callable[..., Generate]


def only(outcome: "Future[Sequence[Event]]") -> Event:
    (event,) = outcome.result(ANSWER_S)
    return event


def generated(work: Generate, request: SegmentRequested) -> SegmentGenerated:
    event = only(work.submit(message_of(request)))
    assert isinstance(event, SegmentGenerated), event
    return event


def failed(work: Generate, request: SegmentRequested) -> SegmentFailed:
    event = only(work.submit(message_of(request)))
    assert isinstance(event, SegmentFailed), event
    return event
