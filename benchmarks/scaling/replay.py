"""The simulation is to say what was measured, before it may say what was not."""

from benchmarks.scaling.figures import Load, Scaled
from benchmarks.simulation.line import Shape, Times
from benchmarks.simulation.role import dealt
from benchmarks.simulation.runs import makespan_s

TOLERANCE = 0.10


class UnlikeError(Exception):
    """The simulation is off by more than it may be: nothing follows from it."""


def simulated_s(load: Load, times: Times) -> float:
    """How long a measured load takes in the simulation. Its times are those of a job that was alone, before."""
    shape = Shape(owners=load.owners, others=dealt(len(load.owners), 1))
    return makespan_s(load.jobs, shape, times)


def errors(found: Scaled) -> list[float]:
    """Of the simulated makespan, over the measured one, for each load."""
    return [simulated_s(load, found.times) / load.makespan_s - 1 for load in found.loads]


def print_loads(found: Scaled) -> None:
    """A table of measured and simulated loads."""
    one = next(load for load in found.loads if load.workers == 1)
    print(
        "| jobs | workers | measured, s | simulated, s | off by | frames/s | efficiency | engines busy | gap p50 / p95, ms | fairness |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for load, error in zip(found.loads, errors(found), strict=True):
        print(
            f"| {len(load.jobs)}, {load.name} | {load.workers} | {load.makespan_s:.1f} | {load.makespan_s * (1 + error):.1f} | "
            f"{100 * error:+.1f} % | {load.fps:.1f} | {load.fps / load.workers / one.fps:.3f} | {load.busy_share:.3f} | "
            f"{1e3 * load.gap_p50_s:.1f} / {1e3 * load.gap_p95_s:.1f} | {load.fairness:.3f} |"
        )


def check(found: Scaled) -> None:
    """Raises: UnlikeError if a load is off by more than 10 %."""
    worst = max(errors(found), key=abs)
    if abs(worst) > TOLERANCE:
        raise UnlikeError(
            f"the simulation is off by {100 * worst:+.1f} %, more than {100 * TOLERANCE:.0f} %: nothing is extrapolated from it"
        )
