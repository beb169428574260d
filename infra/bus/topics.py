"""The line's topics on the broker: all are created up front, because brokers do not auto-create."""

import time

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from infra.settings import Settings
from schemas.topics import TOPICS, Topic

_TIMEOUT_S = 30.0


def create_topics(settings: Settings) -> None:
    """Create what is missing and wait until every partition has a leader. Raises: KafkaException."""
    admin = AdminClient({"bootstrap.servers": settings.kafka})
    new = [_new_topic(topic, settings) for topic in TOPICS]
    for future in admin.create_topics(new, operation_timeout=_TIMEOUT_S).values():
        try:
            future.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
    deadline = time.monotonic() + _TIMEOUT_S
    while not _all_led(admin):
        if time.monotonic() > deadline:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "topics without leaders"))
        time.sleep(0.02)


def _new_topic(topic: Topic, settings: Settings) -> NewTopic:
    config = {"cleanup.policy": "compact"} if topic.compacted else {}
    return NewTopic(topic.name, settings.partitions, settings.replication, config=config)


def _all_led(admin: AdminClient) -> bool:
    known = admin.list_topics(timeout=_TIMEOUT_S).topics
    return all(
        topic.name in known and all(p.leader >= 0 for p in known[topic.name].partitions.values()) for topic in TOPICS
    )
