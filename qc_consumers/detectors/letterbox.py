"""Bars that come, go or change within a shot."""

import numpy as np
from numpy.typing import NDArray

from qc_consumers.detectors import Luma, Picture, Span

_BAR_LEVEL = 24
"""Nothing in a bar is brighter: coding leaves up to 8 levels above black."""
_CONTENT_LEVEL = 34
_CONTENT_SHARE = 0.5
"""Of the first line of the picture lies above that, or the end of the dark is no straight edge."""
_STABLE_FRAMES = 3
_MOST_SHARE = 0.45

Bars = tuple[float, float, float, float]
"""Top, bottom, left, right, as shares of the height or width."""


class Letterbox:
    """Bars that change at once and stay so. The value is the share of the height or width by which they do.

    What is dark for another reason has no straight edge, or does not change at once.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._states: list[Bars | None] = []

    def process_frame(self, picture: Picture) -> None:
        self._states.append(_bars(picture.luma))

    def post_process(self) -> tuple[Span, ...]:
        spans: list[Span] = []
        known: Bars | None = None
        for frame in range(len(self._states)):
            state = self._stable(frame)
            if state is None:
                continue
            change = max(abs(a - b) for a, b in zip(state, known, strict=True)) if known else 0.0
            if change > self._share and self._sudden(frame):
                spans.append(Span(first=frame, frames=1, value=change))
            known = state
        return tuple(spans)

    def _stable(self, frame: int) -> Bars | None:
        """What this frame and those behind it show, if it is the same."""
        run = self._states[frame : frame + _STABLE_FRAMES]
        if any(state is None or not _alike(state, run[0]) for state in run) or len(run) < _STABLE_FRAMES:
            return None
        return run[0]

    def _sudden(self, frame: int) -> bool:
        """Whether the frames just before showed the other state as steadily."""
        return any(self._stable(frame - _STABLE_FRAMES - late) is not None for late in range(2) if frame > late + 2)


def _alike(state: Bars | None, other: Bars | None) -> bool:
    return state is not None and other is not None and max(map(lambda a, b: abs(a - b), state, other)) < 0.01


def _bars(luma: Luma) -> Bars | None:
    """None: too dark to tell."""
    sides: list[float] = []
    for lines in (luma, luma[::-1], luma.T, luma.T[::-1]):
        share = _bar(lines)
        if share is None:
            return None
        sides.append(share)
    top, bottom, left, right = sides
    return top, bottom, left, right


def _bar(lines: Luma) -> float | None:
    if not _dark(lines[:1])[0]:
        return 0.0
    most = int(len(lines) * _MOST_SHARE)
    dark = _dark(lines[:most])
    if dark.all():
        return None
    first = int(np.argmin(dark))
    bright = np.count_nonzero(lines[first : first + 2].max(axis=0) > _CONTENT_LEVEL) / lines.shape[1]
    return first / len(lines) if bright >= _CONTENT_SHARE else None


def _dark(lines: Luma) -> NDArray[np.bool_]:
    dark: NDArray[np.bool_] = lines.max(axis=1) <= _BAR_LEVEL
    return dark
