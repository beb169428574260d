"""What moves by itself: clouds, water and fog from the latent fields, ground that runs under the camera, rain and snow.

Lengths are in picture heights.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops
from scipy.special import ndtri

from gpu_consumers.engines.animatic.canvas import MARGIN, Stage, texture
from gpu_consumers.engines.animatic.paint import Bytes, View, tint
from gpu_consumers.engines.animatic.palette import Colour

_BICUBIC = Image.Resampling.BICUBIC
CAMERA_HEIGHT = 0.26
"""Of the ground at depth 1 below the horizon."""


def ramp(cover: float, softness: float, strongest: int) -> list[int]:
    """A look-up table from a field's bytes to a mask that covers this share of the picture."""
    threshold = 128 - 40 * float(ndtri(min(max(cover, 0.01), 0.99)))
    value = (np.arange(256) - threshold) / (40 * softness) + 0.5
    smooth = np.clip(value, 0, 1)
    return (strongest * smooth * smooth * (3 - 2 * smooth)).astype(int).tolist()


@dataclass(frozen=True, slots=True, kw_only=True)
class Clouds:
    """The cloud field over the sky, down to the horizon."""

    colour: Colour
    table: list[int]
    bottom: float

    def paint(self, picture: Image.Image, view: View) -> None:
        window = view.window(0.0)
        field = view.fields[0]
        width, height = picture.size
        rows = min(height, ceil((self.bottom - window.top) / window.height * height))
        if rows < 1:
            return
        per = field.height / (self.bottom + MARGIN)
        bottom = min(field.height, (window.top + rows * window.height / height + MARGIN) * per)
        inset = field.width * max(0.0, 1 - window.height) / 2
        box = (inset, max(0.0, (window.top + MARGIN) * per), field.width - inset, bottom)
        mask = field.resize((width, rows), _BICUBIC, box).point(self.table)
        tint(picture, self.colour, mask)


@dataclass(frozen=True, slots=True, kw_only=True)
class Veil:
    """The fog field over the whole picture."""

    colour: Colour
    table: list[int]

    def paint(self, picture: Image.Image, view: View) -> None:
        mask = view.enlarged_field(2, picture.size).point(self.table)
        tint(picture, self.colour, mask)


@dataclass(frozen=True, slots=True, kw_only=True)
class Air:
    """Drifting shade by day, drifting haze by night: no shot stands still, even on a tripod. `under` is added to its mask."""

    colour: Colour
    table: list[int]
    under: Image.Image | None

    def paint(self, picture: Image.Image, view: View) -> None:
        mask = view.fields[3].resize(picture.size, Image.Resampling.BILINEAR).point(self.table)
        tint(picture, self.colour, ImageChops.add(mask, self.under) if self.under else mask)


def gentle(deviation: float) -> list[int]:
    """A table for `Air`: a mask that varies by this much, half as much again on the average."""
    return np.clip((np.arange(256) - 128) / 40 * deviation + deviation * 1.5, 0, 255).round().astype(int).tolist()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """A plane below the horizon, seen in perspective: a texture as marks of one colour.

    `texels` [rows, columns] uint8, both powers of two; None: the water field. `stretch`: texels along x and away per height.
    """

    horizon: float
    colour: Colour
    texels: Bytes | None
    stretch: tuple[float, float]
    table: Sequence[int] = ()
    """For the water field: its bytes to marks."""
    shine: "Shine | None" = None

    def paint(self, picture: Image.Image, view: View) -> None:
        window = view.window(0.0)
        width, height = picture.size
        step = window.height / height
        first = max(0, ceil((self.horizon - window.top) / step))
        if first >= height:
            return
        texels = self.texels if self.texels is not None else _water(view.fields[1], self.table)
        mask = self._marks(view, texels, (first, height, width), step, window.top)
        if self.shine is not None:
            mask = self.shine.on(mask, view, step)
        tint(picture, self.colour, Image.fromarray(mask), first)

    def _marks(self, view: View, texels: Bytes, rows: tuple[int, int, int], step: float, top: float) -> Bytes:
        first, end, width = rows
        control = view.control
        below = (np.arange(first, end, dtype=np.float32) + np.float32(0.5)) * np.float32(step) + np.float32(
            top - self.horizon
        )
        away = np.float32(max(0.05, CAMERA_HEIGHT - control.track_y * 0.5)) / np.maximum(below, np.float32(step * 0.5))
        across = (np.arange(width, dtype=np.float32) - np.float32(width / 2)) * np.float32(step)
        x_scale, z_scale = self.stretch
        size_z, size_x = texels.shape
        x0 = away * np.float32((control.pan_x + control.sway_x) * x_scale) + np.float32(control.track_x * x_scale)
        columns = np.multiply.outer(away * np.float32(x_scale), across)
        columns += x0[:, None]
        index = np.floor(columns, out=columns).astype(np.int32)
        index &= size_x - 1
        forward = 1 - exp(-control.dolly)
        index += ((((away + forward) * z_scale).astype(np.int32) & (size_z - 1)) * size_x)[:, None]
        marks = texels.reshape(-1).take(index)
        fade = np.clip(below / 0.06, 0.0, 1.0) * 255
        return ((marks.astype(np.uint16) * fade.astype(np.uint16)[:, None]) >> 8).astype(np.uint8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shine:
    """Sun or moon on water: marks show only in a column below it."""

    x: float
    spread: float

    def on(self, marks: Bytes, view: View, step: float) -> Bytes:
        """The marks, dimmed away from the column."""
        window = view.window(0.0)
        rows, width = marks.shape
        centre = (self.x * view.aspect - window.left) / step
        across = (np.arange(width, dtype=np.float32) - np.float32(centre)) * np.float32(step)
        spread = self.spread * (0.5 + 1.6 * np.arange(rows, dtype=np.float32) * np.float32(step))
        near = np.clip(1.25 - np.abs(across)[None, :] / spread[:, None], 0.16, 1.0)
        return (marks * near).astype(np.uint8)


def ground_texels(stage: Stage, name: str, blots: tuple[float, float], cover: float, strongest: int) -> Bytes:
    """Marks for a `Ground`: `blots` across the texture, so much longer than wide."""
    field = texture(stage.random(name), (256, 512), *blots)
    table = np.asarray(ramp(cover, 0.8, strongest), np.uint8)
    return table[np.clip(128 + 40 * field, 0, 255).astype(np.uint8)]


def _water(field: Image.Image, table: Sequence[int]) -> Bytes:
    return np.asarray(field.resize((512, 256), Image.Resampling.BILINEAR).point(list(table)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Falling:
    """Rain, snow, bubbles, sparks: a repeating tile that moves over the picture. `mask` is twice the picture each way.

    `speed`: heights per second right and down; `depth`: how much it follows the camera.
    """

    colour: Colour
    mask: Image.Image
    speed: tuple[float, float]
    depth: float
    seconds_per_frame: float

    def paint(self, picture: Image.Image, view: View) -> None:
        width, height = picture.size
        seconds = view.control.time * self.seconds_per_frame
        window = view.window(self.depth)
        left = round((window.left - self.speed[0] * seconds) * height) % width
        top = round((window.top - self.speed[1] * seconds) * height) % height
        tint(picture, self.colour, self.mask.crop((left, top, left + width, top + height)))


def tiled(tile: NDArray[np.uint8]) -> Image.Image:
    """A picture-sized tile, repeated twice each way."""
    return Image.fromarray(np.tile(tile, (2, 2)))
