"""Every kind of fault in every stage of both built-in engines, many times: how many segments come out right in spite of it.

A segment is right if it is bit by bit what it is without a fault, or if its retry had to ask for another picture. It gets as many
attempts as the director gives it. Every fifth segment goes wrong twice. Engine processes are real and really end, but are
forked from one that has its imports done.
"""

import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from gpu_consumers.pipe import Open
from gpu_consumers.proportions import Rate, above, compare, exact, wilson
from gpu_consumers.supervisor import Supervisor
from infra.objects import Objects
from schemas.records import FailureKind
from tests.gpu_consumers.forked import ForkedProcess
from tests.gpu_consumers.recovery import ENGINES, Baseline, Cell, Outcome, baseline, cells, suffered

_WORKERS = 2
_PATIENT_S = 600.0
_STALL_S = 3.0
"""A stall is taken for one after this long, or five times what opening an engine and making two segments takes here: a busy machine is no fault."""
_GOES_ON = frozenset({FailureKind.NAN, FailureKind.FROZEN, FailureKind.SINK_COLLAPSE})
"""The process goes on after it: quick."""
_ROUNDS = {"animatic": (1600, 25, 3), "causal_dit": (40, 5, 1)}
"""Of each cell, by engine: where the process goes on, where it ends, where it is waited for."""
_LONGEST_S = 900.0
"""No segment is begun after that. They are in random order, so fewer of them are as fair a sample."""
FIGURE = Rate(successes=926, trials=1000)
"""The published success after repair, 92.6 %; of how many trials is not said: a thousand are taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A segment that is to go wrong `times` times."""

    cell: Cell
    times: int
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of it, and after how long."""

    trial: Trial
    outcome: Outcome
    seconds: float

    @property
    def right(self) -> bool:
        """The segment came out, and it is the right one."""
        found = self.outcome
        return found.event is not None and found.faults > 0 and (found.same_bits or found.varied)


def measure(rounds: dict[str, tuple[int, int, int]] | None = None) -> dict[str, float]:
    """Run the matrix and print it by kind."""
    made = list(_trials(rounds or _ROUNDS))
    trials = [made[index] for index in np.random.default_rng(9).permutation(len(made))]
    with tempfile.TemporaryDirectory(prefix="longtake-bench-") as folder, ThreadPoolExecutor(_WORKERS) as threads:
        parts = [threads.submit(_run, Path(folder) / str(n), trials[n::_WORKERS]) for n in range(_WORKERS)]
        results = [result for part in parts for result in part.result()]
    _print_table(results)
    rate = Rate(successes=sum(result.right for result in results), trials=len(results))
    return _print_rate(rate) | {"faults": sum(result.outcome.faults for result in results)}


def _trials(rounds: dict[str, tuple[int, int, int]]) -> Iterator[Trial]:
    number = 0
    for engine in ENGINES:
        quick, slow, waited = rounds[engine]
        for cell in cells(engine):
            count = waited if cell.kind is FailureKind.TIMEOUT else quick if cell.kind in _GOES_ON else slow
            for _ in range(count):
                yield Trial(cell=cell, times=2 if number % 5 == 4 else 1, number=number)
                number += 1


def _run(folder: Path, trials: Sequence[Trial]) -> list[Result]:
    faults = folder / "faults"
    faults.mkdir(parents=True)
    objects = Objects((folder / "objects").as_uri())
    config = Open(objects=objects.url, worker=f"generate-{folder.name}", held_states=2, faults=str(faults))
    patient = Supervisor(config, _PATIENT_S, start=ForkedProcess)
    bases: dict[str, Baseline] = {"animatic": baseline(patient, objects, "animatic")}  # waits for the imports
    begun_s = time.monotonic()
    bases["causal_dit"] = baseline(patient, objects, "causal_dit")
    impatient = Supervisor(config, max(_STALL_S, 5 * (time.monotonic() - begun_s)), start=ForkedProcess)
    results: list[Result] = []
    end_s = time.monotonic() + _LONGEST_S
    for trial in trials:
        if time.monotonic() > end_s:
            break
        begun_s, job_id = time.monotonic(), f"job-{trial.number}"
        work = impatient if trial.cell.kind is FailureKind.TIMEOUT else patient
        outcome = suffered(work, objects, faults, bases[trial.cell.engine], trial.cell, job_id, trial.times)
        results.append(Result(trial=trial, outcome=outcome, seconds=time.monotonic() - begun_s))
    patient.close()
    impatient.close()
    return results


def _print_table(results: Sequence[Result]) -> None:
    print(f"{'kind':18} {'engine':11} {'segments':>8} {'faults':>7} {'right':>6} {'same bits':>9} {'p50 s':>6}")
    groups: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for result in results:
        groups[result.trial.cell.kind, result.trial.cell.engine].append(result)
    for (kind, engine), group in sorted(groups.items()):
        faults, right = sum(r.outcome.faults for r in group), sum(r.right for r in group)
        same, middle_s = sum(r.outcome.same_bits for r in group), median(r.seconds for r in group)
        print(f"{kind:18} {engine:11} {len(group):8} {faults:7} {right:6} {same:9} {middle_s:6.2f}")
    for result in results:
        if not result.right:
            print(f"wrong: {result.trial.cell}, {result.trial.times} times: {result.outcome.failures}")


def _print_rate(rate: Rate) -> dict[str, float]:
    (low, high), (exact_low, exact_high) = wilson(rate), exact(rate)
    difference = compare(rate, FIGURE)
    print(f"{rate.successes} of {rate.trials} segments right: {100 * rate.value:.2f} %")
    print(
        f"95 %: {100 * low:.2f} to {100 * high:.2f} % (Wilson), {100 * exact_low:.2f} to {100 * exact_high:.2f} % (exact)"
    )
    print(
        f"against 92.6 %: {100 * difference.difference:+.1f} points, "
        f"95 %: {100 * difference.low:+.1f} to {100 * difference.high:+.1f}, two-proportion p = {difference.p_value:.1e}; "
        f"exact one-sided p = {above(rate, FIGURE.value):.1e}"
    )
    return {"fault_segments": rate.trials, "fault_success_rate": rate.value, "fault_success_low": low}
