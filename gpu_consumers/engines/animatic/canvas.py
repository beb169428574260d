"""What scenery is drawn on: strips longer than the picture that repeat without a join.

Lengths are in picture heights: x from the left edge of the picture in its first position, y from its top, down. A strip repeats
after `Stage.period` and reaches `MARGIN` above and below the picture, for camera moves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from scipy import fft

from gpu_consumers.engines.animatic.look import Backdrop
from gpu_consumers.engines.animatic.palette import Colour, Palette, bytes_of

MARGIN = 0.40
WIDEST = 1.45
"""A window is at most this many times the picture wide and high: as far as zooms go out."""
_SUPERSAMPLED_BELOW = 1300
"""Strips of fewer pixels per picture height are drawn at twice the size for smooth edges."""

Point: TypeAlias = tuple[float, float]
Profile: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A backdrop that is about to be built: how large, in which light, from which seed."""

    width: int
    height: int
    per_height: float
    """Strip pixels per picture height."""
    backdrop: Backdrop
    palette: Palette
    world: int
    step_s: float
    """Time between frames."""

    @property
    def aspect(self) -> float:
        """Width of the picture in heights."""
        return self.width / self.height

    @property
    def columns(self) -> int:
        """Strip pixels until it repeats."""
        return round(period_of(self.aspect) * self.per_height)

    @property
    def period(self) -> float:
        """The same in picture heights."""
        return self.columns / self.per_height

    def random(self, name: str) -> np.random.Generator:
        """A generator of this world's own for one part of it."""
        return np.random.Generator(np.random.PCG64([self.world, *name.encode()]))

    def profile(self, name: str, waves: float, roughness: float) -> Profile:
        """A periodic curve of unit amplitude, one value per strip column: `waves` bumps per period, rougher towards 1."""
        k = np.arange(self.columns // 2 + 1)
        power = np.where(k > 0, (np.maximum(k, waves) / waves) ** (-3.2 + 2.0 * roughness) * (k >= waves * 0.6), 0)
        phase = self.random(name).uniform(0, 2 * np.pi, len(k))
        curve = cast(Profile, fft.irfft(power * np.exp(1j * phase), self.columns))
        return curve / np.abs(curve).max()

    def scattered(self, name: str, spacing: float) -> list[tuple[float, float]]:
        """Places along the strip about `spacing` apart, each with a random number in [0, 1)."""
        random = self.random(name)
        count = max(2, round(self.period / spacing))
        jitter = random.uniform(-0.35, 0.35, count)
        return [
            ((i + j) * self.period / count, r)
            for i, j, r in zip(range(count), jitter, random.random(count), strict=True)
        ]


def period_of(aspect: float) -> float:
    """Picture heights after which the world repeats."""
    return 2.3 * max(aspect, 1.0)


class Ink:
    """A strip being drawn: colour and cover at once, in picture heights, wrapped around."""

    def __init__(self, stage: Stage, top: float, bottom: float, ground: Colour) -> None:
        self.stage = stage
        self.top = round(top * stage.per_height) / stage.per_height
        self._scale = stage.per_height * (2 if stage.per_height < _SUPERSAMPLED_BELOW else 1)
        self._half = stage.per_height < _SUPERSAMPLED_BELOW
        rows = max(4, round((bottom - top) * stage.per_height))
        size = (stage.columns * (2 if self._half else 1), rows * (2 if self._half else 1))
        self._colour = Image.new("RGB", size, bytes_of(ground))
        self._cover = Image.new("L", size, 0)
        self._draws = (ImageDraw.Draw(self._colour), ImageDraw.Draw(self._cover))

    def polygon(self, points: Sequence[Point], colour: Colour) -> None:
        """Fill a shape."""
        for shifted in self._wrapped([x for x, _ in points]):
            scaled = [((x + shifted) * self._scale, (y - self.top) * self._scale) for x, y in points]
            for draw, fill in zip(self._draws, (bytes_of(colour), 255), strict=True):
                draw.polygon(scaled, fill=fill)

    def box(self, left: float, top: float, right: float, bottom: float, colour: Colour) -> None:
        """Fill a rectangle."""
        self.polygon([(left, top), (right, top), (right, bottom), (left, bottom)], colour)

    def disc(self, x: float, y: float, rx: float, ry: float, colour: Colour) -> None:
        """Fill an ellipse."""
        for shifted in self._wrapped([x - rx, x + rx]):
            cx, cy = (x + shifted) * self._scale, (y - self.top) * self._scale
            around = (cx - rx * self._scale, cy - ry * self._scale, cx + rx * self._scale, cy + ry * self._scale)
            for draw, fill in zip(self._draws, (bytes_of(colour), 255), strict=True):
                draw.ellipse(around, fill=fill)

    def line(self, points: Sequence[Point], width: float, colour: Colour) -> None:
        """Draw a line with rounded joints."""
        pixels = max(1, round(width * self._scale))
        for shifted in self._wrapped([x for x, _ in points]):
            scaled = [((x + shifted) * self._scale, (y - self.top) * self._scale) for x, y in points]
            for draw, fill in zip(self._draws, (bytes_of(colour), 255), strict=True):
                draw.line(scaled, fill=fill, width=pixels, joint="curve")

    def below(self, crest: Profile, colour: Colour) -> None:
        """Fill everything below a curve, given in heights from the picture's top, one value per strip column."""
        factor = self._scale / self.stage.per_height
        rows = (crest - self.top) * self._scale
        points = [(x * factor, y) for x, y in enumerate([*rows.tolist(), float(rows[0])])]
        bottom = self._cover.height + 2
        shape = [*points, (points[-1][0], bottom), (0, bottom)]
        for draw, fill in zip(self._draws, (bytes_of(colour), 255), strict=True):
            draw.polygon(shape, fill=fill)

    def finished(self) -> tuple[NDArray[np.float32], Image.Image, float]:
        """Colour [rows, columns, 3], cover and top of the strip, without the empty rows above the drawing."""
        colour, cover = (image.reduce(2) if self._half else image for image in (self._colour, self._cover))
        box = cover.getbbox() or (0, 0, 1, 1)
        empty = max(0, min(box[1] - 1, cover.height - 4))
        cut = (0, empty, cover.width, cover.height)
        return np.array(colour.crop(cut), np.float32), cover.crop(cut), self.top + empty / self.stage.per_height

    def _wrapped(self, xs: Sequence[float]) -> list[float]:
        period = self.stage.period
        first = -np.floor(min(xs) / period) * period
        return [first, first - period] if max(xs) + first > period else [first]


def texture(
    random: np.random.Generator, shape: tuple[int, int], waves: float, stretch: float = 1.0
) -> NDArray[np.float32]:
    """A periodic random field of unit variance; `waves` bumps per shape height, drawn out `stretch` times sideways."""
    rows, columns = shape
    ky = fft.fftfreq(rows)[:, None] * rows
    kx = fft.rfftfreq(columns)[None, :] * rows * stretch
    k = np.hypot(kx, ky) / waves
    amplitude = np.where(k > 0, k / (1 + k**2) ** 1.6, 0.0)
    field = cast(NDArray[np.float64], fft.irfft2(amplitude * fft.rfft2(random.standard_normal(shape)), s=shape))
    return (field / field.std()).astype(np.float32)


def wrapped(image: Image.Image, columns: int) -> Image.Image:
    """The image with its left part again on the right, so that every window of `columns` can be cut in one piece."""
    out = Image.new(image.mode, (image.width + columns, image.height))
    for left in range(0, out.width, image.width):
        out.paste(image, (left, 0))
    return out
