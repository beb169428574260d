"""How far groups have read, for whoever is in none of them.

Each is asked for by a consumer that never joins it. `AdminClient.list_consumer_group_offsets` ends the process if the
broker goes and comes back while it waits (librdkafka 2.16: assertion `eonce->refcnt > 0`).
"""

from collections.abc import Iterable
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, IsolationLevel, KafkaException, TopicPartition

from infra.bus import clients
from infra.bus.message import Partition
from infra.bus.progress import Offsets
from infra.settings import Settings


class GroupOffsets:
    """Owns a client for each group that was asked about. A context manager.

    `isolation`: with READ_COMMITTED, offsets in an open transaction are waited for; else those before it are the answer.
    """

    def __init__(self, settings: Settings, isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED) -> None:
        self._settings = settings
        self._isolation = isolation
        self._consumers: dict[str, Consumer] = {}

    def begin(self, groups: Iterable[str]) -> None:
        """Let the clients of these groups connect while others are asked."""
        for group in groups:
            self._consumer(group)

    def of(self, group: str, places: Iterable[Partition], timeout_s: float) -> Offsets:
        """The next offset to read of these partitions, without those of which the group has committed none. Raises: KafkaException."""
        asked = [TopicPartition(*place) for place in places]
        found = self._consumer(group).committed(asked, timeout_s) if asked else []
        for partition in found:
            if partition.error:
                raise KafkaException(partition.error)
        return {(p.topic, p.partition): p.offset for p in found if p.offset >= 0}

    def close(self) -> None:
        """Leave: nobody notices."""
        for consumer in self._consumers.values():
            consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _consumer(self, group: str) -> Consumer:
        if group not in self._consumers:
            self._consumers[group] = clients.onlooker(self._settings, group, self._isolation)
        return self._consumers[group]
