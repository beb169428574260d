"""Requests: parsed and checked, and work that is done once, however often it is asked for."""

import logging
from collections.abc import Callable
from typing import Protocol, TypeVar, cast

from infra.bus.message import Message
from infra.bus.work import Handler
from infra.objects import BlobError, Objects
from schemas.blobs import blobs_in
from schemas.codec import decode, encode, request_hash
from schemas.errors import BadInputError
from schemas.records import (
    AssemblyFailed,
    AssemblyRequested,
    PieceRequested,
    PieceStitched,
    SeamRejected,
    SegmentGenerated,
    SegmentRequested,
    VideoAssembled,
)
from schemas.topics import Event

E = TypeVar("E", bound=Event)
R = TypeVar("R", SegmentRequested, PieceRequested, AssemblyRequested)
_ANSWERS = {
    SegmentRequested: (SegmentGenerated,),
    PieceRequested: (PieceStitched, SeamRejected),
    AssemblyRequested: (VideoAssembled, AssemblyFailed),
}

log = logging.getLogger(__name__)


class _Keyed(Protocol):
    @property
    def job_id(self) -> str: ...


def event_in(message: Message, record: type[E]) -> E:
    """The `record` in a message of a job. Raises: BadInputError if it is another one or under another key."""
    event = decode(message.value or b"")
    if not isinstance(event, record):
        found = type(event).__name__
        raise BadInputError(field="value", rule="record", message=f"a {found} where a {record.__name__} belongs")
    job_id = cast(_Keyed, event).job_id
    if message.key != job_id.encode():
        raise BadInputError(field="key", rule="job_id", message="the key is not the job's id", job_id=job_id)
    return event


def request_in(message: Message, record: type[R]) -> R:
    """The request in a message. Raises: BadInputError, also if its hash is not its own: results are kept under it."""
    request = event_in(message, record)
    if request.request_hash != request_hash(request):
        raise BadInputError(
            field="request_hash", rule="hash", message="not the hash of this request", job_id=request.job_id
        )
    return request


def recalled(objects: Objects, key: str, kinds: tuple[type[E], ...]) -> E | None:
    """The event of one of these kinds that was kept under `key`. None: there is none that this program can read."""
    kept = objects.get_manifest(key)
    try:
        event = decode(kept) if kept else None
    except BadInputError as error:  # written by a newer version of this program
        log.warning("the manifest of %s is passed over: %s", key, error)
        return None
    if event is None or isinstance(event, kinds):
        return event
    log.warning("the manifest of %s is passed over: a %s", key, type(event).__name__)
    return None


def recall(objects: Objects, request: R) -> Event | None:
    """The event that answered this request before, in this process or another.

    None: there is none, or what it points at is no longer there. Then the work has to be done again.
    """
    event = recalled(objects, request.request_hash, _ANSWERS[type(request)])
    if event is None or isinstance(event, SeamRejected | AssemblyFailed):
        return event
    try:
        gone = [blob.uri for blob in blobs_in(event) if not objects.holds(blob)]
    except BlobError as error:
        gone = [str(error)]
    if gone:
        log.warning("%s: done before, but gone, and done again: %s", request.job_id, ", ".join(gone))
    return None if gone else event


def remember(objects: Objects, request: R, event: Event) -> Event:
    """Keep the answer, after everything it points at is in the store; gives it back."""
    objects.put_manifest(request.request_hash, encode(event))
    return event


def remembered(objects: Objects, record: type[R], work: Callable[[R], Event]) -> Handler:
    """A handler that does `work` once per request and announces the same event again after that."""

    def handle(message: Message) -> tuple[Event, ...]:
        request = request_in(message, record)
        return (recall(objects, request) or remember(objects, request, work(request)),)

    return handle
