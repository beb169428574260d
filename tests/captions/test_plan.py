"""Subtitles, cards and fades of a prompt are placed on the timeline, or refused by field and rule."""

from itertools import pairwise
from typing import Any

import pytest

from infra.web.console.facts import Facts
from infra.web.console.timeline import timeline
from schemas.codec import oldest_version
from schemas.errors import BadInputError
from schemas.records import (
    Caption,
    Captions,
    Card,
    JobState,
    PlannedCard,
    PromptSubmitted,
    SeamKind,
    Shot,
    Subtitle,
)
from streams.cards import designed_frames
from streams.intake import new_job, planned
from streams.prompts.storyboard import parse_storyboard
from streams.requests import piece_span
from tests.director.builders import instruct
from tests.sound.test_wishes import LOGO, catalogue

SHOTS = (Shot(prompt="A fox runs", seconds=2.0), Shot(prompt="A whale swims", seconds=2.0))


def prompt(*, transition: str = "cut", **fields: Any) -> PromptSubmitted:
    shots = (SHOTS[0], Shot(prompt="A whale swims", seconds=2.0, transition=transition))
    return PromptSubmitted(job_id="job", shots=shots, **fields)


def plan(**fields: Any) -> Any:
    return planned(prompt(**fields), instruct, catalogue())


def test_cards_are_frames_of_the_timeline_and_belong_to_the_first_and_the_last_piece() -> None:
    found = plan(title_card=Card(seconds=1, text="Fox"), end_card=Card(seconds=0.5, asset="logo", colour="#102030"))
    assert found.frames == 24 + 96 + 12
    assert found.cards == (
        PlannedCard(start_frame=0, frames=24, text="Fox", colour="#000000", text_colour="#ffffff"),
        PlannedCard(start_frame=120, frames=12, text="", colour="#102030", text_colour="#ffffff", asset=LOGO),
    )
    assert [shot.start_frame for shot in found.shots] == [24, 72]
    assert found.segments[0].start_frame == 24
    spans = [piece_span(found, index) for index in range(len(found.segments))]
    assert (spans[0][0], spans[-1][1]) == (0, 132)
    assert all(before[1] == after[0] for before, after in pairwise(spans))
    assert found.assets == (LOGO,)
    assert designed_frames(found.cards, found.curtains) == (0, 24, 120, 132)


def test_the_console_draws_the_pieces_that_are_asked_for() -> None:
    fields = {"title_card": Card(seconds=1, text="Fox"), "end_card": Card(seconds=0.5, text="End")}
    found, drawn = plan(**fields), timeline(prompt(**fields), Facts(segments=(), pieces=()), 132)
    spans = [piece_span(found, index) for index in range(len(found.segments))]
    assert [(piece.start, piece.start + piece.frames) for piece in drawn.pieces] == spans
    assert drawn.frames == 132


@pytest.mark.parametrize(("transition", "frames"), [("fade", 12), ("dip", 6)])
def test_a_fade_leaves_the_segments_as_a_cut_has_them(transition: str, frames: int) -> None:
    faded, cut = plan(transition=transition), plan()
    assert faded.segments == cut.segments
    (curtain,) = faded.curtains
    assert (curtain.frame, curtain.frames) == (48, frames)
    assert designed_frames((), faded.curtains) == (48 - frames, 48 + frames)


def test_a_wipe_has_the_overlap_of_a_dissolve() -> None:
    wiped, dissolved = plan(transition="wipe"), plan(transition="dissolve")
    lengths = [[(s.start_frame, s.frames, s.head_overlap) for s in p.segments] for p in (wiped, dissolved)]
    assert lengths[0] == lengths[1]
    assert SeamKind.WIPE in [segment.seam for segment in wiped.segments]


def test_a_job_without_any_of_it_is_planned_and_asked_for_as_before() -> None:
    found = plan()
    assert (found.cards, found.curtains, found.captions, found.sounds) == ((), (), None, ())
    assert found.segments[0].start_frame == 0
    job = new_job(prompt(), found, content_hash="", traceparent="", now_us=1)
    assert oldest_version(JobState, job).version < 5


def test_subtitles_are_placed() -> None:
    found = plan(subtitles=(Subtitle(start_s=0.5, end_s=1.25, text=" Hello "),), subtitles_as="file")
    assert found.captions == Captions(shown="file", lines=(Caption(start_us=500_000, end_us=1_250_000, text="Hello"),))


@pytest.mark.parametrize(
    ("fields", "field", "rule"),
    [
        ({"title_card": Card(seconds=0.1, text="x")}, "title_card.seconds", "range"),
        ({"end_card": Card(seconds=31, text="x")}, "end_card.seconds", "range"),
        ({"end_card": Card(seconds=1)}, "end_card.text", "required"),
        ({"title_card": Card(seconds=1, text="x", colour="red")}, "title_card.colour", "colour"),
        ({"title_card": Card(seconds=1, text="x", text_colour="#12")}, "title_card.text_colour", "colour"),
        ({"title_card": Card(seconds=1, asset="theme")}, "title_card.asset", "asset_kind"),
        ({"title_card": Card(seconds=1, text="x" * 301)}, "title_card.text", "length"),
        ({"title_card": Card(seconds=1, text="狐")}, "title_card.text", "letters"),
        ({"subtitles_as": "painted"}, "subtitles_as", "subtitles_as"),
        ({"subtitles_asset": "logo"}, "subtitles_asset", "asset_kind"),
        ({"subtitles": (Subtitle(start_s=4, end_s=5, text="x"),)}, "subtitles[0].start_s", "range"),
        ({"subtitles": (Subtitle(start_s=3, end_s=5, text="x"),)}, "subtitles[0].end_s", "range"),
        ({"subtitles": (Subtitle(start_s=3, end_s=3.1, text="x"),)}, "subtitles[0].end_s", "range"),
        ({"subtitles": (Subtitle(start_s=1, end_s=2, text=""),)}, "subtitles[0].text", "required"),
        (
            {"subtitles": (Subtitle(start_s=1, end_s=2, text="a"), Subtitle(start_s=1.9, end_s=3, text="b"))},
            "subtitles[1].start_s",
            "overlap",
        ),
        (
            {"subtitles": (Subtitle(start_s=1, end_s=2, text="狐"),), "subtitles_as": "burnt"},
            "subtitles[0].text",
            "letters",
        ),
        ({"transition": "explode"}, "shots[1].transition", "transition"),
    ],
)
def test_what_cannot_be_shown_is_refused(fields: dict[str, Any], field: str, rule: str) -> None:
    with pytest.raises(BadInputError) as refusal:
        plan(**fields)
    assert (refusal.value.field, refusal.value.rule) == (field, rule)


def test_a_storyboard_says_it_in_yaml() -> None:
    board = """
shots: [{prompt: A fox runs, seconds: 2}, {prompt: A whale swims, seconds: 2, transition: wipe}]
title_card: {text: Fox, seconds: 1}
subtitles: [{start_s: 1, end_s: 2, text: A fox.}]
subtitles_as: burnt
"""
    found = parse_storyboard(board, "job")
    assert found.title_card == Card(seconds=1, text="Fox")
    assert found.subtitles == (Subtitle(start_s=1, end_s=2, text="A fox."),)
