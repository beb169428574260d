"""The device table, and which renditions a job can have."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from schemas.errors import BadInputError
from schemas.records import JobState, PieceRequested, PromptRefused, VideoFinished, VideoFormat
from streams.encoding.coding import coding_of
from streams.encoding.levels import faults
from streams.encoding.presets import PresetError, load_presets, presets
from streams.encoding.renditions import MAX_RENDITIONS, planned_renditions
from tests.director.builders import Line, prompt
from tests.encoding.builders import HD, rendition

PHONE = """
[devices.phone]
codec = "h264"
bits = 8
size = [640, 360]
profile = "main"
level = "3.1"
rate_control = "crf"
crf = 26
speed = "fast"
"""


def refusal(*names: str, size: VideoFormat = HD) -> tuple[str, str]:
    with pytest.raises(BadInputError) as refused:
        planned_renditions(names, size, 24, presets())
    return refused.value.field, refused.value.rule


# --- the table --------------------------------------------------------------------------------------------------------


def test_the_phones_of_the_requirements_are_in_the_table() -> None:
    iphone, android = planned_renditions(("iphone-15-pro", "android-mid"), HD, 24, presets())
    assert (iphone.width, iphone.height, iphone.crf, iphone.profile, iphone.bits) == (1280, 720, 22.0, "main10", 10)
    assert (android.width, android.height, android.crf, android.profile) == (960, 540, 26.0, "main")


def test_the_table_has_every_codec_and_every_rate_control() -> None:
    kinds = {(preset.codec, preset.bits) for preset in presets().values()}
    assert kinds == {("h264", 8), ("hevc", 8), ("hevc", 10), ("av1", 8), ("av1", 10)}
    for codec in ("h264", "hevc", "av1"):
        rates = {preset.rate_control for preset in presets().values() if preset.codec == codec}
        assert len(rates) >= 3, (codec, rates)
    assert {preset.rate_control for preset in presets().values()} == {"crf", "capped_crf", "vbr", "cbr"}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"bits = 8": "bits = 10"}, "no profile 'main'"),
        ({'level = "3.1"': 'level = "9"'}, "no level"),
        ({'speed = "fast"': 'speed = "8"'}, "no speed"),
        ({"crf = 26": ""}, "said by crf"),
        ({"crf = 26": "crf = 26\nbitrate_kbps = 5"}, "said by crf"),
        ({"crf = 26": "crf = 60"}, "at most 51"),
        ({"[640, 360]": "[1920, 1080]"}, "more than h264 level 3.1 allows"),
        ({"crf = 26": "crf = 26\ntile_columns = 2"}, "no tile columns"),
        ({"crf = 26": "crf = 26\ncolour = 1"}, "colour"),
        ({"devices.phone": "devices.Phone"}, "devices"),
        ({"codec": "codec codec"}, "presets.toml"),
    ],
)
def test_a_table_that_says_something_wrong_is_not_loaded(tmp_path: Path, wrong: dict[str, str], said: str) -> None:
    text = PHONE
    for old, new in wrong.items():
        text = text.replace(old, new)
    (tmp_path / "presets.toml").write_text(text)
    with pytest.raises(PresetError, match=said):
        load_presets(tmp_path / "presets.toml")


# --- what a job can have ----------------------------------------------------------------------------------------------


def test_what_a_job_cannot_have_is_refused_by_field_and_rule() -> None:
    assert refusal("nokia-3310") == ("renditions[0]", "unknown_rendition")
    assert refusal("web-720p", "web-720p") == ("renditions[1]", "duplicate")
    assert refusal("web-720p", "web-1080p") == ("renditions[1]", "enlarged")
    assert refusal(*list(presets())[: MAX_RENDITIONS + 1]) == ("renditions", "count")
    assert refusal("web-720p", size=replace(HD, fps_num=120)) == ("renditions[0]", "level")
    assert refusal("web-360p", size=replace(HD, height=64)) == ("renditions[0]", "size")


def test_upright_pictures_turn_the_device_and_others_are_fitted_into_it() -> None:
    def size(width: int, height: int) -> tuple[int, int]:
        (found,) = planned_renditions(("android-mid",), replace(HD, width=width, height=height), 24, presets())
        return found.width, found.height

    assert size(1920, 1080) == (960, 540)
    assert size(1080, 1920) == (540, 960)
    assert size(1080, 1080) == (540, 540)
    assert size(1920, 800) == (960, 400)


@pytest.mark.parametrize(
    ("fields", "fps", "rule"),
    [
        ({"width": 1280, "height": 720}, 30, ""),
        ({"width": 1280, "height": 720}, 60, "level"),
        ({"width": 1920, "height": 1080}, 24, "level"),
        ({"bitrate_kbps": 14_001}, 24, "level"),
        ({"bitrate_kbps": 14_001, "profile": "high"}, 24, ""),
        ({"width": 3600, "height": 64}, 24, "level"),
        ({"width": 191}, 24, "size"),
        ({"codec": "av1", "width": 1024, "height": 576, "tile_columns": 4}, 24, ""),
        ({"codec": "av1", "width": 1024, "height": 576, "tile_columns": 3}, 24, "tiles"),
        ({"codec": "av1", "width": 960, "height": 540, "tile_columns": 4}, 24, "tiles"),
        ({"codec": "hevc", "tile_columns": 2}, 24, "tiles"),
    ],
)
def test_cells_that_cannot_work_say_why(fields: dict[str, Any], fps: int, rule: str) -> None:
    assert [fault.rule for fault in faults(rendition(**fields), Fraction(fps))] == ([rule] if rule else [])


def test_without_nvenc_the_software_encoder_is_taken() -> None:
    assert coding_of(rendition(nvenc=False)).encoder == "libx264"
    assert coding_of(rendition(nvenc=True)).encoder in ("libx264", "h264_nvenc")
    assert coding_of(rendition(codec="hevc")).tag == "hvc1"


# --- through the director ---------------------------------------------------------------------------------------------


def test_a_job_with_renditions_announces_them_with_its_video() -> None:
    line = Line()
    line.run(prompt(width=1280, height=720, renditions=("iphone-15-pro", "android-mid")))
    asked = line.last(PieceRequested).renditions
    assert [(each.name, each.gop_frames) for each in asked] == [("iphone-15-pro", 24), ("android-mid", 24)]
    event = line.last(VideoFinished)
    assert [(each.name, each.width) for each in event.renditions] == [("iphone-15-pro", 1280), ("android-mid", 960)]
    assert line.job.plan is not None
    assert (line.job.plan.renditions, line.job.assembly.renditions) == ((), event.renditions)


def test_a_prompt_for_renditions_that_cannot_be_is_refused() -> None:
    line = Line()
    line.run(prompt(width=640, height=360, renditions=("web-360p", "iphone-15-pro")))
    event = line.last(PromptRefused)
    assert (event.field, event.rule) == ("renditions[1]", "enlarged")
    assert "more than the job's 640x360" in event.message
    line.run(prompt(job_id="long", renditions=("web-360p", "android-low"), duration_s=2400.0))
    event = line.last(PromptRefused)
    assert (event.job_id, event.field, event.rule) == ("long", "renditions", "pieces")


def test_a_piece_that_is_asked_for_again_forgets_its_old_renditions() -> None:
    line = Line()
    first = line.until(PieceRequested, prompt(renditions=("web-360p",)))
    assert [each.name for each in first.renditions] == ["web-360p"]
    rows: list[JobState] = line.rows
    assert all(not piece.renditions for piece in rows[-1].pieces)
