"""What is left of half a second of pictures: enough to compare it with the rest of its take, 2 kB at most.

The embedding is classical, as no wheel ships a small model that is kept up: orientations of edges in 4 x 4 places, as HOG (Dalal
and Triggs, 2005), and histograms of colour and brightness, as Swain and Ballard's "Color Indexing" (1991).
"""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from qc_consumers.detectors import Luma, Picture
from qc_consumers.detectors.flow import CELL, Small

_PLACES, _DIRECTIONS, _BINS = 4, 8, 8
_EDGES = _PLACES**2 * _DIRECTIONS
_LEAST_EDGE = 2.0
"""Levels: less is noise."""


class Impression(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Means over the frames [first, first + frames) of the job's timeline; the embedding is of the first of them."""

    first: int
    frames: int
    grid: tuple[float, ...]
    """Mean luma of each cell."""
    luma: float
    u: float
    v: float
    contrast: float
    """Standard deviation of the cells."""
    sharpness: float
    """Mean absolute Laplacian of luma, in levels."""
    embedding: tuple[float, ...]


class Impressions:
    """Watches a file and keeps an impression of each chunk of its own frames.

    `skipped` frames of context come before the first. Chunks are near equal, about `per_chunk` frames each.
    """

    def __init__(self, *, start_frame: int, skipped: int, frames: int, per_chunk: int) -> None:
        self._start, self._skipped = start_frame, skipped
        count = max(1, round(frames / max(per_chunk, 1)))
        self._borders = {skipped + index * frames // count for index in range(count)}
        self._end = skipped + frames
        self._done: list[Impression] = []
        self._first: Picture | None = None
        self._sum: NDArray[np.float64] = np.zeros(0)
        self._grid: NDArray[np.float64] = np.zeros(0)
        self._frames = 0

    def process_frame(self, picture: Picture) -> None:
        if not self._skipped <= picture.frame < self._end:
            return
        if picture.frame in self._borders:
            self._close()
            self._first, self._frames = picture, 0
        means = np.array([picture.mean, *picture.chroma.mean(axis=(1, 2))])
        grid = _cells(picture.small)
        self._sum = means if not self._frames else self._sum + means
        self._grid = grid if not self._frames else self._grid + grid
        self._frames += 1

    def post_process(self) -> tuple[Impression, ...]:
        """What was seen so far."""
        self._close()
        self._first = None
        return tuple(self._done)

    def _close(self) -> None:
        if self._first is None:
            return
        grid, (luma, u, v) = self._grid / self._frames, self._sum / self._frames
        self._done.append(
            Impression(
                first=self._start + self._first.frame - self._skipped,
                frames=self._frames,
                grid=tuple(grid.round(3).tolist()),
                luma=float(luma),
                u=float(u),
                v=float(v),
                contrast=float(grid.std()),
                sharpness=_sharpness(self._first.luma),
                embedding=tuple(embedding(self._first.small, self._first.chroma).round(4).tolist()),
            )
        )


def embedding(small: Small, chroma: Luma) -> NDArray[np.float64]:
    """Two parts of unit length: what edges there are and where, which colours there are."""
    return np.concatenate([_unit(_edges(small)), _unit(np.sqrt(_colours(small, chroma)))])


def likeness(a: tuple[float, ...] | NDArray[np.float64], b: tuple[float, ...] | NDArray[np.float64]) -> float:
    """Of two embeddings: 1 for the same picture."""
    return float(np.dot(a, b)) / 2


def mean_embedding(impressions: Sequence[Impression]) -> NDArray[np.float64]:
    """Of at least one impression."""
    total = np.sum([each.embedding for each in impressions], axis=0)
    return np.concatenate([_unit(total[:_EDGES]), _unit(total[_EDGES:])])


def correlation(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    """Of two grids, whatever their brightness and contrast. Pictures without any are like all others."""
    one, other = np.array(a) - np.mean(a), np.array(b) - np.mean(b)
    size = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / size if size > 1.0 else 1.0


def _cells(small: Small) -> NDArray[np.float64]:
    height, width = small.shape
    return small.reshape(height // CELL, CELL, width // CELL, CELL).mean(axis=(1, 3)).ravel()


def _edges(small: Small) -> NDArray[np.float64]:
    dy, dx = np.gradient(small.astype(np.float32))
    size = np.hypot(dx, dy)
    size[size < _LEAST_EDGE] = 0
    direction = (np.arctan2(dy, dx) % np.pi * (_DIRECTIONS / np.pi)).astype(np.int64) % _DIRECTIONS
    height, width = small.shape
    place = np.add.outer(np.arange(height) * _PLACES // height * _PLACES, np.arange(width) * _PLACES // width)
    return np.bincount((place * _DIRECTIONS + direction).ravel(), size.ravel(), _EDGES).astype(np.float64)


def _colours(small: Small, chroma: Luma) -> NDArray[np.float64]:
    """Shares: of brightness in 8 steps, and of U and V in 8 x 8 steps around grey."""
    light = np.bincount((small.ravel() * _BINS // 256).astype(np.int64), minlength=_BINS)
    u, v = np.clip((chroma.astype(np.int64) - 128) // 8 + _BINS // 2, 0, _BINS - 1)
    colour = np.bincount((u * _BINS + v).ravel(), minlength=_BINS**2)
    return np.concatenate([light / max(light.sum(), 1), colour / max(colour.sum(), 1)])


def _unit(values: NDArray[np.float64]) -> NDArray[np.float64]:
    size = float(np.linalg.norm(values))
    return values / size if size else np.full(len(values), len(values) ** -0.5)


def _sharpness(luma: Luma) -> float:
    picture = luma.astype(np.int16)
    inner = picture[1:-1, 1:-1]
    around = picture[:-2, 1:-1] + picture[2:, 1:-1] + picture[1:-1, :-2] + picture[1:-1, 2:]
    return float(np.abs(4 * inner - around).mean()) if inner.size else 0.0
