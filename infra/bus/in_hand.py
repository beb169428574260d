"""The record that a thread works at, for the lines that it logs meanwhile."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from infra.bus.message import Message
from schemas.headers import trace_id, traceparent_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Ids:
    """What lines say of a record."""

    job_id: str
    trace_id: str


_IN_HAND: ContextVar[Message | Ids | None] = ContextVar("longtake_in_hand", default=None)


@contextmanager
def in_hand(about: Message | Ids) -> Generator[None]:
    """Lines that are logged in the block, by this thread, are about this record."""
    token = _IN_HAND.set(about)
    try:
        yield
    finally:
        _IN_HAND.reset(token)


def ids_in_hand() -> dict[str, str]:
    """`job_id` and `trace_id` of the record in hand; empty if there is none."""
    about = _IN_HAND.get()
    if about is None:
        return {}
    ids = ids_of(about) if isinstance(about, Message) else about
    return {"job_id": ids.job_id, "trace_id": ids.trace_id}


def ids_of(message: Message) -> Ids:
    """Without a trace of its own a record belongs to that of its job."""
    traceparent = traceparent_of(message.headers, otherwise=message.job_id or message.id)
    return Ids(job_id=message.job_id, trace_id=trace_id(traceparent))
