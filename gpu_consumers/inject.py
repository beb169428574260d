"""Faults on purpose, in the engine process: for tests and measurements of all that recovers from them.

A fault is a file `JOB-SEGMENT-ATTEMPT` in the folder that the process's `Open` names; its text is `STAGE KIND`. The file goes
as the fault happens, so it happens once, whatever becomes of the process. A stage that raises does so with the words of
those who raise it in earnest: they are recognised as theirs are.
"""

import errno
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gpu_consumers.engines.engine import Engine, EngineState, Frames, Latents
from gpu_consumers.pipe import Stage
from gpu_consumers.stages import Beat, Decoded, Denoised, Fetched, Saved, Stages
from schemas.records import FailureKind, SegmentGenerated, SegmentRequested

RAISED: Mapping[FailureKind, Callable[[], Exception]] = {
    FailureKind.DEVICE_LOST: lambda: RuntimeError("CUDA error: uncorrectable ECC error encountered"),
    FailureKind.OUT_OF_MEMORY: lambda: RuntimeError("CUDA out of memory. Tried to allocate 3.21 GiB"),
    FailureKind.SYNC: lambda: RuntimeError("NCCL error in: ProcessGroupNCCL.cpp:3690, unhandled system error"),
    FailureKind.KERNEL: lambda: RuntimeError("CUDA error: an illegal memory access was encountered"),
    FailureKind.IO: lambda: OSError(errno.EIO, os.strerror(errno.EIO)),
}
_AT = 1
"""The chunk of a segment at which denoising and decoding go wrong: not the first."""


def arm(folder: Path, request: SegmentRequested, stage: Stage, kind: FailureKind) -> Path:
    """This attempt will go wrong. The file is gone when it has."""
    path = _path(folder, request)
    path.write_text(f"{stage} {kind}")
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Those that are to come."""

    folder: Path

    def due(self, request: SegmentRequested, stage: Stage) -> FailureKind | None:
        """What goes wrong now, if anything: it will not go wrong again."""
        path = _path(self.folder, request)
        try:
            where, kind = path.read_text().split()
        except FileNotFoundError:
            return None
        if where != stage:
            return None
        path.unlink()
        return FailureKind(kind)

    def strike(self, request: SegmentRequested, stage: Stage) -> None:
        """Raise, hang or die where one is due that does."""
        _strike(self.due(request, stage))


@dataclass(slots=True, kw_only=True)
class FaultyStages(Stages):
    """The same stages with engines that go wrong, and going wrong themselves. (`super()` does not know a class with slots.)"""

    faults: Faults

    def fetch(self, request: SegmentRequested, _: None, __: Beat) -> Fetched | SegmentGenerated:
        self.faults.strike(request, Stage.FETCH)
        return Stages.fetch(self, request, _, __)

    def save(self, request: SegmentRequested, denoised: Denoised, _: Beat) -> Saved:
        self.faults.strike(request, Stage.SAVE)
        return Stages.save(self, request, denoised, _)

    def store(self, request: SegmentRequested, decoded: Decoded, _: Beat) -> SegmentGenerated:
        self.faults.strike(request, Stage.STORE)
        return Stages.store(self, request, decoded, _)

    def _engine(self, name: str) -> Engine:
        engine = Stages._engine(self, name)
        return _FaultyEngine(engine, self.faults)


class _FaultyEngine:
    """An engine whose states go wrong."""

    def __init__(self, engine: Engine, faults: Faults) -> None:
        self._engine, self._faults = engine, faults
        self.name, self.version, self.close = engine.name, engine.version, engine.close

    def restore(self, request: SegmentRequested, latents: Sequence[Latents]) -> EngineState:
        self._faults.strike(request, Stage.RESTORE)
        return _FaultyState(self._engine.restore(request, latents), self._faults, latents[0] if latents else None)


class _FaultyState:
    """A state that goes wrong."""

    def __init__(self, state: EngineState, faults: Faults, first: Latents | None) -> None:
        self._state, self._faults, self._first = state, faults, first
        self._decoding: FailureKind | None = None
        self._decoded = 0
        self._still: Frames | None = None

    def denoise(self, request: SegmentRequested) -> Iterator[Latents]:
        fault, made = self._faults.due(request, Stage.DENOISE), 0
        self._decoded, self._still = 0, None
        for chunk in self._state.denoise(request):
            if len(chunk):
                self._first = chunk if self._first is None else self._first
                yield self._wrong_latents(fault, chunk) if made == _AT else chunk
                made += 1
            else:
                yield chunk

    def decode(self, request: SegmentRequested, latents: Latents) -> Frames:
        if not self._decoded:
            self._decoding = self._faults.due(request, Stage.DECODE)
        frames = self._state.decode(request, latents)
        self._decoded += 1
        if self._decoding is FailureKind.FROZEN:
            self._still = frames[:1] if self._still is None else self._still
            return np.repeat(self._still, len(frames), axis=0)
        if self._decoded != _AT + 1:
            return frames
        _strike(self._decoding)
        return frames[:-1] if self._decoding is FailureKind.WRONG_FRAME_COUNT else frames

    def _wrong_latents(self, fault: FailureKind | None, chunk: Latents) -> Latents:
        _strike(fault)
        if fault is FailureKind.NAN:
            return np.full_like(chunk, np.nan)
        if fault is FailureKind.SINK_COLLAPSE and self._first is not None:
            return self._first[: len(chunk)]
        return chunk[:-1] if fault is FailureKind.WRONG_FRAME_COUNT else chunk


def _strike(kind: FailureKind | None) -> None:
    if kind is FailureKind.TIMEOUT:
        threading.Event().wait()
    if kind is FailureKind.CRASHED:
        os.kill(os.getpid(), signal.SIGKILL)
    if kind and kind in RAISED:
        raise RAISED[kind]()


def _path(folder: Path, request: SegmentRequested) -> Path:
    return folder / f"{request.job_id}-{request.segment}-{request.attempt}"
