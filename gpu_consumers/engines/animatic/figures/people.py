"""People, children, crowds, astronauts and robots: one skeleton, several bodies."""

from dataclasses import dataclass, replace

from gpu_consumers.engines.animatic.figures.pen import Figure, Figures, Pen, Point, turn, wave
from gpu_consumers.engines.animatic.palette import Colour, mix


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pose:
    """Joint angles: 0 hangs down, positive forward. Legs and arms: (upper, lower), far side first."""

    legs: tuple[tuple[float, float], tuple[float, float]]
    arms: tuple[tuple[float, float], tuple[float, float]]
    lean: float = 0.0
    rise: float = 0.0
    """The hip above its standing height."""


def _pose(phase: float, action: str) -> _Pose:
    a, b = wave(phase), wave(phase, 0.25)
    match action:
        case "dance":
            return _Pose(
                legs=((0.25 + 0.45 * b, -0.35 - 0.35 * a), (-0.30 * b - 0.1, -0.1)),
                arms=((2.3 + 0.55 * a, 0.35), (-2.1 - 0.55 * b, -0.3)),
                lean=0.14 * b,
                rise=0.05 * abs(a),
            )
        case "sit" | "sleep":
            return _Pose(legs=((1.45, -1.45), (1.55, -1.5)), arms=((0.5, 0.7), (0.35, 0.9)), lean=0.02 * a, rise=-0.25)
        case "gesture":
            return _Pose(
                legs=((0.08, 0.0), (-0.10, 0.0)), arms=((0.35, 0.5), (0.9 + 0.5 * a, 0.9 + 0.4 * b)), lean=0.03 * b
            )
        case "stand" | "spin" | "burn":
            return _Pose(
                legs=((0.07, 0.0), (-0.09, 0.0)),
                arms=((0.12 + 0.04 * a, 0.15), (-0.05 - 0.04 * a, 0.2)),
                lean=0.012 * b,
            )
        case _:
            return _stride(phase, action)


def _stride(phase: float, action: str) -> _Pose:
    """Poses that get somewhere; a walk if nothing else is meant."""
    a, b = wave(phase), wave(phase, 0.25)
    bend_far, bend_near = max(0.0, wave(phase, 0.22)), max(0.0, wave(phase, 0.72))
    match action:
        case "run" | "drive":
            return _Pose(
                legs=((0.85 * a, -1.35 * bend_far), (-0.85 * a, -1.35 * bend_near)),
                arms=((-0.95 * a, 1.5), (0.95 * a, 1.5)),
                lean=0.20,
                rise=0.035 * abs(b),
            )
        case "jump":
            up = max(0.0, a)
            return _Pose(
                legs=((0.25 + 0.8 * up, -0.3 - 1.1 * up), (-0.15 + 0.3 * up, -0.3 - 1.2 * up)),
                arms=((1.0 + 1.5 * up, 0.4), (0.6 + 1.6 * up, 0.4)),
                lean=0.1,
                rise=0.42 * up - 0.05 * (1 - up),
            )
        case "fly" | "swim" | "float":
            return _Pose(
                legs=((-0.2 + 0.3 * a, -0.35), (-0.2 - 0.3 * a, -0.35)),
                arms=((1.0 + 0.5 * b, 0.4), (0.6 - 0.5 * b, 0.5)),
                lean=0.12 if action == "float" else 0.45,
                rise=0.05 * b,
            )
        case "fall":
            return _Pose(
                legs=((0.7 * a, -0.6), (-0.7 * a, -0.6)), arms=((2.2 + 0.5 * b, 0.3), (-2.2 + 0.5 * a, -0.3)), lean=0.5
            )
        case _:
            return _Pose(
                legs=((0.46 * a, -0.62 * bend_far), (-0.46 * a, -0.62 * bend_near)),
                arms=((-0.42 * a, 0.25), (0.42 * a, 0.25)),
                lean=0.05,
                rise=0.014 * abs(b),
            )


def _body(pen: Pen, phase: float, action: str, *, bulk: float, head: float) -> tuple[Point, float]:
    """Limbs and coat; returns the middle of the head and the lean."""
    pose, inks = _pose(phase, action or "stand"), pen.inks
    hip = (0.0, 0.49 + pose.rise)
    chest = turn(hip, -0.30, -pose.lean)
    if action in ("sit", "sleep"):
        pen.shape([(-0.15, 0.0), (-0.13, 0.20), (0.12, 0.20), (0.14, 0.0)], inks.dark * 0.7)
    far, near = inks.dark * 0.82, inks.dark
    for (upper, lower), colour in zip(pose.legs, (far, near), strict=True):
        knee = turn(hip, 0.245, upper)
        ankle = turn(knee, 0.225, upper + lower)
        pen.tube([hip, knee, ankle], (0.085 * bulk, 0.062 * bulk), colour)
        pen.limb([ankle, (ankle[0] + 0.055, ankle[1] - 0.005)], 0.05 * bulk, inks.dark * 0.6)
        if colour is far:
            _arm(pen, chest, pose.arms[0], inks.main * 0.72, bulk)
    width = 0.085 * bulk
    hem = turn(hip, 0.12, -pose.lean * 0.5)
    pen.shape(
        [
            (chest[0] - width, chest[1] + 0.02),
            (chest[0] + width, chest[1] + 0.02),
            (hip[0] + width * 1.05, hip[1]),
            (hem[0] + width * 1.45, hem[1]),
            (hem[0] - width * 1.45, hem[1]),
            (hip[0] - width * 1.0, hip[1]),
        ],
        inks.main,
    )
    pen.disc((chest[0], chest[1] + 0.01), width, 0.045, inks.main)
    pen.shape(
        [
            (hip[0] - width, hip[1] + 0.02),
            (hip[0] + width * 1.05, hip[1] + 0.02),
            (hip[0] + width * 1.1, hip[1] - 0.01),
            (hip[0] - width * 1.05, hip[1] - 0.01),
        ],
        inks.main * 0.6,
    )
    _arm(pen, chest, pose.arms[1], mix(inks.main, inks.light, 0.14), bulk)
    return turn(chest, -(0.06 + head), -pose.lean * 0.6), pose.lean


def _arm(pen: Pen, chest: Point, angles: tuple[float, float], colour: Colour, bulk: float) -> None:
    upper, lower = angles
    elbow = turn(chest, 0.155, upper)
    hand = turn(elbow, 0.145, upper + lower)
    pen.tube([chest, elbow, hand], (0.064 * bulk, 0.05 * bulk), colour)
    pen.disc(hand, 0.028 * bulk, 0.028 * bulk, pen.inks.skin)


def _person(pen: Pen, phase: float, action: str) -> None:
    (x, y), _ = _body(pen, phase, action, bulk=1.0, head=0.075)
    pen.limb([(x - 0.005, y - 0.09), (x, y - 0.03)], 0.045, pen.inks.skin)
    pen.disc((x - 0.02, y + 0.006), 0.066, 0.072, pen.inks.dark * 0.7)
    pen.disc((x + 0.008, y - 0.006), 0.056, 0.066, pen.inks.skin)
    pen.shape(
        [
            (x - 0.075, y + 0.01),
            (x - 0.05, y + 0.07),
            (x + 0.02, y + 0.082),
            (x + 0.058, y + 0.04),
            (x - 0.01, y + 0.035),
            (x - 0.03, y - 0.04),
        ],
        pen.inks.dark * 0.7,
    )


def _child(pen: Pen, phase: float, action: str) -> None:
    (x, y), _ = _body(pen, phase, action, bulk=1.15, head=0.105)
    pen.disc((x, y), 0.105, 0.105, pen.inks.skin)
    pen.shape(
        [
            (x - 0.11, y),
            (x - 0.08, y + 0.09),
            (x + 0.03, y + 0.115),
            (x + 0.10, y + 0.05),
            (x, y + 0.05),
            (x - 0.05, y - 0.05),
        ],
        pen.inks.trim,
    )


def _crowd(pen: Pen, phase: float, action: str) -> None:
    for number in range(5):
        _person(pen.moved((number - 2) * 0.34, -0.02 * (number % 2)), (phase + number * 0.29) % 1, action)


def _astronaut(pen: Pen, phase: float, action: str) -> None:
    inks = pen.inks
    pen.shape([(-0.19, 0.5), (-0.19, 0.84), (-0.05, 0.86), (-0.05, 0.48)], inks.main * 0.66)
    suit = pen.inked(replace(inks, dark=inks.main * 0.88, skin=inks.trim))
    (x, y), _ = _body(suit, phase, action if action in ("walk", "run", "jump") else "float", bulk=1.6, head=0.085)
    pen.shape([(-0.10, 0.64), (-0.10, 0.74), (0.10, 0.74), (0.10, 0.64)], inks.dark)
    pen.disc((0.04, 0.69), 0.025, 0.025, inks.trim)
    pen.disc((x, y), 0.115, 0.115, inks.main)
    pen.disc((x + 0.03, y), 0.082, 0.078, inks.glow * 0.75)
    pen.disc((x + 0.055, y + 0.025), 0.022, 0.022, inks.light)


def _robot(pen: Pen, phase: float, action: str) -> None:
    inks = pen.inks
    (x, y), _ = _body(pen, phase, action, bulk=1.3, head=0.08)
    pen.shape([(-0.13, 0.50), (-0.14, 0.80), (0.14, 0.80), (0.13, 0.50)], inks.main)
    pen.shape([(-0.09, 0.62), (-0.09, 0.74), (0.09, 0.74), (0.09, 0.62)], inks.dark)
    pen.disc((0.0, 0.68), 0.035, 0.035, inks.glow)
    pen.shape(
        [(x - 0.10, y - 0.08), (x - 0.10, y + 0.08), (x + 0.10, y + 0.08), (x + 0.10, y - 0.08)], inks.main * 1.12
    )
    for dx in (-0.01, 0.055):
        pen.disc((x + dx, y + 0.015), 0.022, 0.022, inks.glow)
    pen.limb([(x, y + 0.08), (x, y + 0.14)], 0.014, inks.dark)
    pen.disc((x, y + 0.15), 0.02, 0.02, inks.glow)


_REACH = (0.62, 0.62, 1.45, 0.08)
PEOPLE: Figures = {
    "person": Figure(draw=_person, height=0.40, reach=_REACH, colour="red"),
    "child": Figure(draw=_child, height=0.29, reach=_REACH, colour="yellow"),
    "crowd": Figure(draw=_crowd, height=0.34, reach=(1.3, 1.3, 1.45, 0.08), colour="blue"),
    "astronaut": Figure(draw=_astronaut, height=0.40, reach=_REACH, colour="white"),
    "robot": Figure(draw=_robot, height=0.42, reach=_REACH, colour="grey"),
}
