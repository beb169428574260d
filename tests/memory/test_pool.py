"""The pool that tensors come from: how it is configured before torch is there, and when it is rebuilt."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpu_consumers.memory.environment import engine_environment
from gpu_consumers.memory.fragmentation import Care, care, fragmentation
from gpu_consumers.memory.pool import Pool, cuda_stats, empty_cuda_cache
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


class Allocator:
    """Statistics as an allocator reports them one after the other, and what was done about them."""

    def __init__(self, *idle: int) -> None:
        self._idle = list(idle)
        self.rebuilt = 0

    def stats(self) -> dict[str, int]:
        return stats(1000, self._idle.pop(0) if len(self._idle) > 1 else self._idle[0])

    def rebuild(self) -> None:
        self.rebuilt += 1


def test_a_pool_is_rebuilt_after_a_segment_and_only_above_seventy_percent() -> None:
    allocator = Allocator(100, 500, 700, 701, 0)
    pool = Pool(allocator.stats, allocator.rebuild)
    counts: list[int] = []
    seen: list[float] = []
    for _ in range(5):
        with pool.segment():
            counts.append(allocator.rebuilt)
        counts.append(allocator.rebuilt)
        seen.append(pool.fragmentation)
    assert seen == [0.1, 0.5, 0.7, 0, 0], "as it is after the segment, and after what was done about it"
    assert counts == [0, 0, 0, 0, 0, 0, 0, 1, 1, 1]


def test_a_pool_is_never_rebuilt_inside_a_segment_of_another_thread() -> None:
    allocator = Allocator(900, 900, 0)
    pool = Pool(allocator.stats, allocator.rebuild)
    entered, end = threading.Event(), threading.Event()

    def decode() -> None:
        with pool.segment():
            entered.set()
            end.wait()

    def denoise() -> int:
        with pool.segment():
            return allocator.rebuilt

    with ThreadPoolExecutor(2) as threads:
        decoding = threads.submit(decode)
        entered.wait()
        with pool.segment():
            pass
        assert allocator.rebuilt == 0
        waiting = threads.submit(denoise)
        with pytest.raises(TimeoutError):
            waiting.result(0.2)
        end.set()
        decoding.result(10)
        assert waiting.result(10) == 1, "what waited begins in the new pool"


def test_a_rebuild_that_does_not_help_is_not_tried_after_every_segment() -> None:
    allocator = Allocator(900, 800, 800, 800, 300, 900, 0)
    pool = Pool(allocator.stats, allocator.rebuild)
    for _ in range(3):
        with pool.segment():
            pass
    assert allocator.rebuilt == 1
    for _ in range(2):
        with pool.segment():
            pass
    assert allocator.rebuilt == 2


def test_a_lost_device_is_not_asked_and_its_error_is_the_one_that_is_heard() -> None:
    def gone() -> dict[str, int]:
        raise RuntimeError("no statistics")

    pool = Pool(gone, lambda: None)
    with pytest.raises(RuntimeError, match="off the bus"), pool.segment():
        raise RuntimeError("off the bus")


def test_without_a_device_in_use_there_is_no_pool() -> None:
    assert cuda_stats() == {}
    empty_cuda_cache()
