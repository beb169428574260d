"""Sea, beach, lake and underwater. Lengths in picture heights."""

from dataclasses import replace

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from gpu_consumers.engines.animatic.canvas import MARGIN, Ink, Stage
from gpu_consumers.engines.animatic.light import Wash
from gpu_consumers.engines.animatic.moving import Clouds, Ground, Shine, ramp
from gpu_consumers.engines.animatic.paint import Paintable, Strip, faded, filled_strip, gradient, ridge, strip_of
from gpu_consumers.engines.animatic.palette import Colour, mix, rgb
from gpu_consumers.engines.animatic.scenery.growth import grass, palm, rock
from gpu_consumers.engines.animatic.scenery.ranges import peaks, tree_line
from gpu_consumers.engines.animatic.scenery.set import HORIZON, Scenery, shadow_side, sky
from gpu_consumers.engines.animatic.weather import specks

_BOTTOM = 1 + MARGIN
_WATER = rgb(46, 112, 150)


def sea(stage: Stage) -> Scenery:
    """Open water to the horizon, islands far off, a swell in front."""
    palette = stage.palette
    behind: list[Paintable] = [*sky(stage), _islands(stage), _surface(stage, _WATER), *_ripples(stage)]
    dark = palette.lit(_WATER * 0.62)
    high = 2.6 if "storm" in stage.backdrop.weather else 1.0
    behind.append(_swell(stage, "swell1", 0.70, 0.012 * high, mix(dark, palette.middle, 0.3), 0.55))
    front = _swell(stage, "swell2", 0.945, 0.024 * high, dark, 1.25)
    return Scenery(behind=tuple(behind), before=(front,), foot=0.80, grounded=False, water=True)


def beach(stage: Stage) -> Scenery:
    """A strip of sea, foam, sand with palms."""
    palette, sand = stage.palette, rgb(232, 206, 152)
    behind: list[Paintable] = [*sky(stage), _islands(stage), _surface(stage, rgb(52, 148, 168)), *_ripples(stage)]
    shore = ridge(stage, "shore", 0.735, 0.022, waves=3, roughness=0.1)
    ink = Ink(stage, 0.66, _BOTTOM, palette.lit(sand))
    ink.below(shore - 0.012, palette.lit(rgb(236, 240, 240)))
    ink.below(shore, palette.lit(sand * 0.84))
    ink.below(shore + 0.03, palette.lit(sand))
    behind.append(strip_of(ink, 0.8, grain=0.03))
    trees = Ink(stage, 0.0, _BOTTOM, palette.lit(rgb(54, 104, 62)))
    for x, r in stage.scattered("palms", 1.05):
        palm(trees, x, 0.80 + 0.05 * r, 0.42 + 0.14 * r, palette.lit(rgb(58, 112, 62)), palette.lit(rgb(96, 150, 78)))
        rock(
            trees,
            x + 0.35,
            0.83,
            0.04 + 0.03 * r,
            shadow_side(stage, rgb(120, 108, 98), 0),
            palette.lit(rgb(140, 128, 116)),
        )
    behind.append(strip_of(trees, 0.95))
    return Scenery(behind=tuple(behind))


def lake(stage: Stage) -> Scenery:
    """Mountains and woods with their mirror image in still water, reeds in front."""
    palette = stage.palette
    far = peaks(stage, "far", rgb(104, 114, 138), haze=0.5, depth=0.1, rise=0.34)
    wood = tree_line(stage, "wood", rgb(44, 84, 62), far=(0.2, 0.2), rise=0.07, height=0.12)
    behind: list[Paintable] = [
        *sky(stage),
        far,
        wood,
        _surface(stage, _WATER * 0.9),
        _mirrored(far),
        _mirrored(wood),
    ]
    behind += _ripples(stage, 0.3)
    front = Ink(stage, 0.7, _BOTTOM, palette.lit(rgb(60, 78, 44)))
    grass(front, stage, "reeds", 1.06, 0.24, palette.lit(rgb(58, 78, 42)) * 0.6)
    return Scenery(behind=tuple(behind), before=(strip_of(front, 1.5),), foot=0.80, grounded=False, water=True)


def underwater(stage: Stage) -> Scenery:
    """Blue depth with rays from above, kelp, corals, sand, bubbles."""
    p = stage.palette
    tint = np.maximum(p.tint, 0.42)
    top, mid, deep = rgb(120, 216, 226) * tint, rgb(34, 124, 168) * tint, rgb(12, 52, 98) * tint
    water = gradient(
        stage,
        [(-MARGIN, top), (0.1, mix(top, mid, 0.35)), (0.55, mid), (1.0, deep), (1 + MARGIN, deep)],
        -MARGIN,
        _BOTTOM,
    )
    behind: list[Paintable] = [filled_strip(stage, water, -MARGIN), _rays(stage, top)]
    behind.append(Clouds(colour=mix(top, rgb(230, 250, 250), 0.4), table=ramp(0.3, 1.6, 46), bottom=0.75))
    sand = rgb(196, 190, 150)
    for number, (base, depth, share) in enumerate([(0.80, 0.2, 0.72), (0.86, 0.45, 0.45), (0.90, 0.9, 0.2)]):
        ink = Ink(stage, 0.1, _BOTTOM, mix(sand * tint, mid, share))
        _reef(ink, stage, number, base, mid, share)
        ink.below(
            ridge(stage, f"bed{number}", base + 0.03, 0.06, waves=3, roughness=0.1), mix(sand * tint * 0.8, mid, share)
        )
        behind.append(strip_of(ink, depth, grain=0.03))
    bubbles = specks(stage, "bubbles", rgb(216, 244, 244), (26, 0.006, 130), (0.01, -0.12))
    return Scenery(behind=tuple(behind), before=(bubbles,), foot=0.60, grounded=False)


def _reef(ink: Ink, stage: Stage, number: int, base: float, mid: Colour, share: float) -> None:
    corals = (rgb(226, 104, 96), rgb(240, 166, 84), rgb(176, 96, 170), rgb(90, 170, 130))
    tint = np.maximum(stage.palette.tint, 0.42)
    for x, r in stage.scattered(f"reef{number}", 0.30 - 0.04 * number):
        size = (0.05 + 0.06 * r) * (0.7 + 0.5 * number)
        colour = mix(corals[int(r * 4)] * tint, mid, share)
        if r < 0.45:
            kelp = mix(rgb(60, 132, 84) * tint, mid, share)
            for blade in (-0.5, 0.1, 0.6):
                tall = size * (3.2 + blade)
                points = [
                    (x + blade * size + 0.02 * np.sin(t * 6 + r * 9), base + 0.06 - tall * t)
                    for t in np.linspace(0, 1, 10)
                ]
                ink.line([(float(a), float(b)) for a, b in points], size * 0.16, kelp)
        else:
            for dx, dy, s in ((0, 0.5, 0.6), (-0.6, 0.35, 0.45), (0.6, 0.3, 0.5), (0.25, 0.95, 0.35)):
                ink.disc(x + dx * size, base + 0.03 - dy * size, s * size, s * size, colour * (0.9 + 0.2 * s))


def _surface(stage: Stage, water: Colour) -> Strip:
    """The bare water: it takes the sky's colour far off and its own near by."""
    palette = stage.palette
    near = mix(palette.lit(water * 0.75), palette.top, 0.22)
    stops = [
        (HORIZON, mix(palette.horizon, palette.lit(water), 0.25)),
        (HORIZON + 0.1, mix(palette.middle, palette.lit(water), 0.55)),
        (1.0, near),
    ]
    return filled_strip(stage, gradient(stage, stops, HORIZON, _BOTTOM), HORIZON)


def _ripples(stage: Stage, strength: float = 1.0) -> tuple[Paintable, ...]:
    palette, orb = stage.palette, stage.palette.orb
    stormy = "storm" in stage.backdrop.weather
    dark = Ground(
        horizon=HORIZON,
        colour=mix(palette.lit(_WATER * 0.4), palette.top, 0.3),
        texels=None,
        table=ramp(0.36, 1.1, round((150 if stormy else 105) * strength)),
        stretch=(84, 190),
    )
    bright = Ground(
        horizon=HORIZON,
        colour=mix(orb.colour if orb else palette.horizon, palette.horizon, 0.2),
        texels=None,
        table=ramp(0.30 if orb else 0.12, 0.8, round((230 if orb else 130) * max(strength, 0.6))),
        stretch=(110, 240),
        shine=Shine(x=orb.x, spread=max(0.10, orb.radius * 1.9)) if orb else None,
    )
    return dark, bright


def _swell(stage: Stage, name: str, base: float, height: float, colour: Colour, depth: float) -> Strip:
    crest = base - height * stage.profile(name, 6, 0.05)
    ink = Ink(stage, base - 0.15, _BOTTOM, colour)
    ink.below(crest - 0.004, mix(colour, stage.palette.horizon, 0.5))
    ink.below(crest, colour)
    return faded(strip_of(ink, depth), 0.08) if depth < 1 else strip_of(ink, depth)


def _islands(stage: Stage) -> Strip:
    ink = Ink(stage, 0.3, HORIZON + 0.005, stage.palette.lit(rgb(90, 110, 120), 0.62))
    crest = ridge(stage, "islands", HORIZON + 0.045, 0.085, waves=3, roughness=0.12)
    ink.below(crest, stage.palette.lit(rgb(90, 110, 120), 0.62))
    return strip_of(ink, 0.04)


def _mirrored(strip: Strip) -> Strip:
    """Upside down below the horizon, fading into the water."""
    rows = round((HORIZON - strip.top) * strip.per_height)
    part = (0, 0, strip.colour.width, rows)
    flip = Image.Transpose.FLIP_TOP_BOTTOM
    colour = strip.colour.crop(part).transpose(flip)
    cover = strip.cover.crop(part).transpose(flip) if strip.cover else None
    return faded(replace(strip, colour=colour, cover=cover, top=HORIZON), HORIZON - strip.top, 0.62)


def _rays(stage: Stage, colour: Colour) -> Wash:
    """Shafts of light from above."""
    mask = Image.new("L", (stage.width, stage.height), 0)
    draw = ImageDraw.Draw(mask)
    for x, r in stage.scattered("rays", 0.3):
        left = (x % (stage.aspect * 1.3)) * stage.height
        wide, lean = (0.03 + 0.07 * r) * stage.height, 0.35 * stage.height
        draw.polygon(
            [
                (left, 0),
                (left + wide, 0),
                (left + wide * 2.2 - lean, stage.height * 0.85),
                (left - lean, stage.height * 0.85),
            ],
            fill=38 + round(30 * r),
        )
    soft = mask.filter(ImageFilter.GaussianBlur(stage.height / 60))
    fade = np.linspace(1, 0, stage.height, dtype=np.float32)[:, None] ** 0.8
    return Wash(
        colour=mix(colour, rgb(240, 250, 250), 0.4), mask=Image.fromarray((np.asarray(soft) * fade).astype(np.uint8))
    )
