"""The overlap of two corrected segments becomes one: by cross-fade, or by a hard cut if a fade would show both at once."""

from dataclasses import dataclass
from statistics import median

import numpy as np

from streams.stitcher.limits import Limits
from streams.stitcher.picture import Frame, Picture, planes, rounded
from streams.stitcher.segment import Placed

_FLAT = 2.0
"""Laplacian variance of a picture without detail: rounding to 8 bits makes that much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blend:
    """Pictures of the overlap, rounded, and the weight of the new segment in each."""

    kind: str
    """As in `Seam.blend`."""
    weights: tuple[float, ...] = ()
    pictures: tuple[Frame, ...] = ()
    sharpness_ratio: float = 1.0


NOTHING = Blend(kind="none")


def fade_weights(previous: Placed, new: Placed, overlap: int) -> tuple[float, ...]:
    """0, 1 / n, ... (n - 1) / n over the positions that both segments show: the first picture is the previous segment's own.

    So the picture that follows a piece is known when the piece is made: it ends the piece's reference.
    """
    start = max(0, new.correction.offset_frames)
    stop = overlap + min(0, previous.correction.offset_frames)
    return tuple(0.0 if j < start else min(1.0, (j - start) / max(1, stop - start)) for j in range(overlap))


def fade(previous: Placed, new: Placed, weights: tuple[float, ...]) -> Blend:
    """A cross-fade, whatever it looks like."""
    pictures = tuple(rounded(_mixed(previous, new, j, weight)) for j, weight in enumerate(weights))
    return Blend(kind="fade", weights=weights, pictures=pictures)


def fade_or_cut(previous: Placed, new: Placed, weights: tuple[float, ...], limits: Limits) -> Blend:
    """A cross-fade, or where it is less sharp than its neighbours (a ghost), a cut where the segments differ least."""
    pictures: list[Frame] = []
    sharpness: list[tuple[float, ...]] = []
    difference: dict[int, float] = {}
    for j, weight in enumerate(weights):
        sides = [side.picture(j) for side, shown in ((previous, weight < 1), (new, weight > 0)) if shown]
        mixed = sides[0] if len(sides) == 1 else _mix(sides[0], sides[1], weight)
        pictures.append(rounded(mixed))
        sharpness.append(tuple(_sharpness(picture) for picture in (mixed, *sides)))
        if len(sides) == 2:
            difference[j] = float(np.square(sides[0] - sides[1]).mean())
    ratio = min((_ratio(sharpness, j) for j in difference), default=1.0)
    if difference and ratio >= limits.sharpness_ratio:
        return Blend(kind="fade", weights=weights, pictures=tuple(pictures), sharpness_ratio=ratio)
    first = min(difference, key=lambda j: difference[j], default=len(weights))
    cut = tuple(0.0 if j < first else 1.0 for j in range(len(weights)))
    return Blend(kind="cut", weights=cut, pictures=fade(previous, new, cut).pictures, sharpness_ratio=ratio)


def _mixed(previous: Placed, new: Placed, j: int, weight: float) -> Picture:
    if weight in (0.0, 1.0):
        return (new if weight else previous).picture(j)
    return _mix(previous.picture(j), new.picture(j), weight)


def _mix(before: Picture, after: Picture, weight: float) -> Picture:
    mixed = before.copy()
    mixed *= np.float32(1 - weight)
    mixed += after * np.float32(weight)
    return mixed


def _sharpness(picture: Picture) -> float:
    """Variance of the Laplacian of luma."""
    y = next(planes(picture))
    laplacian = y[:-2, 1:-1] + y[2:, 1:-1] + y[1:-1, :-2] + y[1:-1, 2:] - 4 * y[1:-1, 1:-1]
    return float(laplacian.var())


def _ratio(sharpness: list[tuple[float, ...]], j: int) -> float:
    """Of the mixed picture at `j` over the median of the unmixed ones next to it."""
    near = [value for _, *sides in sharpness[max(0, j - 1) : j + 2] for value in sides]
    return (sharpness[j][0] + _FLAT) / (median(near) + _FLAT)
