"""Every kind of fault in every stage: what it is called, that its segment comes out, and that it is the same one unless another was asked for.

The short form of `python -m benchmarks faults`, on engine processes that really end.
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpu_consumers.pipe import ENGINE_STAGES, Open, Stage
from gpu_consumers.supervisor import Supervisor
from infra.objects import Objects
from schemas.records import FailureKind
from tests.gpu_consumers.forked import ForkedProcess
from tests.gpu_consumers.recovery import Baseline, Cell, Outcome, baseline, cells, suffered

PATIENT_S, IMPATIENT_S = 60.0, 3.0
TINY = {
    (Stage.RESTORE, FailureKind.IO),
    (Stage.DENOISE, FailureKind.OUT_OF_MEMORY),
    (Stage.DENOISE, FailureKind.NAN),
    (Stage.DENOISE, FailureKind.SINK_COLLAPSE),
    (Stage.DENOISE, FailureKind.WRONG_FRAME_COUNT),
    (Stage.DECODE, FailureKind.DEVICE_LOST),
    (Stage.DECODE, FailureKind.TIMEOUT),
    (Stage.DECODE, FailureKind.FROZEN),
    (Stage.STORE, FailureKind.SYNC),
}
"""Of the native engine, one of each: its processes take longer to open."""
HANGS = {(Stage.DENOISE, FailureKind.TIMEOUT), (Stage.STORE, FailureKind.TIMEOUT)}
"""Of the other: each takes as long as the time-out."""
SHORT = [
    *(c for c in cells("animatic") if c.kind is not FailureKind.TIMEOUT or (c.stage, c.kind) in HANGS),
    *(c for c in cells("causal_dit") if (c.stage, c.kind) in TINY),
]


class Lab:
    """Workers, patient and impatient, and what each engine makes when nothing goes wrong."""

    def __init__(self, folder: Path) -> None:
        self.faults = folder / "faults"
        self.faults.mkdir()
        self.objects = Objects((folder / "objects").as_uri())
        self._baselines: dict[str, Baseline] = {}
        with self.worker(PATIENT_S) as work:
            for engine in ("animatic", "causal_dit"):
                self._baselines[engine] = baseline(work, self.objects, engine)

    @contextmanager
    def worker(self, limit_s: float) -> Generator[Supervisor]:
        config = Open(objects=self.objects.url, worker="generate-0", held_states=2, faults=str(self.faults))
        work = Supervisor(config, limit_s, start=ForkedProcess)
        try:
            yield work
        finally:
            work.close()

    def suffered(self, cell: Cell, times: int = 1) -> Outcome:
        limit_s = IMPATIENT_S if cell.kind is FailureKind.TIMEOUT else PATIENT_S
        with self.worker(limit_s) as work:
            return suffered(
                work, self.objects, self.faults, self._baselines[cell.engine], cell, f"job-{cell}-{times}", times
            )


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("faults"))


@pytest.mark.parametrize("cell", SHORT, ids=str)
def test_a_fault_is_called_by_its_name_and_its_segment_comes_out(lab: Lab, cell: Cell) -> None:
    outcome = lab.suffered(cell)
    assert outcome.struck
    assert outcome.event
    # Stages that do not run the engine's code cost no attempt, unless there was no memory: the request is simply given to the next process.
    costs = cell.stage in ENGINE_STAGES or cell.kind is FailureKind.OUT_OF_MEMORY
    assert outcome.failures == ((cell.kind,) if costs else ())
    assert outcome.same_bits is not outcome.varied


@pytest.mark.parametrize("kind", [FailureKind.KERNEL, FailureKind.NAN, FailureKind.WRONG_FRAME_COUNT])
def test_a_fault_that_comes_twice_is_recovered_too(lab: Lab, kind: FailureKind) -> None:
    outcome = lab.suffered(Cell(engine="animatic", stage=Stage.DENOISE, kind=kind), times=2)
    assert outcome.event
    assert outcome.failures == (kind, kind)


def test_a_segment_that_fails_as_often_as_the_director_asks_is_given_up(lab: Lab) -> None:
    outcome = lab.suffered(Cell(engine="animatic", stage=Stage.DENOISE, kind=FailureKind.KERNEL), times=3)
    assert outcome.event is None
    assert outcome.failures == (FailureKind.KERNEL,) * 3
