"""City and village. Lengths in picture heights."""

from gpu_consumers.engines.animatic.canvas import MARGIN, Ink, Stage
from gpu_consumers.engines.animatic.moving import Ground, ground_texels
from gpu_consumers.engines.animatic.paint import Paintable, Strip, ridge, strip_of
from gpu_consumers.engines.animatic.palette import Colour, mix, rgb
from gpu_consumers.engines.animatic.scenery.growth import at, round_tree
from gpu_consumers.engines.animatic.scenery.ranges import fringe
from gpu_consumers.engines.animatic.scenery.set import HORIZON, Scenery, marks, plain, sky

_BOTTOM = 1 + MARGIN
_NEON = (rgb(240, 60, 170), rgb(60, 226, 236), rgb(244, 190, 60), rgb(140, 90, 244))
_KERB = 0.70
_ALLEY = 0.46
"""Below it the street fronts cover what is behind."""
_HIDDEN = _KERB + 0.2
"""Below it the street covers what is behind."""


def city(stage: Stage) -> Scenery:
    """Two skylines, a row of street fronts with windows and signs, pavement, a street that mirrors them when it is wet."""
    palette = stage.palette
    behind: list[Paintable] = [*sky(stage)]
    behind.append(_skyline(stage, "far", haze=0.55, depth=0.10, tall=(0.22, 0.30)))
    behind.append(_skyline(stage, "mid", haze=0.28, depth=0.22, tall=(0.16, 0.36)))
    behind.append(_street_fronts(stage))
    wet = bool(stage.backdrop.weather & {"rain", "storm"}) or "neon" in stage.backdrop.ambience
    street = Ink(stage, _KERB, _BOTTOM, palette.lit(rgb(92, 92, 102)))
    street.box(0, _KERB, stage.period, 0.752, palette.lit(rgb(140, 138, 140)))
    street.box(0, 0.752, stage.period, _BOTTOM, palette.lit(rgb(78, 80, 92)))
    line = palette.lit(rgb(226, 220, 200))
    dashes = max(1, round(stage.period / 0.5))
    for number in range(dashes):
        x = number * stage.period / dashes
        street.box(x, 0.892, x + 0.2, 0.902, line)
        street.box(x, 0.758, x + 0.006, 0.764, line)
    if wet:
        _mirror_lights(stage, street)
    behind.append(strip_of(street, 1.0, grain=0.03))
    grit = ground_texels(stage, "grit", (26, 2.0), 0.4, 70)
    behind.append(Ground(horizon=HORIZON + 0.14, colour=palette.top * 0.3, texels=grit, stretch=(90, 90)))
    return Scenery(behind=tuple(behind), before=(_lamps(stage),))


def village(stage: Stage) -> Scenery:
    """Hills, a row of gabled houses with a church, a green in front."""
    palette, green = stage.palette, rgb(112, 148, 80)
    if "snow" in stage.backdrop.weather:
        green = rgb(226, 232, 240)
    behind: list[Paintable] = [*sky(stage)]
    hills = Ink(stage, 0.2, _BOTTOM, palette.lit(green, 0.5))
    hills.below(ridge(stage, "hills", HORIZON + 0.02, 0.16, waves=2, roughness=0.05), palette.lit(green * 0.9, 0.5))
    behind.append(strip_of(hills, 0.1, mist=0.3))
    crest = ridge(stage, "lane", HORIZON + 0.07, 0.05, waves=2, roughness=0.0)
    row = Ink(stage, 0.1, _BOTTOM, palette.lit(green, 0.12))
    places = stage.scattered("houses", 0.24)
    for number, (x, r) in enumerate(places):
        base = at(stage, crest, x) + 0.02
        if number == len(places) // 2:
            _church(row, stage, x, base)
        else:
            _house(row, stage, x, base, 0.085 + 0.05 * r, r)
        round_tree(
            row,
            x + 0.125,
            base,
            0.10 + 0.05 * r,
            palette.lit(rgb(58, 98, 56), 0.1) * 0.8,
            palette.lit(rgb(70, 118, 62), 0.1),
        )
    row.below(crest + 0.02, palette.lit(green, 0.12))
    behind.append(strip_of(row, 0.4, grain=0.03))
    behind += [
        plain(stage, green, HORIZON + 0.10, haze=0.12),
        marks(stage, palette.lit(green) * 0.62, (14, 1.0), 0.4, 90),
    ]
    return Scenery(behind=tuple(behind), before=(fringe(stage, green * 0.5),))


def _skyline(stage: Stage, name: str, *, haze: float, depth: float, tall: tuple[float, float]) -> Strip:
    palette, random = stage.palette, stage.random(name)
    ink = Ink(stage, -MARGIN, _ALLEY + 0.1, palette.lit(rgb(86, 92, 116), haze))
    x = 0.0
    while x < stage.period - 0.05:
        wide = float(random.uniform(0.06, 0.15))
        height = float(random.uniform(tall[0] * 0.6, tall[0] + tall[1] * random.random() ** 2))
        base = HORIZON + 0.06
        wall = palette.lit(mix(rgb(88, 96, 122), rgb(126, 116, 120), float(random.random())), haze)
        _tower(ink, stage, (x, base - height, x + wide, _ALLEY + 0.1), wall, haze, int(random.integers(1 << 30)))
        if random.random() < 0.3:
            ink.line([(x + wide / 2, base - height), (x + wide / 2, base - height - 0.06)], 0.004, wall)
        x += wide * float(random.uniform(0.85, 1.1))
    return strip_of(ink, depth, mist=0.5, mist_from=HORIZON - 0.1)


def _tower(
    ink: Ink, stage: Stage, box: tuple[float, float, float, float], wall: Colour, haze: float, seed: int
) -> None:
    """A building with a grid of windows, some of them lit."""
    palette = stage.palette
    left, top, right, bottom = box
    ink.box(left, top, right, bottom, wall)
    ink.box(right - (right - left) * 0.22, top, right, bottom, wall * 0.82)
    random = stage.random(f"tower{seed}")
    pane, gap = 0.011, 0.021
    lit = mix(palette.window, palette.horizon, haze * 0.8)
    dark = mix(wall * 0.74, palette.top, 0.2)
    for row in range(int((min(bottom, _KERB) - top) / gap)):
        for column in range(int((right - left - 0.012) / gap)):
            x, y = left + 0.008 + column * gap, top + 0.014 + row * gap
            on = random.random() < palette.lights_on
            ink.box(x, y, x + pane, y + pane * 1.15, lit * (0.75 + 0.25 * random.random()) if on else dark)


def _street_fronts(stage: Stage) -> Strip:
    palette, random = stage.palette, stage.random("fronts")
    ink = Ink(stage, -MARGIN, _HIDDEN, palette.lit(rgb(110, 96, 92)))
    neon = "neon" in stage.backdrop.ambience
    count = max(3, round(stage.period / 0.42))
    for number in range(count):
        left = number * stage.period / count
        right = left + stage.period / count
        top = 0.08 + 0.30 * float(random.random())
        stone = (rgb(142, 108, 92), rgb(116, 116, 128), rgb(150, 136, 116), rgb(96, 84, 92))[int(random.integers(4))]
        wall = palette.lit(stone, 0.06)
        ink.box(left, top, right - 0.012, _HIDDEN, wall)
        ink.box(right - 0.012, _ALLEY, right, _HIDDEN, wall * 0.4)
        ink.box(left, top, right - 0.012, top + 0.018, wall * 1.14)
        _windows(ink, stage, (left, top + 0.05, right - 0.012, _KERB - 0.14), wall, int(random.integers(1 << 30)))
        glow = _NEON[int(random.integers(4))] if neon else palette.window
        shop = glow * 0.9 if palette.lights_on > 0.1 else palette.lit(rgb(120, 140, 150))
        ink.box(left + 0.03, _KERB - 0.105, right - 0.045, _KERB - 0.012, shop * 0.85)
        ink.box(
            left + 0.02,
            _KERB - 0.125,
            right - 0.035,
            _KERB - 0.098,
            glow if neon else palette.lit(stone * (1.4, 0.7, 0.6)),
        )
        ink.box(right - 0.10, _KERB - 0.09, right - 0.065, _KERB, wall * 0.45)
        if neon and random.random() < 0.75:
            sign = _NEON[int(random.integers(4))]
            y = top + 0.06 + 0.12 * float(random.random())
            ink.box(right - 0.085, y, right - 0.045, y + 0.17, palette.top * 0.5)
            for mark in range(4):
                ink.box(right - 0.077, y + 0.012 + mark * 0.038, right - 0.053, y + 0.036 + mark * 0.038, sign)
    return strip_of(ink, 0.62, grain=0.03)


def _windows(ink: Ink, stage: Stage, box: tuple[float, float, float, float], wall: Colour, seed: int) -> None:
    palette, random = stage.palette, stage.random(f"windows{seed}")
    left, top, right, bottom = box
    columns, rows = max(1, int((right - left) / 0.085)), max(1, int((bottom - top) / 0.105))
    for row in range(rows):
        for column in range(columns):
            x = left + (column + 0.5) * (right - left) / columns
            y = top + row * 0.105
            on = random.random() < palette.lights_on
            glass = palette.window * (0.7 + 0.3 * random.random()) if on else mix(palette.middle, wall, 0.35) * 0.8
            ink.box(x - 0.024, y - 0.004, x + 0.024, y + 0.068, wall * 1.18)
            ink.box(x - 0.020, y, x + 0.020, y + 0.062, glass)
            ink.box(x - 0.0015, y, x + 0.0015, y + 0.062, wall * 0.9)


def _mirror_lights(stage: Stage, street: Ink) -> None:
    """Long smears of light on a wet street."""
    neon = "neon" in stage.backdrop.ambience
    for x, r in stage.scattered("mirror", 0.12):
        glow = _NEON[int(r * 4)] if neon else mix(stage.palette.window, stage.palette.horizon, 0.4)
        asphalt = stage.palette.lit(rgb(78, 80, 92))
        for part in range(5):
            wide = 0.016 * (1 - part * 0.15)
            y = 0.77 + part * 0.05
            street.box(x - wide, y, x + wide, y + 0.034, mix(asphalt, glow, 0.42 - 0.07 * part))


def _lamps(stage: Stage) -> Strip:
    palette = stage.palette
    post = palette.lit(rgb(48, 48, 56)) * 0.8
    ink = Ink(stage, 0.0, _BOTTOM, post)
    for x, _ in stage.scattered("lamps", 1.5):
        ink.line([(x, _BOTTOM), (x, 0.17)], 0.020, post)
        ink.line([(x, 0.18), (x + 0.13, 0.14)], 0.014, post)
        if palette.lights_on > 0.1:
            ink.disc(x + 0.14, 0.155, 0.045, 0.032, mix(palette.window, palette.top, 0.45))
        ink.disc(
            x + 0.14,
            0.152,
            0.026,
            0.016,
            palette.window if palette.lights_on > 0.1 else palette.lit(rgb(210, 210, 200)),
        )
    return strip_of(ink, 1.35)


def _house(ink: Ink, stage: Stage, x: float, base: float, size: float, r: float) -> None:
    palette = stage.palette
    wall = palette.lit((rgb(226, 214, 190), rgb(204, 170, 140), rgb(190, 196, 200))[int(r * 3)], 0.1)
    roof = palette.lit(rgb(236, 240, 246) if "snow" in stage.backdrop.weather else rgb(164, 84, 62), 0.1)
    ink.box(x - size, base - size * 0.95, x + size, base + 0.01, wall)
    ink.polygon(
        [
            (x - size * 1.15, base - size * 0.95),
            (x - size * 0.6, base - size * 1.65),
            (x + size * 0.6, base - size * 1.65),
            (x + size * 1.15, base - size * 0.95),
        ],
        roof,
    )
    ink.box(x + size * 0.45, base - size * 1.9, x + size * 0.65, base - size * 1.5, wall * 0.7)
    glass = palette.window if r < palette.lights_on * 2 else mix(wall, palette.top, 0.6)
    for dx in (-0.6, 0.45):
        ink.box(x + (dx - 0.16) * size, base - size * 0.72, x + (dx + 0.16) * size, base - size * 0.36, glass)
    ink.box(x - size * 0.2, base - size * 0.55, x + size * 0.06, base + 0.01, wall * 0.5)


def _church(ink: Ink, stage: Stage, x: float, base: float) -> None:
    palette = stage.palette
    wall, roof = palette.lit(rgb(222, 216, 204), 0.1), palette.lit(rgb(88, 92, 108), 0.1)
    ink.box(x - 0.05, base - 0.13, x + 0.14, base + 0.01, wall)
    ink.polygon([(x - 0.06, base - 0.13), (x + 0.045, base - 0.20), (x + 0.15, base - 0.13)], roof)
    ink.box(x - 0.11, base - 0.22, x - 0.035, base + 0.01, wall * 0.93)
    ink.polygon([(x - 0.12, base - 0.22), (x - 0.0725, base - 0.37), (x - 0.025, base - 0.22)], roof)
    ink.box(x - 0.085, base - 0.185, x - 0.06, base - 0.14, palette.window if palette.lights_on > 0.1 else wall * 0.5)
