"""Flashes, strobes and flicker: brightness that jumps away and comes back, that does so often, and that never rests."""

import numpy as np

from qc_consumers.detectors import Picture, Span

_REST_FRAMES = 12
"""Of these, more than half are out of line where the light flickers."""
_FLASH_SHARE = 4
"""The neighbours of a flash agree with each other better than this part of it."""


class Flash:
    """Single frames brighter or darker than both neighbours. The value is half the second difference of mean luma, in levels."""

    def __init__(self, levels: float) -> None:
        self._levels = levels
        self._means: list[float] = []

    def process_frame(self, picture: Picture) -> None:
        self._means.append(picture.mean)

    def post_process(self) -> tuple[Span, ...]:
        spans: list[Span] = []
        for frame, (before, here, after) in enumerate(
            zip(self._means, self._means[1:], self._means[2:], strict=False), 1
        ):
            jump = here - (before + after) / 2
            if abs(jump) > self._levels and abs(after - before) < abs(jump) / _FLASH_SHARE:
                spans.append(Span(first=frame, frames=1, value=jump))
        return tuple(spans)


class Strobe:
    """Seconds in which brightness goes up and down by `levels` more than `per_second` times. The value is how many times.

    Source: ITU-R BT.1702: no more than three flashes, pairs of opposing changes, in any second.
    """

    def __init__(self, *, fps: float, per_second: float, levels: float) -> None:
        self._fps, self._per_second, self._levels = fps, per_second, levels
        self._turns: list[int] = []
        """Frames at which brightness has gone `levels` away from its last extreme, the other way than before."""
        self._low = self._high = 0.0
        self._rising: bool | None = None

    def process_frame(self, picture: Picture) -> None:
        if picture.frame == 0:
            self._low = self._high = picture.mean
        self._low, self._high = min(self._low, picture.mean), max(self._high, picture.mean)
        if self._rising is not True and picture.mean - self._low >= self._levels:
            self._turn(picture, rising=True)
        elif self._rising is not False and self._high - picture.mean >= self._levels:
            self._turn(picture, rising=False)

    def post_process(self) -> tuple[Span, ...]:
        worst, at = 0, 0
        for index, first in enumerate(self._turns):
            within = sum(turn - first < self._fps for turn in self._turns[index:])
            if within > worst:
                worst, at = within, first
        flashes = worst / 2
        return (Span(first=at, frames=round(self._fps), value=flashes),) if flashes > self._per_second else ()

    def _turn(self, picture: Picture, *, rising: bool) -> None:
        self._rising, self._low, self._high = rising, picture.mean, picture.mean
        self._turns.append(picture.frame)


class Flicker:
    """Half seconds in which brightness wavers from frame to frame. The value is the median second difference of mean luma, in levels."""

    def __init__(self, levels: float) -> None:
        self._levels = levels
        self._means: list[float] = []

    def process_frame(self, picture: Picture) -> None:
        self._means.append(picture.mean)

    def post_process(self) -> tuple[Span, ...]:
        steps = np.diff(self._means)
        turning = np.abs(np.diff(steps)) * (steps[1:] * steps[:-1] < 0) if len(steps) > 1 else np.array([])
        if len(turning) < _REST_FRAMES:
            return ()
        medians = np.median(np.lib.stride_tricks.sliding_window_view(turning, _REST_FRAMES), axis=1)
        at = int(medians.argmax())
        if medians[at] <= self._levels:
            return ()
        return (Span(first=at + 1, frames=_REST_FRAMES, value=float(medians[at])),)
