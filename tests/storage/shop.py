"""A line without a bus: the director's decisions and the real workers' handlers, one record after the other, on a real store."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import TypeVar

import av
import numpy as np
from numpy.typing import NDArray

from gpu_consumers.busy import BusyMeter
from gpu_consumers.engines.engine import EngineError
from gpu_consumers.held import HeldStates
from gpu_consumers.stages import Stages
from infra.inserts import Database
from infra.objects import Objects
from infra.settings import Settings
from qc_consumers.check import Bench, bench_of
from qc_consumers.gates import worst
from qc_consumers.pieces import check_piece
from qc_consumers.videos import check_video
from schemas import records as r
from schemas.topics import Event
from streams.assembler import Assemble
from streams.decider import INPUTS
from streams.stitcher.worker import Stitch
from tests.director.builders import START_US, decider, message, piece_checked, prompt, video_checked

E = TypeVar("E", bound=Event)
Accident = Callable[["Shop", Event], Event]
"""What happens to an event, or to what it names, before its reader has it."""


def nothing(_: "Shop", event: Event) -> Event:
    return event


@dataclass
class Shop:
    """Owns a store. `run` takes one job from its prompt to its end."""

    folder: Path
    accident: Accident = nothing
    measures: bool = False
    """Pieces and videos are measured, and not only passed."""
    said: list[Event] = field(default_factory=list)
    row: r.JobState | None = None

    def __post_init__(self) -> None:
        clock = count(START_US)
        settings = Settings(
            clickhouse="http://127.0.0.1:1/unused",
            objects=(self.folder / "objects").as_uri(),
            state=self.folder / "state",
        )
        self.objects = Objects(settings.objects)
        self._director = decider()
        self._stitch = Stitch(self.objects, self.folder / "stitch", "stitch-0", lambda: next(clock))
        self._assemble = Assemble(self.objects, self.folder / "assemble", "assemble-0", lambda: next(clock))
        self._bench: Bench = bench_of(settings, Database(settings), "check-0")

    def run(self) -> r.JobState:
        """One job, two segments of one shot. Returns its row at the end; fails if nothing is left to do before that."""
        pending: list[Event] = [prompt(width=160, height=96, duration_s=2.0)]
        while pending:
            event = self.accident(self, pending.pop(0))
            self.said.append(event)
            if event.topic in INPUTS:
                decision = self._director.decide(message(event), self.row, START_US)
                assert decision.refused is None, decision.refused
                self.row = decision.state or self.row
                pending += decision.events
                if self.row and self.row.stage is r.Stage.QUEUED:
                    started = self._director.start(self.row, START_US)
                    self.row = started.state
                    pending += started.events
            pending += self._answers(event)
        assert self.row
        return self.row

    def all(self, kind: type[E]) -> list[E]:
        return [event for event in self.said if isinstance(event, kind)]

    def finished(self) -> r.VideoFinished:
        (event,) = self.all(r.VideoFinished)
        return event

    def path(self, blob: r.Blob) -> Path:
        return self.folder / "objects" / self.objects.key_of(blob)

    def pictures(self) -> NDArray[np.uint8]:
        """Frames [T, H * 3 / 2, W] uint8 (I420) of the finished video, which must be what its digest says."""
        path = self.objects.get_file(self.finished().video, self.folder)
        with av.open(str(path)) as container:
            return np.stack([frame.to_ndarray() for frame in container.decode(video=0)])

    def _answers(self, event: Event) -> tuple[Event, ...]:
        match event:
            case r.SegmentRequested():
                return (self._generated(event),)
            case r.PieceRequested():
                return (self._stitch(event),)
            case r.PieceStitched():
                return (self._piece_checked(event),)
            case r.AssemblyRequested():
                return (self._assemble(event),)
            case r.VideoAssembled():
                return (self._video_checked(event),)
            case _:
                return ()

    def _generated(self, request: r.SegmentRequested) -> Event:
        """By a worker that holds no state: it has to restore."""
        stages = Stages(
            objects=self.objects, worker="generate-0", held=HeldStates(0), meter=BusyMeter(), on_engine=lambda _: None
        )

        def beat(_: object) -> None:
            return

        try:
            fetched = stages.fetch(request, None, beat)
            if isinstance(fetched, r.SegmentGenerated):
                return fetched
            saved = stages.save(request, stages.denoise(request, fetched, beat), beat)
            return stages.store(request, stages.decode(request, saved, beat), beat)
        except EngineError as error:
            return stages.failed(request, error)

    def _piece_checked(self, event: r.PieceStitched) -> r.PieceChecked:
        if not self.measures:
            return piece_checked(event)
        measured = check_piece(event, self._bench).measured
        verdict = worst(measured.findings)
        return replace(piece_checked(event), verdict=verdict, findings=measured.findings, scores=measured.scores)

    def _video_checked(self, event: r.VideoAssembled) -> r.VideoChecked:
        if not self.measures:
            return video_checked(event)
        findings = check_video(event, self._bench).measured.findings
        return replace(video_checked(event), verdict=worst(findings), findings=findings)
