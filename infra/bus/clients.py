"""How every Kafka client is configured. The numbers were measured: docs/architecture.md, "Kafka clients"."""

import logging
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaError, Producer
from confluent_kafka.admin import AdminClient

from infra.bus.access import client_access
from infra.settings import Settings

MAX_RECORD_BYTES = 4 << 20
MAX_DEAD_LETTER_BYTES = 2 * MAX_RECORD_BYTES
"""A dead letter is a whole record and says why."""
TRANSACTION_TIMEOUT_MS = 15_000
"""A transaction is open for milliseconds. One that a lost node left open holds its readers up for this long."""

Config = dict[str, Any]
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One worker's place on the bus. The slot is stable, so that its restart takes over what it held before."""

    role: str
    topics: tuple[str, ...]
    slot: int = 0

    @property
    def group(self) -> str:
        """The consumer group of the role."""
        return f"longtake.{self.role}"

    @property
    def name(self) -> str:
        """Group instance id, transactional id and client id: there is one process of this name."""
        return f"{self.group}-{self.slot}"

    @property
    def source(self) -> str:
        """`ce_source` of what it produces."""
        return f"longtake/{self.role}"


def worker_consumer(settings: Settings, member: Member) -> Consumer:
    """A member of a workers' group: others keep their partitions when it comes or goes."""
    config = _member(settings, member)
    if settings.group_protocol == "consumer":
        return _consumer(config | {"group.protocol": "consumer", "group.remote.assignor": "uniform"})
    return _consumer(config | _session(settings) | {"partition.assignment.strategy": "cooperative-sticky"})


def table_consumer(settings: Settings, member: Member) -> Consumer:
    """A member of the director's group: `range`, so that it gets the same partition numbers of every topic."""
    return _consumer(_member(settings, member) | _session(settings) | {"partition.assignment.strategy": "range"})


def lone_consumer(settings: Settings, client: str) -> Consumer:
    """A reader outside every group: it is told what to read and commits nothing."""
    return _consumer(_reading(settings, client) | {"group.id": client})


def onlooker(settings: Settings, group: str, isolation: IsolationLevel) -> Consumer:
    """Asks how far a group is, and never joins it."""
    config = _reading(settings, "longtake.onlooker") | {"isolation.level": isolation.name.lower()}
    return _consumer(config | {"group.id": group})


def transactional_producer(settings: Settings, member: Member) -> Producer:
    """The producer of a slot: a new one of the same name fences the old one and settles its transaction."""
    config = _producing(settings, member.name)
    config |= {"transactional.id": member.name, "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS}
    return Producer(config, logger=_ClientLog())


def plain_producer(settings: Settings, client: str) -> Producer:
    """An idempotent producer, for programs that only write."""
    return Producer(_producing(settings, client), logger=_ClientLog())


def admin(settings: Settings) -> AdminClient:
    """For topics and offsets."""
    return AdminClient(_connecting(settings, "longtake.admin"), logger=_ClientLog())


def _consumer(config: Config) -> Consumer:
    return Consumer(config, logger=_ClientLog())


def _connecting(settings: Settings, client: str) -> Config:
    if not settings.kafka:
        raise ValueError("settings.kafka is empty: no broker to connect to")
    return {
        **client_access(settings),
        "bootstrap.servers": settings.kafka,
        "client.id": client,
        "error_cb": _log_error,
        "retry.backoff.ms": 5,
        # The default of 10 s adds up with a broker's restart to more than a session.
        "reconnect.backoff.max.ms": 1000,
        # With the default, `rebootstrap`, librdkafka 2.16 keeps asking a group coordinator it has forgotten: after a
        # broker's restart `send_offsets_to_transaction` never returns.
        "metadata.recovery.strategy": "none",
    }


def _reading(settings: Settings, client: str) -> Config:
    return _connecting(settings, client) | {
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 50,
    }


def _member(settings: Settings, member: Member) -> Config:
    return _reading(settings, member.name) | {
        "group.id": member.group,
        "group.instance.id": member.name,
        "max.poll.interval.ms": settings.max_poll_interval_ms,
    }


def _session(settings: Settings) -> Config:
    return {
        "session.timeout.ms": settings.session_timeout_ms,
        # The others hear of a rebalance by heartbeat.
        "heartbeat.interval.ms": min(1000, settings.session_timeout_ms // 5),
    }


def _producing(settings: Settings, client: str) -> Config:
    return _connecting(settings, client) | {
        "enable.idempotence": True,
        "partitioner": "murmur2_random",
        "linger.ms": 0,
        "message.max.bytes": MAX_DEAD_LETTER_BYTES,
    }


class _ClientLog:
    """librdkafka's own log, without what `_log_error` is told as well."""

    def log(self, level: int, text: str, facility: str, *rest: str) -> None:
        log.log(logging.DEBUG if facility == "FAIL" else level, text, facility, *rest)


def _log_error(error: KafkaError) -> None:
    """A refused connection comes again ten times a second, and `_ALL_BROKERS_DOWN` beside it now and then."""
    quiet = error.code() == error._TRANSPORT  # pyright: ignore[reportPrivateUsage] (its public name)
    log.log(logging.DEBUG if quiet else logging.WARNING, "Kafka client: %s [%s]", error.str(), error.name())
