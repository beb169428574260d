"""A worker's engine process is pinned to a device, and to another one when a segment keeps failing on the first."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from gpu_consumers.generate import Generate
from infra.settings import Settings
from schemas.codec import sealed
from schemas.records import SegmentFailed, SegmentGenerated
from tests.gpu_consumers.answers import failed, generated, only
from tests.gpu_consumers.requests import message_of, segment_request
from tests.memory.nvml import Nvml
from tests.memory.recorded import PCIE_BOX, recorded

CRASH = {"fault": "crash", "fault_attempts": "2"}
NAN = {"fault": "nan", "fault_attempts": "2"}


def engine_process() -> psutil.Process:
    (engine,) = [child for child in psutil.Process().children() if "gpu_consumers.child" in child.cmdline()]
    return engine


def device_of_engine() -> str:
    """What the running engine process was given."""
    return engine_process().environ()["CUDA_VISIBLE_DEVICES"]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Generate]:
    """The worker of slot 1 on a machine with several devices."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    Nvml(recorded(PCIE_BOX)).install(monkeypatch)
    settings = Settings(objects=(tmp_path / "objects").as_uri(), state=tmp_path / "state")
    work = Generate(settings, "generate-1", slot=1)
    yield work
    work.close()


def test_a_segment_that_fails_twice_on_a_device_gets_another_one(work: Generate) -> None:
    assert "SIGKILL" in failed(work, segment_request(options=CRASH, attempt=1)).reason
    generated(work, segment_request("other"))
    assert device_of_engine() == "GPU-1"
    failed(work, segment_request(options=CRASH, attempt=2))
    generated(work, sealed(replace(segment_request(options=CRASH), attempt=3)))
    assert device_of_engine() == "GPU-3"


def test_a_process_that_is_well_but_to_be_replaced_is_so_between_segments(work: Generate) -> None:
    """NaN twice: perhaps the card's memory. The segments in hand are finished first, the waiting ones go to the next process."""
    failed(work, segment_request(options=NAN, attempt=1))
    generated(work, segment_request("other"))
    first = engine_process()
    bad = work.submit(message_of(segment_request(options=NAN, attempt=2)))
    others = [work.submit(message_of(segment_request(f"other-{number}"))) for number in range(3)]
    assert isinstance(only(bad), SegmentFailed)
    assert [type(only(other)) for other in others] == [SegmentGenerated] * 3
    generated(work, segment_request(options=NAN, attempt=3))
    assert device_of_engine() == "GPU-3"
    assert not first.is_running()
