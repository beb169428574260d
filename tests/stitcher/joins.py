"""Segments joined by themselves, without requests and encoders."""

import tempfile
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from schemas.records import Correction, Seam
from streams.stitcher.join import Join, continue_shot
from streams.stitcher.limits import Limits
from streams.stitcher.segment import Placed, Segment
from tests.stitcher.clips import OVERLAP, Drift, Frames

LIMITS = Limits()
PLAIN = Correction()


def stored(frames: Frames) -> Segment:
    """A segment on disk; the open file outlives its name."""
    stamps = np.arange(len(frames), dtype=np.int64)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "segment.safetensors"
        tensors = {"frames": np.ascontiguousarray(frames), "generated_us": stamps, "decoded_us": stamps}
        save_file(tensors, path)
        return Segment(safe_open(path, framework="numpy"))


def placed(frames: Frames, *, overlap: int = OVERLAP, correction: Correction = PLAIN) -> Placed:
    """The segment before a seam."""
    return Placed(segment=stored(frames), origin=len(frames) - overlap, correction=correction)


def join(before: Placed | Frames, after: Frames, *, overlap: int = OVERLAP, tail: int = OVERLAP) -> Join:
    """The join of a shot that goes on. Raises: SeamError."""
    previous = before if isinstance(before, Placed) else placed(before, overlap=overlap)
    return continue_shot(previous, stored(after), overlap, tail, LIMITS)


def assert_measured(seam: Seam, drift: Drift) -> None:
    """The drift was found: the offset exactly, the shift to 0.15 px, the gain to 0.5 %."""
    assert seam.offset_frames == drift.offset_frames
    assert abs(seam.shift_x_px - drift.x_px) <= 0.15
    assert abs(seam.shift_y_px - drift.y_px) <= 0.15
    assert abs(seam.gain / np.mean(drift.gain) - 1) <= 0.005


def assert_undone(correction: Correction, drift: Drift) -> None:
    """Every channel is brought back to where it would be without the drift: gain to 0.5 %, mid grey to 1 level."""
    for c in range(3):
        assert abs(correction.gain[c] * drift.gain[c] - 1) <= 0.005
        grey = 128 * drift.gain[c] + drift.bias[c]
        assert abs(correction.gain[c] * grey + correction.bias[c] - 128) <= 1.0
