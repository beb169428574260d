"""What a prompt wants to be heard is placed on the timeline, or refused by field and rule."""

from fractions import Fraction
from typing import Any

import pytest

from infra.assets.catalogue import Catalogue
from schemas.codec import content_hash, decode_prompt, encode
from schemas.errors import BadInputError
from schemas.ids import versions
from schemas.records import AssetRef, Blob, Effect, Music, Narration, PromptSubmitted, Sound
from streams.intake import planned
from streams.prompts.storyboard import parse_storyboard
from streams.sound.wishes import planned_sounds
from tests.assets.files import said
from tests.director.builders import instruct

THEME = AssetRef(
    name="theme",
    version="1",
    region="",
    content=Blob(uri="x", digest="sha256:" + "a" * 64, size_bytes=9, media_type="audio/flac"),
    duration_us=2_000_000,
)
LOGO = AssetRef(
    name="logo",
    version="1",
    region="",
    content=Blob(uri="x", digest="sha256:" + "b" * 64, size_bytes=9, media_type="image/png"),
)


def catalogue() -> Catalogue:
    known = Catalogue()
    for asset in (THEME, LOGO):
        known.take(said(asset))
    return known


def prompt(**fields: Any) -> PromptSubmitted:
    return PromptSubmitted(job_id="job", text="A fox runs", duration_s=4, **fields)


def sounds(**fields: Any) -> tuple[Sound, ...]:
    return planned_sounds(prompt(**fields), Fraction(4), catalogue())


def test_sounds_come_in_the_order_of_time_with_what_their_names_mean() -> None:
    found = sounds(
        music=Music(asset="theme", gain_db=-6, fade_out_s=1.5),
        effects=(Effect(asset="theme@1", at_s=3.25), Effect(asset=THEME.content.digest, at_s=0.5)),
        narration=(Narration(at_s=1, text="A fox.", voice="en-gb"),),
    )
    assert [sound.start_us for sound in found] == [0, 500_000, 1_000_000, 3_250_000]
    assert found[0] == Sound(start_us=0, gain_db=-6, asset=THEME, fade_out_us=1_500_000, loop=True)
    assert found[2] == Sound(start_us=1_000_000, gain_db=0, text="A fox.", voice="en-gb", words_per_minute=160)


def test_a_plan_says_what_it_is_heard_with_and_which_assets_it_takes() -> None:
    plan = planned(prompt(effects=(Effect(asset="theme", at_s=1),)), instruct, catalogue())
    assert plan.assets == (THEME,)
    assert [sound.asset for sound in plan.sounds] == [THEME]


@pytest.mark.parametrize(
    ("fields", "field", "rule"),
    [
        ({"music": Music(asset="nothing")}, "music.asset", "unknown_asset"),
        ({"music": Music(asset="logo")}, "music.asset", "asset_kind"),
        ({"music": Music(asset="../up")}, "music.asset", "asset"),
        ({"music": Music(asset="theme", gain_db=21)}, "music.gain_db", "range"),
        ({"music": Music(asset="theme", fade_in_s=61)}, "music.fade_in_s", "range"),
        ({"music": Music(asset="theme", fade_in_s=3, fade_out_s=2)}, "music.fade_out_s", "sum"),
        ({"effects": (Effect(asset="theme", at_s=4),)}, "effects[0].at_s", "range"),
        ({"effects": (Effect(asset="theme", at_s=float("nan")),)}, "effects[0].at_s", "range"),
        ({"effects": (Effect(asset="theme", at_s=0),) * 201}, "effects", "count"),
        ({"narration": (Narration(at_s=0),)}, "narration[0].text", "exclusive"),
        ({"narration": (Narration(at_s=0, text="x", asset="theme"),)}, "narration[0].text", "exclusive"),
        ({"narration": (Narration(at_s=0, text="a\0b"),)}, "narration[0].text", "control_characters"),
        ({"narration": (Narration(at_s=0, text="x", voice="--help"),)}, "narration[0].voice", "voice"),
        ({"narration": (Narration(at_s=0, text="x", voice="en/../x"),)}, "narration[0].voice", "voice"),
        ({"narration": (Narration(at_s=0, text="x", voice="zz"),)}, "narration[0].voice", "voice"),
        ({"narration": (Narration(at_s=0, text="x", words_per_minute=9),)}, "narration[0].words_per_minute", "range"),
    ],
)
def test_what_cannot_be_heard_is_refused(fields: dict[str, Any], field: str, rule: str) -> None:
    with pytest.raises(BadInputError) as refusal:
        sounds(**fields)
    assert (refusal.value.field, refusal.value.rule) == (field, rule)


@pytest.mark.parametrize(
    ("part", "field"),
    [
        (b'"music": {"asset": "theme", "volume": 3}', "music.volume"),
        (b'"effects": [{"asset": "theme", "at_s": 1, "at": 2}]', "effects[0].at"),
        (b'"narration": [{"at_s": 1, "words": "x"}]', "narration[0].words"),
    ],
)
def test_unknown_fields_inside_are_refused(part: bytes, field: str) -> None:
    with pytest.raises(BadInputError) as refusal:
        decode_prompt(b'{"job_id": "job", "text": "A fox", ' + part + b"}")
    assert (refusal.value.field, refusal.value.rule) == (field, "unknown_field")


def test_a_storyboard_says_it_in_yaml() -> None:
    board = """
shots: [{prompt: A fox runs, seconds: 4}]
music: {asset: theme, gain_db: -9, loop: false}
effects: [{asset: theme, at_s: 1.5}]
narration: [{at_s: 2, text: The fox is gone.}]
"""
    found = parse_storyboard(board, "job")
    assert found.music == Music(asset="theme", gain_db=-9, loop=False)
    assert found.effects == (Effect(asset="theme", at_s=1.5),)
    assert found.narration == (Narration(at_s=2, text="The fox is gone."),)


def test_a_prompt_without_sound_is_written_as_before() -> None:
    first = next(v for v in versions() if v.record == "PromptSubmitted")
    assert encode(prompt())[1:5] == first.id.to_bytes(4)
    assert content_hash(prompt()) != content_hash(prompt(music=Music(asset="theme")))
