"""An engine that takes a stated time for each frame without using the processor, as a GPU would; its pictures are the animatic's.

It is for measuring the line, not for pictures. It comes as engines of other packages do, by entry points (docs/engines.md).
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from gpu_consumers.engines.animatic.engine import AnimaticEngine, AnimaticState
from gpu_consumers.engines.engine import Frames, Latents
from schemas.engines import EngineLimits
from schemas.records import SegmentRequested

FRAME_S = "frame_s"
"""The engine's option: seconds for a frame."""
LIMITS = EngineLimits(max_segment_frames=24, overlap_frames=0, state_segments=1, max_pixels=1920 * 1080)
_ENTRY_POINTS = """
[longtake.engines]
paced = benchmarks.paced:PacedEngine

[longtake.limits]
paced = benchmarks.paced:LIMITS
"""


def install(folder: Path) -> None:
    """What an installer leaves in `folder`, which then has to be in PYTHONPATH of the line's processes."""
    info = folder / "longtake_paced-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: longtake-paced\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(_ENTRY_POINTS)


class PacedEngine:
    """Makes states that sleep."""

    name = "paced"
    version = "1"

    def __init__(self) -> None:
        self._animatic = AnimaticEngine()

    def restore(self, request: SegmentRequested, latents: Sequence[Latents]) -> "PacedState":
        """As the animatic engine does. Raises: EngineError."""
        return PacedState(self._animatic.restore(_plain(request), latents))

    def close(self) -> None:
        """Forget all worlds."""
        self._animatic.close()


class PacedState:
    """One job between two segments."""

    def __init__(self, state: AnimaticState) -> None:
        self._state = state

    def denoise(self, request: SegmentRequested) -> Iterator[Latents]:
        """Chunks, each not before its time; what making them takes is part of it. Raises: EngineError."""
        frame_s, made, begun_s = float(request.engine_options[FRAME_S]), 0, time.monotonic()
        for chunk in self._state.denoise(_plain(request)):
            made += len(chunk)
            time.sleep(max(0.0, begun_s + made * frame_s - time.monotonic()))
            yield chunk

    def decode(self, request: SegmentRequested, latents: Latents) -> Frames:
        """At once. Raises: EngineError."""
        return self._state.decode(_plain(request), latents)


def _plain(request: SegmentRequested) -> SegmentRequested:
    return replace(request, engine_options={})
