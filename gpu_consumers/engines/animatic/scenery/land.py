"""Mountains, forest, desert, fields and ice. Lengths in picture heights."""

import numpy as np

from gpu_consumers.engines.animatic.canvas import MARGIN, Ink, Stage
from gpu_consumers.engines.animatic.moving import Veil, ramp
from gpu_consumers.engines.animatic.paint import Paintable, Strip, ridge, strip_of
from gpu_consumers.engines.animatic.palette import Colour, mix, rgb
from gpu_consumers.engines.animatic.scenery.growth import at, cactus, rock, round_tree, trunk
from gpu_consumers.engines.animatic.scenery.ranges import HIDDEN, boulders, fringe, peaks, snowed, tree_line
from gpu_consumers.engines.animatic.scenery.set import HORIZON, Scenery, marks, plain, shadow_side, sky

_BOTTOM = 1 + MARGIN


def mountains(stage: Stage) -> Scenery:
    """Three ranges, the far ones with snow, pines on the nearest, a stony meadow."""
    stone, wood = rgb(104, 112, 132), rgb(44, 78, 62)
    behind: list[Paintable] = [*sky(stage)]
    behind.append(peaks(stage, "far", stone, haze=0.62, depth=0.08, rise=0.40))
    behind.append(peaks(stage, "mid", stone * 0.8, haze=0.36, depth=0.16, rise=0.27))
    behind.append(tree_line(stage, "near", wood, far=(0.14, 0.34), rise=0.12))
    turf = snowed(stage, rgb(104, 122, 84))
    behind += [
        plain(stage, turf, haze=0.35),
        marks(stage, stage.palette.lit(turf) * 0.6, (10, 1.2), 0.34, 70),
    ]
    behind.append(boulders(stage, 0.86, 0.5))
    return Scenery(behind=tuple(behind), before=(fringe(stage, turf * 0.35),))


def forest(stage: Stage) -> Scenery:
    """Tree lines in mist, then trunks, then dark trunks in front."""
    palette, wood = stage.palette, snowed(stage, rgb(42, 96, 58), 0.45)
    behind: list[Paintable] = [*sky(stage)]
    for number, (haze, depth, rise) in enumerate([(0.60, 0.14, 0.30), (0.28, 0.36, 0.24)]):
        behind.append(
            tree_line(stage, f"line{number}", wood, far=(haze, depth), rise=rise, height=0.30 - 0.05 * number)
        )
    floor = snowed(stage, rgb(74, 88, 48))
    behind += [
        plain(stage, floor, haze=0.3),
        marks(stage, palette.lit(floor) * 0.5, (12, 1.4), 0.4, 130),
    ]
    behind.append(_trunks(stage, "trunks", 0.72, spacing=0.46, width=0.055, haze=0.10))
    if "fog" not in stage.backdrop.weather:
        behind.append(Veil(colour=mix(palette.horizon, palette.glow, 0.3), table=ramp(0.34, 3.0, 58)))
    dark = palette.lit(rgb(44, 36, 30)) * 0.5
    front = Ink(stage, -MARGIN, _BOTTOM, dark)
    for x, r in stage.scattered("front", 1.15):
        if abs(x - stage.aspect / 2) > 0.35:  # not before the subject where the shot begins
            trunk(front, x, 0.09 + 0.05 * r, dark, mix(dark, palette.glow, 0.12))
    ferns = fringe(stage, snowed(stage, rgb(30, 62, 34), 0.3) * 0.7)
    return Scenery(behind=tuple(behind), before=(ferns, strip_of(front, 1.5)))


def desert(stage: Stage) -> Scenery:
    """Mesas in the haze, three lines of dunes, rippled sand."""
    palette, sand = stage.palette, rgb(226, 172, 108)
    behind: list[Paintable] = [*sky(stage)]
    mesa = Ink(stage, 0.2, HORIZON + 0.05, palette.lit(rgb(170, 104, 80), 0.6))
    for x, r in stage.scattered("mesa", 0.62):
        wide, tall = 0.10 + 0.14 * r, 0.06 + 0.10 * ((r * 5.7) % 1)
        top, colour = HORIZON - tall, palette.lit(rgb(176, 104, 76), 0.5)
        mesa.polygon(
            [(x - wide, HORIZON + 0.05), (x - wide * 0.72, top), (x + wide * 0.66, top), (x + wide, HORIZON + 0.05)],
            colour,
        )
        mesa.polygon(
            [
                (x - wide, HORIZON + 0.05),
                (x - wide * 0.72, top),
                (x - wide * 0.35, top),
                (x - wide * 0.45, HORIZON + 0.05),
            ],
            colour * 1.1,
        )
    behind.append(strip_of(mesa, 0.06))
    for number, (haze, depth, rise, base) in enumerate(
        [(0.42, 0.14, 0.08, 0.60), (0.24, 0.26, 0.11, 0.63), (0.1, 0.45, 0.12, 0.69)]
    ):
        behind.append(_dunes(stage, f"dune{number}", sand, (haze, depth, rise, base)))
    behind.append(marks(stage, palette.lit(sand) * 0.72, (16, 3.5), 0.42, 120))
    plants = Ink(stage, 0.45, _BOTTOM, palette.lit(rgb(70, 96, 60)))
    for x, r in stage.scattered("cactus", 0.95):
        cactus(plants, x, 0.84 + 0.03 * r, 0.13 + 0.09 * r, palette.lit(rgb(66, 104, 64)) * (0.8 + 0.2 * r))
        rock(plants, x + 0.28, 0.87, 0.03 + 0.02 * r, shadow_side(stage, sand * 0.6, 0.0), palette.lit(sand * 0.75))
    behind.append(strip_of(plants, 0.8))
    return Scenery(behind=tuple(behind))


def field(stage: Stage) -> Scenery:
    """Rolling hills with hedges and trees, meadow in front."""
    palette, green = stage.palette, snowed(stage, rgb(116, 160, 74))
    behind: list[Paintable] = [*sky(stage)]
    for number, (haze, depth, rise) in enumerate([(0.5, 0.1, 0.13), (0.26, 0.22, 0.09)]):
        crest = ridge(stage, f"hill{number}", HORIZON + 0.02, rise, waves=2 + number, roughness=0.0)
        ink = Ink(stage, 0.2, HIDDEN, palette.lit(green, haze))
        ink.below(crest, palette.lit(green * (0.9 - 0.08 * number), haze))
        leaf = snowed(stage, rgb(62, 110, 56), 0.4)
        for x, r in stage.scattered(f"trees{number}", 0.16 + 0.1 * number):
            tall = (0.03 + 0.03 * r) * (1 + number)
            round_tree(
                ink,
                x,
                at(stage, crest, x) + 0.006,
                tall,
                palette.lit(leaf, haze * 0.9) * 0.8,
                palette.lit(leaf, haze * 0.9),
            )
        behind.append(strip_of(ink, depth, mist=0.25, mist_from=0.45))
    behind += [
        plain(stage, green, haze=0.3),
        marks(stage, palette.lit(green) * 0.62, (14, 1.0), 0.42, 110),
    ]
    lone = Ink(stage, 0.2, _BOTTOM, palette.lit(green * 0.5))
    leaf = snowed(stage, rgb(58, 104, 52), 0.4)
    for x, r in stage.scattered("lone", 1.3):
        round_tree(lone, x, HORIZON + 0.13, 0.24 + 0.1 * r, palette.lit(leaf) * 0.75, palette.lit(leaf))
    behind.append(strip_of(lone, 0.55))
    return Scenery(behind=tuple(behind), before=(fringe(stage, green * 0.5),))


def ice(stage: Stage) -> Scenery:
    """White ranges, icebergs, a cracked plain."""
    palette, snow = stage.palette, rgb(214, 232, 244)
    behind: list[Paintable] = [*sky(stage)]
    behind.append(peaks(stage, "range", rgb(150, 178, 208), haze=0.5, depth=0.1, rise=0.26))
    bergs = Ink(stage, 0.2, _BOTTOM, palette.lit(snow, 0.2))
    for x, r in stage.scattered("berg", 0.5):
        tall, wide = 0.07 + 0.14 * r, 0.10 + 0.09 * r
        base, lit = HORIZON + 0.03, palette.lit(snow, 0.16)
        peak = (x + wide * (0.3 - 0.6 * r), base - tall)
        bergs.polygon(
            [
                (x - wide, base),
                (x - wide * 0.5, base - tall * 0.6),
                peak,
                (x + wide * 0.6, base - tall * 0.5),
                (x + wide, base),
            ],
            lit,
        )
        bergs.polygon(
            [peak, (x + wide * 0.6, base - tall * 0.5), (x + wide, base), (x + wide * 0.1, base)],
            mix(lit, palette.lit(rgb(90, 150, 200)), 0.5),
        )
    behind.append(strip_of(bergs, 0.2))
    behind += [
        plain(stage, snow, haze=0.4),
        marks(stage, palette.lit(rgb(120, 176, 214)), (7, 2.6), 0.3, 150),
    ]
    behind.append(boulders(stage, 0.85, 0.6, rgb(190, 214, 232)))
    return Scenery(behind=tuple(behind))


def _trunks(stage: Stage, name: str, depth: float, *, spacing: float, width: float, haze: float) -> Strip:
    palette = stage.palette
    bark = palette.lit(rgb(96, 74, 56), haze)
    ink = Ink(stage, -MARGIN, _BOTTOM, bark)
    for x, r in stage.scattered(name, spacing):
        trunk(ink, x, width * (0.7 + 0.7 * r), bark * 0.8, mix(bark, palette.glow, 0.18))
    return strip_of(ink, depth)


def _dunes(stage: Stage, name: str, sand: Colour, shape: tuple[float, float, float, float]) -> Strip:
    """A line of dunes, the lee side dark. `shape`: haze, depth, rise, base."""
    haze, depth, rise, base = shape
    crest = ridge(stage, name, base, rise, waves=2.4, roughness=0.0)
    ink = Ink(stage, 0.3, _BOTTOM, stage.palette.lit(sand, haze))
    ink.below(crest, stage.palette.lit(sand, haze))
    lee = np.clip(np.gradient(crest) * stage.per_height, 0, None)
    shade = crest + 0.008 + 0.16 * lee
    low = np.where(lee > 0.02, shade, crest)
    dark = shadow_side(stage, sand * 0.8, haze)
    points = [(x / stage.per_height, float(y)) for x, y in enumerate(crest)]
    back = [(x / stage.per_height, float(y)) for x, y in enumerate(low)]
    ink.polygon([*points, *back[::-1]], dark)
    return strip_of(ink, depth, grain=0.035)
