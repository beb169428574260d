"""Frames that do not belong: one to three that show something else than those around them, and jumps after which nothing fits."""

from collections import deque

import numpy as np

from qc_consumers.detectors import Picture, Span
from qc_consumers.detectors.flow import Cells, Small, matched, unexplained

_LONGEST = 3
_STRONG = 10.0
"""Levels: a cell differs this much or it does not count."""
_BRIDGED = 0.4
"""Of the difference may be left between the frames around a glitch."""
_USUAL_FRAMES = 4
_JUMP_LEVELS = 8.0
"""Mean over the picture: less is no jump, however quiet the rest. The fastest moves of real shots leave 5."""
_QUIET = 1.0


class Glitch:
    """Runs of up to three frames whose neighbours fit each other, but not them. The value is the share of the picture.

    What a flash of light changes is no glitch: brightness and contrast are made alike first.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._last: deque[tuple[Small, Cells | None]] = deque(maxlen=_LONGEST + 2)
        self._spans: list[Span] = []

    def process_frame(self, picture: Picture) -> None:
        self._last.append((picture.small, picture.unexplained))
        for frames in range(1, len(self._last) - 1):
            share = self._share_of(frames)
            if share > self._share:
                first = picture.frame - frames
                if not self._spans or self._spans[-1].first + self._spans[-1].frames <= first:
                    self._spans.append(Span(first=first, frames=frames, value=share))
                return

    def post_process(self) -> tuple[Span, ...]:
        return tuple(self._spans)

    def _share_of(self, frames: int) -> float:
        """Of a glitch that the newest picture ends, `frames` long."""
        before, first, after = self._last[-frames - 2][0], self._last[-frames - 1], self._last[-1]
        if first[1] is None or after[1] is None:
            return 0.0
        strong = np.minimum(first[1], after[1])
        if float((strong > _STRONG).mean()) <= self._share:
            return 0.0
        same_light = unexplained(before, matched(first[0], before))
        strong = np.minimum(strong, same_light)
        bridge = unexplained(before, after[0])
        return float(((strong > _STRONG) & (bridge < _BRIDGED * strong)).mean())


class Jump:
    """Frames that motion does not explain. The value is what it leaves, over what is usual around.

    What a flash of light changes is no jump: brightness and contrast are made alike first.
    """

    def __init__(self, ratio: float) -> None:
        self._ratio = ratio
        self.errors: list[float] = []
        """Mean over the picture for each frame, in levels; 0 for the first."""
        self._last: Small | None = None

    def process_frame(self, picture: Picture) -> None:
        error = float(picture.unexplained.mean()) if picture.unexplained is not None else 0.0
        if error > _JUMP_LEVELS and self._last is not None:
            error = min(error, float(unexplained(self._last, matched(picture.small, self._last)).mean()))
        self.errors.append(error)
        self._last = picture.small

    def post_process(self) -> tuple[Span, ...]:
        spans: list[Span] = []
        for frame in range(1, len(self.errors)):
            ratio = self.ratio_at(frame, 1)
            if self.errors[frame] > _JUMP_LEVELS and ratio > self._ratio:
                spans.append(Span(first=frame, frames=1, value=ratio))
        return tuple(spans)

    def ratio_at(self, frame: int, frames: int) -> float:
        """The worst of these frames over the worst of those around them."""
        end = frame + frames
        around = self.errors[max(1, frame - _USUAL_FRAMES) : frame] + self.errors[end : end + _USUAL_FRAMES]
        return max(self.errors[frame:end], default=0.0) / max(max(around, default=0.0), _QUIET)
