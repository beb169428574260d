"""The record that a thread works at, for the lines that it logs meanwhile."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from infra.bus.message import Message
from schemas.headers import trace_id, traceparent_of

_IN_HAND: ContextVar[Message | None] = ContextVar("longtake_in_hand", default=None)


@contextmanager
def in_hand(message: Message) -> Generator[None]:
    """Lines that are logged in the block, by this thread, are about `message`."""
    token = _IN_HAND.set(message)
    try:
        yield
    finally:
        _IN_HAND.reset(token)


def ids_in_hand() -> dict[str, str]:
    """`job_id` and `trace_id` of the record in hand; empty if there is none."""
    message = _IN_HAND.get()
    if message is None:
        return {}
    traceparent = traceparent_of(message.headers, otherwise=message.job_id or message.id)
    return {"job_id": message.job_id, "trace_id": trace_id(traceparent)}
