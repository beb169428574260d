"""Small pictures to measure on: block means, at most 480 on the longer side. Frames to measure cost a millisecond, not ten."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streams.stitcher.picture import LUMA, Frame

_LONGER_SIDE = 480
_CLIPPED = 4
"""Values nearer to 0 or 255 may have been clipped: they say nothing about gain."""

Luma = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxies:
    """Frames in small. One pixel is the mean of a block of `factor` x `factor`."""

    factor: int
    rgb: NDArray[np.float32]
    """[T, h, w, 3]."""
    luma: Luma
    """[T, h, w]."""

    def __len__(self) -> int:
        return len(self.luma)

    def part(self, frames: slice) -> "Proxies":
        """Some of the frames."""
        return Proxies(factor=self.factor, rgb=self.rgb[frames], luma=self.luma[frames])


def proxies(frames: Iterable[Frame]) -> Proxies:
    """Of at least one frame [H, W, 3] uint8 RGB; one at a time is in memory."""
    factor, small = 1, list[NDArray[np.uint16]]()
    for frame in frames:
        factor = -(-max(frame.shape) // _LONGER_SIDE)
        small.append(_blocks(frame, factor, np.add, np.uint16))
    rgb = np.stack(small).astype(np.float32)
    rgb /= factor**2
    return Proxies(factor=factor, rgb=rgb, luma=rgb @ LUMA)


def unclipped(frames: NDArray[np.uint8], factor: int) -> NDArray[np.bool_]:
    """[T, h, w, 3]: which proxy pixels are of pixels that all are far enough from 0 and 255."""
    far = np.uint8(256 - 2 * _CLIPPED)
    # unsigned: what is below wraps round to the top
    return np.stack([_blocks(frame - np.uint8(_CLIPPED) < far, factor, np.logical_and, np.bool_) for frame in frames])


def _blocks(frame: NDArray[Any], factor: int, combine: np.ufunc, dtype: type[np.generic]) -> NDArray[Any]:
    """[H, W, 3] combined over blocks to [H // factor, W // factor, 3]; what is left over at the far edges is left out."""
    height, width = frame.shape[0] // factor, frame.shape[1] // factor
    rows = combine.reduce(frame[: height * factor].reshape(height, factor, -1), axis=1, dtype=dtype)
    columns = rows.reshape(height, -1, 3)[:, : width * factor].reshape(height, width, factor, 3)
    out = columns[:, :, 0].copy()
    for column in range(1, factor):
        combine(out, columns[:, :, column], out=out)
    return out
