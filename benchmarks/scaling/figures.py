"""What the benchmark measured, as a file: larger lines are simulated from it without measuring again."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from benchmarks.scaling.costs import Costs
from benchmarks.simulation.line import Times

SCALED = Path("out") / "scale.json"
MINUTE = Path("out") / "minute.json"
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Jobs published at once, and what became of them."""

    name: str
    workers: int
    jobs: tuple[tuple[int, int], ...]
    """Partition and segments of each."""
    owners: tuple[int, ...]
    """Which worker had each partition."""
    makespan_s: float
    frames: int
    busy_share: float
    """Of the engines, from the first segment's start to the last one's end."""
    gap_p50_s: float
    """Between two segments of an engine, where the second waited."""
    gap_p95_s: float
    fairness: float

    @property
    def fps(self) -> float:
        """Of all workers together, from the publication to the last finished video."""
        return self.frames / self.makespan_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled:
    """Of the benchmark `scale`."""

    times: Times
    """Of a paced job alone at 128x72."""
    loads: tuple[Load, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute:
    """Of the benchmark `minute`."""

    times: Times
    """Of an animatic job alone at 1280x720; its engine shares the processor with everything else."""
    costs: Costs
    capacity: Mapping[str, float]
    cores: int


def write(path: Path, figures: Scaled | Minute) -> None:
    """Keep them for `read`."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(figures)) + b"\n")


def read(path: Path, kind: type[T]) -> T:
    """Those of the last run. Raises: FileNotFoundError, msgspec.ValidationError."""
    return msgspec.json.decode(path.read_bytes(), type=kind)
