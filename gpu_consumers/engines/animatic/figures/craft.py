"""What sails and flies."""

from math import cos, pi

from gpu_consumers.engines.animatic.figures.pen import Figure, Figures, Pen, wave
from gpu_consumers.engines.animatic.palette import mix


def _boat(pen: Pen, phase: float, action: str) -> None:  # noqa: ARG001 - it rocks
    inks, tilt = pen.inks, 0.035 * wave(phase)
    mast_top = (0.02 + tilt * 3, 1.0)
    pen.limb([(0.0, 0.12), mast_top], 0.022, inks.dark)
    belly = 0.05 * wave(phase, 0.2)
    pen.shape([(0.04 + tilt * 3, 0.97), (0.34 + belly + tilt, 0.55), (0.48 + belly, 0.24), (0.04, 0.22)], inks.light)
    pen.shape(
        [(-0.03 + tilt * 3, 0.88), (-0.24 + belly, 0.5), (-0.36 + belly, 0.24), (-0.03, 0.22)],
        mix(inks.light, inks.main, 0.3),
    )
    pen.shape([(-0.50, 0.17 - tilt), (0.60, 0.20 + tilt), (0.40, -0.02), (-0.38, -0.02)], inks.main)
    pen.shape([(-0.50, 0.17 - tilt), (0.60, 0.20 + tilt), (0.57, 0.155 + tilt), (-0.48, 0.125 - tilt)], inks.trim)


def _ship(pen: Pen, phase: float, action: str) -> None:  # noqa: ARG001 - it rocks
    inks, tilt = pen.inks, 0.01 * wave(phase)
    for level, (left, right) in enumerate(((-0.8, 0.65), (-0.7, 0.50), (-0.5, 0.30))):
        y = 0.34 + 0.16 * level
        pen.shape(
            [(left, y - tilt), (left, y + 0.17 - tilt), (right, y + 0.17 + tilt), (right + 0.05, y + tilt)],
            inks.light * (1 - 0.04 * level),
        )
        count = int((right - left) / 0.12)
        for pane in range(count):
            pen.disc(
                (left + 0.08 + pane * 0.12, y + 0.09), 0.022, 0.022, inks.glow if (pane + level) % 3 else inks.dark
            )
    for x in (-0.35, 0.0):
        pen.shape([(x - 0.08, 0.82), (x - 0.12, 1.06), (x + 0.04, 1.06), (x + 0.07, 0.82)], inks.trim)
    pen.shape([(-1.12, 0.36 - tilt), (1.20, 0.42 + tilt), (0.95, -0.02), (-0.98, -0.02)], inks.main)
    pen.shape([(-1.10, 0.30 - tilt), (1.16, 0.35 + tilt), (1.14, 0.31 + tilt), (-1.09, 0.26 - tilt)], inks.light)


def _plane(pen: Pen, phase: float, action: str) -> None:  # noqa: ARG001 - it flies
    inks = pen.inks
    pen.shape([(-0.2, 0.56), (-0.62, 0.92), (-0.46, 0.92), (0.22, 0.56)], inks.main * 0.7)
    pen.shape([(-1.12, 0.58), (-1.36, 1.0), (-1.16, 1.0), (-0.82, 0.60)], inks.trim)
    pen.disc((0.86, 0.5), 0.34, 0.14, inks.main)
    pen.shape([(-1.26, 0.58), (-1.0, 0.38), (0.86, 0.36), (0.90, 0.64), (-0.6, 0.64)], inks.main)
    pen.shape([(-1.15, 0.52), (-1.05, 0.44), (1.15, 0.44), (1.18, 0.5)], inks.trim)
    for pane in range(9):
        pen.disc((-0.55 + pane * 0.15, 0.565), 0.028, 0.028, mix(inks.glow, inks.dark, 0.4))
    pen.shape([(0.98, 0.60), (1.12, 0.53), (0.94, 0.53), (0.90, 0.60)], inks.dark)
    pen.shape([(-0.10, 0.46), (-0.66, 0.06), (-0.42, 0.06), (0.42, 0.46)], inks.main * 0.86)
    pen.disc((0.02, 0.27), 0.16, 0.06, inks.dark)


def _helicopter(pen: Pen, phase: float, action: str) -> None:  # noqa: ARG001 - it flies
    inks, blade = pen.inks, abs(cos(2 * pi * phase * 5)) * 0.75 + 0.25
    pen.tube([(-0.2, 0.56), (-1.05, 0.66)], (0.14, 0.08), inks.main)
    pen.shape([(-1.0, 0.62), (-1.16, 0.92), (-0.98, 0.70)], inks.trim)
    pen.disc((0.1, 0.5), 0.46, 0.27, inks.main)
    pen.shape([(0.14, 0.72), (0.42, 0.66), (0.54, 0.5), (0.16, 0.48)], mix(inks.glow, inks.dark, 0.5))
    pen.limb([(0.05, 0.75), (0.05, 0.90)], 0.05, inks.dark)
    pen.limb([(0.05 - 0.95 * blade, 0.91), (0.05 + 0.95 * blade, 0.91)], 0.03, inks.dark)
    pen.limb([(-0.35, 0.12), (0.5, 0.12)], 0.035, inks.dark)
    for x in (-0.15, 0.28):
        pen.limb([(x, 0.28), (x, 0.12)], 0.03, inks.dark)


def _balloon(pen: Pen, phase: float, action: str) -> None:  # noqa: ARG001 - it hangs
    inks, sway = pen.inks, 0.012 * wave(phase)
    pen.shape([(-0.20, 0.40), (0.20, 0.40), (0.065, 0.17), (-0.065, 0.17)], inks.main * 0.8)
    pen.disc((sway, 0.67), 0.34, 0.345, inks.main)
    for x, wide in ((-0.19, 0.075), (0.0, 0.085), (0.19, 0.075)):
        pen.disc((x + sway, 0.67), wide, 0.335, inks.light if x == 0 else inks.trim)
    for x in (-0.06, 0.06):
        pen.limb([(x * 1.6, 0.30), (x, 0.11)], 0.008, inks.dark)
    pen.shape([(-0.075, 0.11), (0.075, 0.11), (0.06, 0.0), (-0.06, 0.0)], inks.dark)
    pen.disc((0, 0.18), 0.022, 0.035, inks.glow)


def _rocket(pen: Pen, phase: float, action: str) -> None:
    inks = pen.inks
    if action != "stand":
        flame = 0.24 + 0.05 * wave(phase * 3 % 1)
        pen.shape([(-0.08, 0.14), (0.08, 0.14), (0.0, 0.12 - flame * 1.2)], inks.trim)
        pen.shape([(-0.045, 0.14), (0.045, 0.14), (0.0, 0.12 - flame * 0.7)], inks.light)
    for side in (-1, 1):
        pen.shape([(side * 0.09, 0.36), (side * 0.23, 0.10), (side * 0.09, 0.16)], inks.trim)
    pen.shape(
        [(-0.11, 0.14), (-0.12, 0.62), (-0.07, 0.84), (0.0, 1.0), (0.07, 0.84), (0.12, 0.62), (0.11, 0.14)], inks.main
    )
    pen.shape([(-0.07, 0.84), (0.0, 1.0), (0.07, 0.84)], inks.trim)
    pen.disc((0, 0.64), 0.055, 0.055, mix(inks.glow, inks.dark, 0.4))
    pen.shape([(0.05, 0.14), (0.05, 0.80), (0.12, 0.62), (0.11, 0.14)], inks.main * 0.8)


def _spaceship(pen: Pen, phase: float, action: str) -> None:  # noqa: ARG001 - it flies
    inks = pen.inks
    pen.disc((0.0, 0.66), 0.30, 0.24, mix(inks.glow, inks.main, 0.35))
    pen.shape([(-0.95, 0.50), (-0.45, 0.68), (0.45, 0.68), (0.95, 0.50), (0.45, 0.34), (-0.45, 0.34)], inks.main)
    pen.shape([(-0.95, 0.50), (0.95, 0.50), (0.45, 0.34), (-0.45, 0.34)], inks.main * 0.7)
    for number in range(7):
        on = (number + int(phase * 7)) % 7 < 3
        pen.disc((-0.66 + number * 0.22, 0.50), 0.045, 0.035, inks.glow if on else inks.dark)
    pen.shape([(-0.18, 0.34), (0.18, 0.34), (0.10, 0.26), (-0.10, 0.26)], inks.trim)


CRAFT: Figures = {
    "boat": Figure(draw=_boat, height=0.36, reach=(0.7, 0.75, 1.1, 0.12), colour="brown"),
    "ship": Figure(draw=_ship, height=0.34, reach=(1.3, 1.35, 1.2, 0.12), colour="blue"),
    "plane": Figure(draw=_plane, height=0.26, reach=(1.5, 1.35, 1.15, 0.1), colour="white", lift=0.34),
    "helicopter": Figure(draw=_helicopter, height=0.26, reach=(1.3, 1.15, 1.1, 0.1), colour="green", lift=0.30),
    "balloon": Figure(draw=_balloon, height=0.44, reach=(0.5, 0.5, 1.15, 0.1), colour="red", lift=0.22),
    "rocket": Figure(draw=_rocket, height=0.46, reach=(0.4, 0.4, 1.1, 0.5), colour="white"),
    "spaceship": Figure(draw=_spaceship, height=0.28, reach=(1.1, 1.1, 1.0, 0.1), colour="grey", lift=0.12),
}
