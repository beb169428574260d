"""Ranges, tree lines, roads and other parts that several places share. Lengths in picture heights."""

from dataclasses import replace

import numpy as np

from gpu_consumers.engines.animatic.canvas import MARGIN, Ink, Stage
from gpu_consumers.engines.animatic.paint import Strip, ridge, strip_of
from gpu_consumers.engines.animatic.palette import Colour, mix, rgb
from gpu_consumers.engines.animatic.scenery.growth import at, grass, pine, rock
from gpu_consumers.engines.animatic.scenery.set import HORIZON, Scenery, shadow_side

HIDDEN = HORIZON + 0.13
"""Below it the ground covers what is far."""
_BOTTOM = 1 + MARGIN
_ROAD_TOP, _ROAD_BOTTOM = 0.735, 0.885
_SNOW = rgb(236, 240, 246)


def peaks(stage: Stage, name: str, stone: Colour, *, haze: float, depth: float, rise: float) -> Strip:
    """A mountain range with snow on what is high."""
    palette = stage.palette
    crest = ridge(stage, name, HORIZON + 0.02, rise, waves=3.2, roughness=0.32)
    ink = Ink(stage, 0.0, HIDDEN, palette.lit(stone, haze))
    ink.below(crest, palette.lit(stone, haze))
    jag = stage.profile(f"{name}-jag", 26, 0.75)
    line = HORIZON + 0.02 - rise * 0.56 + 0.035 * jag
    columns = np.arange(stage.columns) / stage.per_height
    slope = np.gradient(crest) * stage.per_height
    white, dim = palette.lit(_SNOW, haze * 0.8), mix(palette.lit(_SNOW, haze * 0.8), palette.lit(stone, haze), 0.45)
    for x, top, low, falling in zip(columns.tolist(), crest.tolist(), line.tolist(), (slope > 0).tolist(), strict=True):
        if top < low:
            ink.box(x, top, x + 1.5 / stage.per_height, low, dim if falling else white)
    return strip_of(ink, depth, grain=0.03, mist=0.6, mist_from=HORIZON - 0.16)


def tree_line(
    stage: Stage, name: str, wood: Colour, *, far: tuple[float, float], rise: float, height: float = 0.15
) -> Strip:
    """A wooded rise. `far`: haze and depth."""
    palette, (haze, depth) = stage.palette, far
    crest = ridge(stage, name, HORIZON + 0.05, rise, waves=2.5, roughness=0.1)
    dark, light = palette.lit(wood, haze) * 0.92, mix(palette.lit(wood, haze), palette.glow, 0.13)
    ink = Ink(stage, 0.0, HIDDEN, dark)
    for x, r in stage.scattered(f"{name}-pines", height * 0.26):
        pine(ink, x, at(stage, crest, x) + 0.01, height * (0.55 + 0.6 * r), dark, light)
    ink.below(crest, dark)
    return strip_of(ink, depth, mist=0.45, mist_from=HORIZON - 0.1)


def fringe(stage: Stage, colour: Colour) -> Strip:
    """Grass close to the camera."""
    dark = stage.palette.lit(colour)
    ink = Ink(stage, 0.8, _BOTTOM, dark)
    grass(ink, stage, "fringe", 1.05, 0.13, dark)
    ink.box(0, 1.04, stage.period, _BOTTOM, dark)
    return strip_of(ink, 1.25)


def road_on(stage: Stage, scenery: Scenery) -> Scenery:
    """The same place with a road across it, where the subjects are."""
    palette = stage.palette
    asphalt = Ink(stage, _ROAD_TOP, _ROAD_BOTTOM + 0.02, palette.lit(rgb(88, 88, 96)))
    asphalt.box(0, _ROAD_TOP + 0.004, stage.period, _ROAD_BOTTOM, palette.lit(rgb(84, 84, 92)))
    line = palette.lit(rgb(236, 230, 206))
    for edge in (_ROAD_TOP + 0.012, _ROAD_BOTTOM - 0.016):
        asphalt.box(0, edge, stage.period, edge + 0.006, line)
    dashes = max(1, round(stage.period / 0.42))
    step = stage.period / dashes
    for x in np.arange(dashes) * step:
        asphalt.box(
            float(x),
            (_ROAD_TOP + _ROAD_BOTTOM) / 2,
            float(x) + step * 0.45,
            (_ROAD_TOP + _ROAD_BOTTOM) / 2 + 0.010,
            line,
        )
    return replace(scenery, behind=(*scenery.behind, strip_of(asphalt, 1.0)))


def rails_on(stage: Stage, scenery: Scenery) -> Scenery:
    """The same place with a railway across it, where the subjects are."""
    palette = stage.palette
    bed = Ink(stage, scenery.foot - 0.05, scenery.foot + 0.07, palette.lit(rgb(120, 112, 104)))
    bed.box(0, scenery.foot - 0.02, stage.period, scenery.foot + 0.05, palette.lit(rgb(128, 120, 112)))
    sleepers = max(2, round(stage.period / 0.075))
    for number in range(sleepers):
        x = number * stage.period / sleepers
        bed.box(x, scenery.foot - 0.006, x + 0.026, scenery.foot + 0.03, palette.lit(rgb(92, 66, 46)))
    for y in (scenery.foot - 0.004, scenery.foot + 0.02):
        bed.box(0, y, stage.period, y + 0.007, palette.lit(rgb(176, 180, 188)))
    return replace(scenery, behind=(*scenery.behind, strip_of(bed, 1.0)))


def boulders(stage: Stage, base: float, depth: float, colour: Colour | None = None) -> Strip:
    stone = rgb(128, 128, 134) if colour is None else colour
    ink = Ink(stage, 0.6, _BOTTOM, stage.palette.lit(stone))
    for x, r in stage.scattered("boulder", 0.7):
        rock(ink, x, base - 0.06 * r, 0.03 + 0.05 * r, shadow_side(stage, stone, 0.0), stage.palette.lit(stone))
    return strip_of(ink, depth)


def snowed(stage: Stage, colour: Colour, share: float = 0.85) -> Colour:
    """The ground's colour, under snow if it snows."""
    return mix(colour, _SNOW * 0.96, share) if "snow" in stage.backdrop.weather else colour
