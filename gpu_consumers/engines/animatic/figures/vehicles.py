"""What drives and rolls."""

from math import cos, pi, sin

from gpu_consumers.engines.animatic.figures.pen import Figure, Figures, Pen, wave
from gpu_consumers.engines.animatic.palette import mix


def _wheel(pen: Pen, x: float, radius: float, phase: float, y: float | None = None) -> None:
    centre = (x, radius if y is None else y)
    pen.disc(centre, radius, radius, pen.inks.dark * 0.55)
    pen.disc(centre, radius * 0.6, radius * 0.6, pen.inks.light * 0.75)
    for spoke in range(3):
        angle = -2 * pi * phase * 3 + spoke * pi / 3
        dx, dy = cos(angle) * radius * 0.58, sin(angle) * radius * 0.58
        pen.limb([(centre[0] - dx, centre[1] - dy), (centre[0] + dx, centre[1] + dy)], radius * 0.16, pen.inks.dark)


def _car(pen: Pen, phase: float, action: str) -> None:
    inks, bob = pen.inks, 0.012 * wave(phase * 2 % 1) * (action not in ("stand", ""))
    y = 0.20 + bob
    pen.shape([(-0.85, y + 0.40), (-0.55, y + 0.76), (0.18, y + 0.78), (0.62, y + 0.42)], inks.main * 0.9)
    glass = mix(inks.glow, inks.dark, 0.55)
    pen.shape([(-0.70, y + 0.42), (-0.48, y + 0.70), (-0.16, y + 0.71), (-0.16, y + 0.42)], glass)
    pen.shape([(-0.09, y + 0.42), (-0.09, y + 0.71), (0.15, y + 0.71), (0.48, y + 0.42)], glass)
    pen.shape(
        [
            (-1.18, y + 0.02),
            (-1.20, y + 0.36),
            (-1.02, y + 0.44),
            (0.62, y + 0.44),
            (1.12, y + 0.32),
            (1.20, y + 0.12),
            (1.18, y + 0.02),
        ],
        inks.main,
    )
    pen.shape([(-1.18, y + 0.02), (-1.19, y + 0.14), (1.2, y + 0.14), (1.18, y + 0.02)], inks.main * 0.68)
    pen.limb([(-0.125, y + 0.12), (-0.125, y + 0.42)], 0.012, inks.dark)
    pen.disc((1.13, y + 0.24), 0.07, 0.06, inks.glow)
    pen.shape([(-1.2, y + 0.22), (-1.2, y + 0.34), (-1.1, y + 0.34), (-1.1, y + 0.22)], inks.trim)
    _wheel(pen, -0.72, 0.235, phase)
    _wheel(pen, 0.74, 0.235, phase)


def _truck(pen: Pen, phase: float, action: str) -> None:
    inks, bob = pen.inks, 0.01 * wave(phase * 2 % 1) * (action not in ("stand", ""))
    pen.shape([(-1.35, 0.2 + bob), (-1.35, 1.0 + bob), (0.45, 1.0 + bob), (0.45, 0.2 + bob)], inks.main)
    pen.shape([(-1.35, 0.44 + bob), (-1.35, 0.54 + bob), (0.45, 0.54 + bob), (0.45, 0.44 + bob)], inks.light)
    pen.shape(
        [(0.50, 0.2 + bob), (0.50, 0.88 + bob), (0.88, 0.86 + bob), (1.12, 0.52 + bob), (1.14, 0.2 + bob)],
        inks.main * 0.82,
    )
    pen.shape(
        [(0.64, 0.54 + bob), (0.64, 0.80 + bob), (0.86, 0.79 + bob), (1.02, 0.54 + bob)], mix(inks.glow, inks.dark, 0.5)
    )
    pen.disc((1.11, 0.32 + bob), 0.05, 0.05, inks.glow)
    for x in (-0.98, -0.6, 0.80):
        _wheel(pen, x, 0.2, phase)


def _rider(pen: Pen, phase: float, seat: tuple[float, float], bars: tuple[float, float], pedal: bool) -> None:
    inks = pen.inks
    angle = -2 * pi * phase
    foot = (0.0 + 0.09 * cos(angle), 0.24 + 0.09 * sin(angle)) if pedal else (seat[0] + 0.26, seat[1] - 0.26)
    knee = ((seat[0] + foot[0]) / 2 + 0.16, (seat[1] + foot[1]) / 2 + 0.04)
    pen.tube([seat, knee, foot], (0.10, 0.07), inks.dark)
    shoulder = (seat[0] + 0.20, seat[1] + 0.34)
    pen.tube([seat, shoulder], (0.15, 0.14), inks.main)
    pen.tube([shoulder, (shoulder[0] + 0.14, shoulder[1] - 0.16), bars], (0.07, 0.05), inks.main * 1.1)
    pen.disc((shoulder[0] + 0.07, shoulder[1] + 0.15), 0.095, 0.10, inks.skin)
    pen.shape(
        [
            (shoulder[0] - 0.04, shoulder[1] + 0.16),
            (shoulder[0] + 0.02, shoulder[1] + 0.27),
            (shoulder[0] + 0.16, shoulder[1] + 0.23),
            (shoulder[0] + 0.17, shoulder[1] + 0.17),
        ],
        inks.trim,
    )


def _bicycle(pen: Pen, phase: float, action: str) -> None:  # noqa: ARG001 - it rolls
    inks = pen.inks
    for x in (-0.40, 0.42):
        pen.disc((x, 0.25), 0.25, 0.25, inks.dark)
        pen.disc((x, 0.25), 0.215, 0.215, inks.light)
        for spoke in range(4):
            angle = -2 * pi * phase * 1.5 + spoke * pi / 4
            pen.limb(
                [(x - cos(angle) * 0.21, 0.25 - sin(angle) * 0.21), (x + cos(angle) * 0.21, 0.25 + sin(angle) * 0.21)],
                0.012,
                inks.dark,
            )
    for a, b in (
        ((-0.40, 0.25), (-0.14, 0.60)),
        ((-0.14, 0.60), (0.0, 0.24)),
        ((0.0, 0.24), (0.30, 0.60)),
        ((-0.14, 0.6), (0.30, 0.60)),
        ((0.42, 0.25), (0.28, 0.68)),
        ((-0.40, 0.25), (0.0, 0.24)),
    ):
        pen.limb([a, b], 0.032, inks.trim)
    _rider(pen, phase, (-0.15, 0.66), (0.28, 0.70), pedal=True)


def _motorcycle(pen: Pen, phase: float, action: str) -> None:  # noqa: ARG001 - it rolls
    inks = pen.inks
    for x in (-0.48, 0.52):
        _wheel(pen, x, 0.24, phase)
    pen.shape([(-0.50, 0.46), (-0.20, 0.56), (0.16, 0.66), (0.36, 0.56), (0.20, 0.30), (-0.25, 0.26)], inks.trim)
    pen.limb([(0.52, 0.24), (0.34, 0.66), (0.24, 0.72)], 0.05, inks.dark)
    pen.disc((0.46, 0.58), 0.07, 0.07, inks.glow)
    pen.limb([(-0.55, 0.22), (0.05, 0.24)], 0.06, inks.light)
    _rider(pen, phase, (-0.20, 0.60), (0.26, 0.74), pedal=False)


def _train(pen: Pen, phase: float, action: str) -> None:  # noqa: ARG001 - it rolls
    inks = pen.inks
    for number in range(3):
        left = -1.1 - 1.22 * (number + 1)
        pen.shape(
            [
                (left, 0.2),
                (left, 0.84),
                (left + 0.04, 0.9),
                (left + 1.08, 0.9),
                (left + 1.12, 0.84),
                (left + 1.12, 0.2),
            ],
            inks.main,
        )
        pen.shape([(left, 0.2), (left, 0.32), (left + 1.12, 0.32), (left + 1.12, 0.2)], inks.main * 0.7)
        for pane in range(4):
            x = left + 0.10 + pane * 0.245
            pen.shape([(x, 0.52), (x, 0.76), (x + 0.17, 0.76), (x + 0.17, 0.52)], inks.glow * 0.92)
        for x in (left + 0.22, left + 0.9):
            _wheel(pen, x, 0.13, phase)
        pen.limb([(left + 1.1, 0.26), (left + 1.24, 0.26)], 0.05, inks.dark)
    pen.shape([(-1.0, 0.24), (-1.0, 1.0), (-0.45, 1.0), (-0.45, 0.24)], inks.main)
    pen.shape([(-1.05, 0.98), (-1.02, 1.05), (-0.42, 1.05), (-0.40, 0.98)], inks.dark)
    pen.shape([(-0.86, 0.66), (-0.86, 0.88), (-0.60, 0.88), (-0.60, 0.66)], inks.glow * 0.9)
    pen.shape([(-0.5, 0.3), (-0.5, 0.74), (0.62, 0.74), (0.68, 0.52), (0.62, 0.3)], inks.main * 0.86)
    pen.disc((0.62, 0.52), 0.09, 0.22, inks.dark)
    pen.shape([(0.30, 0.72), (0.26, 1.04), (0.52, 1.04), (0.48, 0.72)], inks.dark)
    pen.disc((-0.08, 0.76), 0.11, 0.11, inks.trim)
    pen.shape([(0.60, 0.06), (0.60, 0.3), (0.95, 0.06)], inks.trim)
    pen.disc((0.66, 0.66), 0.06, 0.06, inks.glow)
    for x, radius in ((-0.72, 0.19), (-0.24, 0.19), (0.22, 0.15), (0.5, 0.12)):
        _wheel(pen, x, radius, phase)
    for puff in range(5):
        age = (puff + phase) / 5
        pen.disc(
            (0.38 - 1.5 * age, 1.14 + 0.32 * age),
            0.08 + 0.16 * age,
            0.07 + 0.12 * age,
            mix(inks.light, inks.dark, 0.1 + 0.35 * age),
        )


_WHEELS = (1.4, 1.4, 1.15, 0.08)
VEHICLES: Figures = {
    "car": Figure(draw=_car, height=0.24, reach=_WHEELS, colour="red"),
    "truck": Figure(draw=_truck, height=0.34, reach=(1.5, 1.4, 1.2, 0.08), colour="blue"),
    "bicycle": Figure(draw=_bicycle, height=0.36, reach=(0.75, 0.8, 1.35, 0.08), colour="blue"),
    "motorcycle": Figure(draw=_motorcycle, height=0.34, reach=(0.85, 0.9, 1.3, 0.08), colour="red"),
    "train": Figure(draw=_train, height=0.24, reach=(4.95, 1.1, 1.75, 0.08), colour="green"),
}
