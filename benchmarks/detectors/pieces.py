"""Faults in the pictures of a piece, and clean pieces that look like faults: through encoder, meter and gates, as on the line."""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.random import Generator

from benchmarks.detectors.case import Case, Result
from benchmarks.detectors.sources import HEIGHT, PIECE_FRAMES, WIDTH, Clip, clip, graded, grained, limited, other_shot
from qc_consumers.check import Bench
from qc_consumers.pieces import check_piece
from schemas.records import Encode
from tests.qc.clips import Frames, stitched, with_black, with_repeats

Planted = tuple[Frames, int]
PICTURE_GATES = frozenset(
    {"black", "frozen", "duplicate", "flash", "strobe", "flicker", "letterbox", "glitch", "jump"}
    | {"psnr_y", "vmaf", "vmaf_worst_second", "decode", "frame_count", "pts_step", "gop", "idr", "tags", "bitrate_peak"}
)
_FINE = Encode(crf=12.0)
"""Grain and fast pans at the line's usual CRF 18 fall below 38 dB, rightly: that is no question for these."""
_LIVELY = 1.0
"""Levels: a repeated frame is seen where the picture moves by more."""


def checked(frames: Frames, bench: Bench, frame: int = -1, allowed: frozenset[str] = frozenset()) -> Result:
    """What the check of a piece says."""
    with tempfile.TemporaryDirectory() as folder:
        event = stitched(bench.objects, Path(folder), frames, encode=_FINE)
        measured = check_piece(event, bench).measured
    return Result(findings=measured.findings, frame=frame, allowed=allowed, looked=PICTURE_GATES)


def _somewhere(rng: Generator, frames: int, edge: int = 6) -> int:
    return int(rng.integers(edge, PIECE_FRAMES - frames - edge))


def _lively(rng: Generator) -> Frames:
    """A clip in which every frame differs from the one before."""
    while True:
        frames = clip(rng).frames
        luma = frames[:, :HEIGHT].astype(np.int16)
        if np.abs(np.diff(luma, axis=0)).mean(axis=(1, 2)).min() > _LIVELY:
            return frames


def black(rng: Generator) -> Planted:
    """One to three frames, black but for noise of up to 6 levels."""
    count = int(rng.integers(1, 4))
    first = _somewhere(rng, count)
    frames = with_black(clip(rng).frames, range(first, first + count))
    frames[first : first + count, :HEIGHT] += rng.integers(0, 7, (count, HEIGHT, WIDTH), np.uint8)
    return frames, first


def frozen(rng: Generator) -> Planted:
    """Three to eight frames the same."""
    count = int(rng.integers(3, 9))
    first = _somewhere(rng, count)
    return with_repeats(_lively(rng), first, count), first


def duplicate(rng: Generator) -> Planted:
    """One frame twice."""
    first = _somewhere(rng, 2)
    return with_repeats(_lively(rng), first, 2), first + 1


def flash(rng: Generator) -> Planted:
    """One frame brighter by 20 to 50 levels where there is room, by a gain and a bias."""
    frames, first = graded(clip(rng).frames, 0.6, 0).copy(), _somewhere(rng, 1)
    frames[first] = graded(frames[first : first + 1], float(rng.uniform(1.0, 1.3)), float(rng.uniform(20, 40)))[0]
    return frames, first


def strobe(rng: Generator) -> Planted:
    """Four to eight flashes a second, 12 levels up and 12 down, for a second and a half."""
    frames = graded(clip(rng).frames, 0.6, 20).astype(np.float32)
    period = 24 / float(rng.integers(4, 9))
    wave = np.where(np.arange(PIECE_FRAMES) % period < period / 2, 12, -12)
    wave[:6] = wave[42:] = 0
    frames[:, :HEIGHT] += wave[:, None, None]
    return limited(frames), -1


def flicker(rng: Generator) -> Planted:
    """Brightness wavers by 1.2 to 3 levels, every frame, for a second or more."""
    frames = graded(clip(rng).frames, 0.8, 10).astype(np.float32)
    count = int(rng.integers(24, 40))
    signs = np.where(np.arange(count) % 2, 1, -1)
    frames[4 : 4 + count, :HEIGHT] += (signs * rng.uniform(1.2, 3.0, count))[:, None, None]
    return limited(frames), -1


def letterbox(rng: Generator) -> Planted:
    """Bars of 3 to 12 per cent of the height or width come, or go, at once."""
    frames, first = graded(clip(rng).frames, 1.0, 30).copy(), _somewhere(rng, 0, 8)
    share, tall = float(rng.uniform(0.03, 0.12)), bool(rng.integers(2))
    where = slice(first, None) if rng.integers(2) else slice(None, first)
    frames[where] = barred(frames[where], share, tall=tall)
    return frames, first


def barred(frames: Frames, share: float, *, tall: bool) -> Frames:
    """With black bars above and below, or on both sides."""
    out = frames.copy()
    luma, chroma = out[:, :HEIGHT], out[:, HEIGHT:].reshape(len(out), 2, HEIGHT // 2, WIDTH // 2)
    size = 2 * round(share * (WIDTH if tall else HEIGHT) / 2)
    for plane, n, level in ((luma, size, 16), (chroma[:, 0], size // 2, 128), (chroma[:, 1], size // 2, 128)):
        turned = np.swapaxes(plane, 1, 2) if tall else plane
        turned[:, :n], turned[:, -n:] = level, level
    return out


def glitch(rng: Generator) -> Planted:
    """One to three frames that show another shot, or noise, over a fifth of the picture or all of it."""
    found, count = clip(rng), int(rng.integers(1, 4))
    frames, first = found.frames.copy(), _somewhere(rng, count)
    wrong = other_shot(found.name, rng, count).frames if rng.integers(2) else _noise(rng, count)
    height, width = (round(size * float(rng.uniform(0.45, 1.0))) for size in (HEIGHT, WIDTH))
    y, x = int(rng.integers(0, HEIGHT - height + 1)), int(rng.integers(0, WIDTH - width + 1))
    frames[first : first + count, y : y + height, x : x + width] = wrong[:, y : y + height, x : x + width]
    return frames, first


def _noise(rng: Generator, count: int) -> Frames:
    """Blocks of 8 x 8 in random greys: what a decoder makes of lost data."""
    blocks = rng.integers(16, 236, (count, HEIGHT * 3 // 16 + 1, WIDTH // 8), np.uint8)
    return blocks.repeat(8, axis=1).repeat(8, axis=2)[:, : HEIGHT * 3 // 2]


def jump(rng: Generator) -> Planted:
    """The shot goes on elsewhere: another shot from one frame to the next, which no piece is planned to have."""
    found, first = clip(rng), _somewhere(rng, 0, 14)
    other = other_shot(found.name, rng, PIECE_FRAMES - first)
    return np.concatenate([found.frames[:first], other.frames]), first


Clean = Callable[[Generator], Clip]


def dissolve(rng: Generator) -> Clip:
    """One shot fades into another."""
    found = clip(rng)
    weight = np.clip((np.arange(PIECE_FRAMES) - 16) / 16, 0, 1)[:, None, None]
    mixed = (1 - weight) * found.frames + weight * other_shot(found.name, rng, PIECE_FRAMES).frames
    return Clip(name="dissolve", frames=limited(mixed))


def fade(rng: Generator) -> Clip:
    """From black, to black, or a dip to black and back, half a second each."""
    ramp = np.clip(np.abs(np.arange(PIECE_FRAMES) - int(rng.choice([0, 24, 47]))) / 12, 0, 1)
    frames = np.concatenate(
        [graded(frame[None], float(gain), 0) for frame, gain in zip(clip(rng).frames, ramp, strict=True)]
    )
    return Clip(name="fade", frames=frames)


def cut(rng: Generator) -> Clip:
    """Two shots: where the plan has no cut, that is worth a warning."""
    frames, _ = jump(rng)
    return Clip(name="cut", frames=frames, allowed=frozenset({"jump"}))


def night(rng: Generator) -> Clip:
    """A fifth of the light, with lamps, and grain."""
    frames = graded(clip(rng).frames, float(rng.uniform(0.15, 0.3)), 4).copy()
    for _ in range(4):
        y, x = int(rng.integers(0, HEIGHT - 8)), int(rng.integers(0, WIDTH - 20))
        frames[:, y : y + 6, x : x + 16] = 210
    return Clip(name="night", frames=grained(frames, 1.0, rng))


def slow_pan(rng: Generator) -> Clip:
    """Over one still picture, a pixel every other frame."""
    frame = clip(rng, 1).frames[0]
    luma = frame[:HEIGHT]
    small = np.stack([np.roll(luma, -(n // 2), axis=1) for n in range(PIECE_FRAMES)])
    chroma = frame[HEIGHT:].reshape(2, HEIGHT // 2, WIDTH // 2)
    moved = np.stack([np.roll(chroma, -(n // 4), axis=2).reshape(HEIGHT // 2, WIDTH) for n in range(PIECE_FRAMES)])
    return Clip(name="slow pan", frames=grained(np.concatenate([small, moved], axis=1), 1.0, rng))


def static(rng: Generator) -> Clip:
    """A still with film grain."""
    frames = np.repeat(clip(rng, 1).frames, PIECE_FRAMES, axis=0)
    return Clip(name="static", frames=grained(frames, float(rng.uniform(1.5, 3.0)), rng))


def film_grain(rng: Generator) -> Clip:
    """Grain on a moving picture."""
    return Clip(name="film grain", frames=grained(clip(rng).frames, float(rng.uniform(1.0, 3.0)), rng))


def lightning(rng: Generator) -> Clip:
    """Two strokes within a second, stronger in the sky."""
    frames = graded(clip(rng).frames, 0.5, 0).astype(np.float32)
    sky = np.linspace(1.0, 0.3, HEIGHT)[:, None]
    for first in (14, 14 + int(rng.integers(4, 9))):
        for late, strength in enumerate((1.0, 0.5)):
            luma = frames[first + late, :HEIGHT]
            luma += strength * sky * (20 + 0.6 * (luma - 16))
    return Clip(name="lightning", frames=limited(frames), allowed=frozenset({"flash"}))


def wide(rng: Generator) -> Clip:
    """Bars that stay, some with a fade behind them."""
    frames = clip(rng).frames
    if rng.integers(2):
        ramp = np.clip(np.arange(PIECE_FRAMES) / 24, 0.1, 1)
        frames = np.concatenate([graded(frame[None], float(gain), 0) for frame, gain in zip(frames, ramp, strict=True)])
    return Clip(name="wide", frames=barred(frames, float(rng.uniform(0.05, 0.13)), tall=bool(rng.integers(2))))


def sunrise(rng: Generator) -> Clip:
    """The light doubles in two seconds."""
    gains = np.linspace(0.45, 0.95, PIECE_FRAMES)
    frames = [graded(frame[None], float(gain), 0) for frame, gain in zip(clip(rng).frames, gains, strict=True)]
    return Clip(name="sunrise", frames=np.concatenate(frames))


def cases() -> list[Case]:
    """All of them, planted first."""

    def plant(fault: Callable[[Generator], Planted], rng: Generator, bench: Bench) -> Result:
        frames, at = fault(rng)
        return checked(frames, bench, at)

    def leave(make: Clean, rng: Generator, bench: Bench) -> Result:
        found = make(rng)
        return checked(found.frames, bench, allowed=found.allowed)

    faults = (black, frozen, duplicate, flash, strobe, flicker, letterbox, glitch, jump)
    hard = (dissolve, fade, cut, night, slow_pan, static, film_grain, lightning, wide, sunrise)
    planted = [Case(name=f.__name__, gate=f.__name__, make=partial(plant, f), clips=8) for f in faults]
    clean = [Case(name=f.__name__, gate="", make=partial(leave, f), clips=9) for f in hard]
    return [*planted, Case(name="plain", gate="", make=partial(leave, clip), clips=40), *clean]
