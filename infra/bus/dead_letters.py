"""longtake.dead-letters.v1: records that will never be processed, with their own bytes and headers, and the reason."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from infra.bus.errors import TooManyDeadLettersError
from infra.bus.message import Message
from infra.bus.outputs import Output
from infra.bus.reader import Reader
from infra.bus.writer import Writer
from infra.settings import Settings
from schemas.errors import BadInputError
from schemas.records import CancelRequested, PromptSubmitted
from schemas.topics import DEAD_LETTERS

CAP = 20
"""Dead letters in a row that end a process."""
OPEN_TOPICS = frozenset({PromptSubmitted.topic, CancelRequested.topic})
"""Anybody may write here: other people's mistakes are no sign of a bad deploy."""

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


class DeadLetterCap:
    """Counts dead letters in a row."""

    def __init__(self, cap: int = CAP) -> None:
        self._cap = cap
        self._in_a_row = 0

    def good(self) -> None:
        """A record was processed."""
        self._in_a_row = 0

    def bad(self, message: Message, error: BadInputError) -> None:
        """Raises: TooManyDeadLettersError."""
        if message.topic in OPEN_TOPICS:
            return
        self._in_a_row += 1
        if self._in_a_row >= self._cap:
            raise TooManyDeadLettersError(
                f"{self._in_a_row} records in a row would be dead letters, the last one {message.id}: {error}. Other "
                "workers wrote them, so this program is suspected; it stops before it drains the topic"
            )


def dead_letter(message: Message, error: BadInputError, *, group: str, time_us: int) -> Output:
    """The dead letter of `message`: key, value and headers unchanged, the reason in headers behind them."""
    values = (
        message.topic,
        str(message.partition),
        str(message.offset),
        group,
        error.field,
        error.rule,
        error.message,
        str(time_us),
    )
    reasons = tuple((name, value.encode()) for name, value in zip(_HEADERS, values, strict=True))
    return Output(topic=DEAD_LETTERS, key=message.key, value=message.value, headers=(*message.headers, *reasons))


def dead_letters(settings: Settings) -> Iterator[DeadLetter]:
    """All dead letters, oldest first within a partition."""
    with Reader.from_beginning(settings, [DEAD_LETTERS]) as reader:
        for message in reader.to_end():
            yield parse(message)


def find(settings: Settings, letter_id: str) -> DeadLetter | None:
    """The dead letter of this id, or None."""
    return next((letter for letter in dead_letters(settings) if letter.id == letter_id), None)


def replay(settings: Settings, letters: Iterable[DeadLetter]) -> int:
    """Send the originals to the topics they came from, by key, and return how many. Raises: BusError."""
    outputs = [
        Output(topic=m.topic, key=m.key, value=m.value, headers=m.headers) for m in (x.original for x in letters)
    ]
    with Writer(settings) as writer:
        writer.write(outputs)
    return len(outputs)


def parse(message: Message) -> DeadLetter:
    """A record of the dead-letter topic. The reason is in its last headers: earlier ones may look like it."""
    count = len(_HEADERS)
    reasons = [(value or b"").decode(errors="replace") for _, value in message.headers[-count:]]
    topic, partition, offset, group, field, rule, text, time_us = reasons
    original = Message(
        topic=topic,
        partition=int(partition),
        offset=int(offset),
        key=message.key,
        value=message.value,
        headers=message.headers[:-count],
        timestamp_us=message.timestamp_us,
    )
    letter_id = f"{message.partition}-{message.offset}"
    return DeadLetter(
        id=letter_id, original=original, group=group, field=field, rule=rule, message=text, time_us=int(time_us)
    )
