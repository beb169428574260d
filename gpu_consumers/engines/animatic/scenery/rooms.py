"""A room, and the bare studio stage for a shot that names no place. Lengths in picture heights."""

import numpy as np
from PIL import Image

from gpu_consumers.engines.animatic.canvas import MARGIN, Ink, Stage
from gpu_consumers.engines.animatic.light import Wash
from gpu_consumers.engines.animatic.moving import Ground
from gpu_consumers.engines.animatic.paint import Paintable, filled_strip, gradient, strip_of
from gpu_consumers.engines.animatic.palette import Colour, mix, rgb
from gpu_consumers.engines.animatic.scenery.set import HORIZON, Scenery

_BOTTOM = 1 + MARGIN
_FLOOR = 0.70
_LAMP_COLOUR = rgb(244, 206, 140)


def interior(stage: Stage) -> Scenery:
    """A papered wall with windows, pictures, shelves and lamps; a plank floor."""
    palette = stage.palette
    paper, wood = rgb(196, 172, 140), rgb(128, 86, 56)
    inside = np.maximum(palette.tint, 0.34 if palette.lights_on else 0.5)
    wall = Ink(stage, -MARGIN, _FLOOR + 0.02, paper * inside)
    wall.box(0, -MARGIN, stage.period, _FLOOR, paper * inside)
    stripes = max(2, round(stage.period / 0.09) // 2 * 2)
    for number in range(0, stripes, 2):
        x = number * stage.period / stripes
        wall.box(x, -MARGIN, x + stage.period / stripes, 0.56, paper * inside * 0.95)
    wall.box(0, 0.55, stage.period, _FLOOR, wood * inside * 1.05)
    wall.box(0, 0.55, stage.period, 0.565, wood * inside * 1.3)
    wall.box(0, _FLOOR - 0.03, stage.period, _FLOOR + 0.02, wood * inside * 0.8)
    for number, (x, r) in enumerate(stage.scattered("fittings", 0.58)):
        (_window, _shelves, _picture)[number % 3](wall, stage, x, r, inside)
    behind: list[Paintable] = [strip_of(wall, 0.55, grain=0.03)]
    floor = wood * inside
    stops = [(_FLOOR, floor * 1.05), (1.0, floor * 0.72), (_BOTTOM, floor * 0.5)]
    behind.append(filled_strip(stage, gradient(stage, stops, _FLOOR, _BOTTOM), _FLOOR, 0.55))
    behind.append(Ground(horizon=HORIZON + 0.12, colour=floor * 0.5, texels=_planks(), stretch=(100, 100)))
    behind.append(_lamp_light(stage))
    table = Ink(stage, 0.5, _BOTTOM, wood * inside * 0.5)
    for x, r in stage.scattered("tables", 1.25):
        dark = wood * inside * 0.45
        table.box(x - 0.22, 0.94, x + 0.22, 0.965, dark * 1.4)
        for dx in (-0.19, 0.17):
            table.box(x + dx, 0.96, x + dx + 0.022, _BOTTOM, dark)
        table.polygon(
            [(x - 0.05, 0.94), (x - 0.03, 0.90), (x + 0.03, 0.90), (x + 0.05, 0.94)], rgb(170, 90, 70) * inside
        )
        table.disc(x, 0.86 - 0.02 * r, 0.055, 0.05, rgb(80, 130, 76) * inside)
    return Scenery(behind=tuple(behind), before=(strip_of(table, 1.4),))


def studio(stage: Stage) -> Scenery:
    """A plain backdrop and a grid floor: no place was named."""
    palette = stage.palette
    grey = rgb(150, 156, 168) * np.maximum(palette.tint, 0.3)
    stops = [(-MARGIN, grey * 0.7), (0.3, grey), (0.56, grey * 1.25), (0.66, grey * 0.95), (_BOTTOM, grey * 0.6)]
    grid = np.zeros((256, 256), np.uint8)
    grid[::32, :] = grid[1::32, :] = 150
    grid[:, ::32] = grid[:, 1::32] = 150
    floor = Ground(horizon=HORIZON, colour=grey * 0.5, texels=grid, stretch=(110, 110))
    board = Ink(stage, 0.0, HORIZON + 0.06, grey * 0.86)
    for x, r in stage.scattered("flats", 0.62):
        board.box(x - 0.12, 0.20 + 0.14 * r, x + 0.12, HORIZON + 0.05, grey * (0.80 + 0.1 * r))
        board.box(x - 0.12, 0.20 + 0.14 * r, x - 0.11, HORIZON + 0.05, grey * 1.1)
    behind = (
        filled_strip(stage, gradient(stage, stops, -MARGIN, _BOTTOM), -MARGIN),
        strip_of(board, 0.3),
        floor,
        _lamp_light(stage),
    )
    return Scenery(behind=behind)


def _window(ink: Ink, stage: Stage, x: float, r: float, inside: Colour) -> None:
    palette = stage.palette
    frame = rgb(226, 218, 204) * inside
    left, top, right, bottom = x - 0.13, 0.12, x + 0.13, 0.47
    ink.box(left - 0.02, top - 0.02, right + 0.02, bottom + 0.03, frame)
    for band in range(8):
        share = band / 7
        y0, y1 = top + (bottom - top) * band / 8, top + (bottom - top) * (band + 1) / 8
        ink.box(left, y0, right, y1, mix(palette.top, palette.horizon, share))
    if palette.orb and r > 0.3:
        ink.disc(x + 0.05, top + 0.09, 0.028, 0.028, palette.orb.colour)
    ink.polygon(
        [
            (left, bottom),
            (left + 0.08, bottom - 0.07),
            (left + 0.15, bottom - 0.02),
            (right, bottom - 0.09),
            (right, bottom),
        ],
        palette.lit(rgb(70, 90, 90), 0.3),
    )
    ink.box(x - 0.006, top, x + 0.006, bottom, frame)
    ink.box(left, (top + bottom) / 2 - 0.006, right, (top + bottom) / 2 + 0.006, frame)
    curtain = rgb(170, 70, 66) * inside
    for side in (-1, 1):
        ink.polygon(
            [(x + side * 0.17, 0.08), (x + side * 0.10, 0.08), (x + side * 0.135, 0.5), (x + side * 0.18, 0.52)],
            curtain,
        )
    ink.box(x - 0.19, 0.07, x + 0.19, 0.085, rgb(90, 60, 40) * inside)


def _shelves(ink: Ink, stage: Stage, x: float, r: float, inside: Colour) -> None:
    wood = rgb(112, 74, 48) * inside
    random = stage.random(f"shelf{r}")
    ink.box(x - 0.16, 0.10, x + 0.16, _FLOOR, wood * 0.6)
    for shelf in range(4):
        y = 0.24 + shelf * 0.145
        ink.box(x - 0.16, y, x + 0.16, y + 0.012, wood * 1.25)
        at = x - 0.15
        while at < x + 0.13:
            wide, tall = float(random.uniform(0.012, 0.026)), float(random.uniform(0.07, 0.115))
            hue = (rgb(160, 70, 60), rgb(70, 100, 130), rgb(190, 160, 90), rgb(80, 110, 80), rgb(120, 90, 120))[
                int(random.integers(5))
            ]
            ink.box(at, y - tall, at + wide, y, hue * inside)
            at += wide + 0.003
    for side in (-0.165, 0.15):
        ink.box(x + side, 0.08, x + side + 0.015, _FLOOR, wood * 1.1)


def _picture(ink: Ink, stage: Stage, x: float, r: float, inside: Colour) -> None:
    ink.box(x - 0.10, 0.19, x + 0.10, 0.35, rgb(150, 116, 60) * inside)
    ink.box(x - 0.088, 0.202, x + 0.088, 0.338, rgb(120, 150, 170) * inside)
    ink.polygon(
        [(x - 0.088, 0.338), (x - 0.02, 0.25 + 0.03 * r), (x + 0.05, 0.31), (x + 0.088, 0.28), (x + 0.088, 0.338)],
        rgb(70, 100, 80) * inside,
    )
    lit = stage.palette.lights_on > 0.1
    ink.box(x - 0.20, 0.60, x - 0.05, 0.615, rgb(120, 80, 50) * inside)
    ink.box(x - 0.135, 0.52, x - 0.115, 0.60, rgb(90, 70, 60) * inside)
    ink.polygon(
        [(x - 0.165, 0.525), (x - 0.148, 0.455), (x - 0.102, 0.455), (x - 0.085, 0.525)],
        _LAMP_COLOUR if lit else rgb(220, 200, 170) * inside,
    )


def _planks() -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    texels = np.zeros((256, 256), np.uint8)
    texels[::16, :] = 170
    for row in range(16):
        texels[row * 16 : row * 16 + 16, (row * 97) % 256] = 150
        texels[row * 16 : row * 16 + 16] |= np.uint8((row * 37) % 48)
    return texels


def _lamp_light(stage: Stage) -> Wash:
    """A pool of warm light; it is most of what there is by candle."""
    strength = 105 if stage.palette.lights_on > 0.1 else 30
    y, x = np.mgrid[0 : 1 : stage.height * 1j, -stage.aspect / 2 : stage.aspect / 2 : stage.width * 1j]
    mask = np.exp(-((x / 0.55) ** 2 + ((y - 0.52) / 0.42) ** 2)) * strength
    return Wash(colour=mix(_LAMP_COLOUR, stage.palette.glow, 0.5), mask=Image.fromarray(mask.astype(np.uint8)))
