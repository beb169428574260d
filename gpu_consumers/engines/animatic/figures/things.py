"""Buildings, plants and small things, and the labelled marker for a subject that is not known."""

from math import cos, pi, sin

from gpu_consumers.engines.animatic.figures.pen import Figure, Figures, Pen, wave
from gpu_consumers.engines.animatic.palette import mix


def _lighthouse(pen: Pen, phase: float, action: str) -> None:  # noqa: ARG001 - it stands
    inks = pen.inks
    pen.shape([(-0.42, -0.06), (-0.34, 0.07), (-0.1, 0.12), (0.18, 0.10), (0.40, 0.0), (0.46, -0.06)], inks.dark)
    pen.shape([(-0.14, 0.06), (-0.085, 0.76), (0.085, 0.76), (0.14, 0.06)], inks.light)
    for level in (0, 2, 4):
        low, high = 0.06 + level * 0.14, 0.06 + (level + 1) * 0.14
        a, b = 0.14 - 0.055 * (low - 0.06) / 0.7, 0.14 - 0.055 * (high - 0.06) / 0.7
        pen.shape([(-a, low), (-b, high), (b, high), (a, low)], inks.main)
    pen.shape([(-0.12, 0.76), (-0.12, 0.79), (0.12, 0.79), (0.12, 0.76)], inks.dark)
    beam = abs(cos(2 * pi * phase / 2))
    pen.shape(
        [(-0.065, 0.79), (-0.065, 0.89), (0.065, 0.89), (0.065, 0.79)], mix(inks.dark, inks.glow, 0.35 + 0.65 * beam)
    )
    pen.shape([(-0.09, 0.89), (0.0, 0.99), (0.09, 0.89)], inks.main)


def _castle(pen: Pen, phase: float, action: str) -> None:
    del action
    inks = pen.inks
    pen.shape([(-0.75, 0.0), (-0.75, 0.46), (0.75, 0.46), (0.75, 0.0)], inks.main)
    for number in range(10):
        x = -0.75 + number * 0.155
        pen.shape([(x, 0.46), (x, 0.51), (x + 0.08, 0.51), (x + 0.08, 0.46)], inks.main)
    for x, tall, wide in ((-0.75, 0.72, 0.13), (0.75, 0.72, 0.13), (-0.22, 0.84, 0.12), (0.26, 0.78, 0.12)):
        pen.shape([(x - wide, 0.0), (x - wide, tall), (x + wide, tall), (x + wide, 0.0)], inks.main * 0.9)
        pen.shape([(x + wide * 0.3, 0.0), (x + wide * 0.3, tall), (x + wide, tall), (x + wide, 0.0)], inks.main * 0.76)
        pen.shape([(x - wide * 1.2, tall), (x, tall + 0.24), (x + wide * 1.2, tall)], inks.trim)
        pen.disc((x, tall - 0.12), 0.025, 0.04, inks.glow)
        flag = 0.03 * wave(phase)
        pen.shape([(x, tall + 0.24), (x + 0.12, tall + 0.27 + flag), (x, tall + 0.30)], inks.trim * 1.2)
    pen.disc((0.02, 0.16), 0.1, 0.12, inks.dark)
    pen.shape([(-0.08, 0.0), (-0.08, 0.16), (0.12, 0.16), (0.12, 0.0)], inks.dark)


def _house(pen: Pen, phase: float, action: str) -> None:
    del action
    inks = pen.inks
    for puff in range(4):
        age = (puff + phase) / 4
        pen.disc(
            (0.30 + 0.2 * age, 0.98 + 0.34 * age),
            0.04 + 0.06 * age,
            0.035 + 0.05 * age,
            mix(inks.light, inks.main, 0.3 + 0.4 * age),
        )
    pen.shape([(0.24, 0.6), (0.24, 0.97), (0.37, 0.97), (0.37, 0.6)], inks.dark)
    pen.shape([(-0.52, 0.0), (-0.52, 0.52), (0.52, 0.52), (0.52, 0.0)], inks.light)
    pen.shape([(-0.64, 0.50), (-0.32, 0.92), (0.34, 0.92), (0.64, 0.50)], inks.main)
    for x in (-0.33, 0.30):
        pen.shape([(x - 0.10, 0.20), (x - 0.10, 0.40), (x + 0.10, 0.40), (x + 0.10, 0.20)], inks.glow)
        pen.limb([(x, 0.20), (x, 0.40)], 0.014, inks.dark)
    pen.shape([(-0.09, 0.0), (-0.09, 0.34), (0.08, 0.34), (0.08, 0.0)], inks.dark)


def _windmill(pen: Pen, phase: float, action: str) -> None:
    del action
    inks = pen.inks
    pen.shape([(-0.17, 0.0), (-0.10, 0.66), (0.10, 0.66), (0.17, 0.0)], inks.light)
    pen.shape([(-0.12, 0.66), (0.0, 0.80), (0.12, 0.66)], inks.main)
    pen.shape([(-0.05, 0.0), (-0.05, 0.15), (0.05, 0.15), (0.05, 0.0)], inks.dark)
    for blade in range(4):
        angle = blade * pi / 2 + pi / 2 * phase
        along, across = (cos(angle), sin(angle)), (-sin(angle), cos(angle))
        corner = [(0.08, 0.0), (0.40, 0.0), (0.40, 0.09), (0.08, 0.09)]
        pen.shape([(a * along[0] + c * across[0], 0.64 + a * along[1] + c * across[1]) for a, c in corner], inks.trim)
        pen.limb([(0, 0.64), (0.42 * along[0], 0.64 + 0.42 * along[1])], 0.018, inks.dark)


def _tree(pen: Pen, phase: float, action: str) -> None:
    del action
    inks, sway = pen.inks, 0.014 * wave(phase)
    pen.shape([(-0.07, 0.0), (-0.035, 0.5), (0.035, 0.5), (0.085, 0.0)], inks.dark)
    pen.limb([(0.0, 0.40), (-0.18, 0.60)], 0.035, inks.dark)
    pen.limb([(0.0, 0.42), (0.20, 0.62)], 0.035, inks.dark)
    crown = [
        (-0.25, 0.60, 0.20),
        (0.26, 0.62, 0.19),
        (0.0, 0.58, 0.23),
        (-0.14, 0.80, 0.20),
        (0.15, 0.81, 0.19),
        (0.0, 0.88, 0.15),
    ]
    for x, y, r in crown:
        pen.disc((x + sway * y, y), r, r * 0.9, inks.main * 0.85)
    for x, y, r in crown:
        pen.disc((x + sway * y - 0.05, y + 0.05), r * 0.62, r * 0.55, mix(inks.main, inks.light, 0.18))


def _flower(pen: Pen, phase: float, action: str) -> None:
    open_ = 0.45 + 0.55 * phase if action == "rise" else 1.0
    inks, sway = pen.inks, 0.04 * wave(phase) if action != "rise" else 0.0
    head = (0.04 + sway, 0.74)
    pen.tube([(0, 0), (0.02 + sway * 0.3, 0.4), head], (0.05, 0.035), inks.dark)
    pen.disc((-0.14, 0.26), 0.14, 0.05, inks.dark)
    pen.disc((0.17, 0.36), 0.14, 0.05, inks.dark)
    for petal in range(8):
        angle = petal * pi / 4
        centre = (head[0] + cos(angle) * 0.16 * open_, head[1] + sin(angle) * 0.16 * open_)
        pen.disc(centre, 0.10 * open_, 0.10 * open_, inks.main if petal % 2 else inks.main * 0.86)
    pen.disc(head, 0.09, 0.09, inks.glow)


def _candle(pen: Pen, phase: float, action: str) -> None:
    del action
    inks, flicker = pen.inks, 0.03 * wave(phase) + 0.02 * wave(phase * 3 % 1)
    pen.disc((0, 0.03), 0.24, 0.06, inks.dark)
    pen.shape([(-0.10, 0.04), (-0.10, 0.56), (0.10, 0.56), (0.10, 0.04)], inks.light)
    pen.shape([(0.03, 0.04), (0.03, 0.56), (0.10, 0.56), (0.10, 0.04)], inks.light * 0.8)
    pen.limb([(0, 0.56), (0, 0.62)], 0.014, inks.dark)
    pen.shape([(-0.075, 0.68), (flicker, 0.98 + flicker), (0.075, 0.68), (0.0, 0.60)], inks.trim)
    pen.disc((0, 0.69), 0.075, 0.085, inks.trim)
    pen.disc((0, 0.69), 0.045, 0.07, inks.glow)


def _ball(pen: Pen, phase: float, action: str) -> None:
    inks = pen.inks
    lift = abs(wave(phase / 2)) * 0.9 if action in ("jump", "fall", "drive", "run") else 0.0
    centre = (0.0, 0.5 + lift)
    pen.disc(centre, 0.5, 0.5, inks.main)
    angle = -2 * pi * phase
    for part in range(3):
        turned = angle + part * 2 * pi / 3
        pen.disc((centre[0] + 0.28 * cos(turned), centre[1] + 0.28 * sin(turned)), 0.13, 0.13, inks.trim)
    pen.disc((-0.18, 0.68 + lift), 0.10, 0.08, inks.light)


def _kite(pen: Pen, phase: float, action: str) -> None:
    del action
    inks, sway = pen.inks, 0.06 * wave(phase)
    points = [(-0.02 + sway, 0.42 - t * 0.09) for t in range(1)]
    tail = [(0.05 * wave(phase, t / 5) * t / 3, 0.42 - 0.11 * t) for t in range(5)]
    pen.tube([*points, *tail], (0.02, 0.015), inks.dark)
    for x, y in tail[1:]:
        pen.shape([(x - 0.07, y + 0.03), (x + 0.07, y - 0.03), (x + 0.07, y + 0.03), (x - 0.07, y - 0.03)], inks.trim)
    pen.shape([(sway, 0.42), (-0.26 + sway, 0.74), (sway, 1.0), (0.26 + sway, 0.74)], inks.main)
    pen.shape([(sway, 0.42), (sway, 1.0), (0.26 + sway, 0.74)], inks.trim)


def _snowman(pen: Pen, phase: float, action: str) -> None:
    del phase, action
    inks = pen.inks
    for y, r in ((0.24, 0.25), (0.58, 0.19), (0.84, 0.14)):
        pen.disc((0, y), r, r, inks.light)
        pen.disc((0.05, y - 0.04), r * 0.82, r * 0.8, inks.light * 0.93)
    pen.shape([(0.08, 0.86), (0.30, 0.83), (0.08, 0.81)], inks.trim)
    for x in (0.0, 0.09):
        pen.disc((x, 0.90), 0.02, 0.02, inks.dark)
    pen.shape([(-0.15, 0.96), (-0.15, 0.99), (0.15, 0.99), (0.15, 0.96)], inks.dark)
    pen.shape([(-0.10, 0.98), (-0.10, 1.14), (0.10, 1.14), (0.10, 0.98)], inks.dark)
    for side in (-1, 1):
        pen.limb([(side * 0.16, 0.62), (side * 0.46, 0.80)], 0.025, inks.dark)
    pen.shape([(-0.16, 0.74), (0.16, 0.74), (0.17, 0.68), (-0.17, 0.68)], inks.main)


def _marker(pen: Pen, phase: float, action: str) -> None:
    """A stand-in: a pedestal with a turning diamond. Its label is written above it (`actors.py`)."""
    del action
    inks, wide = pen.inks, 0.10 + 0.16 * abs(cos(pi * phase))
    pen.disc((0, 0.04), 0.30, 0.07, inks.dark)
    pen.shape([(-0.20, 0.05), (-0.14, 0.34), (0.14, 0.34), (0.20, 0.05)], inks.dark * 1.3)
    pen.shape([(0, 0.42), (-wide, 0.70), (0, 0.98), (wide, 0.70)], inks.main)
    pen.shape([(0, 0.42), (0, 0.98), (wide, 0.70)], inks.main * 0.75)


THINGS: Figures = {
    "lighthouse": Figure(draw=_lighthouse, height=0.60, reach=(0.6, 0.6, 1.1, 0.15), colour="red"),
    "castle": Figure(draw=_castle, height=0.46, reach=(1.0, 1.0, 1.25, 0.06), colour="grey"),
    "house": Figure(draw=_house, height=0.34, reach=(0.75, 0.75, 1.45, 0.06), colour="red"),
    "windmill": Figure(draw=_windmill, height=0.54, reach=(0.55, 0.55, 1.15, 0.06), colour="brown"),
    "tree": Figure(draw=_tree, height=0.50, reach=(0.6, 0.6, 1.15, 0.06), colour="green"),
    "flower": Figure(draw=_flower, height=0.30, reach=(0.45, 0.45, 1.1, 0.06), colour="red"),
    "candle": Figure(draw=_candle, height=0.26, reach=(0.35, 0.35, 1.1, 0.08), colour="white"),
    "ball": Figure(draw=_ball, height=0.14, reach=(0.6, 0.6, 2.1, 0.08), colour="red"),
    "kite": Figure(draw=_kite, height=0.26, reach=(0.45, 0.45, 1.1, 0.2), colour="red", lift=0.34),
    "snowman": Figure(draw=_snowman, height=0.34, reach=(0.6, 0.6, 1.2, 0.06), colour="red"),
    "": Figure(draw=_marker, height=0.26, reach=(0.4, 0.4, 1.1, 0.12), colour="orange"),
}
