"""Text becomes canonical terms: by rules, the same every time, in time that grows with the text and no faster."""

import itertools
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.records import Instruction
from streams.prompts.instruct import PARSE_DEADLINE_S, instruct, parse_with_deadline
from streams.prompts.reading import read
from streams.prompts.vocabulary import KINDS, vocabulary


def _parsed(text: str, camera: str | None = None) -> Instruction:
    return instruct(text, camera)[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "A woman in a red coat walks slowly through a rainy neon city at night, tracking shot",
            {
                "subject": "person",
                "action": "walk",
                "setting": "city, rain",
                "camera": "tracking",
                "light": "neon, night",
                "pace": "slow",
            },
        ),
        (
            "A red sports car speeds down a desert highway at sunset, camera pans quickly to the left",
            {
                "subject": "red car",
                "action": "drive",
                "setting": "desert, road",
                "camera": "pan left",
                "light": "golden hour",
                "pace": "fast",
            },
        ),
        (
            "The old wooden sailing boat drifts on a foggy lake at dawn; the camera cranes up",
            {"subject": "brown boat", "setting": "lake, fog", "camera": "crane up", "light": "golden hour"},
        ),
        (
            "Wolves were running across the frozen lake, hand-held close-up",
            {"subject": "dog", "action": "run", "setting": "ice", "camera": "handheld, close-up"},
        ),
        (
            "A lighthouse as waves crash on the shore",
            {"subject": "lighthouse", "action": "fall", "setting": "sea, beach"},
        ),
        (
            "Hot air balloons rise over a field under a blue sky",
            {"subject": "balloon", "action": "rise", "setting": "field", "light": "day"},
        ),
        ("A man waves from a bridge", {"subject": "person", "action": "gesture", "setting": "city"}),
        ("THE CAMERA SLOWLY PUSHES IN ON AN ASTRONAUT", {"subject": "astronaut", "camera": "dolly in", "pace": "slow"}),
        ("A bird\u2019s eye view of skyscrapers", {"camera": "aerial", "setting": "city"}),
    ],
)
def test_a_text_is_read(text: str, expected: dict[str, str]) -> None:
    instruction = _parsed(text)
    assert {field: getattr(instruction, field) for field in expected} == expected
    assert instruction.text == text
    assert instruction.parsed


def test_what_the_vocabulary_does_not_know_is_taken_from_the_text() -> None:
    teapot = _parsed("A small teapot whistles on the stove in a kitchen")
    assert (teapot.subject, teapot.action, teapot.setting) == ("small teapot", "whistles", "interior")
    assert _parsed("A chef julienning carrots").action == "julienning"


def test_what_is_said_not_to_be_there_is_not_there() -> None:
    instruction, lints = instruct("A street without cars, no people. A dog walks")
    assert (instruction.subject, instruction.setting) == ("dog", "city")
    assert "car, person" in next(lint.message for lint in lints if lint.code == "negation")


def test_the_camera_field_goes_before_the_text() -> None:
    assert (
        _parsed("A dog runs, the camera pans left", "tracking shot, handheld").camera == "tracking, handheld, pan left"
    )
    assert _parsed("A dog runs, the camera pans left", "pan right").camera == "pan right"


@pytest.mark.parametrize(
    "verb",
    [
        "walk",
        "walks",
        "walking",
        "walked",
        "runs",
        "running",
        "ran",
        "sits",
        "sitting",
        "dives",
        "diving",
        "carries",
        "carried",
    ],
)
def test_verbs_are_known_in_every_form(verb: str) -> None:
    assert _parsed(f"A man {verb}").action in {"walk", "run", "sit", "swim", "gesture"}


def test_every_phrase_of_the_vocabulary_means_its_term() -> None:
    for phrase in itertools.chain.from_iterable(vocabulary().phrases.values()):
        if phrase.kind != "colour":
            assert phrase.term in read(" ".join(phrase.words), lambda: None).of(phrase.kind), phrase


def test_empty_and_foreign_texts_are_instructions_too() -> None:
    assert _parsed("") == Instruction(text="")
    assert _parsed("竹林の中を歩く女性").text == "竹林の中を歩く女性"


@given(st.text(max_size=400))
@settings(max_examples=150, deadline=None)
def test_any_text_gives_known_terms_or_words_of_its_own(text: str) -> None:
    once, again = instruct(text), instruct(text)
    assert once == again
    known = vocabulary().terms
    for kind in ("setting", "camera", "light", "pace"):
        terms = [term for term in getattr(once[0], kind).split(", ") if term]
        assert set(terms) <= set(known[kind])
    assert len(once[0].subject) < 100 + 20 * len(known["subject"])


_HOSTILE = {
    "letters": "a" * 100_000,
    "articles": "a " * 50_000,
    "stops": "," * 100_000,
    "negations": "no " * 33_000,
    "half phrases": "hot air " * 12_500,
    "pans": "pan " * 25_000,
    "guesses": "the teapot " * 9_000,
    "ing": "xing " * 20_000,
    "quotes": "a\u2019" * 50_000,
    "nul": "\0" * 100_000,
    "known": "dog cat horse car " * 5_500,
}


@pytest.mark.parametrize("text", _HOSTILE.values(), ids=_HOSTILE.keys())
def test_hostile_texts_cost_no_more_than_their_length(text: str) -> None:
    """The work is counted in words looked at, not in seconds."""
    ticks = itertools.count()
    instruction, _ = instruct(text, tick=lambda: next(ticks) and None)
    assert next(ticks) <= len(text) // 64 + 4
    assert max(len(getattr(instruction, kind)) for kind in KINDS if kind != "colour") < 1000


def test_a_long_text_is_parsed_well_within_the_deadline() -> None:
    text = "A woman walks through a rainy city at night while the camera pans left. " * 137
    best = min(_seconds(text) for _ in range(3))
    assert best < PARSE_DEADLINE_S


def _seconds(text: str) -> float:
    begun = time.process_time()
    instruct(text)
    return time.process_time() - begun


def test_past_the_deadline_the_plain_text_is_used() -> None:
    clock = itertools.count(0.0, 0.1)
    text = "a dog runs. " * 5000
    instruction, lints = parse_with_deadline(text, "pan left", clock=lambda: next(clock), deadline_s=0.25, shot=3)
    assert instruction == Instruction(text=text, parsed=False)
    assert [(lint.shot, lint.code) for lint in lints] == [(3, "not_parsed")]
    assert next(clock) < 1


def test_within_the_deadline_nothing_is_lost() -> None:
    text = "A dog runs on a beach, pan left"
    assert parse_with_deadline(text, clock=lambda: 5.0) == instruct(text)
