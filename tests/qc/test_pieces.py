"""What a check says of a piece: clean ones pass, and every planted fault gets its verdict and its evidence."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from qc_consumers.baselines import Baselines
from qc_consumers.check import Bench, Measured
from qc_consumers.gates import worst
from qc_consumers.pieces import check_piece
from schemas.records import Blob, Encode, Finding, PieceStitched, QualityBaseline, Usual, Verdict
from streams.stitcher.encode import piece_options
from tests.qc.clips import (
    bunny,
    darker,
    encoded,
    ffmpeg,
    remuxed,
    stitched,
    stored,
    with_black,
    with_noise,
    with_repeats,
)

FRAMES = 48
START = 100


@pytest.fixture
def clean(bench: Bench, tmp_path: Path) -> PieceStitched:
    return stitched(bench.objects, tmp_path, bunny()[:FRAMES], piece=2, start_frame=START)


def found(measured: Measured, gate: str) -> list[Finding]:
    return [finding for finding in measured.findings if finding.gate == gate]


def test_a_clean_piece_passes_with_scores_of_every_frame(bench: Bench, clean: PieceStitched) -> None:
    check = check_piece(clean, bench)
    assert worst(check.measured.findings) is Verdict.PASS
    assert check.measured.scores.frames == FRAMES
    assert check.measured.scores.vmaf_mean > 90
    assert check.took_us > 0


def test_a_hard_frame_warns_and_does_not_decide(bench: Bench, clean: PieceStitched) -> None:
    measured = check_piece(clean, bench).measured
    assert measured.scores.psnr_y_min < 38 < measured.scores.psnr_y_mean
    assert [finding.verdict for finding in found(measured, "psnr_y_min")] == [Verdict.PASS]


def test_a_piece_is_held_against_pieces_like_it_beside_the_fixed_limits(bench: Bench, clean: PieceStitched) -> None:
    known, event = Baselines(), replace(clean, engine="animatic", engine_version="2")
    usual = Usual(score="vmaf", median=99.5, mad=0.1, reference_median=99.5, recent_median=99.4, recent_mad=0.1)
    baseline = QualityBaseline(
        population="standard/animatic/2/sd/h264-18", pieces=80, reference_pieces=80, usual=(usual,), updated_us=1
    )
    known.take(baseline)
    measured = check_piece(event, replace(bench, baselines=known)).measured
    assert measured.population == baseline.population
    (finding,) = found(measured, "vmaf_baseline")
    assert (finding.verdict, finding.value) == (Verdict.PASS, measured.scores.vmaf_mean)
    assert finding.limit == pytest.approx(99.5 - 5 * 0.5)
    assert check_piece(replace(event, engine_version="3"), replace(bench, baselines=known)).measured.findings == tuple(
        other for other in measured.findings if other is not finding
    )


Fault = Callable[[Path, Path], Path]


def dropped(_: Path, target: Path) -> Path:
    return encoded(target, bunny()[: FRAMES - 1])


def doubled(_: Path, target: Path) -> Path:
    return encoded(target, bunny()[[*range(FRAMES), FRAMES - 1]])


def dark(_: Path, target: Path) -> Path:
    return encoded(target, darker(bunny()[:FRAMES], 6))


def coarse(_: Path, target: Path) -> Path:
    return encoded(target, bunny()[:FRAMES], options=piece_options(Encode(crf=40)))


def late_frame(source: Path, target: Path) -> Path:
    return remuxed(source, target, lambda pts: pts + 100 if pts == 10_000 else pts)


def millisecond_clock(source: Path, target: Path) -> Path:
    ffmpeg("-i", source, "-c", "copy", "-video_track_timescale", "1000", target)
    return target


def long_gop(_: Path, target: Path) -> Path:
    options = {"crf": "18", "preset": "veryfast", "x264-params": "keyint=49:min-keyint=49:scenecut=0"}
    return encoded(target, bunny()[: FRAMES + 1], options=options)


def open_gop(_: Path, target: Path) -> Path:
    options = {
        "crf": "18",
        "preset": "veryfast",
        "x264-params": "keyint=12:min-keyint=12:scenecut=0:open-gop=1:bframes=2",
    }
    return encoded(target, bunny()[:FRAMES], options=options)


def untagged(source: Path, target: Path) -> Path:
    unknown = "setparams=color_primaries=unknown:color_trc=unknown:colorspace=unknown"
    ffmpeg("-i", source, "-vf", unknown, "-c:v", "libx264", "-crf", "18", "-g", "24", target)
    return target


@pytest.mark.parametrize(
    ("fault", "gate", "frame"),
    [
        (dropped, "frame_count", -1),
        (doubled, "frame_count", -1),
        (dark, "psnr_y", -1),
        (coarse, "vmaf", -1),
        (late_frame, "pts_step", START + 10),
        (millisecond_clock, "pts_step", None),
        (open_gop, "idr", START + 12),
        (untagged, "tags", -1),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_the_encoder_got_wrong_is_encoded_again(
    bench: Bench, clean: PieceStitched, tmp_path: Path, fault: Fault, gate: str, frame: int | None
) -> None:
    bad = fault(bench.objects.get_file(clean.video, tmp_path), tmp_path / "bad.mp4")
    measured = check_piece(replace(clean, video=stored(bench.objects, "bad.mp4", bad)), bench).measured
    assert worst(measured.findings) is Verdict.REENCODE
    evidence = [finding for finding in found(measured, gate) if finding.verdict is Verdict.REENCODE]
    assert frame in [None, *(finding.frame for finding in evidence)]
    assert all(finding.value != finding.limit and finding.detail for finding in evidence)
    assert evidence


def test_a_gop_longer_than_two_seconds_is_encoded_again(bench: Bench, tmp_path: Path) -> None:
    clean = stitched(bench.objects, tmp_path, bunny()[: FRAMES + 1])
    bad = stored(bench.objects, "bad.mp4", long_gop(tmp_path, tmp_path / "bad.mp4"))
    (finding,) = found(check_piece(replace(clean, video=bad), bench).measured, "gop")
    assert (finding.verdict, finding.value, finding.limit) == (Verdict.REENCODE, pytest.approx(49 / 24), 2.0)


def test_black_frames_are_generated_again(bench: Bench, tmp_path: Path) -> None:
    event = stitched(bench.objects, tmp_path, with_black(bunny()[:FRAMES], [20]), start_frame=START)
    measured = check_piece(event, bench).measured
    assert worst(measured.findings) is Verdict.REGENERATE
    assert [finding.frame for finding in found(measured, "black")] == [START + 20]


def test_frozen_frames_are_generated_again(bench: Bench, tmp_path: Path) -> None:
    event = stitched(bench.objects, tmp_path, with_repeats(bunny()[:FRAMES], 30, 5), start_frame=START)
    measured = check_piece(event, bench).measured
    assert worst(measured.findings) is Verdict.REGENERATE
    (finding,) = found(measured, "frozen")
    assert (finding.frame, finding.value) == (START + 30, pytest.approx(5 / 24))


def test_a_repeated_frame_only_warns(bench: Bench, tmp_path: Path) -> None:
    event = stitched(bench.objects, tmp_path, with_repeats(bunny()[:FRAMES], 25, 2), start_frame=START)
    measured = check_piece(event, bench).measured
    assert worst(measured.findings) is Verdict.PASS
    assert START + 26 in [finding.frame for finding in found(measured, "duplicate")]


def test_damaged_media_is_quarantined(bench: Bench, clean: PieceStitched, tmp_path: Path) -> None:
    bad = with_noise(bench.objects.get_file(clean.video, tmp_path), tmp_path / "bad.mp4")
    measured = check_piece(replace(clean, video=stored(bench.objects, "bad.mp4", bad)), bench).measured
    assert worst(measured.findings) is Verdict.QUARANTINE
    assert found(measured, "decode")


@pytest.mark.parametrize("which", ["video", "reference"])
def test_a_missing_or_changed_file_is_quarantined(
    bench: Bench, clean: PieceStitched, tmp_path: Path, which: str
) -> None:
    blob: Blob = getattr(clean, which)
    gone = replace(clean, **{which: replace(blob, uri=blob.uri.replace("2-1", "9-9"))})
    changed = replace(clean, **{which: replace(blob, digest="xxh3:" + "0" * 32)})
    for event in (gone, changed):
        measured = check_piece(event, bench).measured
        assert worst(measured.findings) is Verdict.QUARANTINE
        assert blob.uri.rpartition("/")[0] in found(measured, "blob")[0].detail


@pytest.mark.parametrize("data", [b"", b"not a video" * 100])
def test_a_file_that_is_no_video_is_quarantined(bench: Bench, clean: PieceStitched, data: bytes) -> None:
    blob = bench.objects.put_bytes("noise.mp4", data, "video/mp4")
    measured = check_piece(replace(clean, video=blob), bench).measured
    assert worst(measured.findings) is Verdict.QUARANTINE


def test_a_reference_of_another_length_scores_nothing(bench: Bench, clean: PieceStitched) -> None:
    measured = check_piece(replace(clean, reference_tail_context=1), bench).measured
    assert [finding.verdict for finding in found(measured, "reference")] == [Verdict.REENCODE]
    assert measured.quality is None


def test_context_frames_are_not_scored(bench: Bench, tmp_path: Path) -> None:
    event = stitched(bench.objects, tmp_path, bunny()[:20], context=(1, 1), piece=1, start_frame=START)
    measured = check_piece(event, bench).measured
    assert worst(measured.findings) is Verdict.PASS
    assert measured.scores.frames == 18
