"""The meter: exact for pieces as for the whole, honest about its model, and it never scores the wrong frames."""

import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from qc_consumers.detectors import Luma
from qc_consumers.metrics.quality import Pair, QualityError, measure_quality
from qc_consumers.metrics.scores import scores_of
from streams.stitcher.encode import REFERENCE
from tests.qc.clips import SIZE, Frames, bunny, decoded, encoded

FRAMES = 42


def blind(reference: Luma, piece: Luma, chroma: Luma) -> None:
    """Shown the frames, and looks away."""


def lossless(path: Path, frames: Frames) -> Path:
    return encoded(path, frames, options=REFERENCE)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    folder = tmp_path_factory.mktemp("whole")
    piece = encoded(folder / "piece.mp4", bunny()[:FRAMES])
    reference = lossless(folder / "reference.mp4", bunny()[:FRAMES])
    return Pair(
        piece=piece, reference=reference, width=320, height=180, fps=Fraction(24), frames=FRAMES, head=0, tail=0
    )


def chunk(whole: Pair, folder: Path, first: int, frames: int, head: int, tail: int) -> Pair:
    """Frames of the same encoded video, as a piece with context of the reference."""
    piece = lossless(folder / f"piece-{first}.mp4", decoded(whole.piece, SIZE)[first : first + frames])
    reference = lossless(folder / f"reference-{first}.mp4", bunny()[first - head : first + frames + tail])
    return replace(whole, piece=piece, reference=reference, frames=frames, head=head, tail=tail)


def test_scores_of_pieces_are_those_of_the_whole_video_at_the_borders_too(whole: Pair, tmp_path: Path) -> None:
    expected = measure_quality(whole, tmp_path, blind, threads=2, timeout_s=60)
    pieces = [(0, 14, 0, 1), (14, 14, 1, 1), (28, 14, 1, 0)]
    found = [
        measure_quality(chunk(whole, tmp_path, *piece), tmp_path, blind, threads=2, timeout_s=60) for piece in pieces
    ]
    for name in ("vmaf", "psnr_y", "ssim"):
        joined = [score for quality in found for score in getattr(quality, name)]
        np.testing.assert_allclose(joined, getattr(expected, name), atol=0.01)


def test_without_context_the_first_frame_scores_wrong(whole: Pair, tmp_path: Path) -> None:
    expected = measure_quality(whole, tmp_path, blind, threads=2, timeout_s=60)
    alone = measure_quality(chunk(whole, tmp_path, 14, 14, 0, 0), tmp_path, blind, threads=2, timeout_s=60)
    assert abs(alone.vmaf[0] - expected.vmaf[14]) > 0.01


def test_equal_pictures_have_a_psnr_of_100_db(whole: Pair, tmp_path: Path) -> None:
    copy = Path(shutil.copy(whole.reference, tmp_path / "copy.mp4"))
    quality = measure_quality(replace(whole, piece=copy), tmp_path, blind, threads=2, timeout_s=60)
    assert set(quality.psnr_y) == {100.0}
    assert set(quality.ssim) == {1.0}


def test_scores_name_the_model_and_the_library(whole: Pair, tmp_path: Path) -> None:
    scores = scores_of(measure_quality(whole, tmp_path, blind, threads=1, timeout_s=60), Fraction(24))
    assert scores.vmaf_model == "vmaf_v0.6.1"
    assert scores.libvmaf_version
    assert scores.vmaf_min <= scores.vmaf_p1 <= scores.vmaf_worst_second <= scores.vmaf_mean <= 100


def test_the_worst_second_is_found_inside_a_good_mean(whole: Pair, tmp_path: Path) -> None:
    quality = measure_quality(whole, tmp_path, blind, threads=1, timeout_s=60)
    bad = (95.0,) * 48 + (70.0,) * 24 + (95.0,) * 168
    scores = scores_of(replace(quality, vmaf=bad, psnr_y=bad, ssim=bad), Fraction(24))
    assert scores.vmaf_worst_second == pytest.approx(70)
    assert scores.vmaf_mean > 92


def test_a_reference_that_is_too_short_scores_nothing(whole: Pair, tmp_path: Path) -> None:
    short = lossless(tmp_path / "short.mp4", bunny()[: FRAMES - 5])
    with pytest.raises(QualityError, match="of 42"):
        measure_quality(replace(whole, reference=short), tmp_path, blind, threads=1, timeout_s=60)


def test_a_pass_that_takes_too_long_is_ended(whole: Pair, tmp_path: Path) -> None:
    with pytest.raises(QualityError, match="not done"):
        measure_quality(whole, tmp_path, blind, threads=1, timeout_s=0.01)


def test_the_frames_are_shown_in_pairs_at_half_size_as_they_are(whole: Pair, tmp_path: Path) -> None:
    shown: list[tuple[Luma, Luma, Luma]] = []
    pair = chunk(whole, tmp_path, 10, 8, 1, 1)
    measure_quality(pair, tmp_path, lambda *planes: shown.append(planes), threads=2, timeout_s=60)
    pieces = decoded(whole.piece, SIZE)[10:18, :180]
    assert len(shown) == 10
    assert shown[0][0].shape == shown[0][1].shape == (90, 160)
    assert shown[0][2].shape == (2, 90, 80)
    for (reference, piece, chroma), frame, coded in zip(shown[1:-1], bunny()[10:18], pieces, strict=True):
        original, planes = frame[:180], frame[180:].reshape(2, 90, 160)
        assert set(np.unique(chroma[0])) <= set(np.unique(planes[0]))
        assert abs(chroma.mean(axis=(1, 2)) - planes.mean(axis=(1, 2))).max() < 1
        assert abs(reference.mean() - original.mean()) < 1
        assert abs(piece.mean() - coded.mean()) < 1
        assert set(np.unique(reference)) <= set(np.unique(original))
