"""What a picture is painted from, back to front: each thing knows how to paint itself as the camera sees it in one frame.

Lengths are in picture heights (`canvas.py`). *Depth* is how much of the camera's travel a thing follows: 0 far, 1 at the
subject, above 1 in front of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import ceil, exp, floor
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gpu_consumers.engines.animatic.canvas import MARGIN, WIDEST, Ink, Profile, Stage, texture, wrapped
from gpu_consumers.engines.animatic.control import Control
from gpu_consumers.engines.animatic.palette import DARKEST, Colour, bytes_of

Bytes = NDArray[np.uint8]
_BILINEAR = Image.Resampling.BILINEAR
_FOCUS = 0.68
"""The height that zooms and dollies leave in place: about the middle of a standing figure."""
_GAP = 0.08
_HAIR = 1e-3
"""Pixels that make no difference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The part of the world a frame shows at one depth."""

    left: float
    top: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One frame as the camera sees it."""

    control: Control
    fields: tuple[Image.Image, ...]
    """Clouds, water, fog, air: 8-bit pictures of the latent grid, 128 is the mean and 40 a standard deviation."""
    aspect: float
    enlarged: dict[int, Image.Image] = field(default_factory=dict)
    """Fields in picture size, once something has asked for them."""

    def enlarged_field(self, number: int, size: tuple[int, int]) -> Image.Image:
        """A field, smoothly scaled to the picture."""
        if number not in self.enlarged:
            self.enlarged[number] = self.fields[number].resize(size, Image.Resampling.BICUBIC)
        return self.enlarged[number]

    def window(self, depth: float) -> Window:
        """What is seen at this depth."""
        c = self.control
        height = min(exp(-c.zoom - c.dolly * depth), WIDEST)
        centre_x = self.aspect / 2 + c.pan_x + c.sway_x + c.track_x * depth
        top = _FOCUS * (1 - height) + c.pan_y + c.sway_y + c.track_y * depth
        top = min(max(top, -MARGIN), 1 + MARGIN - height)
        return Window(left=centre_x - self.aspect * height / 2, top=top, height=height)


class Paintable(Protocol):
    """Something in the picture."""

    def paint(self, picture: Image.Image, view: View) -> None:
        """Paint it over what is there."""
        ...


def tint(picture: Image.Image, colour: Colour, mask: Image.Image, top: int = 0) -> None:
    """Lay a colour over the picture where the mask says, from row `top` on. (Pasting the bare colour takes twice as long.)"""
    picture.paste(Image.new("RGB", mask.size, bytes_of(colour)), (0, top), mask)


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """Drawn scenery at one depth. Without `cover` it fills its rows."""

    colour: Image.Image
    cover: Image.Image | None
    depth: float
    top: float
    per_height: float
    columns: int
    spans: tuple[tuple[int, int], ...]
    """Columns that are not empty: lamp posts cost no more than their width."""

    def paint(self, picture: Image.Image, view: View) -> None:
        window = view.window(self.depth)
        width, height = picture.size
        scale = window.height * self.per_height / height
        first = (self.top - window.top) * self.per_height / scale
        y0, y1 = max(0, ceil(first - _HAIR)), min(height, floor(first + self.colour.height / scale + _HAIR))
        if y1 <= y0:
            return
        left, top = (window.left * self.per_height) % self.columns, max(0.0, (y0 - first) * scale)
        bottom = min(top + (y1 - y0) * scale, self.colour.height)
        cut = _shifted if abs(scale - 1) < _HAIR else _scaled
        for x0, x1 in self._seen(left, scale, width):
            size, box = (x1 - x0, y1 - y0), (left + x0 * scale, top, left + x1 * scale, bottom)
            cover = cut(self.cover, size, box) if self.cover else None
            picture.paste(cut(self.colour, size, box), (x0, y0), cover)

    def _seen(self, left: float, scale: float, width: int) -> Iterator[tuple[int, int]]:
        """Columns of the picture in which something is seen."""
        for start, end in self.spans:
            for turn in range(int((left + width * scale) // self.columns) + 1):
                x0 = max(0, floor((start + turn * self.columns - left) / scale) - 1)
                x1 = min(width, ceil((end + turn * self.columns - left) / scale) + 1)
                if x1 > x0:
                    yield x0, x1


def _scaled(image: Image.Image, size: tuple[int, int], box: tuple[float, float, float, float]) -> Image.Image:
    return image.resize(size, _BILINEAR, box)


def _shifted(image: Image.Image, size: tuple[int, int], box: tuple[float, float, float, float]) -> Image.Image:
    """What `_scaled` gives when nothing is scaled, in half the time."""
    y = floor(box[1] + _HAIR)
    part = box[1] - y
    near = _shifted_row(image, size, box[0], y)
    return Image.blend(near, _shifted_row(image, size, box[0], y + 1), part) if part > _HAIR else near


def _shifted_row(image: Image.Image, size: tuple[int, int], left: float, y: int) -> Image.Image:
    x = floor(left)
    part = left - x
    near = image.crop((x, y, x + size[0], y + size[1]))
    return Image.blend(near, image.crop((x + 1, y, x + 1 + size[0], y + size[1])), part) if part > _HAIR else near


def strip_of(ink: Ink, depth: float, *, grain: float = 0.03, mist: float = 0.0, mist_from: float = 0.5) -> Strip:
    """A finished drawing. `grain`: strength of a painterly texture; `mist`: share of horizon colour at its foot, below `mist_from`."""
    stage = ink.stage
    colour, cover, top = ink.finished()
    rows = colour.shape[0]
    tile = texture(stage.random(f"grain{depth}"), (128, 256), 8.0, 2.2)
    noise = np.tile(tile, (-(-rows // 128), -(-stage.columns // 256)))[:rows, : stage.columns]
    colour *= 1 + np.float32(grain) * noise[..., None]
    if mist:
        y = np.linspace(top, top + rows / stage.per_height, rows, dtype=np.float32)
        share = mist * np.clip((y - mist_from) / 0.25, 0, 1)[:, None, None]
        colour += (stage.palette.horizon.astype(np.float32) - colour) * share.astype(np.float32)
    return Strip(
        colour=_extended(colour, stage),
        cover=wrapped(cover, _extra(stage)),
        depth=depth,
        top=top,
        per_height=stage.per_height,
        columns=stage.columns,
        spans=_spans(cover, round(stage.per_height * _GAP)),
    )


def _spans(cover: Image.Image, gap: int) -> tuple[tuple[int, int], ...]:
    """Ranges of columns with something in them; gaps narrower than `gap` are not worth a cut."""
    used = np.flatnonzero(np.asarray(cover).any(axis=0))
    breaks = np.flatnonzero(np.diff(used) > gap)
    starts, ends = [used[0], *used[breaks + 1]], [*used[breaks], used[-1]]
    return tuple((int(a), int(b) + 1) for a, b in zip(starts, ends, strict=True))


def filled_strip(stage: Stage, colour: NDArray[np.float32], top: float, depth: float = 0.0) -> Strip:
    """A strip that fills its rows: colour [rows, columns, 3]."""
    return Strip(
        colour=_extended(colour, stage),
        cover=None,
        depth=depth,
        top=top,
        per_height=stage.per_height,
        columns=stage.columns,
        spans=((0, stage.columns),),
    )


def faded(strip: Strip, reach: float, strength: float = 1.0) -> Strip:
    """The strip, its cover falling from `strength` at its top to nothing `reach` below."""
    cover = strip.cover or Image.new("L", strip.colour.size, 255)
    rows = np.arange(cover.height, dtype=np.float32)[:, None] / np.float32(strip.per_height * reach)
    return replace(
        strip, cover=Image.fromarray((np.asarray(cover) * (np.clip(1 - rows, 0, 1) * strength)).astype(np.uint8))
    )


def gradient(stage: Stage, stops: list[tuple[float, Colour]], top: float, bottom: float) -> NDArray[np.float32]:
    """Colours by height, [rows, columns, 3]. `stops`: (height, colour), from the top down."""
    rows = max(2, round((bottom - top) * stage.per_height))
    y = np.linspace(top, bottom, rows)
    at = [height for height, _ in stops]
    column = np.stack([np.interp(y, at, [colour[c] for _, colour in stops]) for c in range(3)], axis=-1)
    return np.repeat(column[:, None].astype(np.float32), stage.columns, axis=1)


def ridge(stage: Stage, name: str, base: float, rise: float, *, waves: float, roughness: float) -> Profile:
    """A skyline: heights from the picture's top, `base` at its lowest, `rise` above that at its highest."""
    curve = stage.profile(name, waves, roughness)
    curve = (curve - curve.min()) / (curve.max() - curve.min())
    return base - rise * curve


def _extra(stage: Stage) -> int:
    return ceil(stage.aspect * stage.per_height * WIDEST) + 2


def _extended(colour: NDArray[np.float32], stage: Stage) -> Image.Image:
    clipped = np.clip(colour + 0.5, DARKEST, 244).astype(np.uint8)
    return wrapped(Image.fromarray(clipped), _extra(stage))
