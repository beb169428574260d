"""How camera and subject get from one frame to the next: velocities that ease towards what the shot asks for.

Causal: the next control depends on this one, the shot and the frame's noise only. So a continuous shot change eases the camera
from one move into the next, wherever the segments are cut.
"""

from dataclasses import dataclass, replace

from gpu_consumers.engines.animatic.control import Control
from gpu_consumers.engines.animatic.look import ROOTED, Look

_EASE_S = 0.35
"""Time constant in which a velocity follows what is asked."""
_SWAY_S = 0.45
_PAN = 0.22
_RANGES = {"pan_y": (-0.14, 0.14), "track_y": (-0.15, 0.15), "zoom": (0.0, 0.55), "dolly": (0.0, 0.42)}
"""From where to where a move goes in the time of its shot. Camera height counts downwards."""
_OVERSHOOT = 0.5
"""A further move of the same kind goes on by this part of the range, then rests."""
_STARTS = {"rise": -0.14, "fall": 0.36}
"""How much higher than usual a subject begins."""
_MOVE_SLOWEST_S = 12.0
"""A move takes the whole shot, but no longer than this at normal pace."""
_SPEEDS = {
    "walk": 0.20,
    "run": 0.52,
    "jump": 0.16,
    "fly": 0.42,
    "swim": 0.22,
    "drive": 0.70,
    "sail": 0.14,
    "float": 0.05,
}
_KIND_SPEEDS = {
    **dict.fromkeys(("car", "truck", "motorcycle"), 0.70),
    **dict.fromkeys(("train", "plane", "helicopter", "spaceship"), 0.60),
    **dict.fromkeys(("bird", "dragon", "horse"), 0.44),
    "bicycle": 0.40,
    "fish": 0.26,
    "whale": 0.20,
    "boat": 0.14,
    "butterfly": 0.12,
    "ship": 0.11,
    "balloon": 0.05,
    "jellyfish": 0.04,
    "kite": 0.03,
}
"""Of what moves in its own way whatever the verb is: a car that 'crosses' does not walk."""
_LOCOMOTION = ("walk", "run", "fly", "swim", "drive", "sail", "jump", "float")
KNOWN_ACTIONS = (*_SPEEDS, "dance", "fall", "rise", "spin", "gesture", "sit", "sleep", "stand", "burn")
KNOWN_MOVES = (
    *("pan left", "pan right", "tilt up", "tilt down", "dolly in", "dolly out", "zoom in", "zoom out", "tracking"),
    *("handheld", "crane up", "crane down", "static"),
)
_WRAPS = (
    *("car", "truck", "motorcycle", "bicycle", "train"),
    *("plane", "helicopter", "spaceship", "bird", "dragon", "kite"),
)
"""Leaves the picture and comes again; others turn round before they leave it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What a step needs to know of its shot."""

    look: Look
    shot_s: float
    aspect: float
    step_s: float


def opened(control: Control, pace: Pace) -> Control:
    """The control of a take's first frame: camera and subject where the move passes its middle half way, already moving."""
    look, aspect, shot_s = pace.look, pace.aspect, pace.shot_s
    pan = _PAN * look.pace * min(shot_s, 8.0) / 2
    travel = min(subject_speed(look) * shot_s, 1.3 * aspect)
    start = {slot: _RANGES[slot][0 if up else 1] for slot, up in _ranged(look).items()}
    control = replace(
        control,
        **start,
        pan_x=pan * (("pan left" in look.moves) - ("pan right" in look.moves)),
        subject_x=0.0 if "tracking" in look.moves else -travel / 2,
        subject_y=_STARTS.get(look.action, 0.0),
    )
    return replace(control, **_velocities(control, pace))


def subject_speed(look: Look) -> float:
    """Of the first subject along the ground, in picture heights per second."""
    kind = look.tokens[0].kind if look.tokens else ""
    if kind in ROOTED or not look.tokens:
        return 0.0
    speed = _SPEEDS.get(look.action, 0.0)
    if kind in _KIND_SPEEDS and (look.action in _LOCOMOTION or kind in ("fish", "whale", "bird", "jellyfish")):
        speed = _KIND_SPEEDS[kind]
    if "tracking" in look.moves and not speed:
        speed = _SPEEDS["walk"]
    return speed * look.pace


def advanced(control: Control, pace: Pace, walk: tuple[float, float, float]) -> Control:
    """The next frame's control. `walk`: unit normal noise for sway in x and y, and a number for the grain."""
    look, dt = pace.look, pace.step_s
    ease = min(1.0, dt / _EASE_S)
    wanted = _velocities(control, pace)
    v = {name: getattr(control, name) + (wanted[name] - getattr(control, name)) * ease for name in wanted}
    sway = 0.010 if "handheld" in look.moves else 0.0
    keep = max(0.0, 1 - dt / _SWAY_S)
    feed = sway * (1 - keep**2) ** 0.5
    moved = replace(
        control,
        time=control.time + 1,
        **v,
        pan_x=control.pan_x + v["pan_vx"] * dt,
        pan_y=control.pan_y + v["pan_vy"] * dt,
        track_x=control.track_x + v["track_vx"] * dt,
        track_y=control.track_y + v["track_vy"] * dt,
        zoom=control.zoom + v["zoom_v"] * dt,
        dolly=control.dolly + v["dolly_v"] * dt,
        sway_x=control.sway_x * keep + feed * walk[0],
        sway_y=control.sway_y * keep + feed * walk[1],
        subject_x=control.subject_x + v["subject_v"] * control.facing * dt,
        subject_y=control.subject_y + _climb(control, look) * dt,
        gait=control.gait + _cadence(look) * dt,
        grain=abs(walk[2]) % 1.0,
    )
    return _turned_round(moved, pace)


def _velocities(control: Control, pace: Pace) -> dict[str, float]:
    look = pace.look
    moves, speed = look.moves, subject_speed(look)
    tracking = "tracking" in moves
    seconds = min(pace.shot_s / min(1.0, look.pace), _MOVE_SLOWEST_S) / max(1.0, look.pace)
    ranged = {slot: _along(getattr(control, slot), _RANGES[slot], up, seconds) for slot, up in _ranged(look).items()}
    return {
        "pan_vx": _PAN * look.pace * (("pan right" in moves) - ("pan left" in moves)),
        "track_vx": (speed * control.facing + (control.subject_x - control.track_x) * 1.2) * tracking,
        **{_SPEED_SLOT[slot]: ranged.get(slot, 0.0) for slot in _RANGES},
        "subject_v": speed,
    }


_SPEED_SLOT = {"pan_y": "pan_vy", "track_y": "track_vy", "zoom": "zoom_v", "dolly": "dolly_v"}
_RANGED_MOVES = {
    "tilt up": ("pan_y", False),
    "tilt down": ("pan_y", True),
    "crane up": ("track_y", False),
    "crane down": ("track_y", True),
    "zoom in": ("zoom", True),
    "zoom out": ("zoom", False),
    "dolly in": ("dolly", True),
    "dolly out": ("dolly", False),
}


def _ranged(look: Look) -> dict[str, bool]:
    """Slots that the shot's moves take through their range, and whether upwards."""
    return dict(_RANGED_MOVES[move] for move in _RANGED_MOVES if move in look.moves)


def _along(at: float, span: tuple[float, float], up: bool, seconds: float) -> float:
    """The velocity that covers the range in the time, easing out where an overshoot ends."""
    low, high = span
    reach = (high - low) * _OVERSHOOT
    room = high + reach - at if up else at - low + reach
    return (1 if up else -1) * (high - low) / seconds * min(1.0, max(0.0, room / 0.04))


def _cadence(look: Look) -> float:
    """Cycles of movement per second."""
    rates = {"run": 1.55, "dance": 0.9, "jump": 0.8, "fly": 1.1, "swim": 0.7, "float": 0.25, "sleep": 0.2, "sit": 0.25}
    return rates.get(look.action, 0.9) * (look.pace if look.pace <= 1 else 1.35)


def _climb(control: Control, look: Look) -> float:
    """Upward speed of what rises or falls, easing out where it ends; a rocket does not end."""
    kind = look.tokens[0].kind if look.tokens else ""
    if kind in ROOTED or look.action not in ("rise", "fall"):
        return 0.0
    if look.action == "fall":
        return -0.10 * look.pace * _eased(control.subject_y + 0.3)
    return look.pace * (0.30 if kind == "rocket" else 0.10 * _eased(0.38 - control.subject_y))


def _eased(room: float) -> float:
    return min(1.0, max(0.0, room / 0.1))


def _turned_round(control: Control, pace: Pace) -> Control:
    """What reaches the edge of the picture turns round or, if it is of the kind that passes, comes again."""
    on_screen = control.subject_x - control.track_x - control.pan_x
    edge = pace.aspect / 2
    passes = bool(pace.look.tokens) and pace.look.tokens[0].kind in _WRAPS
    if passes and on_screen * control.facing > edge + 0.75:
        return replace(control, subject_x=control.subject_x - control.facing * (2 * edge + 1.4))
    if not passes and on_screen * control.facing > edge - 0.12 and "tracking" not in pace.look.moves:
        return replace(control, facing=-control.facing)
    return control
