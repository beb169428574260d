"""What a check says of a whole video: the faults that joining can make, and those at the borders of pieces."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from qc_consumers.check import Bench, Measured
from qc_consumers.gates import worst
from qc_consumers.videos import check_video
from schemas.records import Finding, Track, Verdict, VideoAssembled
from tests.qc.clips import (
    SIZE,
    assembled,
    bunny,
    encoded,
    ffmpeg,
    remuxed,
    with_black,
    with_noise,
    with_repeats,
)

FRAMES = 72


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    return faststart(encoded(tmp_path / "joined.mp4", bunny()[:FRAMES]), tmp_path / "video.mp4")


def faststart(source: Path, target: Path) -> Path:
    ffmpeg("-i", source, "-c", "copy", "-video_track_timescale", "24000", "-movflags", "+faststart", target)
    return target


def event_of(bench: Bench, path: Path) -> VideoAssembled:
    return assembled(bench.objects, path, FRAMES, piece_starts=(0, 24, 48))


def measured(bench: Bench, path: Path) -> Measured:
    return check_video(event_of(bench, path), bench).measured


def found(measured: Measured, gate: str) -> list[Finding]:
    return [finding for finding in measured.findings if finding.gate == gate]


def test_a_clean_video_passes_and_its_container_is_known(bench: Bench, clean: Path) -> None:
    result = measured(bench, clean)
    assert worst(result.findings) is Verdict.PASS
    assert result.container is not None
    assert (result.container.brand, result.container.faststart) == ("isom", True)
    assert [(track.handler, track.timescale, track.duration_us) for track in result.container.tracks] == [
        ("vide", 24000, 3_000_000)
    ]
    assert result.facts is not None
    assert len(result.facts.pictures.luma) == FRAMES


Fault = Callable[[Path, Path], Path]


def index_at_the_end(source: Path, target: Path) -> Path:
    ffmpeg("-i", source, "-c", "copy", "-video_track_timescale", "24000", target)
    return target


def coarse_clock(source: Path, target: Path) -> Path:
    ffmpeg("-i", source, "-c", "copy", "-video_track_timescale", "1000", "-movflags", "+faststart", target)
    return target


def late_start(source: Path, target: Path) -> Path:
    ffmpeg("-itsoffset", "0.5", "-i", source, "-c", "copy", "-movflags", "+faststart", target)
    return target


def short(source: Path, target: Path) -> Path:
    ffmpeg("-i", source, "-c", "copy", "-frames:v", "60", "-movflags", "+faststart", target)
    return target


def quicktime(source: Path, target: Path) -> Path:
    ffmpeg("-i", source, "-c", "copy", "-movflags", "+faststart", "-f", "mov", target)
    return target


def doubled_time(source: Path, target: Path) -> Path:
    return remuxed(source, target, lambda pts: pts if pts < 48_000 else pts + 1000)


@pytest.mark.parametrize(
    ("fault", "gate", "frame"),
    [
        (index_at_the_end, "faststart", -1),
        (coarse_clock, "pts_step", None),
        (coarse_clock, "timescale", -1),
        (late_start, "start", -1),
        (short, "frame_count", -1),
        (short, "duration", -1),
        (quicktime, "brand", -1),
        (doubled_time, "pts_step", 48),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_the_assembler_got_wrong_is_joined_again(
    bench: Bench, clean: Path, tmp_path: Path, fault: Fault, gate: str, frame: int | None
) -> None:
    result = measured(bench, fault(clean, tmp_path / "bad.mp4"))
    assert worst(result.findings) is Verdict.REENCODE
    evidence = [finding for finding in found(result, gate) if finding.verdict is Verdict.REENCODE]
    assert evidence
    assert frame in [None, *(finding.frame for finding in evidence)]


def test_a_piece_that_does_not_begin_with_an_idr_is_named(bench: Bench, clean: Path) -> None:
    event = replace(event_of(bench, clean), piece_starts=(0, 24, 40))
    (finding,) = found(check_video(event, bench).measured, "piece_start")
    assert (finding.frame, finding.verdict) == (40, Verdict.REENCODE)


def test_a_still_across_the_border_of_two_pieces_is_found(bench: Bench, tmp_path: Path) -> None:
    frames = with_repeats(bunny()[:FRAMES], 46, 18)
    path = faststart(encoded(tmp_path / "joined.mp4", frames), tmp_path / "video.mp4")
    (finding,) = found(measured(bench, path), "still")
    assert finding.verdict is Verdict.REGENERATE
    assert finding.frame in {46, 48}  # the IDR at 48 looks a little different


def test_black_across_the_border_of_two_pieces_is_found(bench: Bench, tmp_path: Path) -> None:
    frames = with_black(bunny()[:FRAMES], [47, 48])
    path = faststart(encoded(tmp_path / "joined.mp4", frames), tmp_path / "video.mp4")
    (finding,) = found(measured(bench, path), "black")
    assert (finding.frame, finding.verdict) == (47, Verdict.REGENERATE)


def test_damaged_media_is_quarantined_with_the_longest_clean_run(bench: Bench, clean: Path, tmp_path: Path) -> None:
    result = measured(bench, with_noise(clean, tmp_path / "bad.mp4"))
    assert worst(result.findings) is Verdict.QUARANTINE
    assert found(result, "decode")
    assert all(24 <= finding.value < FRAMES for finding in found(result, "clean_run"))


def test_a_file_that_was_changed_in_the_store_is_quarantined(bench: Bench, clean: Path) -> None:
    event = event_of(bench, clean)
    bench.objects.put_bytes("videos/video.mp4", clean.read_bytes()[:-1] + b"!", "video/mp4")
    assert [finding.gate for finding in check_video(event, bench).measured.findings] == ["blob"]


@pytest.mark.parametrize(("error_s", "verdict"), [(0.0, None), (0.03, Verdict.PASS), (0.06, Verdict.REENCODE)])
def test_sound_that_ends_with_the_picture_passes(
    bench: Bench, clean: Path, tmp_path: Path, error_s: float, verdict: Verdict | None
) -> None:
    video = with_sound(clean, tmp_path / "sound.mp4", 3.0 + error_s)
    event = event_of(bench, video)
    event = replace(event, tracks=(*event.tracks, Track(kind="audio", codec="pcm", duration_us=0, samples=0)))
    result = check_video(event, bench).measured
    assert [finding.verdict for finding in found(result, "av_sync")] == ([verdict] if verdict else [])
    assert found(result, "tracks") == []


def with_sound(source: Path, target: Path, seconds: float) -> Path:
    """The video with a FLAC track of that length: exact to the sample."""
    wave = np.zeros(round(48_000 * seconds), np.int16)
    wave.tofile(raw := target.with_suffix(".raw"))
    sound = ("-f", "s16le", "-ar", "48000", "-ac", "1", "-i", raw, "-c:a", "flac", "-strict", "experimental")
    ffmpeg("-i", source, *sound, "-c:v", "copy", "-video_track_timescale", "24000", "-movflags", "+faststart", target)
    return target


def test_a_track_that_was_not_announced_is_found(bench: Bench, clean: Path, tmp_path: Path) -> None:
    result = measured(bench, with_sound(clean, tmp_path / "sound.mp4", 3.0))
    assert [finding.verdict for finding in found(result, "tracks")] == [Verdict.REENCODE]


def test_the_container_of_something_else_is_empty(bench: Bench, clean: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.mp4").write_bytes(clean.read_bytes()[:2000])
    result = measured(bench, tmp_path / "cut.mp4")
    assert worst(result.findings) is Verdict.QUARANTINE


def test_frames_of_a_video_at_ntsc_rate_are_at_exact_times(bench: Bench, tmp_path: Path) -> None:
    size = replace(SIZE, fps_num=24_000, fps_den=1001)
    path = encoded(tmp_path / "joined.mp4", bunny()[:48], size)
    ffmpeg("-i", path, "-c", "copy", "-video_track_timescale", "24000", "-movflags", "+faststart", tmp_path / "v.mp4")
    event = assembled(bench.objects, tmp_path / "v.mp4", 48, size=size)
    assert worst(check_video(event, bench).measured.findings) is Verdict.PASS
