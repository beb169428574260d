"""The animatic engine draws what the text says: place, light, camera, pace, subject."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from gpu_consumers.engines.animatic.control import read_control
from gpu_consumers.engines.animatic.figures.cast import FIGURES
from gpu_consumers.engines.animatic.labels import time_code
from gpu_consumers.engines.animatic.look import AMBIENCES, COLOURS, FRAMINGS, PACES, PLACES, TIMES, WEATHER, look_of
from gpu_consumers.engines.animatic.motion import KNOWN_ACTIONS, KNOWN_MOVES
from gpu_consumers.engines.engine import Frames
from schemas.records import Instruction
from streams.prompts.vocabulary import vocabulary
from tests.engines.takes import Made, first_of, request

_LABELLED_TOP, _LABELLED_BOTTOM = 20, 84
Luma = NDArray[np.float64]


def _made(text: str, **changes: object) -> Made:
    return first_of(request(text, **changes))


def _inner(frames: Frames) -> Luma:
    """[T, h, w] lightness between the labels."""
    return frames[:, _LABELLED_TOP:_LABELLED_BOTTOM].astype(np.float64).mean(axis=-1)


def _moved(before: Luma, after: Luma) -> tuple[int, int]:
    """(right, down) in whole pixels that bring `before` to `after`: phase correlation with a Hann window."""
    h, w = before.shape
    window = np.outer(np.hanning(h), np.hanning(w))
    a, b = (np.fft.fft2((picture - picture.mean()) * window) for picture in (before, after))
    cross = np.fft.ifft2(b * np.conj(a) / (np.abs(b * a) + 1e-3)).real
    y, x = np.unravel_index(int(cross.argmax()), cross.shape)
    return (int(x) + w // 2) % w - w // 2, (int(y) + h // 2) % h - h // 2


def test_the_engine_knows_every_term_of_the_vocabulary() -> None:
    terms = vocabulary().terms
    assert set(terms["subject"]) <= set(FIGURES)
    assert set(terms["setting"]) <= {*PLACES, *WEATHER, "road"}
    assert set(terms["light"]) <= {*TIMES, *AMBIENCES}
    assert set(terms["camera"]) <= {*KNOWN_MOVES, *FRAMINGS}
    assert set(terms["pace"]) <= set(PACES)
    assert set(terms["colour"]) <= set(COLOURS)
    assert set(terms["action"]) <= set(KNOWN_ACTIONS)


@pytest.mark.parametrize("place", ["city", "forest", "sea", "desert", "village", "snowy mountains"])
def test_night_is_darker_than_day(place: str) -> None:
    day, night = (_made(f"A man stands in a {place} {time}, static", frames=4) for time in ("at noon", "at night"))
    assert _inner(night.frames).mean() < 0.6 * _inner(day.frames).mean()


def test_golden_hour_is_warm_and_blue_hour_is_not() -> None:
    warmth: list[float] = []
    for light in ("at sunset", "at dusk"):
        red, _, blue = _made(f"A man stands in a field {light}, static", frames=4).frames[:, 20:50].mean(axis=(0, 1, 2))
        warmth.append(float(red / blue))
    assert warmth[0] > 1.15 > 1.0 > warmth[1]


@pytest.mark.parametrize(
    ("move", "right", "down"),
    [("pan right", -1, 0), ("pan left", 1, 0), ("tilt up", 0, 1), ("tilt down", 0, -1), ("crane up", 0, 1)],
)
def test_the_picture_moves_against_the_camera(move: str, right: int, down: int) -> None:
    pictures = _inner(_made(f"An empty city, {move}", size=(256, 144)).frames)
    x, y = _moved(pictures[8], pictures[16])
    assert (np.sign(x), np.sign(y)) == (right, down)


@pytest.mark.parametrize(
    ("move", "grows"), [("zoom in", True), ("zoom out", False), ("dolly in", True), ("dolly out", False)]
)
def test_moving_in_magnifies_the_subject(move: str, grows: bool) -> None:
    made = _made(f"A red ball, {move}", frames=40)
    reds = [int(((f[..., 0] > 120) & (f[..., 1] < 90)).sum()) for f in (made.frames[0], made.frames[-1])]
    assert (reds[1] > 1.1 * reds[0]) if grows else (reds[0] > 1.1 * reds[1])


def test_tracking_keeps_the_subject_and_moves_the_background() -> None:
    made = _made("A red car drives past a village, tracking shot", size=(256, 144))
    pictures = _inner(made.frames)
    assert _moved(pictures[8][24:60], pictures[14][24:60])[0] < -2
    reds = ((f[..., 0] > 150) & (f[..., 1] < 80) for f in (made.frames[8], made.frames[14]))
    before, after = (float(np.median(np.nonzero(red)[1])) for red in reds)
    assert abs(before - after) <= 2


@pytest.mark.parametrize("text", ["A dog runs {} in a field, static", "An empty city, the camera pans {} right"])
def test_the_pace_sets_the_speed(text: str) -> None:
    travelled: list[float] = []
    for pace in ("slowly", "", "quickly"):
        latents = _made(text.format(pace)).latents
        first, last = read_control(latents[0]), read_control(latents[-1])
        travelled.append(abs(last.subject_x - first.subject_x) + abs(last.pan_x - first.pan_x))
    assert travelled[0] * 1.5 < travelled[1] < travelled[2] / 1.5


def test_handheld_shakes_and_a_tripod_does_not() -> None:
    shaken, still = (_made(f"A tree in a field, {camera}").latents for camera in ("handheld", "static"))
    assert np.std([read_control(latent).sway_y for latent in shaken]) > 0.002
    assert {read_control(latent).sway_y for latent in still} == {0.0}


def test_places_look_different() -> None:
    base = request(frames=1)
    pictures: dict[str, Luma] = {}
    for place in PLACES:
        instruction = Instruction(text=place, setting=place)
        asked = replace(base, shots=(replace(base.shots[0], instruction=instruction),))
        pictures[place] = _inner(first_of(asked).frames)[0]
    for a, b in itertools.combinations(pictures, 2):
        assert np.abs(pictures[a] - pictures[b]).mean() > 6, (a, b)


@pytest.mark.parametrize("weather", ["rain", "snow", "fog", "storm"])
def test_weather_shows(weather: str) -> None:
    fine, foul = (
        _inner(_made(text, frames=4).frames)
        for text in ("A tree in a field, static", f"A tree in a field in the {weather}, static")
    )
    assert np.abs(fine - foul).mean() > 8


def test_every_subject_shows() -> None:
    empty = _made("An empty field, static", frames=1).frames[0].astype(int)
    for kind in vocabulary().terms["subject"]:
        instruction = Instruction(text="", subject=kind, setting="field", camera="static")
        base = request(frames=1)
        asked = replace(base, shots=(replace(base.shots[0], instruction=instruction),))
        changed = (
            np.abs(first_of(asked).frames[0].astype(int) - empty)[_LABELLED_TOP:_LABELLED_BOTTOM].max(axis=-1) > 24
        )
        assert changed.sum() > 25, kind


def test_a_colour_is_the_subjects_own() -> None:
    red, blue = (
        _made(f"A {colour} car in a field, static", frames=1).frames[0].astype(int) for colour in ("red", "blue")
    )
    assert (red[..., 0] - blue[..., 0]).max() > 60
    assert (blue[..., 2] - red[..., 2]).max() > 60


def test_what_is_not_wanted_is_left_out() -> None:
    instruction = Instruction(text="", subject="dog, cat", setting="field, rain")
    look = look_of(instruction, ["Dog", "rain "])
    assert [token.kind for token in look.tokens] == ["cat"]
    assert look.backdrop.weather == frozenset()


def test_a_shot_on_a_tripod_is_no_frozen_picture() -> None:
    for text in ("A teapot, static", "A monk sits in a candlelit library, static", "A castle at night, static"):
        pictures = _inner(_made(text, size=(320, 180)).frames)
        assert np.abs(np.diff(pictures, axis=0)).mean(axis=(1, 2)).min() > 0.8, text


@pytest.mark.parametrize("time", TIMES)
def test_nothing_is_so_dark_or_bright_that_the_grain_wraps_around(time: str) -> None:
    for place, camera in itertools.product(PLACES, ("dolly in, tilt up", "zoom out, crane down")):
        made = _made(f"A candle and a snowman in the {place} at {time}, {camera}", frames=2)
        assert made.frames.min() >= 4, place
        assert made.frames.max() <= 250, place


@pytest.mark.parametrize("size", [(64, 64), (90, 160), (160, 160), (640, 48), (34, 400)])
def test_every_shape_of_picture(size: tuple[int, int]) -> None:
    made = _made("A train crosses a snowy village at night, tracking shot", size=size, frames=5)
    assert made.frames.shape == (5, size[1], size[0], 3)
    assert made.frames.std() > 8


@pytest.mark.parametrize(
    "text", ["", "\0\x1b[31m", "א" * 50, "😀 " * 400, "w" * 5000, "a\n" * 3000, "Ω" * 200 + " a b" * 900]
)
def test_any_text_is_captioned(text: str) -> None:
    base = request(frames=2)
    asked = replace(
        base, shots=(replace(base.shots[0], instruction=Instruction(text=text, subject=text[:99], parsed=False)),)
    )
    assert first_of(asked).frames.shape == (2, 96, 160, 3)


def test_the_time_code_counts_frames_of_the_timeline() -> None:
    assert time_code(0, 24) == "00:00:00:00"
    assert time_code(24 * 3661 + 5, 24) == "01:01:01:05"
    assert time_code(59, 30) == "00:00:01:29"


def test_the_picture_says_what_it_is() -> None:
    badge = _made("A man in a field", size=(640, 360), frames=1).frames[0][6:24, 6:60].reshape(-1, 3)
    amber = np.abs(badge.astype(int) - (236, 176, 60)).max(axis=-1) < 24
    assert amber.mean() > 0.5
