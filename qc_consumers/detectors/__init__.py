"""Faults that can be seen in the pictures alone, frame by frame."""

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qc_consumers.detectors.flow import Cells, Small, reduced, unexplained

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
    small: Small
    unexplained: Cells | None
    """What motion from the frame before does not explain; None for the first."""
    chroma: Luma
    """[2, h, w]: U and V, sampled down."""


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


class Levels:
    """Mean luma of the frames of one file, and the mean difference of each to the one before."""

    def __init__(self) -> None:
        self.luma: list[float] = []
        self.luma_diff: list[float | None] = []
        self._last: Luma | None = None

    def next(self, luma: Luma) -> None:
        """Measure the next frame."""
        diff = None
        if self._last is not None and self._last.shape == luma.shape:
            diff = mean(change(self._last, luma))
        self.luma.append(mean(luma))
        self.luma_diff.append(diff)
        self._last = luma


class Reel:
    """The pictures of one file in a row: each with its levels and how it follows from the one before."""

    def __init__(self) -> None:
        self.levels = Levels()
        self._last: Small | None = None

    def next(self, luma: Luma, chroma: Luma) -> Picture:
        """The next frame as detectors see it."""
        self.levels.next(luma)
        small, last = reduced(luma), self._last
        self._last = small
        return Picture(
            frame=len(self.levels.luma) - 1,
            luma=luma,
            mean=self.levels.luma[-1],
            diff=self.levels.luma_diff[-1],
            small=small,
            unexplained=unexplained(last, small) if last is not None and last.shape == small.shape else None,
            chroma=chroma,
        )
