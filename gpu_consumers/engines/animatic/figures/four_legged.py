"""Four-legged animals: one skeleton, several builds."""

from collections.abc import Callable
from dataclasses import dataclass
from math import pi, sin

from gpu_consumers.engines.animatic.figures.pen import Figure, Figures, Pen, turn, wave
from gpu_consumers.engines.animatic.palette import Colour


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


def _leg(pen: Pen, build: _Build, joint: tuple[float, float], swing: float, colour: Colour, down: float) -> None:
    length = build.leg + build.girth * 0.9 + down
    knee = turn(joint, length * 0.5, swing)
    foot = turn(knee, length * 0.5, swing - 0.9 * max(0.0, -swing) - 0.1 * (swing != 0))
    pen.tube([joint, knee, foot], (build.thick * 1.35, build.thick * 0.75), colour)
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
                    pen.limb(
                        [(top[0] - 0.10 + side, top[1] + level), (top[0] + 0.06 + side, top[1] + level + 0.10)],
                        0.022,
                        inks.dark,
                    )
        case "trunk":
            pen.disc((top[0] - 0.08, top[1]), 0.22, 0.26, inks.main * 0.8)
            points = [
                (top[0] + 0.12 + 0.10 * sin(t * 2.2), top[1] - 0.72 * t + 0.05 * nod) for t in (0, 0.25, 0.5, 0.75, 1.0)
            ]
            pen.tube(points, (0.14, 0.07), inks.main)
            pen.limb([(top[0] + 0.1, top[1] - 0.12), (top[0] + 0.34, top[1] - 0.2)], 0.05, inks.light)
        case _:
            for side in (-0.06, 0.03):
                point = (top[0] + side, top[1] + build.head * 1.9)
                pen.shape(
                    [(top[0] + side - 0.05, top[1] + 0.05), point, (top[0] + side + 0.06, top[1] + 0.04)], inks.dark
                )
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
                pen.disc(
                    (root[0] - 0.075 * step, root[1] + 0.02 * step + sway * step * 0.12),
                    0.075 + 0.012 * step,
                    0.065 + 0.01 * step,
                    inks.main if step < 5 else inks.light,
                )
        case "horse":
            pen.tube(
                [root, (root[0] - 0.14, root[1] - 0.10), (root[0] - 0.22, root[1] - 0.45 + sway)],
                (0.06, 0.10),
                inks.dark,
            )
        case "short":
            pen.disc((root[0] - 0.02, root[1]), 0.06, 0.05, inks.light)
        case _:
            pen.tube(
                [root, (root[0] - 0.2, root[1] + 0.10 + sway), (root[0] - 0.34, root[1] + 0.34 + sway)],
                (0.06, 0.04),
                inks.main,
            )


_LEGS = (1.35, 1.45, 1.75, 0.1)
FOUR_LEGGED: Figures = {
    "dog": Figure(
        draw=_four_legged(_Build(length=1.2, neck=0.24, muzzle=0.22)), height=0.20, reach=_LEGS, colour="brown"
    ),
    "fox": Figure(
        draw=_four_legged(_Build(length=1.35, leg=0.42, neck=0.2, muzzle=0.24, tail="bushy")),
        height=0.19,
        reach=_LEGS,
        colour="orange",
    ),
    "cat": Figure(
        draw=_four_legged(_Build(length=1.35, leg=0.42, neck=0.18, muzzle=0.08, head=0.16)),
        height=0.18,
        reach=_LEGS,
        colour="orange",
    ),
    "horse": Figure(
        draw=_four_legged(
            _Build(length=1.15, leg=0.62, neck=0.42, raised=0.95, muzzle=0.25, ears="mane", tail="horse")
        ),
        height=0.36,
        reach=_LEGS,
        colour="brown",
    ),
    "deer": Figure(
        draw=_four_legged(
            _Build(
                length=1.1,
                leg=0.62,
                girth=0.18,
                neck=0.40,
                raised=1.05,
                muzzle=0.17,
                ears="antlers",
                tail="short",
                thick=0.06,
            )
        ),
        height=0.30,
        reach=_LEGS,
        colour="brown",
    ),
    "bear": Figure(
        draw=_four_legged(
            _Build(
                length=1.25,
                leg=0.36,
                girth=0.34,
                neck=0.2,
                raised=0.3,
                head=0.19,
                muzzle=0.17,
                tail="short",
                thick=0.15,
            )
        ),
        height=0.34,
        reach=_LEGS,
        colour="brown",
    ),
    "elephant": Figure(
        draw=_four_legged(
            _Build(length=1.2, leg=0.44, girth=0.36, neck=0.26, raised=0.6, head=0.21, ears="trunk", thick=0.17)
        ),
        height=0.46,
        reach=_LEGS,
        colour="grey",
    ),
    "cow": Figure(
        draw=_four_legged(_Build(length=1.35, leg=0.44, girth=0.28, neck=0.22, raised=0.35, muzzle=0.2)),
        height=0.30,
        reach=_LEGS,
        colour="white",
    ),
}
