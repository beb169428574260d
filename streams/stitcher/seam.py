"""How visible a seam is: every measure is a ratio to what is usual around it and to what each segment does there by itself."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from streams.stitcher.limits import Limits
from streams.stitcher.proxy import Luma
from streams.stitcher.shift import psnr_db

_CELL = 8
_REACH = 3
"""Pixels that a cell may move from one frame to the next, in pictures of about 160 x 90."""
_LONGER_SIDE = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Luma of corrected proxies [T, h, w] at positions [start, start + T) of the timeline."""

    start: int
    luma: Luma


@dataclass(frozen=True, slots=True, kw_only=True)
class Visibility:
    """What was measured where two pieces meet. 1 is usual for both ratios."""

    luma_jump_ratio: float
    warp_error_ratio: float
    duplicate: bool


def visibility(before: Series, after: Series, weights: Sequence[float], limits: Limits) -> Visibility:
    """Of the seam between two corrected segments.

    `weights` are those of the new segment at positions 0, 1, ...; before them it is 0, after them 1. Both series reach
    `neighbourhood_frames` beyond the overlap, or as far as there are frames.
    """

    def weight(j: int) -> float:
        return 0.0 if j < 0 else weights[j] if j < len(weights) else 1.0

    first, last = min(before.start, 0), max(after.start + len(after.luma), len(weights))
    shown = Series(start=first, luma=np.stack([_blended(before, after, j, weight(j)) for j in range(first, last)]))
    seam = [j for j in range(first + 1, last) if not weight(j - 1) == weight(j) in (0.0, 1.0)]
    bends = [j for j in range(first + 1, last - 1) if j in seam or j + 1 in seam]
    alone = [_near(series, seam) for series in (before, after)]
    jump, warp, step = (
        [measure(series) for series in (shown, *alone)] for measure in (_luma_bend, _warp_error, _step_db)
    )
    moving = max((step[0][j] for j in step[0] if j not in seam), default=0.0) <= limits.duplicate_db
    return Visibility(
        luma_jump_ratio=_ratio(jump, bends, limits.luma_noise),
        warp_error_ratio=_ratio(warp, seam, limits.warp_noise),
        duplicate=moving
        and any(step[0][j] > limits.duplicate_db >= max(step[1].get(j, 0), step[2].get(j, 0)) for j in seam),
    )


def _near(series: Series, seam: list[int]) -> Series:
    """The part that says something about the seam's own positions."""
    start = max(series.start, seam[0] - 2)
    return Series(start=start, luma=series.luma[start - series.start : max(0, seam[-1] + 2 - series.start)])


def _blended(before: Series, after: Series, j: int, weight: float) -> Luma:
    if weight == 0.0:
        return before.luma[j - before.start]
    new = after.luma[j - after.start]
    return new if weight == 1.0 else (1 - weight) * before.luma[j - before.start] + weight * new


def _ratio(values: Sequence[dict[int, float]], seam: Iterable[int], noise: float) -> float:
    """The largest ratio at the seam. `values` are those of what is shown, of the segment before and of the new one."""
    shown, before, after = values
    places = set(seam)
    usual = median([v for j, v in shown.items() if j not in places] or [0.0])
    return max(
        (shown[j] / max(usual, noise, before.get(j, 0.0), after.get(j, 0.0)) for j in places),
        default=0.0,
    )


def _luma_bend(series: Series) -> dict[int, float]:
    """|second difference of mean luma| by position, in grey levels."""
    bends = np.abs(np.diff(series.luma.mean(axis=(1, 2), dtype=np.float64), 2))
    return {series.start + 1 + i: float(bend) for i, bend in enumerate(bends)}


def _step_db(series: Series) -> dict[int, float]:
    """PSNR of each frame against the one before it."""
    errors = np.square(np.diff(series.luma, axis=0)).mean(axis=(1, 2))
    return {series.start + 1 + i: psnr_db(float(error)) for i, error in enumerate(errors)}


def _warp_error(series: Series) -> dict[int, float]:
    """Mean absolute difference of each frame to the one before it, cells of which may move: what motion does not explain."""
    small = _reduced(series.luma)
    before = np.pad(small[:-1], ((0, 0), (_REACH, _REACH), (_REACH, _REACH)), mode="edge")
    frames, height, width = small[1:].shape
    best = np.full((frames, height // _CELL, width // _CELL), np.inf, np.float32)
    for dy in range(2 * _REACH + 1):
        for dx in range(2 * _REACH + 1):
            difference = np.abs(small[1:] - before[:, dy : dy + height, dx : dx + width])
            rows = difference.reshape(frames, -1, _CELL, width).sum(axis=2)
            cells = rows[..., ::_CELL].copy()
            for column in range(1, _CELL):
                cells += rows[..., column::_CELL]
            np.minimum(best, cells, out=best)
    return {series.start + 1 + i: float(error) for i, error in enumerate(best.mean(axis=(1, 2)) / _CELL**2)}


def _reduced(luma: Luma) -> Luma:
    """Block means [T, h, w], at most 160 on the longer side, whole cells."""
    frames, height, width = luma.shape
    factor = -(-max(height, width) // _LONGER_SIDE)
    rows, columns = (size // factor // _CELL * _CELL for size in (height, width))
    blocks = luma[:, : rows * factor, : columns * factor].reshape(frames, rows, factor, columns, factor)
    return blocks.mean(axis=(2, 4))
