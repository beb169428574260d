"""Black frames: ffmpeg's `blackdetect=pix_th=0.10:pic_th=0.98`, one frame is enough, unless a fade leads there."""

from itertools import pairwise

import numpy as np

from qc_consumers.detectors import Picture, Span

BLACK_LEVEL = int(16 + 0.10 * (235 - 16))
_FADE_FRAMES = 4
_LEAST_STEP = 0.4
"""Levels a frame: slower is no fade."""
_STEEPER = 2.5
"""A last step that is so much larger than those before it is no part of a fade."""
_LONGEST_FRAMES = 24
"""A picture that is away for longer is missing, however it went."""


class Black:
    """Runs of frames of which more than `share` of the pixels are black. The value is the share of black pixels.

    Up to a second of black at the end of a fade, at the start of one or between two is meant.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._means: list[float] = []
        self._spans: list[Span] = []

    def process_frame(self, picture: Picture) -> None:
        self._means.append(picture.mean)
        share = float(np.count_nonzero(picture.luma <= BLACK_LEVEL)) / picture.luma.size
        if share <= self._share:
            return
        last = self._spans[-1] if self._spans else None
        if last and last.first + last.frames == picture.frame:
            self._spans[-1] = Span(first=last.first, frames=last.frames + 1, value=max(last.value, share))
        else:
            self._spans.append(Span(first=picture.frame, frames=1, value=share))

    def post_process(self) -> tuple[Span, ...]:
        return tuple(span for span in self._spans if not self._faded(span))

    def _faded(self, span: Span) -> bool:
        """Whether every border of it that the file has is a fade."""
        end = span.first + span.frames
        sides = [self._means[max(0, span.first - _FADE_FRAMES) : span.first + 1] if span.first else []]
        sides.append(self._means[end - 1 : end + _FADE_FRAMES][::-1] if end < len(self._means) else [])
        return span.frames <= _LONGEST_FRAMES and any(sides) and all(_is_fade(side) for side in sides if side)


def _is_fade(means: list[float]) -> bool:
    """Brightness falls steadily to its last value."""
    steps = [before - after for before, after in pairwise(means)]
    return len(steps) == _FADE_FRAMES and min(steps) > _LEAST_STEP and steps[-1] < _STEEPER * max(steps[:-1])
