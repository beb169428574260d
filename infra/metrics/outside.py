"""What only an onlooker knows: how far groups are behind, whether the services answer, how full the disk is."""

import logging
import shutil
import socket
from collections.abc import Collection, Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from confluent_kafka.admin import AdminClient
from prometheus_client import Gauge

from infra.bus.groups import GroupOffsets
from infra.bus.message import Partition
from infra.bus.progress import EndsQuery, Offsets
from infra.settings import Settings
from schemas.topics import DEAD_LETTERS

_ANSWER_S = 10.0
_PREFIX = "longtake."

LAG = Gauge(
    "longtake_consumer_lag_records",
    "Committed records that a group has not committed the outcome of: what waits and what is in hand.",
    ("group", "topic", "partition"),
)
UP = Gauge("longtake_service_up", "1: the service takes connections.", ("service",))
LETTERS = Gauge("longtake_dead_letter_records", "Records on the dead-letter topic.")
FREE = Gauge("longtake_disk_free_bytes", "Of the file system of a local object store.")
SIZE = Gauge("longtake_disk_bytes", "Of the file system of a local object store.")

log = logging.getLogger(__name__)


def look_at_groups(client: AdminClient, asked: GroupOffsets, letters: Iterable[Partition]) -> None:
    """Set the lag of every group of the line. Raises: KafkaException."""
    listed = client.list_consumer_groups(request_timeout=_ANSWER_S).result()
    lags = lags_of(client, asked, [g.group_id for g in listed.valid if g.group_id.startswith(_PREFIX)])
    LAG.clear()
    for group, places in lags.items():
        for (topic, partition), lag in places.items():
            LAG.labels(group, topic, partition).set(lag)
    LETTERS.set(sum(EndsQuery(client, letters).result().stable.values()))


def lags_of(client: AdminClient, asked: GroupOffsets, groups: Collection[str]) -> dict[str, Offsets]:
    """Committed records, by partition, that a group has not committed the outcome of. Raises: KafkaException."""
    asked.begin(groups)
    topics = client.list_topics(timeout=_ANSWER_S).topics
    places = [(name, n) for name, topic in topics.items() if name.startswith(_PREFIX) for n in topic.partitions]
    committed = {group: asked.of(group, places, _ANSWER_S) for group in groups}
    stable = EndsQuery(client, {place for offsets in committed.values() for place in offsets}).result().stable
    return {
        group: {place: max(0, stable[place] - offset) for place, offset in offsets.items()}
        for group, offsets in committed.items()
    }


def look_at_services(settings: Settings) -> None:
    """Whether Kafka and ClickHouse take connections."""
    clickhouse = urlsplit(settings.clickhouse)
    addresses = {"kafka": settings.kafka.split(",")[0], "clickhouse": f"{clickhouse.hostname}:{clickhouse.port}"}
    for name, address in addresses.items():
        host, _, port = address.rpartition("/")[2].rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), _ANSWER_S):
                UP.labels(name).set(1)
        except (OSError, ValueError):
            UP.labels(name).set(0)


def look_at_disk(settings: Settings) -> None:
    """How full the file system of a `file://` store is."""
    if settings.objects.startswith("file:"):
        folder = Path(unquote(urlsplit(settings.objects).path))
        if folder.is_dir():
            usage = shutil.disk_usage(folder)
            FREE.set(usage.free)
            SIZE.set(usage.total)


def dead_letter_places(client: AdminClient) -> set[Partition]:
    """The partitions of the dead-letter topic."""
    found = client.list_topics(DEAD_LETTERS, timeout=_ANSWER_S).topics[DEAD_LETTERS]
    return {(DEAD_LETTERS, partition) for partition in found.partitions}
