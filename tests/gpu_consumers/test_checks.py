"""Which segments are refused before anybody hears of them, and which only look as if they should be."""

from dataclasses import replace

import numpy as np
import pytest

from gpu_consumers.checks import check_chunk, check_count, check_latents, check_pictures
from gpu_consumers.engines.engine import EngineError, Frames
from schemas.records import FailureKind, SegmentRequested
from tests.gpu_consumers.requests import segment_request, shot


def asked(camera: str = "", action: str = "") -> SegmentRequested:
    return replace(segment_request(), shots=(shot(camera=camera, action=action),))


def noise(seed: int = 0) -> Frames:
    """One picture, 12 times."""
    picture = np.random.default_rng(seed).integers(0, 256, (1, 90, 160, 3), np.uint8)
    return np.repeat(picture, 12, axis=0)


def with_timecode(frames: Frames) -> Frames:
    for index, frame in enumerate(frames):
        frame[80:88, 130 + index : 140 + index] = 255
    return frames


def kind_of(check: object, *arguments: object) -> FailureKind | None:
    try:
        check(*arguments)  # type: ignore[operator]
    except EngineError as error:
        return error.kind
    return None


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_one_value_that_is_not_finite_fails_the_latents(value: float, dtype: type[np.floating]) -> None:
    latents = np.zeros((4, 8, 6, 10), dtype)
    assert kind_of(check_latents, latents) is None
    latents[3, 7, 5, 9] = value
    assert kind_of(check_latents, latents) is FailureKind.NAN


def test_latents_that_are_bit_patterns_pass() -> None:
    assert kind_of(check_latents, np.full((2, 4, 3, 3), 0x7FC0, np.uint16)) is None


@pytest.mark.parametrize(
    ("frames", "what"),
    [
        (np.zeros((2, 90, 160, 3), np.float32), "type"),
        (np.zeros((2, 160, 90, 3), np.uint8), "height and width"),
        (np.zeros((2, 90, 160, 4), np.uint8), "channels"),
        (np.zeros((90, 160, 3), np.uint8), "axes"),
    ],
)
def test_pictures_of_another_format_fail(frames: Frames, what: str) -> None:
    assert kind_of(check_chunk, frames, asked()) is FailureKind.ENGINE


def test_right_pictures_pass() -> None:
    assert kind_of(check_chunk, np.zeros((2, 90, 160, 3), np.uint8), asked()) is None


@pytest.mark.parametrize("made", [0, 11, 13])
def test_another_number_of_frames_fails(made: int) -> None:
    assert kind_of(check_count, made, asked()) is FailureKind.WRONG_FRAME_COUNT
    assert kind_of(check_count, 12, asked()) is None


def test_a_black_segment_fails() -> None:
    black = np.full((12, 90, 160, 3), 9, np.uint8)
    assert kind_of(check_pictures, black, asked()) is FailureKind.BLACK


def test_a_night_with_one_lamp_passes() -> None:
    night = np.full((12, 90, 160, 3), 9, np.uint8)
    night[:, 40:44, 70:76] = (60, 50, 20)
    assert kind_of(check_pictures, night, asked()) is None


def test_a_fade_from_black_passes() -> None:
    fade = np.zeros((12, 90, 160, 3), np.uint8)
    fade[-1] = 40
    assert kind_of(check_pictures, fade, asked()) is None


def test_a_picture_that_stands_still_fails_if_the_camera_was_to_move() -> None:
    assert kind_of(check_pictures, noise(), asked(camera="pan left, wide shot")) is FailureKind.FROZEN


def test_a_timecode_does_not_make_a_frozen_picture_move() -> None:
    assert kind_of(check_pictures, with_timecode(noise()), asked(camera="pan left")) is FailureKind.FROZEN


def test_a_still_scene_seen_by_a_static_camera_passes() -> None:
    assert kind_of(check_pictures, noise(), asked(camera="static, close-up", action="sit")) is None
    assert kind_of(check_pictures, with_timecode(noise()), asked(camera="static", action="stand")) is None


def test_a_text_that_was_not_understood_asks_for_nothing() -> None:
    assert kind_of(check_pictures, noise(), asked()) is None


def test_a_bird_in_a_static_shot_is_motion_enough() -> None:
    sky = np.full((12, 90, 160, 3), 180, np.uint8)
    assert kind_of(check_pictures, sky.copy(), asked(camera="static", action="fly")) is FailureKind.FROZEN
    for index, frame in enumerate(sky):
        frame[30:32, 20 + index : 23 + index] = 30
    assert kind_of(check_pictures, sky, asked(camera="static", action="fly")) is None


def test_a_slow_pan_over_a_smooth_sky_is_motion_enough() -> None:
    columns = np.linspace(100, 200, 160)[None, :] + 0.02 * np.arange(12)[:, None]
    sky = np.broadcast_to(columns[:, None, :, None], (12, 90, 160, 3)).astype(np.uint8)
    assert kind_of(check_pictures, sky, asked(camera="pan left", action="stand")) is None


def test_a_shot_that_is_not_in_the_segment_asks_for_nothing() -> None:
    later = replace(shot(camera="pan left"), start_frame=600)
    request = replace(segment_request(), shots=(replace(shot(camera="static", action="sit"), frames=600), later))
    assert kind_of(check_pictures, noise(), request) is None
