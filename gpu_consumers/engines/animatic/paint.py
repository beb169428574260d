"""What a picture is painted from, back to front: each thing knows how to paint itself as the camera sees it in one frame.

Lengths are in picture heights (`canvas.py`). *Depth* is how much of the camera's travel a thing follows: 0 far, 1 at the
subject, above 1 in front of it.
"""

from dataclasses import dataclass, replace
from math import ceil, exp, floor
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gpu_consumers.engines.animatic.canvas import MARGIN, WIDEST, Ink, Profile, Stage, texture, wrapped
from gpu_consumers.engines.animatic.control import Control
from gpu_consumers.engines.animatic.palette import DARKEST, Colour, Orb, bytes_of, mix

Bytes = NDArray[np.uint8]
_BILINEAR = Image.Resampling.BILINEAR
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
    """Clouds, water, fog: 8-bit pictures of the latent grid, 128 is the mean and 40 a standard deviation."""
    aspect: float

    def window(self, depth: float) -> Window:
        """What is seen at this depth."""
        c = self.control
        height = min(exp(-c.zoom - c.dolly * depth), WIDEST)
        centre_x = self.aspect / 2 + c.pan_x + c.sway_x + c.track_x * depth
        centre_y = 0.5 + c.pan_y + c.sway_y + c.track_y * depth
        top = min(max(centre_y - height / 2, -MARGIN), 1 + MARGIN - height)
        return Window(left=centre_x - self.aspect * height / 2, top=top, height=height)


class Paintable(Protocol):
    """Something in the picture."""

    def paint(self, picture: Image.Image, view: View) -> None:
        """Paint it over what is there."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """Drawn scenery at one depth. Without `cover` it fills its rows."""

    colour: Image.Image
    cover: Image.Image | None
    depth: float
    top: float
    per_height: float
    columns: int

    def paint(self, picture: Image.Image, view: View) -> None:
        window = view.window(self.depth)
        width, height = picture.size
        scale = window.height * self.per_height / height
        first = (self.top - window.top) * self.per_height / scale
        y0, y1 = max(0, ceil(first - _HAIR)), min(height, floor(first + self.colour.height / scale + _HAIR))
        if y1 <= y0:
            return
        left, top = (window.left * self.per_height) % self.columns, max(0.0, (y0 - first) * scale)
        box = (left, top, left + width * scale, min(top + (y1 - y0) * scale, self.colour.height))
        cut = _shifted if abs(scale - 1) < _HAIR and abs(top - round(top)) < _HAIR else _scaled
        cover = cut(self.cover, (width, y1 - y0), box) if self.cover else None
        picture.paste(cut(self.colour, (width, y1 - y0), box), (0, y0), cover)


def _scaled(image: Image.Image, size: tuple[int, int], box: tuple[float, float, float, float]) -> Image.Image:
    return image.resize(size, _BILINEAR, box)


def _shifted(image: Image.Image, size: tuple[int, int], box: tuple[float, float, float, float]) -> Image.Image:
    """What `_scaled` gives when only whole rows and parts of a column are moved, in a third of the time."""
    x, y = floor(box[0]), round(box[1])
    near = image.crop((x, y, x + size[0], y + size[1]))
    part = box[0] - x
    return Image.blend(near, image.crop((x + 1, y, x + 1 + size[0], y + size[1])), part) if part > _HAIR else near


def strip_of(ink: Ink, depth: float, *, grain: float = 0.035, mist: float = 0.0, mist_from: float = 0.5) -> Strip:
    """A finished drawing. `grain`: strength of a painterly texture; `mist`: share of horizon colour at its foot, below `mist_from`."""
    stage = ink.stage
    colour, cover, top = ink.finished()
    rows = colour.shape[0]
    tile = texture(stage.random(f"grain{depth}"), (128, 256), 14.0, 1.6)
    noise = np.tile(tile, (-(-rows // 128), -(-stage.columns // 256)))[:rows, : stage.columns]
    colour = colour * (1 + grain * noise[..., None])
    if mist:
        y = np.linspace(top, top + rows / stage.per_height, rows, dtype=np.float32)
        share = mist * np.clip((y - mist_from) / 0.25, 0, 1)[:, None, None]
        colour = colour + (stage.palette.horizon.astype(np.float32) - colour) * share
    return Strip(
        colour=_extended(colour, stage),
        cover=wrapped(cover, _extra(stage)),
        depth=depth,
        top=top,
        per_height=stage.per_height,
        columns=stage.columns,
    )


def filled_strip(stage: Stage, colour: NDArray[np.float32], top: float, depth: float = 0.0) -> Strip:
    """A strip that fills its rows: colour [rows, columns, 3]."""
    return Strip(
        colour=_extended(colour, stage),
        cover=None,
        depth=depth,
        top=top,
        per_height=stage.per_height,
        columns=stage.columns,
    )


def faded(strip: Strip, reach: float, strength: float = 1.0) -> Strip:
    """The strip, its cover falling from `strength` at its top to nothing `reach` below."""
    cover = strip.cover or Image.new("L", strip.colour.size, 255)
    rows = np.arange(cover.height, dtype=np.float32)[:, None] / np.float32(strip.per_height * reach)
    return replace(strip, cover=Image.fromarray((np.asarray(cover) * (np.clip(1 - rows, 0, 1) * strength)).astype(np.uint8)))


def gradient(stage: Stage, stops: list[tuple[float, Colour]], top: float, bottom: float) -> NDArray[np.float32]:
    """Colours by height, [rows, columns, 3]. `stops`: (height, colour), from the top down."""
    rows = max(2, round((bottom - top) * stage.per_height))
    y = np.linspace(top, bottom, rows)
    at = [height for height, _ in stops]
    column = np.stack([np.interp(y, at, [colour[c] for _, colour in stops]) for c in range(3)], axis=-1)
    return np.repeat(column[:, None].astype(np.float32), stage.columns, axis=1)


def add_orb(stage: Stage, colour: NDArray[np.float32], orb: Orb, top: float) -> None:
    """Put sun or moon with its glow into a sky, in place."""
    rows, columns = colour.shape[:2]
    y = (np.arange(rows, dtype=np.float32) / stage.per_height + top - orb.y)[:, None]
    x = (np.arange(columns, dtype=np.float32) / stage.per_height - orb.x * stage.aspect)[None, :]
    x = x - np.round(x / stage.period).astype(np.float32) * np.float32(stage.period)
    distance = np.hypot(x, y)
    light = (0.55 * np.exp(-distance / orb.glow * 2.2) + 0.35 * np.exp(-((distance / orb.radius / 1.7) ** 2)))[..., None]
    disc = np.clip((orb.radius - distance) * stage.per_height, 0, 1)[..., None]
    target = orb.colour.astype(np.float32)
    colour += (target - colour) * np.minimum(light, 0.9)
    colour += (target - colour) * disc


def add_stars(stage: Stage, colour: NDArray[np.float32], share: float, top: float, bottom: float) -> None:
    """Put stars between two heights of a sky that begins at `-MARGIN`, in place."""
    random = stage.random("stars")
    count = round(260 * share * stage.period * (bottom - top))
    ys = ((random.uniform(top, bottom, count) + MARGIN) * stage.per_height).astype(int)
    xs = random.integers(0, stage.columns, count)
    size = max(1, round(stage.per_height / 400))
    for y, x, bright in zip(ys.tolist(), xs.tolist(), random.uniform(60, 210, count).tolist(), strict=True):
        patch = colour[y : y + size, x : x + size]
        np.minimum(patch + np.float32(bright), np.float32(240), out=patch)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Wash:
    """One colour through a fixed mask: vignette, lamp light."""

    colour: Colour
    mask: Image.Image

    def paint(self, picture: Image.Image, view: View) -> None:  # noqa: ARG002 - the same in every view
        picture.paste(bytes_of(self.colour), (0, 0), self.mask)


def vignette(stage: Stage) -> Wash:
    """Darker corners."""
    y, x = np.mgrid[-1 : 1 : stage.height * 1j, -1 : 1 : stage.width * 1j]
    mask = np.clip((x**2 + y**2) * 0.5 - 0.25, 0, 1) ** 1.3 * 150
    return Wash(colour=mix(stage.palette.top * 0.1, stage.palette.horizon * 0.1, 0.3), mask=Image.fromarray(mask.astype(np.uint8)))
