"""Sub-pixel shift between two series of frames, by phase correlation."""

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from streams.stitcher.picture import moved
from streams.stitcher.proxy import Luma

_CUTOFF = 0.08
"""Cycles per pixel, sigma of the Gaussian that weighs the frequencies: above, aliasing pulls towards whole pixels
(worst error on a real clip: 0.006 px at 0.08, 0.05 px at 0.2)."""
_FLOOR = 0.02
"""Of the mean magnitude: frequencies with less than that in them have no vote."""
_PAIRS = 3
"""Of frames are correlated."""
_MARGIN = 4
"""Pixels at each side, besides those the shift moved in, that do not count: filters look beyond the picture there."""
PSNR_CAP_DB = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """How far the second series is moved right and down of the first, and how alike they are before and after undoing it.

    PSNRs are of luma after mean and deviation are made equal. A shift that does not make the series more alike is noise: 0.
    """

    x_px: float = 0.0
    y_px: float = 0.0
    still_db: float
    moved_db: float
    change_db: float
    """After undoing it, of what changes over time only."""

    @property
    def largest_px(self) -> float:
        """Of the two axes, without sign."""
        return max(abs(self.x_px), abs(self.y_px))


def shift_between(a: Luma, b: Luma) -> Shift:
    """Of `b` against `a`, both [T, H, W]: frames that show the same instants."""
    still = _likeness_db(a, b, 0)
    x, y = _displacement(a, b)
    edge = ceil(max(abs(x), abs(y)))
    if edge and min(a.shape[1:]) >= 4 * (edge + _MARGIN):
        back = np.stack([moved(frame, -x, -y) for frame in b])
        undone = _likeness_db(a, back, edge)
        if undone > _likeness_db(a, b, edge):
            return Shift(x_px=x, y_px=y, still_db=still, moved_db=undone, change_db=_change_db(a, back, edge))
    return Shift(still_db=still, moved_db=still, change_db=_change_db(a, b, 0))


def spread(count: int, most: int) -> list[int]:
    """At most so many of `count` places, the first and the last among them."""
    return sorted({round(i * (count - 1) / max(1, most - 1)) for i in range(most)})


def psnr_db(error: float) -> float:
    """Of a mean squared error in grey levels; at most 100."""
    return min(PSNR_CAP_DB, 10 * float(np.log10(255**2 / error))) if error > 0 else PSNR_CAP_DB


def _likeness_db(a: Luma, b: Luma, edge: int) -> float:
    inner = slice(edge + _MARGIN, -edge - _MARGIN)
    one, other = a[:, inner, inner], b[:, inner, inner]
    deviation = float(other.std())
    gain = float(one.std()) / deviation if deviation > 0 else 1.0
    difference = (other - other.mean()) * np.float32(gain)
    difference -= one - one.mean()
    return psnr_db(float(np.square(difference).mean()))


def _change_db(a: Luma, b: Luma, edge: int) -> float:
    return _likeness_db(a - a.mean(axis=0), b - b.mean(axis=0), edge)


def _displacement(a: Luma, b: Luma) -> tuple[float, float]:
    """Whole pixels first; then, on windows that follow them, the fraction: a window at rest pulls it towards 0."""
    some = spread(len(a), _PAIRS)
    a, b = a[some], b[some]
    near = _peak(a, b)
    x, y = (round(v) for v in near)
    if (not x and not y) or 4 * abs(x) > a.shape[2] or 4 * abs(y) > a.shape[1]:
        return near
    fine = _peak(_cropped(a, -x, -y), _cropped(b, x, y))
    return x + fine[0], y + fine[1]


def _cropped(frames: Luma, x: int, y: int) -> Luma:
    """Without the first x columns and y rows of each frame [T, H, W] (negative: without the last)."""
    height, width = frames.shape[1:]
    return frames[:, max(0, y) : height + min(0, y), max(0, x) : width + min(0, x)]


def _peak(a: Luma, b: Luma) -> tuple[float, float]:
    """Source: Kuglin and Hines 1975. The Gaussian weight makes the peak a Gaussian: three samples tell its place exactly."""
    height, width = a.shape[1:]
    window = np.outer(np.hanning(height + 2)[1:-1], np.hanning(width + 2)[1:-1]).astype(np.float32)
    cross = np.zeros((height, width // 2 + 1), np.complex64)
    for one, other in zip(a, b, strict=True):
        cross += np.conj(_spectrum(one, window)) * _spectrum(other, window)
    magnitude = np.abs(cross)
    floor = magnitude.mean() * _FLOOR
    if floor == 0.0:
        return 0.0, 0.0
    frequency = np.add.outer(np.fft.fftfreq(height) ** 2, np.fft.rfftfreq(width) ** 2)
    weight = np.exp(-frequency / (2 * _CUTOFF**2)).astype(np.float32)
    surface = np.fft.irfft2(cross / (magnitude + floor) * weight, s=(height, width))
    row, column = (int(i) for i in np.unravel_index(int(np.argmax(surface)), surface.shape))
    x = _vertex(np.take(surface[row], [column - 1, column, column + 1], mode="wrap"))
    y = _vertex(np.take(surface[:, column], [row - 1, row, row + 1], mode="wrap"))
    return _signed(column, width) + x, _signed(row, height) + y


def _spectrum(frame: Luma, window: Luma) -> NDArray[np.complex64]:
    return np.fft.rfft2((frame - frame.mean()) * window).astype(np.complex64)


def _vertex(samples: NDArray[np.floating]) -> float:
    """Where the Gaussian through three samples has its top, from -0.5 to 0.5; the middle one is the largest."""
    left, middle, right = np.log(np.maximum(samples.astype(np.float64), 1e-12))
    bend = left - 2 * middle + right
    return float(np.clip((left - right) / (2 * bend), -0.5, 0.5)) if bend < 0 else 0.0


def _signed(index: int, size: int) -> int:
    return index - size if index > size // 2 else index
