"""Faults that only a long take shows. Its reference is lossless, so the detectors look at the frames themselves, as they do on the line."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.random import Generator

from benchmarks.detectors.case import Case, Result
from benchmarks.detectors.sources import HEIGHT, WIDTH, clip, grained, limited, other_shot, take
from qc_consumers.check import Bench
from qc_consumers.detectors import Reel
from qc_consumers.detectors.flow import reduced
from qc_consumers.detectors.impressions import Impressions, correlation
from qc_consumers.profile import load_profiles
from qc_consumers.takes import Seen, take_evidence
from tests.qc.clips import SIZE, Frames

TAKE_GATES = frozenset({"motion_floor", "colour_shift", "drift", "collapse", "subject_drift"})
_PIECES, _PIECE = 10, 12
_FRAMES = _PIECES * _PIECE
_SEGMENTS = 3
_FIXED = 0.95
"""Correlation after half a second: faster cameras show another picture, of which colours say nothing."""
_FPS = Fraction(SIZE.fps_num, SIZE.fps_den)


def checked(frames: Frames, frame: int = -1, allowed: frozenset[str] = frozenset()) -> Result:
    """What the gates of takes say of ten pieces of half a second each."""
    profile = load_profiles()[-1]
    evidence = take_evidence(list(_seen(frames)), float(_FPS), profile)
    return Result(findings=list(profile.judged(evidence)), frame=frame, allowed=allowed, looked=TAKE_GATES)


def _seen(frames: Frames) -> Iterator[Seen]:
    for first in range(0, len(frames), _PIECE):
        own, reel = frames[first : first + _PIECE], Reel()
        watcher = Impressions(start_frame=first, skipped=0, frames=len(own), per_chunk=_PIECE)
        for frame in own:
            chroma = frame[HEIGHT:].reshape(2, HEIGHT // 2, WIDTH // 2)[:, :, ::2]
            watcher.process_frame(reel.next(np.ascontiguousarray(frame[:HEIGHT:2, ::2]), chroma))
        yield Seen(begins_take=first == 0, impressions=watcher.post_process())


def _take(rng: Generator) -> Frames:
    return take(rng, _SEGMENTS).frames[:_FRAMES]


def _resting(rng: Generator) -> Frames:
    """A fixed camera: what moves, moves to and fro."""
    while True:
        frames = clip(rng, 24).frames
        halves = [tuple(reduced(frame[:HEIGHT]).ravel().tolist()) for frame in frames[::12]]
        if correlation(*halves) > _FIXED:
            return np.concatenate([frames, frames[::-1]])[np.arange(_FRAMES) % 48]


def motion_floor(rng: Generator) -> Frames:
    """Two and a half to four seconds of a still, alive only by grain."""
    frames, count = _take(rng).copy(), int(rng.integers(60, 97))
    first = int(rng.integers(6, _FRAMES - count - 6))
    frames[first : first + count] = grained(
        np.repeat(frames[first : first + 1], count, axis=0), float(rng.uniform(0.5, 2.0)), rng
    )
    return frames


def colour_shift(rng: Generator) -> Frames:
    """From a seam on, the same picture has other colours: U and V by 9 to 16 levels each way, at mid grey."""
    frames, first = _resting(rng).astype(np.float32), _PIECE * int(rng.integers(2, 9))
    light = (np.mean(frames[:, :HEIGHT]) - 16) / 100
    shift = rng.choice([-1, 1], 2) * rng.uniform(9, 16, 2) * max(light, 0.4)
    frames[first:, HEIGHT:] += np.repeat(shift, HEIGHT // 4)[None, :, None]
    return limited(frames)


def drift(rng: Generator) -> Frames:
    """Over ten pieces colours run away by 12 per cent of brightness, or contrast doubles, or sharpness halves."""
    frames, kind = _resting(rng).astype(np.float32), int(rng.integers(3))
    time = np.linspace(0, 1, _FRAMES)[:, None, None]
    luma, chroma = frames[:, :HEIGHT], frames[:, HEIGHT:]
    if kind == 0:
        chroma += time * 0.16 * max(float(luma.mean()) - 16, 30) * float(rng.choice([-1, 1]))
    elif kind == 1:
        middle = luma.mean(axis=(1, 2), keepdims=True)
        luma[:] = middle + (luma - middle) * (1 - 0.5 * time)
    else:
        luma[:] = (1 - time) * luma + time * _blurred(luma)
    return limited(frames)


def _blurred(luma: np.ndarray) -> np.ndarray:
    out = luma
    for axis in (1, 2):
        out = sum(np.roll(out, shift, axis=axis) for shift in range(-3, 4)) / 7
    return out


def collapse(rng: Generator) -> Frames:
    """The picture snaps back to the take's first second and goes on from there."""
    found = clip(rng, 24)
    other = np.concatenate([other_shot(found.name, rng, 24).frames] * 2)
    blend = np.clip(np.arange(24) / 24, 0, 1)[:, None, None]
    away = limited((1 - blend) * found.frames[::-1] + blend * other[:24])
    first = _PIECE * int(rng.integers(7, 9))
    shown = np.concatenate([found.frames, found.frames[::-1], away, other])[:first]
    back = np.concatenate([found.frames] * 3)[: _FRAMES - first]
    return np.concatenate([shown, back])


def subject_drift(rng: Generator) -> Frames:
    """Over ten pieces one shot becomes another, without a cut."""
    found = clip(rng, 24)
    one, other = (
        np.concatenate([f.frames, f.frames[::-1]])[np.arange(_FRAMES) % 48]
        for f in (found, other_shot(found.name, rng, 24))
    )
    weight = np.clip((np.arange(_FRAMES) - 24) / (_FRAMES - 48), 0, 1)[:, None, None]
    return limited((1 - weight) * one + weight * other)


def moving(rng: Generator) -> tuple[Frames, frozenset[str]]:
    """A camera that travels, as the built-in engine films: what it ends with is not what it began with."""
    return _take(rng), frozenset({"subject_drift"})


def resting(rng: Generator) -> tuple[Frames, frozenset[str]]:
    """A fixed camera, with grain."""
    return grained(_resting(rng), float(rng.uniform(0, 2)), rng), frozenset()


def fading(rng: Generator) -> tuple[Frames, frozenset[str]]:
    """Light that comes and goes over five seconds, colours with it."""
    frames = _resting(rng).astype(np.float32)
    gain = (0.65 + 0.3 * np.sin(np.linspace(0, 6, _FRAMES)))[:, None, None]
    frames[:, :HEIGHT] = (frames[:, :HEIGHT] - 16) * gain + 16
    frames[:, HEIGHT:] = (frames[:, HEIGHT:] - 128) * gain + 128
    return limited(frames), frozenset()


def cases() -> list[Case]:
    """All of them."""

    def plant(fault: Callable[[Generator], Frames], rng: Generator, _: Bench) -> Result:
        return checked(fault(rng))

    def leave(make: Callable[[Generator], tuple[Frames, frozenset[str]]], rng: Generator, _: Bench) -> Result:
        frames, allowed = make(rng)
        return checked(frames, allowed=allowed)

    faults = (motion_floor, colour_shift, drift, collapse, subject_drift)
    return [
        *(Case(name=f.__name__, gate=f.__name__, make=partial(plant, f), clips=8) for f in faults),
        *(Case(name=f.__name__, gate="", make=partial(leave, f), clips=12) for f in (moving, resting, fading)),
    ]
