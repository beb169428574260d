"""A check of a file: what it needs, what it measured, and how long it took."""

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from infra.inserts import Database, Rows, RowsError
from infra.objects import BlobError, Objects
from infra.scratch import scratch_of
from infra.settings import Settings
from qc_consumers.baselines import Baselines
from qc_consumers.gates import Facts
from qc_consumers.incoming import now_us
from qc_consumers.metrics.container import Container
from qc_consumers.metrics.quality import Quality
from qc_consumers.metrics.scores import UNMEASURED
from qc_consumers.profile import Evidence, Profile, load_profiles
from schemas.errors import BadInputError
from schemas.records import Finding, Scores

_MOST_THREADS = 4
"""Of one check. Jobs are checked side by side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Stores, a folder for temporary files, the worker's name, threads for each check, thresholds, a clock."""

    objects: Objects
    database: Database
    scratch: Path
    worker: str
    threads: int = 2
    profiles: tuple[Profile, ...] = field(default_factory=load_profiles)
    baselines: Baselines = field(default_factory=Baselines)
    now_us: Callable[[], int] = now_us

    def insert(self, *rows: Rows) -> None:
        """Insert in this order, waiting while ClickHouse is away. Raises: BadInputError if a value has no room; ClosedError."""
        for each in rows:
            try:
                self.database.insert(each)
            except RowsError as error:
                raise BadInputError(field="value", rule="range", message=str(error)) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was found out about a piece or video: `facts`, `quality` and `container` are None if they could not be had."""

    findings: tuple[Finding, ...]
    facts: Facts | None = None
    quality: Quality | None = None
    scores: Scores = UNMEASURED
    container: Container | None = None
    population: str = ""
    """What the scores compare with; empty: nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A measurement, when it ended, how long it took, and who made it."""

    measured: Measured
    checked_us: int
    took_us: int
    checker: str


def bench_of(settings: Settings, database: Database, worker: str) -> Bench:
    """The bench of a worker's process."""
    scratch = scratch_of(settings, worker)
    threads = min(os.cpu_count() or 1, _MOST_THREADS)
    return Bench(objects=Objects(settings.objects), database=database, scratch=scratch, worker=worker, threads=threads)


def checked(bench: Bench, measure: Callable[[Path], Measured]) -> Check:
    """Measure, with a folder for what has to be fetched."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=bench.scratch) as folder:
        measured = measure(Path(folder))
    took_us = round((time.monotonic() - started) * 1_000_000)
    return Check(measured=measured, checked_us=bench.now_us(), took_us=took_us, checker=bench.worker)


def unreadable(error: Exception) -> Evidence:
    """That a file is missing or cannot be read."""
    gate = "blob" if isinstance(error, BlobError) else "decode"
    return Evidence(gate=gate, frame=-1, value=1, detail=str(error))
