"""Conversion, movement and measurement of single pictures, against exact references."""

import numpy as np
import pytest

from schemas.records import Correction
from streams.stitcher.picture import moved, planes, render, rounded
from streams.stitcher.proxy import proxies, unclipped
from streams.stitcher.shift import shift_between
from tests.stitcher.clips import Frames, shot

PLAIN = Correction()


def grey(value: int, width: int = 32, height: int = 18) -> Frames:
    return np.full((height, width, 3), value, np.uint8)


def luma_of(frame: Frames) -> np.ndarray:
    return next(planes(render(frame, PLAIN)))


def test_colours_are_converted_by_bt709_in_limited_range() -> None:
    """Rec. ITU-R BT.709-6, 3.2 to 3.5, in float64."""
    frame = shot(0, 1, width=64, height=36)[0]
    r, g, b = np.moveaxis(frame.astype(np.float64) / 255, -1, 0)
    y = 0.2126 * r + 0.7152 * g + 0.0722 * b
    u, v = (b - y) / 1.8556, (r - y) / 1.5748
    got = [plane.astype(np.float64) for plane in planes(render(frame, PLAIN))]
    np.testing.assert_allclose(got[0], 219 * y + 16, atol=1e-3)
    for plane, exact in zip(got[1:], (u, v), strict=True):
        rows = (224 * exact + 128).reshape(18, 2, 64).mean(axis=1)
        inner = (rows[:, 1:-2:2] + 2 * rows[:, 2:-1:2] + rows[:, 3::2]) / 4
        np.testing.assert_allclose(plane[:, 1:], inner, atol=1e-3)


@pytest.mark.parametrize(("value", "luma"), [(0, 16), (255, 235), (128, 126)])
def test_grey_has_no_colour(value: int, luma: int) -> None:
    y, u, v = planes(rounded(render(grey(value), PLAIN)))  # pyright: ignore[reportArgumentType] (views work on bytes too)
    assert (y == luma).all()
    assert (u == 128).all()
    assert (v == 128).all()


def test_gain_and_bias_are_those_of_rgb() -> None:
    corrected = render(grey(100), Correction(gain=(1.2, 1.1, 0.9), bias=(-10, 4, 20)))
    expected = render(np.full((18, 32, 3), (110, 114, 110), np.uint8), PLAIN)
    np.testing.assert_allclose(corrected, expected, atol=1e-3)


def test_a_correction_that_cannot_be_seen_leaves_a_picture_exactly_as_it_is() -> None:
    frame = shot(0, 1, width=64, height=36)[0]
    unseen = Correction(gain=(1.0005, 1.0, 0.9995), bias=(0.1, 0.0, 0.0), shift_x_px=0.04, shift_y_px=-0.03)
    np.testing.assert_array_equal(render(frame, unseen), render(frame, PLAIN))


def test_whole_pixels_are_moved_exactly_and_edges_are_not_black() -> None:
    plane = luma_of(shot(0, 1, width=64, height=36)[0])
    right = moved(plane, 3.0, -2.0)
    np.testing.assert_array_equal(right[:-2, 3:], plane[2:, :-3])
    np.testing.assert_array_equal(right[:-2, :3], np.repeat(plane[2:, :1], 3, axis=1))


def test_a_fraction_of_a_pixel_is_moved_as_far_as_it_says() -> None:
    """A band-limited pattern has an exact value between its samples."""
    x = np.arange(96)
    wave = np.tile(128 + 100 * np.sin(2 * np.pi * x / 12), (24, 1)).astype(np.float32)
    exact = 128 + 100 * np.sin(2 * np.pi * (x - 0.4) / 12)
    np.testing.assert_allclose(moved(wave, 0.4, 0.0)[12, 8:-8], exact[8:-8], atol=0.5)


@pytest.mark.parametrize(("x", "y"), [(1, 0), (-3, 2), (5, -7), (0, 1)])
def test_shifts_are_measured_to_a_hundredth_of_a_pixel(x: int, y: int) -> None:
    """Truth without interpolation: whole pixels of a larger picture, of which each 4 x 4 are one pixel."""
    big = shot(0, 2, width=896, height=512).astype(np.float32).mean(axis=-1)

    def seen(x: int, y: int) -> np.ndarray:
        window = big[:, 16 - y : 16 - y + 480, 16 - x : 16 - x + 864]
        return np.rint(window.reshape(2, 120, 4, 216, 4).mean(axis=(2, 4))).astype(np.float32)

    shift = shift_between(seen(0, 0), seen(x, y))
    assert shift.x_px == pytest.approx(x / 4, abs=0.02)
    assert shift.y_px == pytest.approx(y / 4, abs=0.02)


def test_proxies_are_means_of_whole_blocks() -> None:
    frames = shot(0, 2, width=962, height=540)
    small = proxies(frames)
    assert small.factor == 3
    expected = frames[:, :540, :960].reshape(2, 180, 3, 320, 3, 3).mean(axis=(2, 4))
    np.testing.assert_allclose(small.rgb, expected, atol=1e-3)


def test_a_block_with_one_clipped_pixel_is_not_clean() -> None:
    frames = np.full((1, 8, 8, 3), 128, np.uint8)
    frames[0, 1, 2, 0], frames[0, 5, 7, 2] = 0, 255
    clean = unclipped(frames, 2)
    assert np.argwhere(~clean).tolist() == [[0, 0, 1, 0], [0, 2, 3, 2]]
