from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from infra.local.kafka import LocalKafka
from infra.local.packages import kafka_jars
from infra.local.process import ServiceError
from infra.settings import Settings

TOPIC = "longtake.prompts.v1"


def _publish(settings: Settings, values: Sequence[bytes]) -> None:
    producer = Producer({"bootstrap.servers": settings.kafka, "transactional.id": "tests", "retry.backoff.ms": 5})
    producer.init_transactions()
    producer.begin_transaction()
    for value in values:
        producer.produce(TOPIC, value, b"key")
    producer.commit_transaction()


def _read(settings: Settings, count: int) -> list[bytes | None]:
    """The first `count` committed values."""
    consumer = Consumer(
        {
            "bootstrap.servers": settings.kafka,
            "group.id": "tests",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([TOPIC])
    values: list[bytes | None] = []
    while len(values) < count:
        message = consumer.poll(1)
        if message and not message.error():
            values.append(message.value())
    consumer.close()
    return values


def test_committed_records_survive_kill_9_on_the_same_folder_and_ports(
    own_kafka: LocalKafka, own_settings: Settings
) -> None:
    _publish(own_settings, [b"1", b"2"])
    own_kafka.kill()
    own_kafka.restart()
    assert own_kafka.bootstrap == own_settings.kafka
    _publish(own_settings, [b"3"])
    assert _read(own_settings, 3) == [b"1", b"2", b"3"]


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    broker = LocalKafka(jars=kafka_jars(Settings()), folder=tmp_path, log=tmp_path / "kafka.log")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "meta.properties").write_text("version=1\nnode.id=7\n")
    with pytest.raises(ServiceError, match=r"cluster\.id was not found"):
        broker.restart()


@pytest.mark.parametrize("number", [1, 2])
def test_each_test_finds_empty_topics(bus_settings: Settings, number: int) -> None:
    _publish(bus_settings, [b"%d" % number])
    assert _read(bus_settings, 1) == [b"%d" % number]
