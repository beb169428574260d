"""A limiter that sees peaks coming: gain goes down before them and up behind them, smoothly, and no sample moves in time."""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import minimum_filter1d

from streams.sound import Samples
from streams.sound.loudness import REACH, peaks

LOOK = 240
"""Samples on each side: 5 ms."""
_CONTEXT = 2 * LOOK + REACH
"""What a sample's gain depends on, on each side."""
_SHAPE = np.hanning(2 * LOOK + 3)[1:-1]
_WEIGHTS: NDArray[np.float64] = _SHAPE / _SHAPE.sum()


def limited(blocks: Iterable[Samples], ceiling: float) -> Iterator[Samples]:
    """The same samples, so that none and nothing between them is above the ceiling. As many, in blocks of other sizes."""
    held: Samples = np.zeros((_CONTEXT, 2), np.float32)
    for block in blocks:
        held = np.concatenate([held, block])
        if len(held) > 2 * _CONTEXT:
            yield _limited(held, ceiling)
            held = held[-2 * _CONTEXT :]
    yield _limited(np.concatenate([held, np.zeros((_CONTEXT, 2), np.float32)]), ceiling)


def _limited(heard: Samples, ceiling: float) -> Samples:
    """The samples in the middle. The mean of lowest gains around a sample, each as low as its own, is as low as its own."""
    found = peaks(heard)
    wanted = np.minimum(1.0, ceiling / np.maximum(found, ceiling))
    lowest = minimum_filter1d(wanted, 2 * LOOK + 1)[LOOK:-LOOK]
    gains = np.convolve(lowest, _WEIGHTS, mode="valid").astype(np.float32)
    return heard[_CONTEXT:-_CONTEXT] * gains[:, None]
