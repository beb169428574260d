"""Animals: four-legged ones from one skeleton, birds, fish, and what flies or floats otherwise."""

from collections.abc import Callable
from dataclasses import dataclass
from math import cos, pi, sin

from gpu_consumers.engines.animatic.figures.pen import Figure, Figures, Pen, turn, wave
from gpu_consumers.engines.animatic.palette import mix


@dataclass(frozen=True, slots=True, kw_only=True)
class _Build:
    """Proportions of a four-legged animal, in its own height at the shoulder."""

    length: float = 1.25
    leg: float = 0.52
    girth: float = 0.21
    neck: float = 0.34
    raised: float = 0.75
    """Angle of the neck above the level."""
    head: float = 0.13
    muzzle: float = 0.20
    ears: str = "short"
    tail: str = "thin"
    thick: float = 0.085


def _gait(phase: float, action: str) -> tuple[float, float, float]:
    """(front swing, hind swing, height of the body): a walk in diagonal pairs, or a gallop."""
    match action:
        case "run" | "jump" | "drive" | "fly":
            return 0.75 * wave(phase), 0.75 * wave(phase, 0.35), 0.07 * wave(phase, 0.1)
        case "stand" | "sit" | "sleep" | "gesture" | "burn" | "":
            return 0.0, 0.0, 0.006 * wave(phase)
        case _:
            return 0.34 * wave(phase), 0.34 * wave(phase, 0.5), 0.012 * wave(phase * 2 % 1)


def _four_legged(build: _Build) -> Callable[[Pen, float, str], None]:
    def draw(pen: Pen, phase: float, action: str) -> None:
        inks, half = pen.inks, build.length / 2
        front, hind, rise = _gait(phase, action)
        down = -0.30 if action in ("sit", "sleep") else 0.0
        y = build.leg + build.girth * 0.9 + rise + down
        chest, rump = (half * 0.72, y), (-half * 0.72, y - (0.10 if action == "sit" else 0))
        _tail(pen, build, (rump[0] - build.girth * 0.8, rump[1] + 0.06), phase)
        for side, shade in ((-1, 0.68), (1, 0.86)):
            for joint, swing in ((chest, front), (rump, hind)):
                _leg(pen, build, joint, swing * side, inks.main * shade, down)
        pen.disc(rump, build.girth * 1.05, build.girth * 1.05, inks.main)
        pen.disc(chest, build.girth, build.girth * 1.1, inks.main)
        pen.limb([rump, chest], build.girth * 1.75, inks.main)
        _head(pen, build, (chest[0] + build.girth * 0.25, chest[1] + build.girth * 0.35), phase)

    return draw


def _leg(pen: Pen, build: _Build, joint: tuple[float, float], swing: float, colour: object, down: float) -> None:
    length = build.leg + build.girth * 0.9 + down
    knee = turn(joint, length * 0.5, swing)
    foot = turn(knee, length * 0.5, swing - 0.9 * max(0.0, -swing) - 0.1 * (swing != 0))
    pen.tube([joint, knee, foot], (build.thick * 1.35, build.thick * 0.75), colour)  # pyright: ignore[reportArgumentType]
    pen.limb([foot, (foot[0] + build.thick * 0.5, foot[1])], build.thick * 0.8, pen.inks.dark)


def _head(pen: Pen, build: _Build, root: tuple[float, float], phase: float) -> None:
    inks, nod = pen.inks, 0.05 * wave(phase)
    angle = pi / 2 + build.raised + nod
    top = turn(root, build.neck, angle)
    pen.tube([root, top], (build.girth * 1.15, build.head * 1.3), inks.main)
    nose = (top[0] + build.muzzle, top[1] - build.muzzle * 0.35)
    match build.ears:
        case "mane":
            for part in range(6):
                share = part / 5
                spot = (root[0] + (top[0] - root[0]) * share - 0.06, root[1] + (top[1] - root[1]) * share + 0.05)
                pen.disc(spot, 0.075, 0.075, inks.dark)
        case "antlers":
            for side in (-0.05, 0.06):
                tip = (top[0] - 0.10 + side, top[1] + 0.46)
                pen.limb([(top[0], top[1] + 0.08), (top[0] - 0.12 + side, top[1] + 0.25), tip], 0.028, inks.dark)
                for level in (0.2, 0.32):
                    pen.limb([(top[0] - 0.10 + side, top[1] + level), (top[0] + 0.06 + side, top[1] + level + 0.10)], 0.022, inks.dark)
        case "trunk":
            pen.disc((top[0] - 0.08, top[1]), 0.22, 0.26, inks.main * 0.8)
            points = [(top[0] + 0.12 + 0.10 * sin(t * 2.2), top[1] - 0.72 * t + 0.05 * nod) for t in (0, 0.25, 0.5, 0.75, 1.0)]
            pen.tube(points, (0.14, 0.07), inks.main)
            pen.limb([(top[0] + 0.1, top[1] - 0.12), (top[0] + 0.34, top[1] - 0.2)], 0.05, inks.light)
        case _:
            for side in (-0.06, 0.03):
                point = (top[0] + side, top[1] + build.head * 1.9)
                pen.shape([(top[0] + side - 0.05, top[1] + 0.05), point, (top[0] + side + 0.06, top[1] + 0.04)], inks.dark)
    pen.disc(top, build.head, build.head * 0.95, inks.main)
    if build.ears != "trunk":
        pen.tube([top, nose], (build.head * 1.5, build.head * 0.95), inks.main)
        pen.disc((nose[0] + build.head * 0.35, nose[1]), 0.03, 0.03, inks.dark * 0.6)
    pen.disc((top[0] + build.head * 0.45, top[1] + build.head * 0.25), 0.024, 0.024, inks.dark * 0.4)


def _tail(pen: Pen, build: _Build, root: tuple[float, float], phase: float) -> None:
    inks, sway = pen.inks, 0.12 * wave(phase)
    match build.tail:
        case "bushy":
            for step in range(7):
                pen.disc((root[0] - 0.075 * step, root[1] + 0.02 * step + sway * step * 0.12), 0.075 + 0.012 * step, 0.065 + 0.01 * step, inks.main if step < 5 else inks.light)
        case "horse":
            pen.tube([root, (root[0] - 0.14, root[1] - 0.10), (root[0] - 0.22, root[1] - 0.45 + sway)], (0.06, 0.10), inks.dark)
        case "short":
            pen.disc((root[0] - 0.02, root[1]), 0.06, 0.05, inks.light)
        case _:
            pen.tube([root, (root[0] - 0.2, root[1] + 0.10 + sway), (root[0] - 0.34, root[1] + 0.34 + sway)], (0.06, 0.04), inks.main)


def _bird(pen: Pen, phase: float, action: str) -> None:
    inks = pen.inks
    flap = wave(phase) if action not in ("stand", "sit", "sleep") else -0.5
    for depth, shade in ((-0.05, 0.7), (0.03, 1.0)):
        tip = (-0.10 + depth, 0.52 + 0.46 * flap)
        wrist = (0.02 + depth, 0.52 + 0.26 * flap + 0.06)
        pen.shape([(0.17 + depth, 0.52), wrist, tip, (-0.18 + depth, 0.50 + 0.12 * flap), (-0.14 + depth, 0.46)], inks.main * shade)
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
        root, tip = (0.10 + dx, 0.58), (-0.30 + dx, 0.66 + 0.62 * flap)
        elbow = (0.16 + dx, 0.66 + 0.44 * flap)
        pen.shape([root, elbow, tip, (-0.36 + dx, 0.55 + 0.22 * flap), (-0.16 + dx, 0.58 + 0.10 * flap), (-0.32 + dx, 0.50)], inks.trim * shade)
        pen.limb([root, elbow, tip], 0.035, inks.main * shade)
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
    pen.shape([(-0.98, 0.51 + beat), (-1.34, 0.74 + 1.8 * beat), (-1.22, 0.52 + 1.5 * beat), (-1.36, 0.34 + 1.8 * beat)], inks.main)
    pen.shape([(0.38, 0.34), (0.05, 0.06 + beat), (0.18, 0.36)], inks.dark)
    pen.shape([(-0.35, 0.72), (-0.5, 0.86), (-0.52, 0.68)], inks.dark)
    pen.disc((0.80, 0.48), 0.026, 0.026, inks.dark * 0.4)


def _jellyfish(pen: Pen, phase: float, action: str) -> None:  # noqa: ARG001 - it drifts
    inks, pulse = pen.inks, 0.06 * wave(phase)
    for number in range(7):
        x = -0.24 + 0.08 * number
        points = [(x + 0.06 * sin(t * 5 + number + 2 * pi * phase), 0.62 - 0.62 * t) for t in (0, 0.2, 0.4, 0.6, 0.8, 1.0)]
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


_LEGS = (1.35, 1.45, 1.75, 0.1)
BEASTS: Figures = {
    "dog": Figure(draw=_four_legged(_Build(length=1.2, neck=0.24, muzzle=0.22)), height=0.20, reach=_LEGS, colour="brown"),
    "fox": Figure(draw=_four_legged(_Build(length=1.35, leg=0.42, neck=0.2, muzzle=0.24, tail="bushy")), height=0.19, reach=_LEGS, colour="orange"),
    "cat": Figure(draw=_four_legged(_Build(length=1.35, leg=0.42, neck=0.18, muzzle=0.08, head=0.16)), height=0.18, reach=_LEGS, colour="orange"),
    "horse": Figure(
        draw=_four_legged(_Build(length=1.15, leg=0.62, neck=0.42, raised=0.95, muzzle=0.25, ears="mane", tail="horse")),
        height=0.36,
        reach=_LEGS,
        colour="brown",
    ),
    "deer": Figure(
        draw=_four_legged(_Build(length=1.1, leg=0.62, girth=0.18, neck=0.40, raised=1.05, muzzle=0.17, ears="antlers", tail="short", thick=0.06)),
        height=0.30,
        reach=_LEGS,
        colour="brown",
    ),
    "bear": Figure(draw=_four_legged(_Build(length=1.25, leg=0.36, girth=0.34, neck=0.2, raised=0.3, head=0.19, muzzle=0.17, tail="short", thick=0.15)), height=0.34, reach=_LEGS, colour="brown"),
    "elephant": Figure(
        draw=_four_legged(_Build(length=1.2, leg=0.44, girth=0.36, neck=0.26, raised=0.6, head=0.21, ears="trunk", thick=0.17)),
        height=0.46,
        reach=_LEGS,
        colour="grey",
    ),
    "cow": Figure(draw=_four_legged(_Build(length=1.35, leg=0.44, girth=0.28, neck=0.22, raised=0.35, muzzle=0.2)), height=0.30, reach=_LEGS, colour="white"),
    "bird": Figure(draw=_bird, height=0.20, reach=(0.7, 0.7, 1.15, 0.15), colour="white", lift=0.34),
    "dragon": Figure(draw=_dragon, height=0.44, reach=(1.4, 1.3, 1.4, 0.15), colour="green", lift=0.26),
    "fish": Figure(draw=_fish, height=0.17, reach=(0.9, 0.7, 1.1, 0.1), colour="orange"),
    "whale": Figure(draw=_whale, height=0.40, reach=(1.5, 1.2, 1.2, 0.15), colour="blue"),
    "jellyfish": Figure(draw=_jellyfish, height=0.30, reach=(0.5, 0.5, 1.1, 0.15), colour="pink"),
    "butterfly": Figure(draw=_butterfly, height=0.13, reach=(0.7, 0.7, 1.1, 0.1), colour="orange", lift=0.26),
}
