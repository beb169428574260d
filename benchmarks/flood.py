"""Ten thousand prompts at once, of two tenants: what the director's memory does, how fast it takes them in, and who gets how much."""

import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager

import psutil

from infra.bus.process import run_process
from infra.bus.reader import Reader, event_of
from infra.bus.writer import Writer
from infra.settings import Settings
from schemas.headers import trace_root
from schemas.records import JobChanged, Stage
from streams import director
from tests.director.builders import prompt
from tests.director.processes import instant_workers

_PROMPTS = 10_000
_LIGHT = 500
"""Of the lighter tenant, published behind all of the heavy one's."""
_STARTED = 400
"""Jobs of the lighter tenant after which shares are counted."""
_ANSWER_S = 60.0
_LIMITS = {"jobs_in_flight": 8, "tenant_jobs_in_flight": 8}


def measure(settings: Settings) -> dict[str, float]:
    """Memory in MB of the director before, with all of them in its table, and while they run; events/s; shares.

    `flood_fairness_ratio`: jobs of the light tenant over those of the heavy one among the first that started after the light
    one's prompts were in: 1 is fair, less what the heavy one had in flight by then (8 a partition); its share of the prompts would be 0.05.
    """
    settings = settings.model_copy(update=_LIMITS)
    topics = [JobChanged.topic]
    with _directing(settings) as pid, Reader.from_now(settings, topics) as reader:
        process = psutil.Process(pid)
        _submit(settings, "warm", 1)
        _until(reader, lambda e: e.job_id == "warm-0")
        before = process.memory_info().rss
        start = time.perf_counter()
        _submit(settings, "heavy", _PROMPTS - _LIGHT)
        _submit(settings, "light", _LIGHT)
        seen: set[str] = set()
        while len(seen) < _PROMPTS:
            seen.add(_until(reader, lambda e: e.tenant != "warm" and e.stage is Stage.QUEUED).job_id)
        took_s = time.perf_counter() - start
        waiting = process.memory_info().rss
        with instant_workers(settings):
            started: dict[str, str] = {}
            shares = Counter[str]()
            events, run = 0, time.perf_counter()
            while shares["light"] < _STARTED:
                event = _until(reader, lambda _: True)
                events += 1
                if event.stage is Stage.GENERATING and event.job_id not in started:
                    started[event.job_id] = event.tenant
                    shares = Counter(started.values())
            running = process.memory_info().rss
            run_s = time.perf_counter() - run
    return {
        "flood_prompts_per_s": _PROMPTS / took_s,
        "flood_director_mb_before": before / 1e6,
        "flood_director_mb_waiting": waiting / 1e6,
        "flood_director_mb_running": running / 1e6,
        "flood_kb_per_waiting_job": (waiting - before) / 1e3 / _PROMPTS,
        "flood_events_per_s": events / run_s,
        "flood_fairness_ratio": shares["light"] / max(1, shares["heavy"]),
    }


def _submit(settings: Settings, tenant: str, count: int) -> None:
    with Writer(settings) as writer:
        for start in range(0, count, 500):
            numbers = range(start, min(count, start + 500))
            wishes = [prompt(job_id=f"{tenant}-{n}", tenant=tenant, duration_s=12.0) for n in numbers]
            writer.publish(wishes, trace_root(tenant))


def _until(reader: Reader, wanted: Callable[[JobChanged], bool]) -> JobChanged:
    deadline = time.monotonic() + _ANSWER_S
    while time.monotonic() < deadline:
        message = reader.poll(0.1)
        if message and isinstance(event := event_of(message), JobChanged) and wanted(event):
            return event
    raise TimeoutError(f"the director said nothing of that for {_ANSWER_S:.0f} s")


@contextmanager
def _directing(settings: Settings) -> Generator[int]:
    """A director in a process of its own; its pid."""
    process = multiprocessing.get_context("spawn").Process(target=_direct, args=(settings,), daemon=True)
    process.start()
    try:
        yield process.pid or 0
    finally:
        process.terminate()
        process.join()


def _direct(settings: Settings) -> None:
    run_process(lambda: director.run(settings, 0))
