"""Generate workers with a real engine process each, and no broker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_consumers.generate import Generate
from infra.settings import Settings
from tests.gpu_consumers.answers import Start


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(objects=(tmp_path / "objects").as_uri(), state=tmp_path / "state")


@pytest.fixture
def start(settings: Settings) -> Iterator[Start]:
    """Starts workers; all are closed at the end."""
    started: list[Generate] = []

    def start(worker: str = "generate-0", **changes: object) -> Generate:
        started.append(Generate(settings.model_copy(update=changes), worker))
        return started[-1]

    yield start
    for work in started:
        work.close()


@pytest.fixture(scope="module")
def shared_settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("generate")
    return Settings(objects=(folder / "objects").as_uri(), state=folder / "state")


@pytest.fixture(scope="module")
def shared(shared_settings: Settings) -> Iterator[Generate]:
    """One worker for all tests that leave it as they found it; each has a job of its own."""
    work = Generate(shared_settings, "generate-7")
    yield work
    work.close()
