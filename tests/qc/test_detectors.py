"""Detectors find what ffmpeg's find, and leave alone what is meant to be dark or still."""

import re
import subprocess
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from qc_consumers.detectors import Reel, Span
from qc_consumers.detectors.still import Frozen
from qc_consumers.gates import Claim, Seen
from qc_consumers.look import compare, look
from qc_consumers.metrics.packets import scan_packets
from qc_consumers.metrics.quality import Pair
from qc_consumers.profile import load_profiles
from streams.stitcher.encode import REFERENCE
from tests.qc.clips import FFMPEG, SIZE, Frames, bunny, encoded, with_black, with_repeats

PROFILE = load_profiles()[-1]


def claim(frames: int) -> Claim:
    return Claim(start_frame=0, frames=frames, format=SIZE)


def seen(folder: Path, frames: Frames, head: int = 0, tail: int = 0) -> Seen:
    """What is seen of a piece, of which the first `head` and last `tail` frames are only in its reference."""
    own = frames[head : len(frames) - tail]
    piece = encoded(folder / "piece.mp4", own)
    reference = encoded(folder / "reference.mp4", frames, options=REFERENCE)
    pair = Pair(
        piece=piece,
        reference=reference,
        width=SIZE.width,
        height=SIZE.height,
        fps=Fraction(24),
        frames=len(own),
        head=head,
        tail=tail,
    )
    return compare(pair, scan_packets(piece), claim(len(own)), folder, PROFILE, 1)[0].seen


def seen_in_video(folder: Path, frames: Frames) -> Seen:
    path = encoded(folder / "video.mp4", frames)
    return look(path, scan_packets(path), claim(len(frames)), PROFILE, 1).seen


def by_ffmpeg(path: Path, detector: str, name: str) -> list[tuple[int, int]]:
    """First frame and length of each event that ffmpeg's detector logs."""
    done = subprocess.run(
        [FFMPEG, "-nostats", "-i", str(path), "-vf", detector, "-f", "null", "-"],
        check=True,
        capture_output=True,
        text=True,
    )
    starts = re.findall(rf"{name}_start[:=] ?([\d.]+)", done.stderr)
    durations = re.findall(rf"{name}_duration[:=] ?([\d.]+)", done.stderr)
    return [(round(float(a) * 24), round(float(b) * 24)) for a, b in zip(starts, durations, strict=True)]


def spans(found: tuple[Span, ...]) -> list[tuple[int, int]]:
    return [(span.first, span.frames) for span in found]


@pytest.mark.parametrize("black", [[10], [3, 4, 5, 20]])
def test_black_frames_are_those_of_blackdetect(tmp_path: Path, black: list[int]) -> None:
    found = seen(tmp_path, with_black(bunny()[:30], black))
    expected = by_ffmpeg(tmp_path / "reference.mp4", "blackdetect=d=0.04:pix_th=0.10:pic_th=0.98", "black")
    assert spans(found.black) == expected != []


@pytest.mark.parametrize(("first", "count"), [(10, 4), (20, 3), (5, 12)])
def test_frozen_frames_are_those_of_freezedetect(tmp_path: Path, first: int, count: int) -> None:
    found = seen(tmp_path, with_repeats(bunny()[:30], first, count))
    expected = by_ffmpeg(tmp_path / "reference.mp4", "freezedetect=n=-50dB:d=0.12", "freeze")
    assert spans(found.frozen) == expected == [(first, count)]


def test_freezedetect_calls_slow_shots_frozen_and_this_detector_does_not(tmp_path: Path) -> None:
    found = seen(tmp_path, bunny())
    assert len(by_ffmpeg(tmp_path / "reference.mp4", "freezedetect=n=-50dB:d=0.12", "freeze")) >= 5
    assert found.frozen == ()


def test_a_still_across_the_border_is_seen_from_both_pieces(tmp_path: Path) -> None:
    frames = with_repeats(bunny()[:40], 18, 4)
    before, after = seen(tmp_path, frames[:21], 0, 1), seen(tmp_path, frames[19:], 1, 0)
    assert (spans(before.frozen), spans(after.frozen)) == ([(18, 2)], [(0, 2)])


def test_black_in_the_neighbour_is_not_seen(tmp_path: Path) -> None:
    assert seen(tmp_path, with_black(bunny()[:20], [0, 19]), 1, 1).black == ()


def test_a_still_of_half_a_second_is_found_in_coded_pictures_across_a_gop(tmp_path: Path) -> None:
    found = seen_in_video(tmp_path, with_repeats(bunny()[:60], 40, 14))
    assert spans(found.still) == [(40, 14)]


def test_slow_shots_are_not_frozen_in_coded_pictures(tmp_path: Path) -> None:
    assert seen_in_video(tmp_path, bunny()).still == ()


def test_a_still_that_lasts_to_the_end_is_found(tmp_path: Path) -> None:
    found = seen(tmp_path, with_repeats(bunny()[:30], 25, 5))
    assert spans(found.frozen) == [(25, 5)]


def test_black_to_the_end_is_found(tmp_path: Path) -> None:
    assert spans(seen(tmp_path, with_black(bunny()[:30], [28, 29])).black) == [(28, 2)]


def test_a_repeated_frame_is_a_duplicate_but_not_frozen(tmp_path: Path) -> None:
    found = seen(tmp_path, with_repeats(bunny()[:30], 25, 2))
    assert 25 + 1 in [span.first for span in found.duplicate]
    assert found.frozen == ()


def test_at_a_low_rate_a_single_frame_is_no_still() -> None:
    frozen, reel = Frozen(fps=2, shortest_s=0.12, noise_levels=2), Reel()
    for frame in bunny()[[0, 30, 60, 60, 60, 90], :180]:
        frozen.process_frame(reel.next(frame, np.zeros((2, 1, 1), np.uint8)))
    assert spans(frozen.post_process()) == [(2, 3)]


def test_a_single_bright_frame_flashes_and_a_cut_does_not(tmp_path: Path) -> None:
    frames = bunny()[:30].copy()
    frames[12, :180] = np.minimum(frames[12, :180].astype(int) + 60, 235)
    frames[20:, :180] //= 2
    assert spans(seen(tmp_path, frames).flash) == [(12, 1)]


@pytest.mark.parametrize("see", [seen, seen_in_video])
def test_a_static_hold_with_a_running_time_code_is_not_frozen(
    tmp_path: Path, see: Callable[[Path, Frames], Seen]
) -> None:
    frames = np.repeat(bunny()[:1], 30, axis=0)
    for n, frame in enumerate(frames):
        frame[165:175, 280:284], frame[165:175, 284 + n % 3 * 8 : 292 + n % 3 * 8] = 16, 235
    found = see(tmp_path, frames)
    assert (found.frozen, found.still) == ((), ())


def test_a_night_with_few_lights_is_not_black(tmp_path: Path) -> None:
    frames = bunny()[:10] // 6
    frames[:, :180] += 14
    frames[:, 20:28, 40:120] = 200
    assert seen(tmp_path, frames).black == ()


def test_a_clean_clip_has_neither_black_nor_frozen_nor_flashing_frames(tmp_path: Path) -> None:
    found = seen(tmp_path, bunny())
    assert (found.black, found.frozen, found.flash) == ((), (), ())
