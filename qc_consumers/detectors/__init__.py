"""Faults that can be seen in the pictures alone, frame by frame."""

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Luma: TypeAlias = NDArray[np.uint8]
"""[H, W], 16 to 235 if the range is limited; may be sampled down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A decoded frame as detectors see it."""

    frame: int
    """Index in the file, from 0."""
    luma: Luma
    mean: float
    diff: float | None
    """Mean absolute difference to the frame before; None for the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A run of frames with a fault."""

    first: int
    frames: int
    value: float
    """How strong it is at its worst, in the detector's own unit."""


class Watcher(Protocol):
    """Sees every frame of one file once, in order."""

    def process_frame(self, picture: Picture) -> None:
        """Look at the next frame."""
        ...


class Detector(Watcher, Protocol):
    """A watcher that says in the end what it found."""

    def post_process(self) -> tuple[Span, ...]:
        """The faults of the whole file, those still open at its end included."""
        ...


def change(before: Luma, after: Luma) -> Luma:
    """How far each pixel has moved, in levels."""
    moved: Luma = np.maximum(before, after) - np.minimum(before, after)
    return moved


def mean(luma: Luma) -> float:
    """As `luma.mean()`, in a third of the time."""
    return float(np.add.reduce(luma, axis=None, dtype=np.uint64)) / luma.size


class Reel:
    """The pictures of one file in a row: each with its mean and its difference to the one before."""

    def __init__(self) -> None:
        self.luma: list[float] = []
        self.luma_diff: list[float | None] = []
        self._last: Luma | None = None

    def next(self, luma: Luma) -> Picture:
        """The next frame as detectors see it."""
        diff = None
        if self._last is not None and self._last.shape == luma.shape:
            diff = mean(change(self._last, luma))
        picture = Picture(frame=len(self.luma), luma=luma, mean=mean(luma), diff=diff)
        self.luma.append(picture.mean)
        self.luma_diff.append(diff)
        self._last = luma
        return picture
