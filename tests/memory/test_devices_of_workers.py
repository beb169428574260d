"""A worker's engine process is pinned to a device, and to another one when a segment keeps failing on the first."""

from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from gpu_consumers.generate import Generate
from infra.settings import Settings
from schemas.codec import sealed
from tests.gpu_consumers.answers import failed, generated
from tests.gpu_consumers.requests import segment_request
from tests.memory.nvml import Nvml
from tests.memory.recorded import PCIE_BOX, recorded

CRASH = {"fault": "crash", "fault_attempts": "2"}


def device_of_engine() -> str:
    """What the running engine process was given."""
    (engine,) = [child for child in psutil.Process().children() if "gpu_consumers.child" in child.cmdline()]
    return engine.environ()["CUDA_VISIBLE_DEVICES"]


def test_a_segment_that_fails_twice_on_a_device_gets_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    Nvml(recorded(PCIE_BOX)).install(monkeypatch)
    settings = Settings(objects=(tmp_path / "objects").as_uri(), state=tmp_path / "state")
    work = Generate(settings, "generate-1", slot=1)
    try:
        assert "SIGKILL" in failed(work, segment_request(options=CRASH, attempt=1)).reason
        generated(work, segment_request("other"))
        assert device_of_engine() == "GPU-1"
        failed(work, segment_request(options=CRASH, attempt=2))
        generated(work, sealed(replace(segment_request(options=CRASH), attempt=3)))
        assert device_of_engine() == "GPU-3"
    finally:
        work.close()
