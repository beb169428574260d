"""A real broker and a real ClickHouse for the tests that prove guarantees. A missing one fails; it never skips."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from infra.bus.topics import create_topics
from infra.clickhouse import connect
from infra.local.clickhouse import LocalClickHouse
from infra.local.kafka import LocalKafka
from infra.local.packages import kafka_jars, libchdb
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
    with _broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture
def bus_settings(kafka: LocalKafka, tmp_path: Path) -> Settings:
    """The session's broker with empty topics and no groups, an empty object store and state folder."""
    settings = _settings(kafka, tmp_path)
    reset(settings)
    return settings


@pytest.fixture
def own_kafka(tmp_path: Path) -> Iterator[LocalKafka]:
    """A broker of the test's own, with the line's topics, that it may kill and restart."""
    with _broker(tmp_path / "kafka") as broker:
        create_topics(_settings(broker, tmp_path))
        yield broker


@pytest.fixture
def own_settings(own_kafka: LocalKafka, tmp_path: Path) -> Settings:
    """Settings for `own_kafka`."""
    return _settings(own_kafka, tmp_path)


@pytest.fixture(scope="session")
def clickhouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalClickHouse]:
    """A running ClickHouse for the whole session: leave it running."""
    with _listener(tmp_path_factory.mktemp("clickhouse")) as listener:
        yield listener


@pytest.fixture
def clickhouse_settings(clickhouse: LocalClickHouse, tmp_path: Path) -> Iterator[Settings]:
    """The session's ClickHouse with an empty database of the test's own, an empty object store and state folder."""
    database = f"test_{uuid.uuid4().hex}"
    server = connect(_clickhouse_settings(clickhouse, "default", tmp_path))
    server.command(f"CREATE DATABASE {database}")
    yield _clickhouse_settings(clickhouse, database, tmp_path)
    server.command(f"DROP DATABASE {database}")


@pytest.fixture
def line_settings(bus_settings: Settings, clickhouse_settings: Settings) -> Settings:
    """`bus_settings` and `clickhouse_settings` in one."""
    clickhouse = {name: getattr(clickhouse_settings, name) for name in ("clickhouse", "clickhouse_password")}
    return bus_settings.model_copy(update=clickhouse)


@pytest.fixture
def own_clickhouse(tmp_path: Path) -> Iterator[LocalClickHouse]:
    """A ClickHouse of the test's own that it may kill and restart."""
    with _listener(tmp_path / "clickhouse") as listener:
        yield listener


@contextmanager
def _listener(folder: Path) -> Iterator[LocalClickHouse]:
    listener = LocalClickHouse(library=libchdb(Settings()), folder=folder, log=folder / "clickhouse.log")
    listener.start()
    try:
        listener.ready()
        yield listener
    finally:
        listener.kill()


def _clickhouse_settings(listener: LocalClickHouse, database: str, folder: Path) -> Settings:
    return Settings(
        clickhouse=listener.url(database),
        clickhouse_password=listener.password,
        objects=(folder / "objects").as_uri(),
        state=folder / "state",
    )


@contextmanager
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
