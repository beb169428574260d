"""The whole line on a stack of its own: how long a video takes after its last segment, and whether memory stays flat."""

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from infra.bus.reader import Reader, event_of
from infra.bus.writer import publish
from infra.local.pidfile import running_pid
from infra.local.services import filled
from infra.local.stack import down, up
from infra.settings import Settings
from schemas.headers import trace_root
from schemas.records import PromptSubmitted, SegmentGenerated, VideoFinished

_LONGEST_S = 600.0
_SAMPLE_S = 1.0
_TEXT = "A lone lighthouse keeper walks along a stormy coast at dusk, slow pan right"


def measure() -> dict[str, float]:
    """`finish_lag_s`, `finish_lag_60_s`, `finish_lag_120_s`: from the last segment to VideoFinished, of 12, 60 and 120 s. `rss_growth_ratio`: of the process
    that grew most, the median of the last third of the long video against that of the middle third."""
    with tempfile.TemporaryDirectory(prefix="longtake-bench-") as folder, _stack(Path(folder)) as settings:
        lag_s(settings, "warm-up", 4)
        short, middle = lag_s(settings, "short", 12), lag_s(settings, "middle", 60)
        memory = _Memory(settings)
        started = time.monotonic()
        long = lag_s(settings, "long", 120)
        wall = time.monotonic() - started
        growth, worst = memory.growth()
    print(f"largest growth of memory: {worst}")
    return {
        "finish_lag_s": short,
        "finish_lag_60_s": middle,
        "finish_lag_120_s": long,
        "finish_lag_ratio": long / short,
        "rss_growth_ratio": growth,
        "realtime_120_ratio": 120 / wall,
    }


@contextmanager
def _stack(folder: Path) -> Iterator[Settings]:
    settings = Settings(kafka="", clickhouse="", objects="", state=folder / "state")
    services = up(settings)
    try:
        yield filled(settings, services)
    finally:
        down(settings)


def lag_s(settings: Settings, job_id: str, seconds: int) -> float:
    """From the last segment of a job, submitted now, to its VideoFinished."""
    last_segment_us = 0
    with Reader.from_now(settings, [SegmentGenerated.topic, VideoFinished.topic]) as reader:
        prompt = PromptSubmitted(job_id=job_id, text=_TEXT, duration_s=seconds)
        publish(settings, [prompt], trace_root(job_id))
        deadline = time.monotonic() + _LONGEST_S
        while time.monotonic() < deadline:
            message = reader.poll(0.5)
            event = event_of(message) if message else None
            if isinstance(event, SegmentGenerated):
                last_segment_us = max(last_segment_us, event.finished_us)
            if isinstance(event, VideoFinished) and event.job_id == job_id:
                return (event.finished_us - last_segment_us) / 1e6
    raise TimeoutError(f"{job_id} was not finished in {_LONGEST_S:.0f} s; see {settings.state / 'logs'}")


class _Memory:
    """Samples the resident memory of every process of the stack until asked."""

    def __init__(self, settings: Settings) -> None:
        self._samples: dict[str, list[int]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(settings.state,), daemon=True)
        self._thread.start()

    def growth(self) -> tuple[float, str]:
        """The worst ratio and whose it is."""
        self._stop.set()
        self._thread.join()
        ratios = {name: _ratio(s) for name, s in self._samples.items() if len(s) >= 12}
        worst = max(ratios, key=lambda name: ratios[name])
        return ratios[worst], f"{worst}, {self._samples[worst][-1] >> 20} MiB at the end"

    def _run(self, state: Path) -> None:
        stack = psutil.Process(running_pid(state))
        while not self._stop.wait(_SAMPLE_S):
            for process in stack.children(recursive=True):
                try:
                    command = " ".join(part for part in process.cmdline()[1:] if "/" not in part)[:80]
                    rss = process.memory_info().rss
                except psutil.NoSuchProcess:
                    continue
                if process.create_time() < time.time() - 2 * _SAMPLE_S:
                    self._samples.setdefault(f"{process.pid} {command}", []).append(rss)


def _ratio(samples: list[int]) -> float:
    third = len(samples) // 3
    middle, last = sorted(samples[third : 2 * third]), sorted(samples[2 * third :])
    return last[len(last) // 2] / middle[len(middle) // 2]
