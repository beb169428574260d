"""A segment that goes wrong on purpose, asked for again as the director does, and what came of it."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gpu_consumers.engines.relief import relieved
from gpu_consumers.faults import Change, retry
from gpu_consumers.inject import RAISED, arm
from gpu_consumers.pipe import Stage
from gpu_consumers.supervisor import Supervisor
from infra.objects import Objects
from schemas.codec import sealed
from schemas.records import Blob, FailureKind, SegmentFailed, SegmentGenerated, SegmentRequested, VideoFormat
from streams.jobs import Rules
from tests.gpu_consumers.requests import segment_request

ANSWER_S = 600.0
ENGINES = ("animatic", "causal_dit")
STAGES = (Stage.RESTORE, Stage.DENOISE, Stage.DECODE, Stage.STORE)
_TINY = VideoFormat(width=32, height=16, fps_num=16, fps_den=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One fault of the matrix."""

    engine: str
    stage: Stage
    kind: FailureKind

    def __str__(self) -> str:
        return f"{self.engine}-{self.stage}-{self.kind}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A job's first two segments as they are when nothing goes wrong."""

    first: SegmentGenerated
    second: SegmentGenerated
    frames: bytes
    """Of the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a segment: `event` None if it was given up; the failures on the way."""

    event: SegmentGenerated | None
    failures: tuple[FailureKind, ...]
    faults: int
    """That really happened."""
    struck: bool
    """All that were to happen did."""
    same_bits: bool
    """Of latents and frames, as the baseline's."""
    varied: bool
    """Another picture was asked for."""


def cells(engine: str) -> Iterator[Cell]:
    """Every stage in which a kind can arise: what raises or hangs does so in all; of pictures only their maker's stages can be at fault."""
    for stage in STAGES:
        for kind in (*RAISED, FailureKind.TIMEOUT):
            yield Cell(engine=engine, stage=stage, kind=kind)
    yield Cell(engine=engine, stage=Stage.DENOISE, kind=FailureKind.NAN)
    yield Cell(engine=engine, stage=Stage.DENOISE, kind=FailureKind.WRONG_FRAME_COUNT)
    yield Cell(engine=engine, stage=Stage.DECODE, kind=FailureKind.WRONG_FRAME_COUNT)
    yield Cell(engine=engine, stage=Stage.DECODE, kind=FailureKind.FROZEN)
    if engine == "causal_dit":  # the animatic has no sink to collapse to
        yield Cell(engine=engine, stage=Stage.DENOISE, kind=FailureKind.SINK_COLLAPSE)


def baseline(work: Supervisor, objects: Objects, engine: str) -> Baseline:
    first = _generated(work, second_request(engine, f"{engine}-whole", None))
    second = _generated(work, second_request(engine, f"{engine}-whole", first))
    return Baseline(first=first, second=second, frames=pictures(objects, second.frames))


def second_request(engine: str, job_id: str, first: SegmentGenerated | None) -> SegmentRequested:
    """A job's second segment after `first`, or its first one. All jobs of an engine have one seed."""
    before = [first] if first else []
    if engine == "animatic":
        return sealed(replace(segment_request(job_id, before), seed=7))
    request = segment_request(job_id, before, frames=48 if before else 45, format=_TINY, options={"config": "tiny"})
    start = 45 if before else 0
    return sealed(replace(request, engine=engine, seed=7, start_frame=start, head_overlap=0, tail_overlap=0))


def suffered(
    work: Supervisor, objects: Objects, folder: Path, base: Baseline, cell: Cell, job_id: str, times: int = 1
) -> Outcome:
    """The second segment, whose first `times` attempts go wrong."""
    request = second_request(cell.engine, job_id, base.first)
    files: list[Path] = []
    failures: list[FailureKind] = []
    changed: set[Change] = set()
    while len(failures) < Rules().segment_attempts:
        if len(files) < times:
            files.append(arm(folder, request, cell.stage, cell.kind))
        (event,) = work.submit(request).result(ANSWER_S)
        faults = sum(not file.exists() for file in files)
        if isinstance(event, SegmentGenerated):
            same = event.latents.digest == base.second.latents.digest
            same = same and pictures(objects, event.frames) == base.frames
            return Outcome(
                event=event,
                failures=tuple(failures),
                faults=faults,
                struck=faults == len(files),
                same_bits=same,
                varied=bool(changed & {Change.OTHER_SEED, Change.SMALLER_CACHE}),
            )
        assert isinstance(event, SegmentFailed)
        failures.append(event.kind)
        changes = retry(request, event.kind, len(failures)).changes
        changed |= changes
        request = asked_again(request, changes)
    return Outcome(event=None, failures=tuple(failures), faults=times, struck=True, same_bits=False, varied=False)


def asked_again(request: SegmentRequested, changes: AbstractSet[Change]) -> SegmentRequested:
    """As `streams.planner.segment_failed` does."""
    return sealed(
        replace(
            request,
            attempt=request.attempt + 1,
            variation=request.variation + (Change.OTHER_SEED in changes),
            engine_options=relieved(request.engine, request.engine_options, changes),
        )
    )


def pictures(objects: Objects, blob: Blob) -> bytes:
    return np.ascontiguousarray(objects.get_tensors(blob)["frames"]).tobytes()


def _generated(work: Supervisor, request: SegmentRequested) -> SegmentGenerated:
    (event,) = work.submit(request).result(ANSWER_S)
    assert isinstance(event, SegmentGenerated), event
    return event
