"""Above the clouds, and space. Lengths in picture heights."""

from dataclasses import replace

import numpy as np
from PIL import Image

from gpu_consumers.engines.animatic.canvas import MARGIN, Ink, Stage, texture, wrapped
from gpu_consumers.engines.animatic.light import add_stars
from gpu_consumers.engines.animatic.paint import Paintable, Strip, filled_strip, gradient, strip_of
from gpu_consumers.engines.animatic.palette import Colour, mix, rgb
from gpu_consumers.engines.animatic.scenery.set import Scenery, sky

_BOTTOM = 1 + MARGIN


def above_clouds(stage: Stage) -> Scenery:
    """The sky, and a sea of clouds below."""
    behind: list[Paintable] = [*sky(stage, 0.80)]
    layers = [(0.66, 0.10, 0.45, 0.55), (0.76, 0.22, 0.9, 0.32), (0.90, 0.45, 1.4, 0.12)]
    behind += [_bank(stage, f"bank{n}", base, depth, size, haze) for n, (base, depth, size, haze) in enumerate(layers)]
    front = _bank(stage, "bank9", 1.06, 1.5, 1.5, 0.0)
    return Scenery(behind=tuple(behind), before=(front,), foot=0.56, grounded=False)


def space(stage: Stage) -> Scenery:
    """Stars, a nebula, a planet lit from one side, a moon."""
    dark = gradient(stage, [(-MARGIN, rgb(10, 10, 26)), (_BOTTOM, rgb(16, 12, 34))], -MARGIN, _BOTTOM)
    rows, columns = dark.shape[:2]
    random = stage.random("nebula")
    for hue, waves in ((rgb(110, 50, 140), 2.0), (rgb(36, 84, 150), 1.6)):
        cloud = texture(random, (128, 256), waves, 0.6)
        big = np.asarray(Image.fromarray(cloud).resize((columns, rows), Image.Resampling.BICUBIC))
        dark += np.clip(big - 0.35, 0, 2)[..., None] * hue.astype(np.float32) * 0.42
    add_stars(stage, dark, 2.2, -MARGIN, _BOTTOM)
    behind: list[Paintable] = [filled_strip(stage, dark, -MARGIN)]
    behind.append(_planet(stage, "planet", (0.30, 0.36, 0.30), rgb(84, 140, 190), rgb(214, 200, 160), 0.12))
    behind.append(_planet(stage, "moon", (0.80, 0.20, 0.07), rgb(170, 166, 160), rgb(120, 116, 112), 0.25))
    rocks = Ink(stage, -MARGIN, _BOTTOM, rgb(70, 66, 72))
    for x, r in stage.scattered("asteroids", 0.9):
        size, y = 0.012 + 0.03 * r, 0.15 + 0.75 * ((r * 9.7) % 1)
        shape = [(x + size * c * (0.8 + 0.4 * ((k * r * 7) % 1)), y + size * s) for k, (c, s) in enumerate(_circle(9))]
        rocks.polygon(shape, rgb(92, 86, 92))
        rocks.polygon([(px - size * 0.2, py - size * 0.2) for px, py in shape[3:8]], rgb(134, 126, 128))
    behind.append(strip_of(rocks, 0.7))
    return Scenery(behind=tuple(behind), foot=0.62, grounded=False)


def _bank(stage: Stage, name: str, base: float, depth: float, size: float, haze: float) -> Strip:
    palette = stage.palette
    white = mix(palette.cloud, palette.lit(rgb(244, 244, 244)), 0.5)
    shade, light = mix(mix(white, palette.top, 0.35), palette.horizon, haze), mix(white, palette.horizon, haze * 0.8)
    ink = Ink(stage, base - 0.45 * size, _BOTTOM, shade)
    puffs = stage.scattered(name, 0.09 * size)
    for x, r in puffs:
        ink.disc(x, base + 0.03, 0.10 * size * (0.6 + 0.8 * r), 0.12 * size * (0.15 + 1.1 * r * r), light)
    for x, r in puffs:
        ink.disc(
            x + 0.02 * size,
            base + 0.03 + 0.04 * size,
            0.10 * size * (0.6 + 0.8 * r),
            0.11 * size * (0.15 + 1.1 * r * r),
            shade,
        )
    ink.box(0, base + 0.05, stage.period, _BOTTOM, shade)
    return strip_of(ink, depth, grain=0.03, mist=0.3, mist_from=base)


def _planet(
    stage: Stage, name: str, place: tuple[float, float, float], land: Colour, bands: Colour, depth: float
) -> Strip:
    """A ball in side light with bands of weather. `place`: x in picture widths, y and radius in heights."""
    x, y, radius = place[0] * stage.aspect, place[1], place[2]
    size = max(8, round(2.3 * radius * stage.per_height))
    gy, gx = np.mgrid[-1.15 : 1.15 : size * 1j, -1.15 : 1.15 : size * 1j].astype(np.float32)
    distance = np.hypot(gx, gy)
    z = np.sqrt(np.clip(1 - distance**2, 0, 1))
    light = np.clip((-0.62 * gx - 0.45 * gy + 0.65 * z), 0, 1) ** 0.9
    noise = texture(stage.random(name), (128, 128), 5.0, 0.35)
    band = noise[((gy + 1.15) * 55).astype(int) % 128, ((gx + gy * 0.3 + 2) * 30).astype(int) % 128]
    surface = land + (bands - land) * np.clip(0.5 + 0.45 * band, 0, 1)[..., None]
    air = np.exp(-(((distance - 1.0) / 0.045) ** 2)) * (0.2 + 0.8 * light)
    colour = surface * (0.10 + 0.9 * light[..., None]) + (rgb(150, 200, 244) - surface) * (air * 0.6)[..., None]
    cover = np.clip((1.0 - distance) * size / 2.3 + 0.5, 0, 1)
    cover = np.maximum(cover, np.where(distance > 1, air * 0.7, 0))
    rows = size
    strip = np.zeros((rows, stage.columns, 3), np.float32) + 10
    mask = np.zeros((rows, stage.columns), np.uint8)
    left = round(x * stage.per_height - size / 2)
    for column in range(size):
        at = (left + column) % stage.columns
        strip[:, at], mask[:, at] = colour[:, column], cover[:, column] * 255
    whole = filled_strip(stage, strip, y - radius * 1.15, depth)
    start = left % stage.columns
    spans = ((start, min(start + size, stage.columns)), (0, max(0, start + size - stage.columns)))
    return replace(whole, cover=wrapped(Image.fromarray(mask), whole.colour.width - stage.columns), spans=spans)


def _circle(count: int) -> list[tuple[float, float]]:
    angles = np.linspace(0, 2 * np.pi, count, endpoint=False)
    return list(zip(np.cos(angles).tolist(), np.sin(angles).tolist(), strict=True))
