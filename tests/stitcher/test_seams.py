"""What is blended, what is cut, and what is seen of it."""

import numpy as np
import pytest

from schemas.records import Correction, SeamKind
from streams.stitcher.alignment import SeamError
from streams.stitcher.blend import fade_or_cut, fade_weights
from streams.stitcher.join import become, begin
from streams.stitcher.limits import Limits
from streams.stitcher.picture import render, rounded
from streams.stitcher.segment import Placed
from tests.stitcher.clips import NO_DRIFT, OVERLAP, Drift, Frames, segment, shot
from tests.stitcher.joins import join, placed, stored

SMALL = {"width": 256, "height": 144}
FRAMES = 24
LIMITS = Limits()


def new(frames: Frames, **correction: int) -> Placed:
    return Placed(segment=stored(frames), origin=0, correction=Correction(**correction))


# --- blending ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "weights"),
    [
        (0, 0, [0, 1 / 4, 2 / 4, 3 / 4]),
        (0, 2, [0, 0, 0, 1 / 2]),
        (0, -2, [0, 1 / 4, 2 / 4, 3 / 4]),
        (-2, 0, [0, 1 / 2, 1, 1]),
        (2, 2, [0, 0, 0, 1 / 2]),
    ],
)
def test_the_fade_takes_place_where_both_segments_have_frames(before: int, after: int, weights: list[float]) -> None:
    frames = shot(0, 12, width=64, height=36)
    previous = placed(frames, overlap=4, correction=Correction(offset_frames=before))
    assert list(fade_weights(previous, new(frames, offset_frames=after), 4)) == weights


def test_the_first_picture_of_the_overlap_is_the_previous_segments_own() -> None:
    before, after = segment(0, FRAMES, **SMALL), segment(1, FRAMES, Drift(gain=(1.1, 1.1, 1.1)), **SMALL)
    first = join(before, after).blend.pictures[0]
    np.testing.assert_array_equal(first, rounded(render(before[-OVERLAP], Correction())))


def test_a_dissolve_fades_two_shots_and_aligns_nothing() -> None:
    before, after = segment(0, FRAMES, **SMALL), shot(60, FRAMES, Drift(gain=(1.4, 1.4, 1.4)), **SMALL)
    joined = become(placed(before), stored(after), SeamKind.DISSOLVE, OVERLAP)
    assert joined.new.correction == Correction()
    assert (joined.seam.kind, joined.seam.blend, joined.seam.score) == (SeamKind.DISSOLVE, "fade", 1.0)
    half = (render(before[-4], Correction()) + render(after[4], Correction())) / 2
    np.testing.assert_array_equal(joined.blend.pictures[4], rounded(half))


def test_a_cut_aligns_and_blends_nothing() -> None:
    joined = begin(stored(segment(1, FRAMES, Drift(gain=(1.4, 1.4, 1.4)), **SMALL)), SeamKind.CUT)
    assert joined.new.correction == Correction()
    assert (joined.blend.pictures, joined.seam.blend) == ((), "none")


def test_a_fade_that_would_show_a_ghost_becomes_a_cut_where_the_segments_differ_least() -> None:
    before = segment(0, FRAMES, **SMALL)
    after = segment(1, FRAMES, Drift(x_px=2.0), **SMALL)
    after[5] = segment(1, FRAMES, **SMALL)[5]
    weights = fade_weights(placed(before), new(after), OVERLAP)
    blend = fade_or_cut(placed(before), new(after), weights, LIMITS)
    assert blend.kind == "cut"
    assert blend.sharpness_ratio < 0.8
    assert blend.weights == (0, 0, 0, 0, 0, 1, 1, 1)
    for j, picture in enumerate(blend.pictures):
        source = before[-OVERLAP + j] if j < 5 else after[j]
        np.testing.assert_array_equal(picture, rounded(render(source, Correction())))


def test_an_aligned_fade_is_as_sharp_as_its_neighbours() -> None:
    before, after = segment(0, FRAMES, **SMALL), segment(1, FRAMES, **SMALL)
    weights = fade_weights(placed(before), new(after), OVERLAP)
    blend = fade_or_cut(placed(before), new(after), weights, LIMITS)
    assert blend.kind == "fade"
    assert blend.sharpness_ratio > 0.97


# --- what is seen -----------------------------------------------------------------------------------------------------


def exact(index: int, drift: Drift = NO_DRIFT) -> Frames:
    """Segments of an engine that continues exactly: no overlap."""
    return shot(index * FRAMES, FRAMES, drift, **SMALL)


def test_an_exact_continuation_is_checked_and_carries_the_correction_on() -> None:
    done = Correction(gain=(0.9, 0.9, 0.9), shift_x_px=0.5, offset_frames=0)
    worse = Drift(gain=(1 / 0.9,) * 3, x_px=-0.5)
    joined = join(placed(exact(0, worse), overlap=0, correction=done), exact(1, worse), overlap=0, tail=0)
    assert joined.new.correction == done
    assert joined.seam.score > 0.4
    assert (joined.seam.blend, joined.blend.pictures) == ("none", ())


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        (exact(1, Drift(gain=(1.15, 1.15, 1.15))), "luma jumps"),
        (exact(1, Drift(x_px=4, y_px=4)), "luma jumps|warping error"),
        (exact(1, Drift(offset_frames=-1)), "repeated"),
        (exact(1, Drift(offset_frames=8)), "luma jumps|warping error"),
    ],
)
def test_an_exact_continuation_that_is_none_is_sent_back(after: Frames, reason: str) -> None:
    with pytest.raises(SeamError, match=reason):
        join(exact(0), after, overlap=0, tail=0)


def test_what_both_segments_show_is_not_the_seams_fault() -> None:
    """Lightning in the middle of the overlap."""
    before, after = segment(0, FRAMES, **SMALL), segment(1, FRAMES, **SMALL)
    for frame in (before[-4], after[4]):
        frame[:] = np.minimum(frame.astype(int) + 60, 255).astype(np.uint8)
    seam = join(before, after).seam
    assert seam.luma_jump_ratio <= 1.001
    assert seam.warp_error_ratio <= 1.001


def test_a_scene_that_stands_still_has_no_repeated_frame() -> None:
    still = np.concatenate([shot(60, 1, **SMALL)] * FRAMES)
    assert join(still, still).seam.score == pytest.approx(1.0)


def test_pictures_without_any_detail_join() -> None:
    black = np.zeros((FRAMES, 144, 256, 3), np.uint8)
    assert join(black, black).seam.score == pytest.approx(1.0)


@pytest.mark.parametrize("overlap", [1, 2, 4])
def test_short_overlaps_join(overlap: int) -> None:
    before, after = shot(0, 16, **SMALL), shot(16 - overlap, 16, Drift(gain=(1.04, 1.04, 1.04)), **SMALL)
    joined = join(before, after, overlap=overlap, tail=overlap)
    assert joined.seam.gain == pytest.approx(1.04, abs=0.005)
    assert len(joined.blend.pictures) == overlap


def test_the_score_is_the_worst_of_the_measures() -> None:
    clear = join(segment(0, FRAMES, **SMALL), segment(1, FRAMES, **SMALL)).seam
    blurred = join(segment(0, FRAMES, **SMALL), segment(1, FRAMES, Drift(x_px=0.5), **SMALL)).seam
    assert 0.9 < clear.score <= 1.0
    assert blurred.score == pytest.approx((blurred.sharpness_ratio - 0.8) / 0.2, abs=1e-9)
