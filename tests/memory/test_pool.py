"""The pool that tensors come from: how it is configured before torch is there, and when it is rebuilt."""

from pathlib import Path

import pytest

from gpu_consumers.memory.environment import engine_environment
from gpu_consumers.memory.fragmentation import Care, care, fragmentation
from gpu_consumers.memory.topology import Device
from gpu_consumers.pipe import Open, Ready
from gpu_consumers.process import EngineProcess

CARD = Device(uuid="GPU-1234", name="NVIDIA A100-SXM4-40GB", memory_bytes=1 << 35)


def stats(reserved: int, idle: int) -> dict[str, int]:
    """The two of torch's allocator statistics that count."""
    return {"reserved_bytes.all.current": reserved, "inactive_split_bytes.all.current": idle}


@pytest.mark.parametrize(
    ("idle", "wanted"),
    [(0, Care.NONE), (299, Care.NONE), (300, Care.REPORT), (700, Care.REPORT), (701, Care.REBUILD)],
)
def test_below_thirty_percent_nothing_happens_and_above_seventy_the_pool_is_rebuilt(idle: int, wanted: Care) -> None:
    assert care(fragmentation(stats(1000, idle))) is wanted


def test_an_empty_pool_is_not_fragmented() -> None:
    assert fragmentation({}) == 0.0
    assert fragmentation(stats(0, 0)) == 0.0


def test_the_device_is_pinned_and_segments_may_grow() -> None:
    environment = engine_environment({"HOME": "/h"}, CARD)
    assert environment["CUDA_VISIBLE_DEVICES"] == "GPU-1234"
    assert environment["PYTORCH_ALLOC_CONF"] == "expandable_segments:True"
    assert environment["HOME"] == "/h"
    assert "CUDA_VISIBLE_DEVICES" not in engine_environment({}, None)


def test_what_the_operator_has_set_stays() -> None:
    said = {"CUDA_VISIBLE_DEVICES": "3", "PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"}
    assert engine_environment(said, CARD) == said


def test_an_engine_process_finds_both_in_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CUDA_VISIBLE_DEVICES", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        monkeypatch.delenv(name, raising=False)
    process = EngineProcess(Open(objects=tmp_path.as_uri(), worker="generate-0", held_states=1), CARD)
    try:
        assert isinstance(process.receive(), Ready)
        found = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
    finally:
        process.kill()
        process.end()
    assert b"CUDA_VISIBLE_DEVICES=GPU-1234" in found
    assert b"PYTORCH_ALLOC_CONF=expandable_segments:True" in found
