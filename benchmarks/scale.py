"""The line with one, two and four generate workers on real Kafka and ClickHouse, and the simulation of the same.

The engine is paced (`paced.py`): it takes a stated time for a frame without using the processor, as a GPU would, so that what is
measured on a small machine is the line and not the machine. `python -m benchmarks.scaling` simulates larger lines with what this
and `minute` have left in `out/`.
"""

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from statistics import median, quantiles

from confluent_kafka import murmur2

from benchmarks import paced
from benchmarks.scaling.figures import SCALED, Load, Scaled, write
from benchmarks.scaling.replay import errors, print_loads
from benchmarks.scaling.run import Run, busy_share, fairness, gaps_s, line, run, times_of
from benchmarks.simulation.line import Times
from infra.settings import Settings
from schemas.records import PromptSubmitted

WORKERS = (1, 2, 4)
_PARTITIONS = 8
_JOBS = 16
_SEGMENTS = 4
_FRAME_S = 0.06
_READY_TRIES = 3
_TEXT = "a lighthouse on a cliff at night, storm waves below, the camera cranes up"


def measure() -> dict[str, float]:
    """`scale_efficiency_N`: frames/s with N workers over N times those with one, of jobs that fall evenly on the partitions;
    `scale_efficiency_hashed_4`: of jobs that fall where their hashes say. `scale_gap_*`: an engine's, while a request waited."""
    with tempfile.TemporaryDirectory(prefix="longtake-bench-") as name, _paced(Path(name) / "paced"):
        times, first = _one_worker(Path(name))
        loads = (first, *(load for workers in WORKERS[1:] for load in _more_workers(Path(name), workers)))
    found = Scaled(times=times, loads=loads)
    write(SCALED, found)
    print_loads(found)
    return _flat(found)


def _one_worker(folder: Path) -> tuple[Times, Load]:
    """What a job alone takes, then the load."""
    with line(folder / "1", generate=1, partitions=_PARTITIONS) as (settings, _):
        _ready(settings, 1)
        times = times_of(run(settings, [_prompt("alone", 2 * _SEGMENTS)]))
        return times, _load("even", 1, run(settings, _even()))


def _more_workers(folder: Path, workers: int) -> list[Load]:
    with line(folder / str(workers), generate=workers, partitions=_PARTITIONS) as (settings, _):
        _ready(settings, workers)
        loads = [_load("even", workers, run(settings, _even()))]
        if workers == max(WORKERS):
            loads.append(_load("hashed", workers, run(settings, _hashed())))
        return loads


@contextmanager
def _paced(folder: Path) -> Generator[None]:
    """The paced engine is installed for the processes of the line."""
    paced.install(folder)
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), before]))
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def _ready(settings: Settings, workers: int) -> None:
    """Every worker has its share of the partitions, and its engine process has made something."""
    shares = Counter[int]()
    for number in range(_READY_TRIES):
        prompts = [_prompt(job_id, 4, frame_s=0.0) for job_id in _ids(f"warm-{number}", 1)]
        shares = Counter(run(settings, prompts).owners.values())
        if sorted(shares.values()) == [_PARTITIONS // workers] * workers:
            return
    raise TimeoutError(f"{workers} workers, but these have partitions: {dict(shares)}")


def _even() -> list[PromptSubmitted]:
    """As many jobs in each partition."""
    return [_prompt(job_id, _SEGMENTS) for job_id in _ids("even", _JOBS // _PARTITIONS)]


def _hashed() -> list[PromptSubmitted]:
    return [_prompt(f"hashed-{number}", _SEGMENTS) for number in range(_JOBS)]


def _ids(name: str, each: int) -> list[str]:
    """So many for each partition, the partitions in turn."""
    found: dict[int, list[str]] = {partition: [] for partition in range(_PARTITIONS)}
    for number in count():
        job_id = f"{name}-{number}"
        found[murmur2(job_id.encode(), _PARTITIONS)].append(job_id)
        if all(len(ids) >= each for ids in found.values()):
            return [ids[turn] for turn in range(each) for ids in found.values()]
    raise AssertionError


def _prompt(job_id: str, segments: int, frame_s: float = _FRAME_S) -> PromptSubmitted:
    """A segment is a second."""
    return PromptSubmitted(
        job_id=job_id,
        text=_TEXT,
        engine="paced",
        engine_options={paced.FRAME_S: str(frame_s)},
        width=128,
        height=72,
        duration_s=float(segments),
    )


def _load(name: str, workers: int, found: Run) -> Load:
    gaps = gaps_s(found)
    load = Load(
        name=name,
        workers=workers,
        jobs=tuple(found.jobs),
        owners=tuple(found.owners.get(partition, partition % workers) for partition in range(_PARTITIONS)),
        makespan_s=found.makespan_s,
        frames=found.frames,
        busy_share=busy_share(found),
        gap_p50_s=median(gaps) if gaps else 0.0,
        gap_p95_s=quantiles(gaps, n=20)[18] if len(gaps) > 1 else 0.0,
        fairness=fairness(found),
    )
    print(load, file=sys.stderr, flush=True)
    return load


def _flat(found: Scaled) -> dict[str, float]:
    by_name = {(load.name, load.workers): load for load in found.loads}
    one, most = by_name["even", 1], by_name["even", max(WORKERS)]
    flat: dict[str, float] = {"scale_fps_1": one.fps}
    for (name, workers), load in by_name.items():
        label = f"{workers}" if name == "even" else f"{name}_{workers}"
        flat[f"scale_efficiency_{label}"] = load.fps / workers / one.fps
        flat[f"scale_engine_busy_share_{label}"] = load.busy_share
    return flat | {
        "scale_gap_p50_ms": 1e3 * most.gap_p50_s,
        "scale_gap_p95_ms": 1e3 * most.gap_p95_s,
        "scale_fairness": most.fairness,
        "scale_simulation_error": max(map(abs, errors(found))),
    }
