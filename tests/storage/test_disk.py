"""New jobs wait while the disk is nearly full, and start by themselves when there is room again."""

import os
from pathlib import Path

import pytest

from infra.bus.reader import event_of
from infra.bus.writer import publish
from infra.settings import Settings
from infra.storage.disk import shortage
from schemas.headers import trace_root
from schemas.records import JobChanged, SegmentRequested, Stage
from tests.bus.line import eventually, messages
from tests.cli.conftest import Longtake, longtake
from tests.director.builders import prompt
from tests.director.processes import directors

__all__ = ["longtake"]

LITTLE, MUCH = 256 << 20, 1 << 30


@pytest.fixture
def ballast(tmp_path: Path) -> Path:
    """A file that takes up room on the disk of the test."""
    path = tmp_path / "ballast"
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, MUCH)
    return path


def free_bytes(folder: Path) -> int:
    return os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize


def stage_of(settings: Settings, job_id: str) -> Stage | None:
    events = [event_of(message) for message in messages(settings, JobChanged.topic) if message.job_id == job_id]
    return events[-1].stage if events and isinstance(events[-1], JobChanged) else None


def tight(settings: Settings, folder: Path) -> Settings:
    """A little less is free than is to be kept free."""
    return settings.model_copy(update={"min_free_bytes": free_bytes(folder) + LITTLE})


def test_a_shortage_says_where_and_how_much(tmp_path: Path) -> None:
    settings = Settings(objects=(tmp_path / "objects").as_uri(), state=tmp_path / "state", min_free_bytes=1 << 60)
    assert shortage(settings).endswith("1073741824.00 GiB are kept free")
    assert str(tmp_path / "state") in shortage(settings)
    assert shortage(settings.model_copy(update={"min_free_bytes": 0})) == ""


def test_jobs_wait_for_room_and_start_by_themselves(
    bus_settings: Settings, tmp_path: Path, ballast: Path, longtake: Longtake
) -> None:
    settings = tight(bus_settings, tmp_path)
    with directors(settings):
        publish(settings, [prompt(job_id="boat")], trace_root("boat"))
        eventually(lambda: stage_of(settings, "boat") is Stage.QUEUED, "the job waits")
        assert "no new job starts: " in longtake(settings, "status").out
        assert messages(settings, SegmentRequested.topic) == []
        ballast.unlink()
        eventually(lambda: stage_of(settings, "boat") is Stage.GENERATING, "the job has started")
        eventually(lambda: len(messages(settings, SegmentRequested.topic)) == 1, "its first segment is asked for")
