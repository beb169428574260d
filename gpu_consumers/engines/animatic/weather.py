"""Rain, snow, fog, bubbles and dust as things to paint."""

from collections.abc import Iterator

import numpy as np
from PIL import Image, ImageDraw

from gpu_consumers.engines.animatic.canvas import Stage
from gpu_consumers.engines.animatic.light import vignette
from gpu_consumers.engines.animatic.moving import Air, Falling, Veil, gentle, ramp, tiled
from gpu_consumers.engines.animatic.paint import Paintable
from gpu_consumers.engines.animatic.palette import Colour, mix, rgb

_BRIGHT = 55.0
"""Lightness of a scene from which shade is seen better than haze."""


def weather_behind(stage: Stage) -> Iterator[Paintable]:
    """What hangs in the air between scenery and subject."""
    if "fog" in stage.backdrop.weather:
        yield Veil(colour=stage.palette.horizon, table=ramp(0.66, 5.0, 190))


def weather_before(stage: Stage) -> Iterator[Paintable]:
    """What falls in front of everything."""
    weather, palette = stage.backdrop.weather, stage.palette
    if "fog" in weather:
        yield Veil(colour=mix(palette.horizon, palette.middle, 0.3), table=ramp(0.45, 5.0, 110))
    if weather & {"rain", "storm"}:
        heavy = "storm" in weather
        drops = mix(palette.horizon, rgb(236, 240, 244), 0.6)
        for number, (share, length, speed) in enumerate([(0.7, 0.06, 1.5), (0.3, 0.11, 2.3)]):
            slant = 0.32 if heavy else 0.12
            count = round(stage.aspect * share * (420 if heavy else 260))
            yield Falling(
                colour=drops,
                mask=_streaks(stage, f"rain{number}", count, (slant * length, length), 100 - 15 * number),
                speed=(slant * speed, speed),
                depth=0.5 + 0.5 * number,
                seconds_per_frame=stage.step_s,
            )
    if "snow" in weather:
        for number, (count, radius, speed) in enumerate([(220, 0.003, 0.10), (120, 0.005, 0.17), (40, 0.009, 0.28)]):
            yield specks(stage, f"snow{number}", rgb(240, 242, 244), (count, radius, 200), (speed * 0.35, speed))


def air_of(stage: Stage) -> Air:
    """Shade and darker corners where it is bright, haze where it is dark."""
    palette = stage.palette
    if stage.backdrop.place != "space" and float(palette.horizon.mean() * palette.tint.mean()) > _BRIGHT:
        return Air(colour=palette.top * 0.12, table=gentle(9), under=vignette(stage))
    return Air(
        colour=mix(palette.glow, palette.horizon, 0.3),
        table=gentle(6 if stage.backdrop.place == "space" else 12),
        under=None,
    )


def specks(
    stage: Stage,
    name: str,
    colour: Colour,
    kind: tuple[int, float, int],
    speed: tuple[float, float],
) -> Falling:
    """Round things in the air. `kind`: how many per picture height of width, radius in heights, strength of the mask."""
    count, radius, strength = kind
    random = stage.random(name)
    size = (stage.width, stage.height)
    tile = Image.new("L", (size[0] * 2, size[1] * 2), 0)
    draw = ImageDraw.Draw(tile)
    r = max(1.2, radius * stage.height * 2)
    for x, y, scale in zip(*random.random((3, round(count * stage.aspect))).tolist(), strict=True):
        cx, cy, half = x * size[0] * 2, y * size[1] * 2, r * (0.6 + 0.6 * scale)
        draw.ellipse((cx - half, cy - half, cx + half, cy + half), fill=round(strength * (0.5 + 0.5 * scale)))
    return Falling(
        colour=colour,
        mask=tiled(np.asarray(tile.reduce(2))),
        speed=speed,
        depth=min(1.0, radius * 120),
        seconds_per_frame=stage.step_s,
    )


def _streaks(stage: Stage, name: str, count: int, length: tuple[float, float], strength: int) -> Image.Image:
    random = stage.random(name)
    tile = Image.new("L", (stage.width, stage.height), 0)
    draw = ImageDraw.Draw(tile)
    dx, dy = (part * stage.height for part in length)
    width = max(1, round(stage.height / 500))
    for x, y, scale in zip(*random.random((3, count)).tolist(), strict=True):
        x0, y0 = x * stage.width, y * stage.height
        for left in (x0, x0 - stage.width):
            for top in (y0, y0 - stage.height):
                ends = (left, top, left + dx * (0.5 + scale), top + dy * (0.5 + scale))
                draw.line(ends, fill=round(strength * (0.4 + 0.6 * scale)), width=width)
    return tiled(np.asarray(tile))
