"""A prompt's wishes in exact numbers: frame rate, size, and every shot placed on the timeline."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from schemas.records import Card, PromptSubmitted, Shot, Transition, VideoFormat
from streams.timeline import shot_starts
from streams.validation import MIN_S, check_prompt, check_seconds, refused

DEFAULT_S = 12.0
MIN_SHOT_FRAMES = 4
MIN_CARD_S, MAX_CARD_S = 0.5, 30.0
_NTSC = tuple(Fraction(n * 1000, 1001) for n in (24, 30, 48, 60, 120))
_NTSC_TOLERANCE = 0.005
"""23.98 is 24000/1001 as well; 24 is not."""
_MAX_DENOMINATOR = 1001


@dataclass(frozen=True, slots=True, kw_only=True)
class Storyboard:
    """A prompt that keeps every rule."""

    title: str
    format: VideoFormat
    shots: tuple[Shot, ...]
    transitions: tuple[Transition, ...]
    starts: tuple[int, ...]
    """First frame of every shot, and the end of the last one. A title card is in front of the first."""
    frames: int
    """Of the whole video."""


def storyboard(prompt: PromptSubmitted) -> Storyboard:
    """The prompt in exact numbers. Raises: BadInputError naming field and rule."""
    check_prompt(prompt)
    fps = exact_fps(prompt.fps)
    shots = prompt.shots or (Shot(prompt=prompt.text),)
    starts = shot_starts(_seconds(prompt, shots), fps)
    for index, (start, end) in enumerate(pairwise(starts)):
        if end - start < MIN_SHOT_FRAMES:
            field = f"shots[{index}].seconds" if prompt.shots else "duration_s"
            raise refused(field, "frames", f"{end - start} frames at {prompt.fps:g} fps, at least {MIN_SHOT_FRAMES}")
    title, end = (card_frames(name, getattr(prompt, name), fps) for name in ("title_card", "end_card"))
    return Storyboard(
        title=" ".join((prompt.text or shots[0].prompt).split())[:120],
        format=VideoFormat(width=prompt.width, height=prompt.height, fps_num=fps.numerator, fps_den=fps.denominator),
        shots=shots,
        transitions=tuple(Transition(shot.transition) for shot in shots),
        starts=tuple(title + start for start in starts),
        frames=title + starts[-1] + end,
    )


def card_frames(field: str, card: Card | None, fps: Fraction) -> int:
    """How many frames a card takes; 0 if there is none. Raises: BadInputError."""
    if card is None:
        return 0
    if not (math.isfinite(card.seconds) and MIN_CARD_S <= card.seconds <= MAX_CARD_S):
        raise refused(f"{field}.seconds", "range", f"{card.seconds:g} s is not from {MIN_CARD_S:g} to {MAX_CARD_S:g} s")
    return max(1, int(_decimal(card.seconds) * fps + Fraction(1, 2)))


def exact_fps(fps: float) -> Fraction:
    """23.976 as 24000/1001, 12.5 as 25/2. Raises: BadInputError if there is no such fraction."""
    for rate in _NTSC:
        if abs(fps - float(rate)) < _NTSC_TOLERANCE:
            return rate
    exact = Fraction(fps).limit_denominator(_MAX_DENOMINATOR)
    if not exact:
        raise refused("fps", "range", f"{fps:g} is too slow")
    return exact


def _seconds(prompt: PromptSubmitted, shots: Sequence[Shot]) -> list[Fraction]:
    """The length of every shot: its own, or an equal share of what the others leave of the duration."""
    given = [_decimal(shot.seconds) for shot in shots if shot.seconds is not None]
    open_shots = len(shots) - len(given)
    duration = _decimal(prompt.duration_s if prompt.duration_s is not None else DEFAULT_S)
    if not open_shots:
        if prompt.duration_s is not None and abs(sum(given) - duration) * _decimal(prompt.fps) > 1:
            total = float(sum(given))
            raise refused("duration_s", "sum", f"{prompt.duration_s:g} s, but the shots take {total:g} s")
        check_seconds("shots", float(sum(given)))
        return given
    share = (duration - sum(given)) / open_shots
    if share < _decimal(MIN_S):
        raise refused("duration_s", "sum", f"{float(duration):g} s leave {float(share):g} s for a shot without seconds")
    return [share if shot.seconds is None else _decimal(shot.seconds) for shot in shots]


def _decimal(number: float) -> Fraction:
    """What the producer wrote: 0.1 is a tenth, not its nearest binary fraction."""
    return Fraction(repr(number))
