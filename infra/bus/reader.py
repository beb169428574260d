"""For programs that only look: committed records of topics, from the beginning or from now on, outside every group."""

import time
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from infra.bus import clients
from infra.bus.message import Message, Partition
from infra.bus.received import End, received
from infra.bus.topics import partition_counts
from infra.settings import Settings
from schemas.codec import decode, decode_prompt
from schemas.records import PromptSubmitted
from schemas.topics import Event

_TURN_S = 0.2
_ANSWER_S = 30.0
_PAUSE_S = 0.05


class Reader:
    """Owns a consumer. A context manager. Records of one key come in order."""

    def __init__(self, consumer: Consumer, starts: dict[Partition, int]) -> None:
        self._consumer = consumer
        self._open = set(starts)
        """Partitions whose end was not seen."""
        consumer.assign([TopicPartition(topic, partition, offset) for (topic, partition), offset in starts.items()])

    @classmethod
    def from_beginning(cls, settings: Settings, topics: Iterable[str]) -> Self:
        """All that the topics still hold. Raises: TopicsError."""
        # A number: librdkafka looks OFFSET_BEGINNING up half a second later. Where 0 is gone, it starts at the earliest.
        return cls(_consumer(settings), dict.fromkeys(_partitions(settings, topics), 0))

    @classmethod
    def from_now(cls, settings: Settings, topics: Iterable[str]) -> Self:
        """What is committed after this call: subscribe first, then do what is to be seen. Raises: TopicsError."""
        consumer = _consumer(settings)
        starts = {place: _end(consumer, place) for place in _partitions(settings, topics)}
        return cls(consumer, starts)

    @classmethod
    def since(cls, settings: Settings, topics: Iterable[str], seconds: float) -> Self:
        """What was written in the last `seconds` and what comes. Raises: TopicsError."""
        return cls.of_places(settings, _partitions(settings, topics), round((time.time() - seconds) * 1e6))

    @classmethod
    def of_places(cls, settings: Settings, places: Iterable[Partition], since_us: int) -> Self:
        """What was written to these partitions since then, by the broker's clock, and what comes."""
        consumer = _consumer(settings)
        asked = [TopicPartition(*place, since_us // 1000) for place in places]
        found = consumer.offsets_for_times(asked, _ANSWER_S)
        ends = {p: consumer.get_watermark_offsets(p, _ANSWER_S)[1] if p.offset < 0 else p.offset for p in found}
        return cls(consumer, {(p.topic, p.partition): offset for p, offset in ends.items()})

    @property
    def at_end(self) -> bool:
        """Every partition's end was seen once."""
        return not self._open

    def poll(self, timeout_s: float) -> Message | None:
        """The next record, or None: nothing came in time. Raises: BusError."""
        record = self._consumer.poll(timeout_s)
        got = None if record is None else received(record)
        if isinstance(got, End):
            self._open.discard(got.place)
            return None
        return got

    def to_end(self) -> Iterator[Message]:
        """Every record until each partition's end was seen once."""
        while self._open:
            message = self.poll(_TURN_S)
            if message:
                yield message

    def for_seconds(self, quiet_s: float) -> Iterator[Message]:
        """Every record as it comes, until none came for `quiet_s` (`math.inf`: for ever)."""
        last = time.monotonic()
        while time.monotonic() - last < quiet_s:
            message = self.poll(_TURN_S)
            if message:
                yield message
                last = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()


def event_of(message: Message) -> Event:
    """The event in a record. Raises: BadInputError."""
    value = message.value or b""
    return decode_prompt(value) if message.topic == PromptSubmitted.topic else decode(value)


def _consumer(settings: Settings) -> Consumer:
    return clients.lone_consumer(settings, "longtake.reader")


def _end(consumer: Consumer, place: Partition) -> int:
    """Where a partition ends. A broker that has just been made its leader may not know it yet. Raises: KafkaException."""
    deadline = time.monotonic() + _ANSWER_S
    while True:
        try:
            return consumer.get_watermark_offsets(TopicPartition(*place), _ANSWER_S)[1]
        except KafkaException as error:
            cause: KafkaError = error.args[0]
            if cause.code() != KafkaError.NOT_LEADER_FOR_PARTITION or time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE_S)


def _partitions(settings: Settings, topics: Iterable[str]) -> list[Partition]:
    counts = partition_counts(clients.admin(settings), list(topics))
    return [(topic, partition) for topic, count in counts.items() for partition in range(count)]
