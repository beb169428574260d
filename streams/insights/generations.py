"""Generations of the derived streams: each has a group and a changelog of its own, and the newest one counts.

A rebuild begins a new generation, whose worker replays the topics from their beginning into an empty table. So no offset
is reset and no table is cleared under a worker that still runs, and no session has to end first.
"""

import re

from confluent_kafka.cimpl import NewTopic

from infra.bus.clients import admin
from infra.settings import Settings

TABLE = "facts"
_CHANGELOG = re.compile(rf"longtake\.insights\.(\d+)-{TABLE}-changelog")
_TIMEOUT_S = 10.0


class Generations:
    """The generations that the broker knows, by their changelog topics."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._admin = admin(settings)

    def newest(self) -> int:
        """The generation in force; 0 if there is none yet. Raises: KafkaException if the broker is away."""
        topics = self._admin.list_topics(timeout=_TIMEOUT_S).topics
        return max((int(match[1]) for name in topics if (match := _CHANGELOG.fullmatch(name))), default=0)

    def current(self) -> int:
        """The generation in force, begun if there was none. Raises: KafkaException."""
        return self.newest() or self.begin()

    def begin(self) -> int:
        """Start a new generation: a running worker ends itself and starts again in it. Raises: KafkaException."""
        generation = self.newest() + 1
        topic = NewTopic(
            f"{group_of(generation)}-{TABLE}-changelog",
            num_partitions=self._settings.partitions,
            replication_factor=self._settings.replication,
            config={"cleanup.policy": "compact"},
        )
        for created in self._admin.create_topics([topic], operation_timeout=_TIMEOUT_S).values():
            created.result()
        return generation

    def drop_before(self, generation: int) -> None:
        """Delete the changelogs of earlier generations."""
        names = self._admin.list_topics(timeout=_TIMEOUT_S).topics
        old = [name for name in names if (match := _CHANGELOG.fullmatch(name)) and int(match[1]) < generation]
        for deleted in self._admin.delete_topics(old).values() if old else ():
            deleted.result()


def group_of(generation: int) -> str:
    """The consumer group, which Faust calls the app's id."""
    return f"longtake.insights.{generation}"
