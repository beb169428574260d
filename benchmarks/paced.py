"""An engine that takes a stated time for each frame without using the processor, as a GPU would; its pictures are moving gradients.

It is for measuring the line, not for pictures. It comes as engines of other packages do, by entry points (docs/engines.md).
Latents: [T, 1, 1, 1] float32, the number of each frame.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from gpu_consumers.engines.engine import Frames, Latents
from schemas.engines import EngineLimits
from schemas.records import SegmentRequested

FRAME_S = "frame_s"
"""The engine's option: seconds for a frame."""
LIMITS = EngineLimits(max_segment_frames=24, overlap_frames=0, state_segments=1, max_pixels=1920 * 1080)
_CHUNK_FRAMES = 4
_PERIOD_FRAMES = 480
_SWING = 60.0
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
    """Makes states that sleep. A frame is a function of its number: nothing has to be found again."""

    name = "paced"
    version = "1"

    def restore(self, request: SegmentRequested, latents: Sequence[Latents]) -> "PacedState":
        """The same state for every job."""
        del request, latents
        return PacedState()

    def close(self) -> None:
        """There is nothing to give back."""


class PacedState:
    """One job between two segments."""

    def denoise(self, request: SegmentRequested) -> Iterator[Latents]:
        """Chunks, each not before its time."""
        frame_s, begun_s = float(request.engine_options[FRAME_S]), time.monotonic()
        for first in range(0, request.frames, _CHUNK_FRAMES):
            end = min(first + _CHUNK_FRAMES, request.frames)
            time.sleep(max(0.0, begun_s + end * frame_s - time.monotonic()))
            numbers = np.arange(request.start_frame + first, request.start_frame + end, dtype=np.float32)
            yield numbers.reshape(-1, 1, 1, 1)

    def decode(self, request: SegmentRequested, latents: Latents) -> Frames:
        """At once."""
        return np.stack([_picture(request, float(n)) for n in cast(NDArray[np.float32], latents)[:, 0, 0, 0]])


def _picture(request: SegmentRequested, number: float) -> Frames:
    """Waves that go to the right, smooth enough to pass every gate at any size; no picture comes again within 20 s."""
    across = np.linspace(0.0, 1.0, request.format.width)[None, :, None]
    down = np.linspace(0.0, 0.5, request.format.height)[:, None, None]
    colors = np.array([0.0, 0.15, 0.3])[None, None, :]
    waves = np.sin(2 * np.pi * (across + down + colors - number / _PERIOD_FRAMES))
    return np.rint(128 + _SWING * waves).astype(np.uint8)
