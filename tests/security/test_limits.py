"""Every limit of docs/security.md: at it a prompt runs, one beyond it is refused with that field and that rule."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schemas.errors import BadInputError
from schemas.records import PromptSubmitted, Shot
from streams.intake import planned
from streams.prompts.storyboard import parse_storyboard
from tests.director.builders import instruct, prompt

DOCS = Path(__file__).parents[2] / "docs" / "security.md"
ROW = re.compile(r"\| `([^`]+)` \| `([a-z_]+)` \| .+ \|")
Fields = dict[str, Any]


def shots(count: int, **fields: Any) -> Fields:
    return {"shots": (Shot(**({"prompt": "A boat", "seconds": 1.0} | fields)),) * count, "duration_s": None}


CASES: dict[tuple[str, str], tuple[Fields, Fields]] = {
    ("job_id", "characters"): ({"job_id": "a" * 100}, {"job_id": "a" * 101}),
    ("tenant", "characters"): ({"tenant": "a" * 64}, {"tenant": "a" * 65}),
    ("text", "length"): ({"text": "a" * 10_000}, {"text": "a" * 10_001}),
    ("text", "total_length"): (
        {"text": "é", "negative": ("é" * 9_999,) * 5},
        {"text": "é" * 6, "negative": ("é" * 9_999,) * 5},
    ),
    ("text", "control_characters"): ({"text": "a boat\n\tat sea"}, {"text": "a boat\x1b[2J"}),
    ("text", "invisible_characters"): (
        {"text": "\u0645\u06cc\u200c\u062e\u0648 👩\u200d🚀 שלום\u200f!"},
        {"text": "a \u202etaob"},
    ),
    ("negative", "count"): ({"negative": ("people",) * 50}, {"negative": ("people",) * 51}),
    ("shots", "count"): (shots(500), shots(501)),
    ("shots[0].camera", "length"): (shots(1, camera="a" * 200), shots(1, camera="a" * 201)),
    ("shots[0].seconds", "range"): (shots(1, seconds=0.5), shots(1, seconds=0.49)),
    ("shots", "range"): (shots(2, seconds=1800.0) | {"fps": 12.0}, shots(2, seconds=1800.1) | {"fps": 12.0}),
    ("duration_s", "range"): ({"duration_s": 3600.0, "fps": 12.0}, {"duration_s": 3600.1, "fps": 12.0}),
    ("duration_s", "frames"): ({"duration_s": 0.5, "fps": 8.0}, {"duration_s": 0.5, "fps": 6.0}),
    ("duration_s", "segments"): ({"duration_s": 2667.0}, {"duration_s": 2667.1}),
    ("width", "range"): ({"width": 64}, {"width": 62}),
    ("width", "pixels"): ({"width": 3840, "height": 2160}, {"width": 3842, "height": 2160}),
    ("fps", "range"): ({"fps": 120.0}, {"fps": 120.1}),
    ("seed", "range"): ({"seed": (1 << 63) - 1}, {"seed": 1 << 63}),
    ("engine_options", "count"): (
        {"engine_options": {"drift_exposure": "0.1"}},
        {"engine_options": {f"o{n}": "1" for n in range(33)}},
    ),
    ("engine_options", "characters"): ({"engine_options": {"fault": "none"}}, {"engine_options": {"a" * 65: "1"}}),
    ("engine_options.drift_exposure", "length"): (
        {"engine_options": {"drift_exposure": "0.1"}},
        {"engine_options": {"drift_exposure": "1" * 257}},
    ),
    ("submitted_us", "range"): ({"submitted_us": 4_102_444_799_999_999}, {"submitted_us": 4_102_444_800_000_000}),
}
FILES = {("storyboard", "size")}


def refusal(make: Callable[[], object]) -> tuple[str, str] | None:
    try:
        make()
    except BadInputError as error:
        return error.field, error.rule
    return None


def plan(fields: Fields) -> object:
    wish: PromptSubmitted = prompt(**fields)
    return planned(wish, instruct)


@pytest.mark.parametrize(("field", "rule"), CASES)
def test_at_the_limit_it_runs_and_beyond_it_is_refused_by_name(field: str, rule: str) -> None:
    at, beyond = CASES[field, rule]
    assert refusal(lambda: plan(at)) is None
    assert refusal(lambda: plan(beyond)) == (field, rule)


def test_a_storyboard_file_has_a_size() -> None:
    board = "title: boats\nshots:\n  - {prompt: A boat, seconds: 2}\n#"
    assert refusal(lambda: parse_storyboard(board + "x" * (1_000_000 - len(board)), "j")) is None
    assert refusal(lambda: parse_storyboard(board + "x" * 1_000_000, "j")) == ("storyboard", "size")


def test_the_table_of_limits_is_the_one_that_is_tested() -> None:
    assert {(m[1], m[2]) for m in ROW.finditer(DOCS.read_text())} == CASES.keys() | FILES


@pytest.mark.parametrize("character", ["\u200b", "\u2060", "\ufeff", "\u2028", "\u2066", "\u202d", "\U000e0061"])
def test_text_that_hides_is_refused_in_every_field(character: str) -> None:
    hidden = f"a{character}b"
    for fields in (
        {"text": hidden},
        {"negative": (hidden,)},
        shots(1, prompt=hidden),
        shots(1, camera=hidden),
        {"engine_options": {"fault": hidden}},
    ):
        found = refusal(lambda fields=fields: plan(fields))
        assert found is not None
        assert found[1] == "invisible_characters"
