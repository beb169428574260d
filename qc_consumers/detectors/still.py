"""Frozen pictures, and single repeated frames.

A still is measured against its first frame, not frame by frame, so that slow motion adds up and is none. ffmpeg's
`freezedetect=n=-50dB` looks at the mean alone and calls slow but live shots frozen (5 times in the first 5 s of Big Buck
Bunny). So this one also counts how many pixels move: in a still, none by more than noise. A burnt-in time code that runs on
over a picture that is meant to stand still is enough to make it live.
"""

import math

import numpy as np

from qc_consumers.detectors import Luma, Picture, Span, change, mean

LOSSLESS_LEVELS = 2
"""What moves by more than this in a lossless file really moves."""
CODED_LEVELS = 24
"""Encoding a still changes single pixels by up to 23 levels where a new GOP begins (x264, CRF 18)."""
_MOVING_SHARE = 2e-4
"""The quietest pair of frames in real clips has 5e-4, a digit of a time code about as much."""
_MEAN_OF_LEVELS = 1 / 8
_SHORTEST_FRAMES = 3
"""At rates so low that fewer last long enough."""
_REPEAT_SHARE = 0.3
"""Of the steps beside it."""


class Frozen:
    """Runs of at least `shortest_s` in which no pixel moves by more than `noise_levels`. The value is the length in seconds."""

    def __init__(self, *, fps: float, shortest_s: float, noise_levels: int) -> None:
        self._fps = fps
        self._shortest_frames = max(_SHORTEST_FRAMES, math.ceil(shortest_s * fps))
        self._noise_levels = noise_levels
        self._first: Picture | None = None
        self._frames = 0
        self._spans: list[Span] = []

    def process_frame(self, picture: Picture) -> None:
        if self._first and self._is_still(self._first.luma, picture.luma):
            self._frames += 1
            return
        self._close()
        self._first, self._frames = picture, 1

    def post_process(self) -> tuple[Span, ...]:
        self._close()
        self._first = None
        return tuple(self._spans)

    def _close(self) -> None:
        if self._first and self._frames >= self._shortest_frames:
            self._spans.append(Span(first=self._first.frame, frames=self._frames, value=self._frames / self._fps))

    def _is_still(self, first: Luma, luma: Luma) -> bool:
        moved = change(first, luma)
        if mean(moved) > self._noise_levels * _MEAN_OF_LEVELS:
            return False
        return int(np.count_nonzero(moved > self._noise_levels)) <= _MOVING_SHARE * moved.size


class Duplicate:
    """Frames that differ by less than `levels` from the one before, and much less than their neighbours do.

    The value is the mean absolute difference in levels. Slow shots have differences as small, but all alike.
    """

    def __init__(self, levels: float) -> None:
        self._levels = levels
        self._steps: list[float] = []

    def process_frame(self, picture: Picture) -> None:
        self._steps.append(math.inf if picture.diff is None else picture.diff)

    def post_process(self) -> tuple[Span, ...]:
        return tuple(
            Span(first=frame, frames=1, value=step)
            for frame, step in enumerate(self._steps)
            if step < self._levels and step < _REPEAT_SHARE * self._beside(frame)
        )

    def _beside(self, frame: int) -> float:
        """The smaller of the steps before and behind it. Runs of repeats are stills."""
        return min([step for step in self._steps[max(1, frame - 1) : frame + 2 : 2] if step < math.inf] or [0.0])
