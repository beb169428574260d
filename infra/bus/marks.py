"""How often a record was begun and not ended: its mark, which stands with the group's committed offset and survives whoever dies.

Kafka keeps a text beside every committed offset. A worker that has had a record in hand for a moment commits the record's own
offset once more, with a text that says so; the commit of what came of it takes the text away. Whoever reads a mark of its own slot
that another process wrote knows that this process died with the record in hand. A mark of another slot says less: the partition
may only have moved. It counts for what it says about the times before.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from infra.bus.message import Message, Partition
from schemas.errors import BadInputError

DEATHS = 3
"""Workers that one record may cost."""
_MAX_WHY_CHARS = 300
"""Brokers keep 4,096 bytes with an offset."""


class Begun(msgspec.Struct, frozen=True, array_like=True):
    """A worker had the record in hand. `why` is what its process said before it ended, if it said anything."""

    worker: str
    process: str
    at_us: int
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Past:
    offset: int
    begun: tuple[Begun, ...]


class Marks:
    """What is known of the records that a worker has in hand or is about to have. `process` names this process for ever."""

    def __init__(self, worker: str, process: str) -> None:
        self._worker = worker
        self._process = process
        self._past: dict[Partition, _Past] = {}
        """Of the first record of each partition: another process may have had it."""
        self._noted: dict[Partition, Begun] = {}

    def known(self, place: Partition) -> bool:
        """Whether the partition's mark was read."""
        return place in self._past

    def found(self, message: Message, offset: int, text: str) -> None:
        """The first record of a partition, and the offset and text that were committed for it."""
        begun = _parsed(text) if offset == message.offset else ()
        died = bool(begun) and begun[-1].worker == self._worker and begun[-1].process != self._process
        self._past[message.place] = _Past(offset=message.offset, begun=begun if died else begun[:-1])

    def past(self, message: Message) -> tuple[Begun, ...]:
        """The times that a worker died with this record in hand."""
        past = self._past.get(message.place)
        return past.begun if past and past.offset == message.offset else ()

    def first(self, message: Message) -> bool:
        """Whether it is the first of its partition here: then it is noted before it is begun."""
        past = self._past.get(message.place)
        return past is not None and past.offset == message.offset

    def noted(self, message: Message) -> bool:
        """Whether its mark stands."""
        return message.place in self._noted

    def begin(self, messages: Iterable[Message], now_us: int) -> dict[Partition, str]:
        """The marks of records that are begun."""
        messages = list(messages)
        self._noted |= {m.place: Begun(self._worker, self._process, now_us) for m in messages}
        return {m.place: _text((*self.past(m), self._noted[m.place])) for m in messages}

    def died(self, message: Message, now_us: int, why: str) -> dict[Partition, str]:
        """The mark of a record that ends this process."""
        last = Begun(self._worker, self._process, now_us, why[:_MAX_WHY_CHARS])
        return {message.place: _text((*self.past(message), last))}

    def give_back(self, messages: Iterable[Message]) -> dict[Partition, str]:
        """The marks of records that are begun, as if they were not: nobody died of them."""
        return {m.place: _text(self.past(m)) for m in messages if self.noted(m)}

    def ended(self, places: Iterable[Partition]) -> None:
        """What was in hand of these partitions is committed."""
        for place in places:
            self._noted.pop(place, None)

    def forget(self, places: Iterable[Partition]) -> None:
        """The partitions are another worker's."""
        for place in places:
            self._noted.pop(place, None)
            self._past.pop(place, None)


def condemned(past: tuple[Begun, ...], log_tail: str) -> BadInputError:
    """Why a record is not begun once more."""
    times = "; ".join(f"{b.worker} at {b.at_us}" + (f": {b.why}" if b.why else "") for b in past)
    tail = f"; the log's last lines: {log_tail}" if log_tail else ""
    return BadInputError(
        field="value", rule="quarantined", message=f"{len(past)} workers ended with it in hand: {times}{tail}"
    )


def _text(begun: tuple[Begun, ...]) -> str:
    return msgspec.json.encode(begun[-DEATHS:]).decode() if begun else ""


def _parsed(text: str) -> tuple[Begun, ...]:
    """Of another program: nothing."""
    try:
        return msgspec.json.decode(text, type=tuple[Begun, ...]) if text else ()
    except msgspec.DecodeError:
        return ()
