"""Sounds added up, each from its exact sample on, a second at a time."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from streams.sound import RATE, Samples


@dataclass(frozen=True, slots=True, kw_only=True)
class Cue:
    """A sound on the timeline, in samples from the first frame on."""

    start: int
    end: int
    """Nothing of it is heard from here on, and its fade ends here."""
    gain: float
    fade_in: int
    fade_out: int
    blocks: Callable[[], Iterator[Samples]]


def mixed(cues: Iterable[Cue], samples: int) -> Iterator[Samples]:
    """Exactly so many samples of all cues together, not limited: the sum may be beyond full scale. Raises: as the cues."""
    waiting = sorted(cues, key=lambda cue: cue.start)
    playing: list[_Playing] = []
    for first in range(0, samples, RATE):
        block = np.zeros((min(RATE, samples - first), 2), np.float32)
        while waiting and waiting[0].start < first + len(block):
            playing.append(_Playing(waiting.pop(0)))
        for each in playing:
            each.add_to(block, first)
        playing = [each for each in playing if not each.over]
        yield block


class _Playing:
    """A cue as far as it was heard."""

    def __init__(self, cue: Cue) -> None:
        self._cue = cue
        self._blocks = cue.blocks()
        self._rest: Samples = np.zeros((0, 2), np.float32)
        self.over = False

    def add_to(self, block: Samples, first: int) -> None:
        """Add what of it falls into the block, whose first sample is that one of the timeline."""
        at = max(self._cue.start - first, 0)
        end = min(len(block), self._cue.end - first)
        while at < end:
            if not len(self._rest):
                rest = next(self._blocks, None)
                if rest is None:
                    self.over = True
                    return
                self._rest = rest
                continue
            count = min(len(self._rest), end - at)
            block[at : at + count] += self._rest[:count] * self._envelope(first + at, count)
            self._rest = self._rest[count:]
            at += count
        self.over = first + end >= self._cue.end

    def _envelope(self, position: int, count: int) -> Samples:
        """[T, 1]: gain and fades, which follow a cosine."""
        cue = self._cue
        shape = np.full((count, 1), cue.gain, np.float32)
        heard = np.arange(position, position + count)
        for length, since in ((cue.fade_in, heard - cue.start), (cue.fade_out, cue.end - heard)):
            if length and since.min() < length:
                shape[:, 0] *= 0.5 - 0.5 * np.cos(np.pi * np.clip(since / length, 0, 1))
        return shape
