"""For programs that only write, such as the command line: events or records, delivered or an error."""

import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

import xxhash
from confluent_kafka import KafkaError, KafkaException

from infra.bus import clients
from infra.bus.errors import BusError
from infra.bus.outputs import Cause, Output, outputs_of
from infra.settings import Settings
from schemas.codec import encode
from schemas.topics import Event

_DELIVERY_S = 30.0


class Writer:
    """Owns an idempotent producer. A context manager."""

    def __init__(self, settings: Settings, client: str = "longtake.writer") -> None:
        self._producer = clients.plain_producer(settings, client)
        self._kafka = settings.kafka
        self._failures: list[KafkaError] = []

    def publish(self, events: Sequence[Event], traceparent: str, *, source: str = "longtake/cli") -> None:
        """Write events and wait until the broker has them. The same event again has the same `ce_id`. Raises: BusError."""
        now_us = time.time_ns() // 1000
        outputs: list[Output] = []
        for event in events:
            event_id = xxhash.xxh3_128_hexdigest(encode(event))
            outputs += outputs_of([event], Cause(id=event_id, traceparent=traceparent, source=source, time_us=now_us))
        self.write(outputs)

    def write(self, outputs: Iterable[Output]) -> None:
        """Write records and wait until the broker has them. Raises: BusError if one of them was not delivered."""
        for o in outputs:
            try:
                self._producer.produce(o.topic, o.value, o.key, o.partition, self._delivered, headers=list(o.headers))
            except KafkaException as error:
                raise BusError(f"a record for {o.topic} cannot be sent: {error.args[0].str()}") from error
        left = self._producer.flush(_DELIVERY_S)
        failed, self._failures = self._failures, []
        if failed or left:
            reason = failed[0].str() if failed else f"no answer from {self._kafka} for {_DELIVERY_S:.0f} s"
            raise BusError(f"{left + len(failed)} records were not delivered: {reason}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._producer.close()

    def _delivered(self, error: KafkaError | None, _: object) -> None:
        if error:
            self._failures.append(error)


def publish(settings: Settings, events: Sequence[Event], traceparent: str, *, source: str = "longtake/cli") -> None:
    """Write events with a client of their own: see `Writer.publish`."""
    with Writer(settings) as writer:
        writer.publish(events, traceparent, source=source)
