"""What figures are drawn with. A figure faces right; x runs right from its middle and y up from its foot, in figure heights."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from math import cos, pi, sin
from typing import TypeAlias

import numpy as np
from PIL import Image, ImageDraw

from gpu_consumers.engines.animatic.palette import Colour, bytes_of

Point: TypeAlias = tuple[float, float]
PHASES = 24
"""Drawings per cycle of movement."""
_SUPER = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Inks:
    """The colours of one figure, in the light of its place."""

    main: Colour
    dark: Colour
    light: Colour
    skin: Colour
    trim: Colour
    glow: Colour
    """Lamps, flames, lit windows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A finished figure, cut to its outline."""

    colour: Image.Image
    cover: Image.Image
    foot: Point
    """Where it stands, in pixels from its left and top."""

    def mirrored(self) -> "Drawing":
        """Looking the other way."""
        flip = Image.Transpose.FLIP_LEFT_RIGHT
        foot = (self.colour.width - self.foot[0], self.foot[1])
        return Drawing(colour=self.colour.transpose(flip), cover=self.cover.transpose(flip), foot=foot)


class Pen:
    """A figure being drawn, `height` pixels high. `reach`: (left, right, up, down) from its foot, in figure heights."""

    def __init__(self, height: int, reach: tuple[float, float, float, float], inks: Inks) -> None:
        left, right, up, down = reach
        self.inks = inks
        self._scale = height * _SUPER
        self._origin = (left * self._scale, up * self._scale)
        size = (max(1, round((left + right) * height)), max(1, round((up + down) * height)))
        self._image = Image.new("RGBA", (size[0] * _SUPER, size[1] * _SUPER), (0, 0, 0, 0))
        self._draw = ImageDraw.Draw(self._image)

    def moved(self, dx: float, dy: float, size: float = 1.0) -> "Pen":
        """A pen on the same drawing whose foot is elsewhere and whose figure is `size` times as large."""
        pen = copy(self)
        pen._origin = self._at((dx, dy))
        pen._scale = self._scale * size
        return pen

    def inked(self, inks: Inks) -> "Pen":
        """A pen on the same drawing with other colours."""
        pen = copy(self)
        pen.inks = inks
        return pen

    def shape(self, points: Sequence[Point], colour: Colour) -> None:
        """Fill a polygon."""
        self._draw.polygon([self._at(p) for p in points], fill=(*bytes_of(colour), 255))

    def disc(self, centre: Point, rx: float, ry: float, colour: Colour) -> None:
        """Fill an ellipse."""
        x, y = self._at(centre)
        self._draw.ellipse(
            (x - rx * self._scale, y - ry * self._scale, x + rx * self._scale, y + ry * self._scale),
            fill=(*bytes_of(colour), 255),
        )

    def limb(self, points: Sequence[Point], width: float, colour: Colour) -> None:
        """A thick line with round ends."""
        scaled = [self._at(p) for p in points]
        pixels = max(1, round(width * self._scale))
        self._draw.line(scaled, fill=(*bytes_of(colour), 255), width=pixels)
        for x, y in scaled:
            half = pixels / 2
            self._draw.ellipse((x - half, y - half, x + half, y + half), fill=(*bytes_of(colour), 255))

    def tube(self, points: Sequence[Point], widths: tuple[float, float], colour: Colour) -> None:
        """A line that tapers from one width to the other."""
        count = len(points) - 1
        for index in range(count):
            share = index / max(1, count - 1) if count > 1 else 0
            self.limb(points[index : index + 2], widths[0] + (widths[1] - widths[0]) * share, colour)

    def finished(self, rim: Colour, light_x: float) -> Drawing:
        """The drawing with a rim of light on the side where `light_x` (-1 left, 1 right) says it comes from."""
        image = self._image.reduce(_SUPER)
        box = image.getbbox() or (0, 0, 1, 1)
        pixels = np.asarray(image.crop(box)).astype(np.float32)
        colour, alpha = pixels[..., :3], pixels[..., 3] / 255
        step = max(1, round(self._scale / _SUPER / 90))
        inner = np.zeros_like(alpha)
        inner[step:] = np.roll(alpha, (step, -step if light_x > 0 else step), (0, 1))[step:]
        edge = np.clip(alpha - inner, 0, 1)[..., None] * 0.55
        colour += (rim.astype(np.float32) - colour) * edge
        colour[alpha == 0] = self.inks.main  # or scaling would mix black into the outline
        origin = (self._origin[0] / _SUPER - box[0], self._origin[1] / _SUPER - box[1])
        cover = Image.fromarray((alpha * 255).astype(np.uint8))
        return Drawing(colour=Image.fromarray(np.clip(colour, 0, 255).astype(np.uint8)), cover=cover, foot=origin)

    def _at(self, point: Point) -> tuple[float, float]:
        return self._origin[0] + point[0] * self._scale, self._origin[1] - point[1] * self._scale


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """How a kind of subject is drawn."""

    draw: Callable[[Pen, float, str], None]
    """With phase [0, 1) of its movement, and its action."""
    height: float
    """In picture heights, in a shot without framing term."""
    reach: tuple[float, float, float, float]
    colour: str
    """Its own, if the text names none."""
    lift: float = 0.0
    """How high above the ground it usually is, in picture heights."""


Figures: TypeAlias = Mapping[str, Figure]


def turn(point: Point, length: float, angle: float) -> Point:
    """From a point, `length` further; angle 0 is straight down, positive swings forward (right)."""
    return point[0] + sin(angle) * length, point[1] - cos(angle) * length


def wave(phase: float, shift: float = 0.0) -> float:
    """-1 to 1 over a cycle."""
    return sin(2 * pi * (phase + shift))
