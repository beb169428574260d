"""Sounds are added up where they belong, as loud as they should be, and nothing is louder than the ceiling."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest

from streams.sound import RATE, Samples
from streams.sound.files import decoded, looped
from streams.sound.limiter import limited
from streams.sound.loudness import Meter
from streams.sound.mix import Cue, mixed
from tests.sound.builders import chords, clicks, wav


def cue(samples: Samples, start: int = 0, *, end: int | None = None, fade_in: int = 0, fade_out: int = 0) -> Cue:
    def blocks() -> Iterator[Samples]:
        yield from np.array_split(samples, 7)

    end = start + len(samples) if end is None else end
    return Cue(start=start, end=end, gain=1.0, fade_in=fade_in, fade_out=fade_out, blocks=blocks)


def all_of(blocks: Iterator[Samples]) -> Samples:
    return np.concatenate(list(blocks))


def test_each_sound_begins_at_its_sample_and_they_add_up() -> None:
    first, second = chords(2.3), chords(1.7, seed=2)
    out = all_of(mixed([cue(second, 60_001), cue(first, 7)], 3 * RATE + 5))
    expected = np.zeros((3 * RATE + 5, 2), np.float32)
    expected[7 : 7 + len(first)] += first
    expected[60_001 : 60_001 + len(second)] += second[: len(expected) - 60_001]
    np.testing.assert_array_equal(out, expected)


def test_a_sound_ends_where_its_cue_does_and_fades_reach_both_ends() -> None:
    ones = np.ones((3 * RATE, 2), np.float32)
    out = all_of(mixed([cue(ones, 100, end=2 * RATE, fade_in=RATE, fade_out=RATE // 2)], 3 * RATE))
    assert not out[:101].any()
    assert not out[2 * RATE :].any()
    assert out[100 + RATE // 2, 0] == pytest.approx(0.5)
    assert out[2 * RATE - RATE // 4, 0] == pytest.approx(0.5)
    assert out[int(1.2 * RATE), 0] == 1.0


def test_a_file_is_repeated_without_a_gap(tmp_path: Path) -> None:
    path = wav(tmp_path / "bed.wav", chords(0.3))
    once = all_of(decoded(path, "audio/wav"))
    out = all_of(
        mixed([Cue(start=0, end=RATE, gain=1.0, fade_in=0, fade_out=0, blocks=lambda: looped(path, "audio/wav"))], RATE)
    )
    np.testing.assert_array_equal(out[: 2 * len(once)], np.tile(once, (2, 1)))


def test_another_rate_is_resampled_and_moves_nothing(tmp_path: Path) -> None:
    samples = np.zeros((44_100, 2), np.float32)
    samples[22_050] = 0.5
    out = all_of(decoded(wav(tmp_path / "cd.wav", samples, 44_100), "audio/wav"))
    assert abs(int(np.abs(out[:, 0]).argmax()) - 24_000) <= 1


@pytest.mark.parametrize("level", [0.02, 0.1, 0.4])
def test_loudness_and_true_peak_are_those_that_ffmpeg_measures(tmp_path: Path, level: float) -> None:
    meter = Meter()
    for block in np.array_split(chords(5, level), 9):
        meter.push(block)
    lufs, peak_dbtp = _by_ffmpeg(wav(tmp_path / "music.wav", chords(5, level)))
    assert meter.lufs() == pytest.approx(lufs, abs=0.1)
    assert meter.peak_dbtp() == pytest.approx(peak_dbtp, abs=0.2)


def test_a_second_of_nothing_has_no_loudness() -> None:
    meter = Meter()
    meter.push(np.zeros((RATE, 2), np.float32))
    assert meter.lufs() is None


@pytest.mark.parametrize("size", [500, 4800, RATE])
def test_the_limiter_keeps_the_ceiling_and_every_sample_in_its_place(size: int) -> None:
    loud = 8 * chords(3, 0.4) + clicks(3, [0.0, 1.0, 2.99], 2.0)
    out = all_of(limited((loud[at : at + size] for at in range(0, len(loud), size)), 0.5))
    meter = Meter()
    meter.push(out)
    assert out.shape == loud.shape
    assert meter.peak_dbtp() <= 20 * np.log10(0.5) + 0.1
    gains = out[loud != 0] / loud[loud != 0]
    assert 0 < gains.min() < 0.3 < gains.max() <= 1
    np.testing.assert_allclose(out, all_of(limited(iter([loud]), 0.5)), atol=1e-6)


def test_what_is_below_the_ceiling_is_left_as_it_is() -> None:
    quiet = chords(1.3, 0.05)
    np.testing.assert_array_equal(all_of(limited(iter(np.array_split(quiet, 4)), 0.9)), quiet)


def _by_ffmpeg(path: Path) -> tuple[float, float]:
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-hide_banner", "-nostats", "-i", path, "-af", "ebur128=peak=true"]
    said = subprocess.run([*command, "-f", "null", "-"], capture_output=True, text=True, check=True).stderr
    summary = said[said.index("Summary:") :]
    lufs, peak = re.search(r"I:\s+(\S+) LUFS", summary), re.search(r"Peak:\s+(\S+) dBFS", summary)
    assert lufs
    assert peak
    return float(lufs[1]), float(peak[1])
