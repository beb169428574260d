"""Creation of topics on the real broker."""

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from infra.bus.errors import TopicsError
from infra.bus.topics import create_topics
from infra.settings import Settings
from schemas.records import JobChanged, JobState, VideoFinished
from schemas.topics import DEAD_LETTERS


def config(settings: Settings, topic: str) -> dict[str, str]:
    admin = AdminClient({"bootstrap.servers": settings.kafka})
    [future] = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    return {name: entry.value for name, entry in future.result(10).items()}


def test_creating_topics_again_changes_nothing(bus_settings: Settings) -> None:
    assert create_topics(bus_settings) == []


def test_tables_are_compacted_and_events_are_not(bus_settings: Settings) -> None:
    policies = {
        t: config(bus_settings, t)["cleanup.policy"] for t in (JobState.topic, JobChanged.topic, VideoFinished.topic)
    }
    assert policies == {JobState.topic: "compact", JobChanged.topic: "compact", VideoFinished.topic: "delete"}


def test_a_dead_letter_may_be_larger_than_any_record(bus_settings: Settings) -> None:
    sizes = [int(config(bus_settings, topic)["max.message.bytes"]) for topic in (VideoFinished.topic, DEAD_LETTERS)]
    assert sizes[1] > sizes[0]


def test_other_partition_counts_are_refused_with_their_names(bus_settings: Settings) -> None:
    with pytest.raises(TopicsError, match=rf"{DEAD_LETTERS} has 4.*LONGTAKE_PARTITIONS"):
        create_topics(bus_settings.model_copy(update={"partitions": 6}))
