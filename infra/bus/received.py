"""What a poll brings: a record, the end of a partition, or an error that ends the process."""

import logging
from dataclasses import dataclass

from confluent_kafka import Message as Record

from infra.bus.errors import BusError, FatalClientError
from infra.bus.message import Message, Partition

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """All there is to read of a partition was read, up to `offset`: markers of transactions count as well."""

    place: Partition
    offset: int


def received(record: Record) -> Message | End:
    """Raises: FatalClientError (fenced, or away for too long), BusError (no such topic, no permission...)."""
    error = record.error()
    place = record.topic() or "", record.partition() or 0
    offset = record.offset() or 0
    if error is None:
        return Message(
            topic=place[0],
            partition=place[1],
            offset=offset,
            key=record.key(),
            value=record.value(),
            headers=tuple(_headers(record)),
            timestamp_us=record.timestamp()[1] * 1000,
        )
    if error.code() == error._PARTITION_EOF:  # pyright: ignore[reportPrivateUsage] (its public name)
        return End(place=place, offset=offset)
    # A fatal consumer says so in a message whose error does not call itself fatal.
    if error.fatal() or error.code() == error._FATAL:  # pyright: ignore[reportPrivateUsage] (its public name)
        raise FatalClientError(
            f"the consumer is dead for good: {error.str()}. Either another process runs in this slot, or the broker "
            "was away for longer than session_timeout_ms; a restart is the cure"
        )
    raise BusError(f"cannot read {place[0] or 'the input topics'}: {error.str()} [{error.name()}]")


def _headers(record: Record) -> list[tuple[str, bytes | None]]:
    try:
        headers = record.headers() or []
    except SystemError as error:
        # confluent-kafka cannot show a header whose name is not UTF-8, nor any other of that record.
        log.warning(
            "%s/%s/%s is read without its headers: %s", record.topic(), record.partition(), record.offset(), error
        )
        return []
    pairs = headers.items() if isinstance(headers, dict) else headers
    return [(name, value.encode() if isinstance(value, str) else value) for name, value in pairs]
