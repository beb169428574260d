"""What an engine does wrong is measured and undone, also when it adds up over a shot."""

import numpy as np
import pytest
from PIL import Image, ImageDraw

from schemas.records import Correction
from streams.stitcher.alignment import SeamError
from streams.stitcher.picture import render, rounded
from tests.stitcher.clips import NO_DRIFT, OVERLAP, Drift, Frames, drifted, segment, shot
from tests.stitcher.joins import assert_measured, assert_undone, join, placed

SMALL = {"width": 256, "height": 144}
FRAMES = 24


@pytest.mark.parametrize(
    "drift",
    [
        Drift(gain=(1.05, 1.02, 0.97), bias=(-3, 0, 2)),
        Drift(gain=(0.85, 0.85, 0.85)),
        Drift(x_px=0.3, y_px=-0.7),
        Drift(x_px=-2.45, y_px=1.1),
        Drift(offset_frames=3),
        Drift(offset_frames=-4),
        Drift(offset_frames=2, x_px=0.4, y_px=-0.2, gain=(1.08, 1.08, 1.08), bias=(-4, -4, -4)),
        Drift(offset_frames=-1, x_px=1.3, y_px=0.6, gain=(0.93, 0.95, 0.9), bias=(5, 2, 0)),
    ],
)
def test_a_known_drift_is_measured_and_undone(drift: Drift) -> None:
    joined = join(segment(0, FRAMES, **SMALL), segment(1, FRAMES, drift, **SMALL))
    assert_measured(joined.seam, drift)
    assert_undone(joined.new.correction, drift)
    assert joined.seam.psnr_after_db > max(38, joined.seam.psnr_before_db - 1)
    assert joined.seam.score > 0.5


@pytest.mark.parametrize("width", [128, 640, 960])
def test_a_drift_is_measured_in_pixels_of_the_video_whatever_its_size(width: int) -> None:
    size = {"width": width, "height": width * 9 // 16 // 2 * 2}
    drift = Drift(offset_frames=1, x_px=0.6, y_px=-0.9, gain=(1.04, 1.04, 1.04))
    assert_measured(join(segment(0, FRAMES, **size), segment(1, FRAMES, drift, **size)).seam, drift)


def test_an_identical_overlap_is_left_exactly_as_it_is() -> None:
    before, after = segment(0, FRAMES), segment(1, FRAMES)
    joined = join(before, after)
    assert joined.new.correction == Correction()
    expected = [rounded(render(frame, Correction())) for frame in before[-OVERLAP:]]
    np.testing.assert_array_equal(joined.blend.pictures, expected)
    assert (joined.seam.blend, joined.seam.psnr_before_db) == ("fade", 100.0)


@pytest.mark.parametrize("offset", [2, -3])
def test_errors_do_not_add_up_over_ten_segments(offset: int) -> None:
    def drift(index: int) -> Drift:
        sign = 1 if offset > 0 else -1
        gain = 1 + sign * 0.012 * index
        return Drift(
            offset_frames=offset * (index % 2),
            x_px=sign * 0.27 * index,
            y_px=-sign * 0.13 * index,
            gain=(gain, 1 + sign * 0.008 * index, gain),
            bias=(-0.4 * sign * index, 0, 0.3 * index),
        )

    previous = placed(segment(0, FRAMES, **SMALL))
    for index in range(1, 10):
        after = segment(index, FRAMES, drift(index), **SMALL)
        joined = join(previous, after)
        assert_measured(joined.seam, drift(index))
        assert_undone(joined.new.correction, drift(index))
        previous = placed(after, correction=joined.new.correction)


def test_a_drift_below_what_is_worth_resampling_is_not_lost_from_sight() -> None:
    """Each step is too small to be corrected; after eight of them the sum is, to what the first segment shows."""
    previous = placed(segment(0, FRAMES, **SMALL))
    for index in range(1, 9):
        drift = Drift(x_px=0.04 * index)
        after = segment(index, FRAMES, drift, **SMALL)
        joined = join(previous, after)
        assert abs(joined.seam.shift_x_px - drift.x_px) < 0.05
        previous = placed(after, correction=joined.new.correction)


def test_clipped_pixels_say_nothing_about_gain() -> None:
    drift = Drift(gain=(1.2, 1.2, 1.2), bias=(12, 12, 12))
    after = segment(1, FRAMES, drift)
    assert (after == 255).mean() > 0.02
    assert_measured(join(segment(0, FRAMES), after).seam, drift)


def test_grain_does_not_hide_the_drift() -> None:
    rng = np.random.default_rng(1)

    def grainy(frames: Frames) -> Frames:
        return np.clip(np.rint(frames + rng.normal(0, 3, frames.shape)), 0, 255).astype(np.uint8)

    drift = Drift(offset_frames=1, x_px=0.8, y_px=-0.5, gain=(1.05, 1.05, 1.05))
    joined = join(grainy(segment(0, 24, **SMALL)), grainy(segment(1, 24, drift, **SMALL)))
    assert_measured(joined.seam, drift)


# --- the temporal offset ----------------------------------------------------------------------------------------------


def still(frames: int, drift: Drift = NO_DRIFT) -> Frames:
    """A scene in which nothing moves."""
    return np.concatenate([shot(60, 1, drift, **SMALL)] * frames)


def timecoded(start: int, frames: int, drift: Drift = NO_DRIFT) -> Frames:
    """The same, but for a running timecode in the corner."""
    pictures: list[Frames] = []
    for number in range(start + drift.offset_frames, start + drift.offset_frames + frames):
        picture = Image.fromarray(still(1)[0])
        ImageDraw.Draw(picture).text((180, 126), f"00:{number // 24:02}:{number % 24:02}", fill=(255, 255, 255))
        pictures.append(drifted(np.asarray(picture), drift))
    return np.stack(pictures)


def test_where_nothing_moves_there_is_no_offset() -> None:
    drift = Drift(x_px=0.6, gain=(1.03, 1.03, 1.03))
    joined = join(still(FRAMES), still(FRAMES, drift))
    assert joined.seam.offset_margin_db < 3
    assert_measured(joined.seam, drift)


@pytest.mark.parametrize(("offset", "x_px"), [(0, 0.0), (-3, 0.0), (2, 0.6)])
def test_a_timecode_tells_the_offset_where_nothing_else_moves(offset: int, x_px: float) -> None:
    drift = Drift(offset_frames=offset, x_px=x_px, gain=(1.04, 1.04, 1.04))
    after = timecoded(FRAMES - OVERLAP, FRAMES, drift)
    assert join(timecoded(0, FRAMES), after).seam.offset_frames == offset


@pytest.mark.parametrize("offset", [-2, 0, 1])
def test_a_pan_is_not_taken_for_a_shift(offset: int) -> None:
    """Under a pan every offset can be undone by a shift: the smaller movement is the better explanation."""

    def pan(start: int) -> Frames:
        wide = shot(40, 1, width=1280, height=360)[0]
        return np.stack([wide[:, 4 * (start + j) :][:, :640] for j in range(FRAMES)])

    joined = join(pan(8), pan(8 + FRAMES - OVERLAP + offset))
    assert joined.seam.offset_frames == offset
    assert (joined.seam.shift_x_px, joined.seam.shift_y_px) == (0.0, 0.0)


# --- beyond the limits ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("drift", "reason"),
    [
        (Drift(offset_frames=5), "temporal offset"),
        (Drift(offset_frames=-6), "temporal offset"),
        (Drift(x_px=5), "shift"),
        (Drift(gain=(1.4, 1.4, 1.4)), "colour"),
        (Drift(bias=(60, 60, 60)), "colour"),
    ],
)
def test_a_drift_beyond_the_limits_sends_the_segment_back(drift: Drift, reason: str) -> None:
    with pytest.raises(SeamError, match=reason):
        join(segment(0, FRAMES, **SMALL), segment(1, FRAMES, drift, **SMALL))


def test_a_late_segment_without_frames_to_spare_is_sent_back() -> None:
    late = segment(1, FRAMES, Drift(offset_frames=-2), **SMALL)
    with pytest.raises(SeamError, match="2 frames missing"):
        join(segment(0, FRAMES, **SMALL), late, tail=0)
    assert join(segment(0, FRAMES, **SMALL), late).seam.offset_frames == -2


def test_shots_that_do_not_go_on_are_sent_back() -> None:
    """Also smooth ones, in which a fade shows no ghost."""
    for blur in (1, 16):
        before, other = (
            frames.reshape(FRAMES, 144 // blur, blur, 256 // blur, blur, 3).mean(axis=(2, 4), keepdims=True)
            for frames in (segment(0, FRAMES, **SMALL), shot(60, FRAMES, **SMALL)[:, ::-1])
        )
        whole = [
            np.broadcast_to(f, (FRAMES, 144 // blur, blur, 256 // blur, blur, 3)).reshape(FRAMES, 144, 256, 3)
            for f in (before, other)
        ]
        with pytest.raises(SeamError, match="different things"):
            join(*(frames.astype(np.uint8) for frames in whole))


def test_a_rejection_is_the_same_every_time() -> None:
    before, after = segment(0, FRAMES, **SMALL), segment(1, FRAMES, Drift(gain=(1.4, 1.4, 1.4)), **SMALL)
    with pytest.raises(SeamError) as first:
        join(before, after)
    with pytest.raises(SeamError) as second:
        join(before, after)
    assert (first.value.reason, first.value.seam) == (second.value.reason, second.value.seam)
