"""Trees, bushes, grass and rocks, drawn on a strip. Lengths in picture heights; `base` is where a thing meets the ground."""

from math import cos, pi, sin

import numpy as np

from gpu_consumers.engines.animatic.canvas import Ink, Profile, Stage
from gpu_consumers.engines.animatic.palette import Colour


def at(stage: Stage, crest: Profile, x: float) -> float:
    """The height of a skyline above a place on the strip."""
    return float(crest[int(x * stage.per_height) % len(crest)])


def pine(ink: Ink, x: float, base: float, height: float, colour: Colour, light: Colour) -> None:
    """A conifer of stacked tiers, its left side lighter."""
    half = height * 0.24
    ink.box(x - height * 0.025, base - height * 0.2, x + height * 0.025, base, colour * 0.6)
    for tier in range(4):
        top = base - height * (1 - tier * 0.19)
        foot = base - height * (0.62 - tier * 0.17)
        wide = half * (0.42 + 0.2 * tier)
        ink.polygon([(x, top), (x + wide, foot), (x - wide, foot)], colour)
        ink.polygon([(x, top), (x - wide * 0.25, foot), (x - wide, foot)], light)


def round_tree(ink: Ink, x: float, base: float, height: float, colour: Colour, light: Colour) -> None:
    """A broad-leaved tree: trunk and a crown of discs."""
    ink.polygon(
        [
            (x - height * 0.04, base),
            (x - height * 0.02, base - height * 0.5),
            (x + height * 0.02, base - height * 0.5),
            (x + height * 0.045, base),
        ],
        colour * 0.55,
    )
    crown = [
        (-0.22, 0.56, 0.20),
        (0.22, 0.58, 0.19),
        (0.0, 0.52, 0.22),
        (-0.12, 0.76, 0.2),
        (0.13, 0.78, 0.18),
        (0.0, 0.86, 0.16),
    ]
    for dx, dy, r in crown:
        ink.disc(x + dx * height, base - dy * height, r * height, r * height * 0.9, colour)
    for dx, dy, r in crown:
        ink.disc(x + (dx - 0.05) * height, base - (dy + 0.05) * height, r * height * 0.62, r * height * 0.55, light)


def palm(ink: Ink, x: float, base: float, height: float, colour: Colour, light: Colour) -> None:
    """A leaning palm with seven fronds."""
    spine = [(x + 0.16 * height * t * t, base - height * t) for t in np.linspace(0, 1, 9).tolist()]
    ink.line(spine, height * 0.045, colour * 0.7)
    top_x, top_y = spine[-1]
    for angle in np.linspace(-0.35 * pi, 1.35 * pi, 7).tolist():
        reach = height * 0.42
        mid = (top_x + cos(angle) * reach * 0.55, top_y - sin(angle) * reach * 0.4 - reach * 0.12)
        tip = (top_x + cos(angle) * reach, top_y - sin(angle) * reach * 0.45 + reach * 0.22)
        under = (mid[0], mid[1] + reach * 0.11)
        ink.polygon([(top_x, top_y), mid, tip, under], light if sin(angle) > 0.4 else colour)


def trunk(ink: Ink, x: float, width: float, colour: Colour, light: Colour) -> None:
    """A tall trunk that leaves the picture, with roots and a few dead boughs."""
    top, bottom = ink.top, 1.02
    ink.polygon(
        [
            (x - width * 0.38, top),
            (x + width * 0.38, top),
            (x + width * 0.5, bottom - 0.15),
            (x + width * 0.95, bottom),
            (x - width * 0.95, bottom),
            (x - width * 0.5, bottom - 0.15),
        ],
        colour,
    )
    ink.polygon(
        [(x - width * 0.38, top), (x - width * 0.2, top), (x - width * 0.26, bottom), (x - width * 0.5, bottom - 0.15)],
        light,
    )
    for height, side in ((0.12, 1), (0.27, -1), (0.38, 1)):
        ink.line(
            [(x, height + 0.06), (x + side * width * 1.3, height), (x + side * width * 2.1, height - 0.07)],
            width * 0.16,
            colour,
        )


def grass(ink: Ink, stage: Stage, name: str, base: float, height: float, colour: Colour) -> None:
    """A fringe of blades."""
    for x, r in stage.scattered(name, height * 0.22):
        lean = (r - 0.5) * height * 0.9
        tall = height * (0.45 + 0.55 * ((r * 7.3) % 1))
        wide = height * 0.055
        ink.polygon(
            [(x - wide, base), (x + lean, base - tall), (x + wide, base)], colour * (0.85 + 0.3 * ((r * 3.1) % 1))
        )


def rock(ink: Ink, x: float, base: float, size: float, colour: Colour, light: Colour) -> None:
    """A boulder of two facets."""
    ink.polygon(
        [
            (x - size, base),
            (x - size * 0.75, base - size * 0.55),
            (x - size * 0.1, base - size * 0.85),
            (x + size * 0.7, base - size * 0.5),
            (x + size, base),
        ],
        colour,
    )
    ink.polygon(
        [
            (x - size, base),
            (x - size * 0.75, base - size * 0.55),
            (x - size * 0.1, base - size * 0.85),
            (x - size * 0.2, base),
        ],
        light,
    )


def cactus(ink: Ink, x: float, base: float, height: float, colour: Colour) -> None:
    """A saguaro with two arms."""
    wide = height * 0.15
    ink.line([(x, base), (x, base - height)], wide, colour)
    ink.disc(x, base - height, wide / 2, wide / 2, colour)
    for side, low, high in ((-1, 0.4, 0.78), (1, 0.52, 0.92)):
        elbow = x + side * height * 0.24
        ink.line(
            [(x, base - height * low), (elbow, base - height * low), (elbow, base - height * high)], wide * 0.75, colour
        )
        ink.disc(elbow, base - height * high, wide * 0.37, wide * 0.37, colour)
