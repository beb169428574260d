"""The animatic engine: a labelled previsualisation, as a director uses before the real shoot. It never claims to be a model.

A state is the latents of the segment before: so what is continued in memory and what is restored from the store are the same
numbers. The overlap is taken over from them, and everything after it grows frame by frame, causally.

Latents: [T, 5, h, w] float32: clouds, water, fog, air (`fields.py`) and control (`control.py`).
"""

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from gpu_consumers.engines.animatic.control import read_control, write_control
from gpu_consumers.engines.animatic.drift import drifted
from gpu_consumers.engines.animatic.dynamics import Grower
from gpu_consumers.engines.animatic.options import Drift, Fault, Options, parse_options
from gpu_consumers.engines.animatic.renderer import Renderer
from gpu_consumers.engines.engine import EngineError, Frames, Latents
from schemas.errors import BadInputError
from schemas.records import FailureKind, SegmentRequested, Transition

CHUNK_FRAMES = 4
Floats = NDArray[np.float32]


class AnimaticEngine:
    """Makes states that share what is built of each world. Needs no device."""

    name = "animatic"
    version = "1"

    def __init__(self) -> None:
        self._renderer = Renderer()

    def restore(self, request: SegmentRequested, latents: Sequence[Latents]) -> "AnimaticState":
        """The state in which `request` starts; of `latents` the last segment is enough.

        Raises: EngineError (`STATE_MISSING` if they do not reach the request's first frame; `ENGINE` for wrong options).
        """
        before = None if _starts_take(request) or not latents else _checked(request, latents[-1])
        return AnimaticState(self._renderer, before)

    def close(self) -> None:
        """Forget all worlds."""
        self._renderer = Renderer()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Segment:
    """A segment in hand."""

    first: int
    """The frame that its first picture shows."""
    options: Options
    drift: Drift
    fault: Fault


class AnimaticState:
    """One job between two segments."""

    def __init__(self, renderer: Renderer, before: Floats | None) -> None:
        self._renderer = renderer
        self._before = before
        self._segment: _Segment | None = None
        self._frozen: Frames | None = None

    def denoise(self, request: SegmentRequested) -> Iterator[Latents]:
        """Chunks of `CHUNK_FRAMES`. Raises: EngineError."""
        options = _options(request)
        fault = options.fault_of(request.segment, request.attempt)
        before = None if _starts_take(request) else self._before
        if before is None and not _starts_take(request):
            raise EngineError(FailureKind.STATE_MISSING, "not the first segment of a take, and no latents before it")
        run_segment = 0 if before is None else round(read_control(before[-1]).run_segment) + 1
        drift = options.drift(run_segment)
        first = request.start_frame if before is None else _first_time(request, before, drift)
        self._segment = _Segment(first=first, options=options, drift=drift, fault=fault)
        self._frozen = None
        grown: list[Floats] = []
        for latent in _grown(request, None if fault is Fault.JUMP else before, first, run_segment, fault):
            grown.append(latent)
            if len(grown) % CHUNK_FRAMES == 0 or len(grown) == request.frames:
                if len(grown) > request.frames // 2:
                    _break(fault)
                yield np.stack(grown[(len(grown) - 1) // CHUNK_FRAMES * CHUNK_FRAMES :])
        self._before = np.stack(grown)

    def decode(self, request: SegmentRequested, latents: Latents) -> Frames:
        """The frames of a chunk, with the drift and the faults that were asked for."""
        segment = self._segment
        if segment is None:
            raise EngineError(FailureKind.ENGINE, "decode before denoise", retryable=False)
        if not np.isfinite(cast(Floats, latents)).all():
            raise EngineError(FailureKind.NAN, "latents are not finite")
        frames = np.stack([self._picture(request, segment, latent) for latent in cast(Floats, latents)])
        last = round(read_control(cast(Floats, latents)[-1]).time) - segment.first + 1
        return frames[:-1] if segment.fault is Fault.SHORT and last == request.frames else frames

    def _picture(self, request: SegmentRequested, segment: _Segment, latent: Floats) -> Frames:
        if segment.fault is Fault.BLACK:
            return np.zeros((request.format.height, request.format.width, 3), np.uint8)
        if segment.fault is Fault.FREEZE and self._frozen is not None:
            return self._frozen
        self._frozen = drifted(self._renderer.frame(request, latent), segment.drift)
        return self._frozen


def _grown(
    request: SegmentRequested, before: Floats | None, first: int, run_segment: int, fault: Fault
) -> Iterator[Floats]:
    """The segment's latents one by one: those the segment before already had, then new ones."""
    grower = Grower(request, "jump" if fault is Fault.JUMP else "")
    known = 0 if before is None else round(read_control(before[0]).time)
    last = None if before is None else before[-1]
    for time in range(first, first + request.frames):
        if before is not None and time - known < len(before):
            latent = before[time - known].copy()
            write_control(replace(read_control(latent), run_segment=run_segment), latent)
        else:
            latent = grower.first(time, run_segment) if last is None else grower.next(last, run_segment)
            last = latent
        if fault is Fault.NAN and time - first >= request.frames // 2:
            yield np.full_like(latent, np.nan)
        else:
            yield latent


def _starts_take(request: SegmentRequested) -> bool:
    """Nothing is carried over: the first segment, or a shot after a cut or dissolve begins with it."""
    if request.segment == 0:
        return True
    shot = [shot for shot in request.shots if shot.start_frame <= request.start_frame][-1]
    return shot.start_frame == request.start_frame and shot.transition is not Transition.CONTINUOUS


def _first_time(request: SegmentRequested, before: Floats, drift: Drift) -> int:
    """The frame the segment begins with: its own, moved by the drift as far as the latents before allow."""
    low, high = (round(read_control(latent).time) for latent in (before[0], before[-1]))
    return min(max(request.start_frame + drift.offset_frames, low), high + 1)


def _checked(request: SegmentRequested, latents: Latents) -> Floats:
    shape = Grower(request).shape
    if latents.dtype != np.float32 or latents.ndim != 4 or latents.shape[1:] != shape or not len(latents):
        message = f"latents are {latents.dtype} {latents.shape}, not float32 (T, {', '.join(map(str, shape))})"
        raise EngineError(FailureKind.STATE_MISSING, message)
    floats = cast(Floats, latents)
    low, high = (read_control(latent).time for latent in (floats[0], floats[-1]))
    if not low - 4 <= request.start_frame <= high + 5:
        message = f"latents of frames {low:.0f} to {high:.0f} do not reach frame {request.start_frame}"
        raise EngineError(FailureKind.STATE_MISSING, message)
    return floats


def _options(request: SegmentRequested) -> Options:
    try:
        return parse_options(request.engine_options)
    except BadInputError as error:
        raise EngineError(FailureKind.ENGINE, str(error), retryable=False) from error


def _break(fault: Fault) -> None:
    """Faults of the process, half way through the segment."""
    match fault:
        case Fault.CRASH:
            os.kill(os.getpid(), signal.SIGKILL)
        case Fault.STALL:
            threading.Event().wait()
        case Fault.OOM:
            raise EngineError(FailureKind.OUT_OF_MEMORY, "as the engine options ask")
        case _:
            pass
