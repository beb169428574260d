"""Whether the services of the line can be reached, and whether they are well."""

import time

from clickhouse_connect.driver.exceptions import DatabaseError
from confluent_kafka import IsolationLevel, KafkaException
from confluent_kafka.admin import AdminClient

from infra.bus import clients
from infra.bus.access import tls_context
from infra.bus.groups import GroupOffsets
from infra.bus.message import Partition
from infra.bus.progress import EndsQuery, Offsets
from infra.clickhouse import connect
from infra.local.check import Check
from infra.local.release import kafka_release
from infra.local.services import Services
from infra.settings import Settings
from schemas.topics import TOPICS

_ANSWER_S = 3.0
_BETWEEN_LOOKS_S = 2.0
_LOSES_TRANSACTIONS = ("4.3", "4.4")


def stack_check(settings: Settings, services: Services | None) -> Check:
    """The local stack's supervisor and how often it had to start something again."""
    if services is None:
        where = f"none is running in {settings.state}"
        return Check(name="stack", ok=False, found=where, remedy="start it: 'longtake up'", needed=False)
    restarted = ", ".join(f"{p.name} {p.restarts} times" for p in services.processes if p.restarts)
    found = f"pid {services.pid}, {len(services.processes)} processes, started again: {restarted or 'none'}"
    logs = settings.state / "logs"
    return Check(name="stack", ok=not restarted, found=found, remedy=f"see the logs in {logs}", needed=False)


def kafka_checks(settings: Settings) -> list[Check]:
    """Reachable, which release, topics there, no transaction hanging."""
    client = clients.admin(settings)
    try:
        topics = client.list_topics(timeout=_ANSWER_S).topics
    except KafkaException as error:
        said = f"{settings.kafka}: {error.args[0].str()}"
        return [Check(name="broker", ok=False, found=said, remedy="is it running, and is LONGTAKE_KAFKA right?")]
    missing = [topic.name for topic in TOPICS if topic.name not in topics]
    found = f"{settings.kafka}, {len(TOPICS) - len(missing)} of {len(TOPICS)} topics"
    there = Check(name="broker", ok=not missing, found=found, remedy="'longtake up' creates what is missing")
    places = [(name, partition) for name, topic in topics.items() for partition in topic.partitions]
    return [there, _release(settings), _transactions(client, places), _group_offsets(settings, client, places)]


def clickhouse_check(settings: Settings) -> Check:
    """Reachable, and which version."""
    remedy = "is it running, and are LONGTAKE_CLICKHOUSE and LONGTAKE_CLICKHOUSE_PASSWORD right?"
    try:
        version = connect(settings).server_version
    except (DatabaseError, ValueError) as error:
        first_line = str(error).partition("\n")[0][:200]
        return Check(name="clickhouse", ok=False, found=f"{settings.clickhouse}: {first_line}", remedy=remedy)
    return Check(name="clickhouse", ok=True, found=f"{version} at {settings.clickhouse}")


def release_check(release: str) -> Check:
    """Whether a broker of this release keeps its transactions."""
    remedy = (
        "4.3.0 to 4.4.0 can lose the end of a transaction when they restart, and its readers then wait for ever "
        "(KAFKA-20734): use 4.2"
    )
    ok = release not in _LOSES_TRANSACTIONS
    return Check(name="broker release", ok=ok, found=f"Kafka {release}", remedy=remedy, needed=False)


def hanging_check(first: Offsets, second: Offsets) -> Check:
    """`first` and `second`: where transactions were open at two looks."""
    hanging = [
        f"{topic}/{partition} at {offset}"
        for (topic, partition), offset in second.items()
        if first.get((topic, partition)) == offset
    ]
    remedy = (
        f"one that is still there after {clients.TRANSACTION_TIMEOUT_MS / 1000:.0f} s will never end by itself: "
        "kafka-transactions.sh abort --topic TOPIC --partition PARTITION --start-offset OFFSET"
    )
    found = f"open for more than {_BETWEEN_LOOKS_S:.0f} s: {', '.join(hanging)}" if hanging else "none hangs"
    return Check(name="transactions", ok=not hanging, found=found, remedy=remedy)


def _release(settings: Settings) -> Check:
    try:
        return release_check(kafka_release(settings.kafka, tls_context(settings)))
    except (OSError, ValueError) as error:
        return Check(name="broker release", ok=True, found=f"not known: {error}", needed=False)


def _transactions(client: AdminClient, places: list[Partition]) -> Check:
    try:
        first = EndsQuery(client, places).result().open()
        if not first:
            return hanging_check(first, first)
        time.sleep(_BETWEEN_LOOKS_S)
        return hanging_check(first, EndsQuery(client, places).result().open())
    except KafkaException as error:
        found = f"the broker does not say where partitions end: {error.args[0].str()}"
        return Check(
            name="transactions", ok=False, found=found, remedy="a broker that has just started may need a moment"
        )


def _group_offsets(settings: Settings, client: AdminClient, places: list[Partition]) -> Check:
    """A transaction whose end was lost also makes the offsets it held unreadable, for good."""
    groups = [group.group_id for group in client.list_consumer_groups().result().valid]
    unstable: list[str] = []
    with GroupOffsets(settings, IsolationLevel.READ_COMMITTED) as asked:
        asked.begin(groups)
        for group in groups:
            try:
                asked.of(group, places, _ANSWER_S)
            except KafkaException:
                unstable.append(group)
    found = f"cannot be read: {', '.join(unstable)}" if unstable else f"{len(groups)} groups, all can be read"
    remedy = "if it stays so, a transaction hangs on the group's offsets: delete the group, or move it with new offsets"
    return Check(name="group offsets", ok=not unstable, found=found, remedy=remedy)
