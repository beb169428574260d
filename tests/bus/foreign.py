"""A producer that breaks a rule of Kafka which confluent-kafka keeps: names of headers that are not UTF-8."""

import asyncio
from collections.abc import Sequence

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.record import default_records


class RawName(str):
    """Encodes to bytes that are no text."""

    __slots__ = ()

    def encode(self, *_: object) -> bytes:
        return b"\xff\xfe"


def send_with_raw_header(
    bootstrap: str, topic: str, key: bytes, values: Sequence[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = default_records._DefaultRecordBatchBuilderPy  # its faster twin insists on `str`
    for module in ("producer.producer", "producer.message_accumulator"):
        monkeypatch.setattr(f"aiokafka.{module}.DefaultRecordBatchBuilder", builder)

    async def send() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            for value in values:
                await producer.send_and_wait(topic, value, key=key, headers=[(RawName("x"), b"1")])

    asyncio.run(send())
