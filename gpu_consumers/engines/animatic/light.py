"""Sun, moon and stars in a sky; pools of light and dark corners over a picture. Lengths in picture heights."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gpu_consumers.engines.animatic.canvas import MARGIN, Stage
from gpu_consumers.engines.animatic.paint import View, tint
from gpu_consumers.engines.animatic.palette import Colour, Orb


def add_orb(stage: Stage, colour: NDArray[np.float32], orb: Orb, top: float) -> None:
    """Put sun or moon with its glow into a sky, in place."""
    rows, columns = colour.shape[:2]
    y = (np.arange(rows, dtype=np.float32) / stage.per_height + top - orb.y)[:, None]
    x = (np.arange(columns, dtype=np.float32) / stage.per_height - orb.x * stage.aspect)[None, :]
    x = x - np.round(x / stage.period).astype(np.float32) * np.float32(stage.period)
    distance = np.hypot(x, y)
    light = (0.55 * np.exp(-distance / orb.glow * 2.2) + 0.35 * np.exp(-((distance / orb.radius / 1.7) ** 2)))[
        ..., None
    ]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Wash:
    """One colour through a fixed mask: vignette, lamp light."""

    colour: Colour
    mask: Image.Image

    def paint(self, picture: Image.Image, view: View) -> None:  # noqa: ARG002 - the same in every view
        tint(picture, self.colour, self.mask, 0)


def vignette(stage: Stage) -> Image.Image:
    """A mask of the corners."""
    y, x = np.mgrid[-1 : 1 : stage.height * 1j, -1 : 1 : stage.width * 1j]
    mask = np.clip((x**2 + y**2) * 0.5 - 0.25, 0, 1) ** 1.3 * 150
    return Image.fromarray(mask.astype(np.uint8))
