"""A dead letter: a record as it was, and in headers behind its own why nobody will process it. Pure, for whoever has to decide on one."""

from dataclasses import dataclass

from infra.bus.message import Message
from infra.bus.outputs import Output
from infra.redact import redacted
from schemas.errors import BadInputError
from schemas.topics import DEAD_LETTERS

_HEADERS = (
    "dlq.topic",
    "dlq.partition",
    "dlq.offset",
    "dlq.group",
    "dlq.field",
    "dlq.rule",
    "dlq.message",
    "dlq.time_us",
)
_MAX_DIGITS = 20
_MAX_FIELD_CHARS, _MAX_MESSAGE_CHARS = 200, 5000
"""A field may be named by a producer, with all of a record's megabytes: the letter has to fit on its topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A record that was put aside. `original` is as it was on its own topic, except for the broker's timestamp."""

    id: str
    """`partition-offset` on the dead-letter topic."""
    original: Message
    group: str
    field: str
    rule: str
    message: str
    time_us: int


def dead_letter(message: Message, error: BadInputError, *, group: str, time_us: int) -> Output:
    """The dead letter of `message`: key, value and headers unchanged, the reason in headers behind them."""
    values = (
        message.topic,
        str(message.partition),
        str(message.offset),
        group,
        error.field[:_MAX_FIELD_CHARS],
        error.rule,
        redacted(error.message)[:_MAX_MESSAGE_CHARS],
        str(time_us),
    )
    reasons = tuple((name, value.encode(errors="replace")) for name, value in zip(_HEADERS, values, strict=True))
    return Output(topic=DEAD_LETTERS, key=message.key, value=message.value, headers=(*message.headers, *reasons))


def parse(message: Message) -> DeadLetter:
    """A record of the dead-letter topic. The reason is in its last headers: earlier ones may look like it.

    Raises: BadInputError if it is none.
    """
    count = len(_HEADERS)
    if tuple(name for name, _ in message.headers[-count:]) != _HEADERS:
        raise BadInputError(field="headers", rule="dead_letter", message="not a dead letter")
    reasons = [(value or b"").decode(errors="replace") for _, value in message.headers[-count:]]
    topic, partition, offset, group, field, rule, text, time_us = reasons
    original = Message(
        topic=topic,
        partition=_number(partition),
        offset=_number(offset),
        key=message.key,
        value=message.value,
        headers=message.headers[:-count],
        timestamp_us=message.timestamp_us,
    )
    letter_id = f"{message.partition}-{message.offset}"
    return DeadLetter(
        id=letter_id, original=original, group=group, field=field, rule=rule, message=text, time_us=_number(time_us)
    )


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < _MAX_DIGITS):
        raise BadInputError(field="headers", rule="dead_letter", message=f"{text!r:.40} is no number")
    return int(text)
