"""The overlap of two corrected segments becomes one: by cross-fade, or by a hard cut if a fade would show both at once."""

from dataclasses import dataclass
from math import sqrt

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


def wipe(previous: Placed, new: Placed, weights: tuple[float, ...]) -> Blend:
    """The new segment from the left, as far as its weight says."""
    pictures = tuple(_wiped(previous, new, j, weight) for j, weight in enumerate(weights))
    return Blend(kind="wipe", weights=weights, pictures=pictures)


def _wiped(previous: Placed, new: Placed, j: int, weight: float) -> Frame:
    picture = (new if weight == 1 else previous).picture(j)
    if weight not in (0.0, 1.0):
        for plane, other in zip(planes(picture), planes(new.picture(j)), strict=True):
            edge = round(plane.shape[1] * weight)
            plane[:, :edge] = other[:, :edge]
    return rounded(picture)


def fade_or_cut(previous: Placed, new: Placed, weights: tuple[float, ...], limits: Limits) -> Blend:
    """A cross-fade, or where it is less sharp than what it is made of (a ghost), a cut where the segments differ least."""
    pictures: list[Frame] = []
    sharpness: dict[int, float] = {}
    difference: dict[int, float] = {}
    for j, weight in enumerate(weights):
        if weight in (0.0, 1.0):
            pictures.append(rounded((new if weight else previous).picture(j)))
            continue
        before, after = previous.picture(j), new.picture(j)
        mixed = _mix(before, after, weight)
        pictures.append(rounded(mixed))
        sharpness[j] = _sharpness_ratio(mixed, before, after, weight)
        difference[j] = float(np.square(before - after).mean())
    ratio = min(sharpness.values(), default=1.0)
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


def _sharpness_ratio(mixed: Picture, before: Picture, after: Picture, weight: float) -> float:
    """Laplacian variance over what it is if both show the same: amplitudes mix, so roots do. Strangers halve it."""
    same = (1 - weight) * sqrt(_sharpness(before)) + weight * sqrt(_sharpness(after))
    return (_sharpness(mixed) + _FLAT) / (same**2 + _FLAT)


def _sharpness(picture: Picture) -> float:
    """Variance of the Laplacian of luma."""
    y = next(planes(picture))
    laplacian = y[:-2, 1:-1] + y[2:, 1:-1] + y[1:-1, :-2] + y[1:-1, 2:] - 4 * y[1:-1, 1:-1]
    return float(laplacian.var())
