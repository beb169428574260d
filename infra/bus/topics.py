"""Creates every topic of the line and makes sure that all have the same number of partitions."""

import time
from collections.abc import Sequence
from concurrent.futures import Future

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from infra.bus import clients
from infra.bus.errors import TopicsError
from infra.settings import Settings
from schemas.topics import DEAD_LETTERS, TOPICS, Topic

_WAIT_S = 10.0
_POLL_S = 0.02
_DAY_MS = 24 * 3600 * 1000
_COMPACTED = {
    "cleanup.policy": "compact",
    # The newest segment of a log is never compacted: small ones, so that a table is short to read.
    "segment.bytes": str(16 << 20),
    "segment.ms": str(3600 * 1000),
    "min.cleanable.dirty.ratio": "0.2",
}
_KEPT = {"cleanup.policy": "delete", "retention.ms": str(7 * _DAY_MS)}
_DEAD_LETTERS_KEPT = {"cleanup.policy": "delete", "retention.ms": str(30 * _DAY_MS)}


def create_topics(settings: Settings) -> list[str]:
    """Create what is missing and return its names; topics that exist stay as they are.

    Raises: TopicsError if a topic cannot be created or has another number of partitions than `settings.partitions`.
    """
    client = clients.admin(settings)
    futures: dict[str, Future[None]] = client.create_topics(
        [_new(t, settings) for t in TOPICS], operation_timeout=_WAIT_S
    )
    created = [name for name, future in futures.items() if _created(name, future)]
    _check(client, settings)
    return created


def partition_counts(client: AdminClient, names: Sequence[str]) -> dict[str, int]:
    """How many partitions each topic has, once all of them have leaders: metadata lags creation.

    Raises: TopicsError if one is not there or has no leader.
    """
    deadline = time.monotonic() + _WAIT_S
    while True:
        topics = client.list_topics(timeout=_WAIT_S).topics
        found = {name: topics[name].partitions for name in names if name in topics}
        if len(found) == len(names) and all(p.leader >= 0 for ps in found.values() for p in ps.values()):
            return {name: len(partitions) for name, partitions in found.items()}
        if time.monotonic() > deadline:
            missing = ", ".join(sorted(set(names) - set(found))) or "none"
            raise TopicsError(f"topics without leaders after {_WAIT_S:.0f} s. Missing topics: {missing}")
        time.sleep(_POLL_S)


def topic_config(topic: Topic, replication: int) -> dict[str, str]:
    """How a topic is made. From three replicas on a record counts when two have it."""
    config = dict(_COMPACTED if topic.compacted else _KEPT)
    config["max.message.bytes"] = str(clients.MAX_RECORD_BYTES)
    if topic.name == DEAD_LETTERS:
        config |= _DEAD_LETTERS_KEPT | {"max.message.bytes": str(clients.MAX_DEAD_LETTER_BYTES)}
    return config | ({"min.insync.replicas": "2"} if replication > 2 else {})


def _new(topic: Topic, settings: Settings) -> NewTopic:
    config = topic_config(topic, settings.replication)
    return NewTopic(topic.name, settings.partitions, settings.replication, config=config)


def _created(name: str, future: "Future[None]") -> bool:
    try:
        future.result()
    except KafkaException as error:
        cause: KafkaError = error.args[0]
        if cause.code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        raise TopicsError(f"topic {name} cannot be created: {cause.str()}") from error
    return True


def _check(client: AdminClient, settings: Settings) -> None:
    counts = partition_counts(client, [topic.name for topic in TOPICS])
    wrong = {name: count for name, count in counts.items() if count != settings.partitions}
    if wrong:
        differing = ", ".join(f"{name} has {count}" for name, count in wrong.items())
        raise TopicsError(
            f"every topic needs {settings.partitions} partitions, or the records of a job part ways: {differing}. "
            "Set LONGTAKE_PARTITIONS to what all of them have, or recreate those that differ"
        )
