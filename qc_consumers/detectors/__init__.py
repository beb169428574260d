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


class Detector(Protocol):
    """Sees every frame of one file once, in order, then says what it found."""

    def process_frame(self, picture: Picture) -> None:
        """Look at the next frame."""
        ...

    def post_process(self) -> tuple[Span, ...]:
        """The faults of the whole file, those still open at its end included."""
        ...
