"""The engine options of the animatic engine: how it drifts and where it fails, for tests of everything behind it.

| option | value | effect |
|---|---|---|
| `drift_exposure` | -0.2 .. 0.2 | RGB is multiplied by 1 + value x level |
| `drift_color` | -0.2 .. 0.2 | red is multiplied by 1 + value x level, blue by 1 - value x level |
| `drift_shift_px` | `x,y`, each -4 .. 4 | the picture moves right and down by value x level pixels |
| `drift_offset_frames` | -4 .. 4 | segments of odd level show the picture of this many frames later |
| `fault` | see `Fault` | what goes wrong |
| `fault_segment` | 0 .. 100000 | in which segment (0) |
| `fault_attempts` | 1 .. 1000 | up to which attempt of that segment (1) |

The *level* of a segment counts from the first one after a cut or dissolve: 0, 1, 2, 1, 0, -1, -2, -1, and again. So the first
segment is right, every seam has a step to find, and a take of any length stays in range.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from schemas.errors import BadInputError

_LEVELS = (0, 1, 2, 1, 0, -1, -2, -1)
_NUMBER = re.compile(r"[+-]?\d{1,6}(\.\d{1,9})?")
_RANGES = {
    "drift_exposure": (-0.2, 0.2),
    "drift_color": (-0.2, 0.2),
    "drift_shift_px": (-4.0, 4.0),
    "drift_offset_frames": (-4, 4),
    "fault_segment": (0, 100_000),
    "fault_attempts": (1, 1000),
}


class Fault(StrEnum):
    """What can go wrong with a segment."""

    NONE = "none"
    NAN = "nan"
    """The latents are not numbers from the middle on."""
    FREEZE = "freeze"
    """Every frame is the first one."""
    BLACK = "black"
    STALL = "stall"
    """Denoising never goes on."""
    CRASH = "crash"
    """The process kills itself."""
    OOM = "oom"
    SHORT = "short"
    """The last frame is missing."""
    JUMP = "jump"
    """Another world is seen: nothing to align."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How a segment's frames differ from what they should be: offset in time, then shift, then gain per channel."""

    gain: tuple[float, float, float] = (1.0, 1.0, 1.0)
    shift_x_px: float = 0.0
    shift_y_px: float = 0.0
    offset_frames: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Parsed engine options."""

    drift_exposure: float = 0.0
    drift_color: float = 0.0
    drift_shift_px: tuple[float, float] = (0.0, 0.0)
    drift_offset_frames: int = 0
    fault: Fault = Fault.NONE
    fault_segment: int = 0
    fault_attempts: int = 1

    def drift(self, run_segment: int) -> Drift:
        """Of the `run_segment`-th segment since the last cut or dissolve, from 0."""
        level = _LEVELS[run_segment % len(_LEVELS)]
        exposure, warmth = 1 + self.drift_exposure * level, self.drift_color * level
        return Drift(
            gain=(exposure * (1 + warmth), exposure, exposure * (1 - warmth)),
            shift_x_px=self.drift_shift_px[0] * level,
            shift_y_px=self.drift_shift_px[1] * level,
            offset_frames=self.drift_offset_frames * (level % 2),
        )

    def fault_of(self, segment: int, attempt: int) -> Fault:
        """What goes wrong in this try of a segment."""
        return self.fault if segment == self.fault_segment and attempt <= self.fault_attempts else Fault.NONE


def parse_options(options: Mapping[str, str]) -> Options:
    """Raises: BadInputError naming the option and the rule it breaks."""
    known = {*_RANGES, "fault"}
    for name in options:
        if name not in known:
            raise BadInputError(
                field=f"engine_options.{name}",
                rule="unknown_option",
                message=f"the animatic engine knows {', '.join(sorted(known))}",
            )
    shift = [_number("drift_shift_px", part) for part in options.get("drift_shift_px", "0,0").split(",")]
    if len(shift) != 2:
        raise BadInputError(
            field="engine_options.drift_shift_px", rule="format", message="two numbers, as in 0.5,-0.25"
        )
    return Options(
        drift_exposure=_number("drift_exposure", options.get("drift_exposure", "0")),
        drift_color=_number("drift_color", options.get("drift_color", "0")),
        drift_shift_px=(shift[0], shift[1]),
        drift_offset_frames=_whole("drift_offset_frames", options.get("drift_offset_frames", "0")),
        fault=_fault(options.get("fault", "none")),
        fault_segment=_whole("fault_segment", options.get("fault_segment", "0")),
        fault_attempts=_whole("fault_attempts", options.get("fault_attempts", "1")),
    )


def _fault(text: str) -> Fault:
    try:
        return Fault(text)
    except ValueError as error:
        names = ", ".join(Fault)
        raise BadInputError(field="engine_options.fault", rule="choice", message=f"one of {names}") from error


def _number(name: str, text: str) -> float:
    low, high = _RANGES[name]
    if not _NUMBER.fullmatch(text.strip()):
        raise BadInputError(field=f"engine_options.{name}", rule="type", message=f"a number, not {text[:40]!r}")
    number = float(text.strip())
    if not low <= number <= high:
        raise BadInputError(field=f"engine_options.{name}", rule="range", message=f"between {low} and {high}")
    return number


def _whole(name: str, text: str) -> int:
    number = _number(name, text)
    if number != int(number):
        raise BadInputError(field=f"engine_options.{name}", rule="type", message=f"a whole number, not {text[:40]!r}")
    return int(number)
