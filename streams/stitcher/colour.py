"""Exposure and colour: one fixed gain and bias per channel that makes a segment match the first one of its shot."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streams.stitcher.picture import LUMA
from streams.stitcher.proxy import Luma

RGB = NDArray[np.float32]

_CELL = 8
"""Proxy pixels: means over cells do not depend on how sharp a picture is."""
_FLAT = 1.0
"""Grey levels: with less deviation than that a channel tells its level but no gain."""
_ENOUGH = 0.02
"""Of the cells must be free of clipped pixels, or nothing is known about the channel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Colour:
    """`gain * value + bias` per RGB channel."""

    gain: tuple[float, ...] = (1.0, 1.0, 1.0)
    bias: tuple[float, ...] = (0.0, 0.0, 0.0)

    def luma(self, rgb: RGB) -> Luma:
        """Luma [...] of the corrected values [..., 3]."""
        weights = (LUMA * np.array(self.gain)).astype(np.float32)
        return (rgb @ weights + np.float32(LUMA @ np.array(self.bias))).astype(np.float32, copy=False)


def matching(before: RGB, done: Colour, after: RGB, clean: NDArray[np.bool_]) -> Colour:
    """What makes the proxies `after` match the *corrected* proxies `before`; those were corrected by `done`.

    Both are [T, h, w, 3] and show the same: the whole overlap, cropped to what both see. `clean` says where neither has
    clipped pixels. Mean and deviation, not regression: where the contents differ a regression destroys the picture. The
    statistics of `before` are corrected, not its pixels, so errors of rounding do not add up along a shot.
    """
    gain, bias = list(done.gain), list(done.bias)
    share = _cells(clean.astype(np.float32))
    mine, theirs = _cells(after * clean), _cells(before * clean)
    for channel in range(3):
        use = share[..., channel] > 0.5
        if use.mean() < _ENOUGH:
            continue
        part = share[..., channel][use]
        a, b = ((cells[..., channel][use] / part).astype(np.float64) for cells in (theirs, mine))
        ratio = float(a.std() / b.std()) if min(a.std(), b.std()) > _FLAT else 1.0
        gain[channel] = done.gain[channel] * ratio
        level = done.gain[channel] * float(a.mean()) + done.bias[channel]
        bias[channel] = level - gain[channel] * float(b.mean())
    return Colour(gain=tuple(gain), bias=tuple(bias))


def _cells(values: RGB) -> RGB:
    """Means of [T, h, w, 3] over cells: [T, h / 8, w / 8, 3]."""
    count, height, width = values.shape[:3]
    rows, columns = height // _CELL, width // _CELL
    cells = values[:, : rows * _CELL, : columns * _CELL].reshape(count, rows, _CELL, columns, _CELL, 3)
    return cells.mean(axis=(2, 4))
