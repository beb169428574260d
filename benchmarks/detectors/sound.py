"""Faults of the sound of a finished video, and music that is as it should be."""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from benchmarks.detectors.case import Case, Result
from qc_consumers.check import Bench
from qc_consumers.videos import check_video
from schemas.records import Track
from tests.qc.clips import Frames, assembled, bunny, encoded, ffmpeg

SOUND_GATES = frozenset({"av_sync", "loudness", "silence", "clipping", "true_peak", "audio_decode"})
RATE = 48_000
SECONDS = 4
_FRAMES = 24 * SECONDS
Samples = NDArray[np.float64]


def music(rng: Generator, seconds: float = SECONDS) -> Samples:
    """[T, 2]: chords of decaying tones over soft noise, at about -16 LUFS, peaks below -3 dB."""
    time = np.arange(round(RATE * seconds)) / RATE
    out = rng.normal(0, 0.004, (len(time), 2))
    for start in np.arange(0, seconds, 0.5):
        for tone in rng.choice([220, 277, 330, 440, 554, 659], 3, replace=False):
            rest = np.clip(time - start, 0, None)
            out += (np.sin(2 * np.pi * tone * rest) * np.exp(-3 * rest) * (rest > 0))[:, None]
    return out * 10 ** (-16 / 20) / np.sqrt(np.mean(out**2) * 2) * 1.05


def av_sync(rng: Generator) -> Samples:
    """The sound ends 60 to 300 ms early."""
    return music(rng, SECONDS - float(rng.uniform(0.06, 0.3)))


def loudness(rng: Generator) -> Samples:
    """5 to 15 LU too soft."""
    return music(rng) * 10 ** (-float(rng.uniform(5, 15)) / 20)


def silence(rng: Generator) -> Samples:
    """Nothing for two and a half seconds."""
    out = music(rng)
    first = int(rng.integers(0, round(RATE * 1.4)))
    out[first : first + round(RATE * 2.5)] = 0
    return out


def clipping(rng: Generator) -> Samples:
    """6 to 12 dB over full scale, cut off there."""
    return np.clip(music(rng) * 10 ** (float(rng.uniform(12, 18)) / 20), -1, 1)


def true_peak(rng: Generator) -> Samples:
    """A click at full scale."""
    out = music(rng)
    at = int(rng.integers(RATE, 2 * RATE))
    out[at : at + 2] = 0.99
    return out


def checked(samples: Samples, bench: Bench) -> Result:
    """What the check of a video with this sound says."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        video = with_sound(_picture(folder), samples, folder / "video.mp4")
        event = assembled(bench.objects, video, _FRAMES, piece_starts=(0,))
        sound = Track(kind="audio", codec="flac", duration_us=0, samples=len(samples))
        measured = check_video(replace(event, tracks=(*event.tracks, sound)), bench).measured
    findings = [finding for finding in measured.findings if finding.gate in SOUND_GATES]
    return Result(findings=findings, looked=SOUND_GATES)


def with_sound(picture: Path, samples: Samples, target: Path) -> Path:
    """The video with a FLAC track: exact to the sample."""
    raw = target.with_suffix(".raw")
    np.clip(np.rint(samples * 32767), -32768, 32767).astype("<i2").tofile(raw)
    sound = ("-f", "s16le", "-ar", str(RATE), "-ac", "2", "-i", raw, "-c:a", "flac", "-strict", "experimental")
    ffmpeg("-i", picture, *sound, "-c:v", "copy", "-video_track_timescale", "24000", "-movflags", "+faststart", target)
    return target


def _picture(folder: Path) -> Path:
    path = folder / "picture.mp4"
    path.write_bytes(_coded_picture())
    return path


@cache
def _coded_picture() -> bytes:
    """Encoded once for all: only the sound differs."""
    with tempfile.TemporaryDirectory() as name:
        frames: Frames = bunny(_FRAMES)
        return encoded(Path(name) / "picture.mp4", frames).read_bytes()


def cases() -> list[Case]:
    """All of them."""

    def run(make: Callable[[Generator], Samples], rng: Generator, bench: Bench) -> Result:
        return checked(make(rng), bench)

    faults = (av_sync, loudness, silence, clipping, true_peak)
    return [
        *(Case(name=f.__name__, gate=f.__name__, make=partial(run, f), clips=5) for f in faults),
        Case(name="music", gate="", make=partial(run, music), clips=30),
    ]
