"""A real broker and a real ClickHouse for the tests that prove guarantees. A missing one fails; it never skips."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.bus.topics import create_topics
from infra.local.kafka import LocalKafka
from infra.local.packages import kafka_jars
from infra.settings import Settings
from tests.broker import reset


@pytest.fixture(autouse=True)
def _no_settings_from_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the developer has exported must not decide a test; only the package cache is shared."""
    for name in os.environ:
        if name.startswith("LONGTAKE_") and name != "LONGTAKE_CACHE":
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalKafka]:
    """A running broker for the whole session: leave it running."""
    yield from _broker(tmp_path_factory.mktemp("kafka"))


@pytest.fixture
def bus_settings(kafka: LocalKafka, tmp_path: Path) -> Settings:
    """The session's broker with empty topics and no groups, an empty object store and state folder."""
    settings = _settings(kafka, tmp_path)
    reset(settings)
    return settings


@pytest.fixture
def own_kafka(tmp_path: Path) -> Iterator[LocalKafka]:
    """A broker of the test's own, with the line's topics, that it may kill and restart."""
    for broker in _broker(tmp_path / "kafka"):
        create_topics(_settings(broker, tmp_path))
        yield broker


@pytest.fixture
def own_settings(own_kafka: LocalKafka, tmp_path: Path) -> Settings:
    """Settings for `own_kafka`."""
    return _settings(own_kafka, tmp_path)


def _broker(folder: Path) -> Iterator[LocalKafka]:
    broker = LocalKafka(jars=kafka_jars(Settings()), folder=folder, log=folder / "kafka.log")
    broker.start()
    try:
        broker.ready()
        yield broker
    finally:
        broker.kill()


def _settings(broker: LocalKafka, folder: Path) -> Settings:
    return Settings(kafka=broker.bootstrap, objects=(folder / "objects").as_uri(), state=folder / "state")
