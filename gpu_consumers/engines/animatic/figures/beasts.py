"""Birds, fish, and what else flies and floats."""

from math import cos, pi, sin

from gpu_consumers.engines.animatic.figures.pen import Figure, Figures, Pen, wave
from gpu_consumers.engines.animatic.palette import mix


def _bird(pen: Pen, phase: float, action: str) -> None:
    inks = pen.inks
    flap = wave(phase) if action not in ("stand", "sit", "sleep") else -0.5
    for depth, shade in ((-0.05, 0.7), (0.03, 1.0)):
        tip = (-0.10 + depth, 0.52 + 0.46 * flap)
        wrist = (0.02 + depth, 0.52 + 0.26 * flap + 0.06)
        pen.shape(
            [(0.17 + depth, 0.52), wrist, tip, (-0.18 + depth, 0.50 + 0.12 * flap), (-0.14 + depth, 0.46)],
            inks.main * shade,
        )
        if shade < 1:
            pen.shape([(-0.30, 0.47), (-0.58, 0.52), (-0.60, 0.43), (-0.30, 0.42)], inks.dark)
            pen.disc((0.0, 0.46), 0.33, 0.105, inks.main)
            pen.disc((0.32, 0.53), 0.105, 0.092, inks.main)
            pen.shape([(0.41, 0.55), (0.53, 0.51), (0.41, 0.49)], inks.glow)
            pen.disc((0.35, 0.555), 0.018, 0.018, inks.dark * 0.4)


def _dragon(pen: Pen, phase: float, action: str) -> None:
    inks = pen.inks
    spine = [(-1.15 + 0.16 * t, 0.52 + 0.07 * sin(t * 0.9 + 2 * pi * phase)) for t in range(12)]
    pen.tube(spine[::-1], (0.20, 0.03), inks.main)
    pen.shape([spine[0], (spine[0][0] - 0.14, spine[0][1] + 0.09), (spine[0][0] - 0.12, spine[0][1] - 0.09)], inks.trim)
    flap = wave(phase) if action != "sleep" else -0.6
    for dx, shade in ((-0.10, 0.62), (0.05, 0.9)):
        root, elbow = (0.22 + dx, 0.60), (0.30 + dx, 0.68 + 0.50 * flap)
        tips = [(-0.52 + dx, 0.74 + 0.62 * flap), (-0.62 + dx, 0.62 + 0.26 * flap), (-0.46 + dx, 0.52)]
        bays = [(-0.26 + dx, 0.66 + 0.36 * flap), (-0.28 + dx, 0.58 + 0.14 * flap)]
        pen.shape([root, elbow, tips[0], bays[0], tips[1], bays[1], tips[2], (-0.08 + dx, 0.54)], inks.trim * shade)
        for tip in tips:
            pen.limb([elbow, tip], 0.026, inks.main * shade)
        pen.limb([root, elbow], 0.05, inks.main * shade)
    pen.disc((0.25, 0.54), 0.32, 0.15, inks.main)
    neck = [(0.45, 0.56), (0.66, 0.68), (0.80, 0.82)]
    pen.tube(neck, (0.17, 0.11), inks.main)
    pen.shape([(0.74, 0.90), (0.92, 0.90), (1.10, 0.80), (1.08, 0.75), (0.80, 0.74)], inks.main)
    for x in (0.76, 0.84):
        pen.shape([(x, 0.88), (x - 0.12, 1.02), (x + 0.05, 0.90)], inks.light)
    pen.disc((0.91, 0.85), 0.022, 0.022, inks.glow)


def _fish(pen: Pen, phase: float, action: str) -> None:  # noqa: ARG001 - a fish swims
    inks, wag = pen.inks, 0.13 * wave(phase)
    pen.shape([(-0.42, 0.5), (-0.78, 0.76 + wag), (-0.68, 0.5 + wag), (-0.78, 0.26 + wag)], inks.trim)
    pen.shape([(-0.12, 0.72), (0.12, 0.92), (0.28, 0.70)], inks.trim)
    pen.disc((0.0, 0.5), 0.52, 0.25, inks.main)
    pen.disc((0.05, 0.42), 0.40, 0.13, mix(inks.main, inks.light, 0.6))
    for x in (-0.18, 0.02):
        pen.limb([(x, 0.68), (x - 0.03, 0.34)], 0.05, inks.trim)
    pen.shape([(0.02, 0.48), (-0.16, 0.34 + wag), (0.12, 0.40)], inks.trim)
    pen.disc((0.36, 0.56), 0.05, 0.05, inks.light)
    pen.disc((0.375, 0.56), 0.026, 0.026, inks.dark * 0.4)


def _whale(pen: Pen, phase: float, action: str) -> None:  # noqa: ARG001 - a whale swims
    inks, beat = pen.inks, 0.14 * wave(phase)
    back = [(1.0, 0.46), (0.86, 0.70), (0.45, 0.84), (-0.1, 0.80), (-0.62, 0.62), (-1.02, 0.55 + beat)]
    belly = [(-1.02, 0.47 + beat), (-0.6, 0.44), (-0.1, 0.28), (0.5, 0.20), (0.92, 0.30)]
    pen.shape([*back, *belly], inks.main)
    pen.disc((0.55, 0.5), 0.46, 0.32, inks.main)
    pen.shape([(1.0, 0.42), (0.92, 0.30), (0.5, 0.19), (-0.1, 0.27), (-0.2, 0.34), (0.4, 0.34)], inks.light)
    pen.shape(
        [(-0.98, 0.51 + beat), (-1.34, 0.74 + 1.8 * beat), (-1.22, 0.52 + 1.5 * beat), (-1.36, 0.34 + 1.8 * beat)],
        inks.main,
    )
    pen.shape([(0.38, 0.34), (0.05, 0.06 + beat), (0.18, 0.36)], inks.dark)
    pen.shape([(-0.35, 0.72), (-0.5, 0.86), (-0.52, 0.68)], inks.dark)
    pen.disc((0.80, 0.48), 0.026, 0.026, inks.dark * 0.4)


def _jellyfish(pen: Pen, phase: float, action: str) -> None:  # noqa: ARG001 - it drifts
    inks, pulse = pen.inks, 0.06 * wave(phase)
    for number in range(7):
        x = -0.24 + 0.08 * number
        points = [
            (x + 0.06 * sin(t * 5 + number + 2 * pi * phase), 0.62 - 0.62 * t) for t in (0, 0.2, 0.4, 0.6, 0.8, 1.0)
        ]
        pen.tube(points, (0.04, 0.015), inks.trim)
    pen.disc((0, 0.68), 0.34 - pulse, 0.26 + pulse, inks.main)
    pen.disc((-0.08, 0.76), 0.14, 0.10, mix(inks.main, inks.light, 0.6))
    pen.shape([(-0.36 + pulse, 0.66), (0.36 - pulse, 0.66), (0.28, 0.56), (-0.28, 0.56)], inks.trim)


def _butterfly(pen: Pen, phase: float, action: str) -> None:  # noqa: ARG001 - it flutters
    inks, open_ = pen.inks, 0.25 + 0.75 * abs(cos(2 * pi * phase))
    for side, colour in ((-1, inks.main * 0.8), (1, inks.main)):
        pen.disc((side * 0.28 * open_, 0.66), 0.27 * open_, 0.28, colour)
        pen.disc((side * 0.22 * open_, 0.32), 0.20 * open_, 0.19, mix(colour, inks.trim, 0.5))
        pen.disc((side * 0.30 * open_, 0.68), 0.10 * open_, 0.10, inks.light)
    pen.limb([(0, 0.22), (0, 0.78)], 0.06, inks.dark)
    for side in (-1, 1):
        pen.limb([(0, 0.78), (side * 0.12, 0.98)], 0.018, inks.dark)


BEASTS: Figures = {
    "bird": Figure(draw=_bird, height=0.20, reach=(0.7, 0.7, 1.15, 0.15), colour="white", lift=0.34),
    "dragon": Figure(draw=_dragon, height=0.44, reach=(1.4, 1.3, 1.4, 0.15), colour="green", lift=0.26),
    "fish": Figure(draw=_fish, height=0.17, reach=(0.9, 0.7, 1.1, 0.1), colour="orange"),
    "whale": Figure(draw=_whale, height=0.40, reach=(1.5, 1.2, 1.2, 0.15), colour="blue"),
    "jellyfish": Figure(draw=_jellyfish, height=0.30, reach=(0.5, 0.5, 1.1, 0.15), colour="pink"),
    "butterfly": Figure(draw=_butterfly, height=0.13, reach=(0.7, 0.7, 1.1, 0.1), colour="orange", lift=0.26),
}
