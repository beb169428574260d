"""What a poll brings: a record, the end of a partition, or an error that ends the process."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from operator import methodcaller
from typing import cast

from confluent_kafka import Message as Record

from infra.bus.errors import BusError, FatalClientError
from infra.bus.message import Message, Partition

Headers = list[tuple[str, str | bytes | None]] | dict[str, str | bytes | None] | None
# For a header whose name is not UTF-8 `headers()` gives a tuple with a hole in it and an exception that nobody sees:
# reading that tuple ends the process. A call by way of `methodcaller` is checked, and raises SystemError.
_CHECKED_HEADERS = cast("Callable[[Record], Headers]", methodcaller("headers"))

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
        headers = _CHECKED_HEADERS(record) or []
    except SystemError as error:
        log.warning(
            "%s/%s/%s is read without its headers: %s", record.topic(), record.partition(), record.offset(), error
        )
        return []
    pairs = headers.items() if isinstance(headers, dict) else headers
    return [(name, value.encode() if isinstance(value, str) else value) for name, value in pairs]
