"""longtake.dead-letters.v1: records that will never be processed, with their own bytes and headers, and the reason."""

import contextlib
from collections.abc import Iterable, Iterator

from infra.bus.errors import TooManyDeadLettersError
from infra.bus.letter import DeadLetter, parse
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


def dead_letters(settings: Settings) -> Iterator[DeadLetter]:
    """All dead letters, oldest first within a partition."""
    with Reader.from_beginning(settings, [DEAD_LETTERS]) as reader:
        for message in reader.to_end():
            with contextlib.suppress(BadInputError):
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
