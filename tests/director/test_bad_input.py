"""Every kind of bad input: refused with the field and the rule, and the row stays as it was."""

import json
import struct
from typing import Any

import pytest

from schemas import records as r
from schemas.codec import encode
from tests.director.builders import Line, decider, message, prompt, raw_message

PROMPTS = r.PromptSubmitted.topic
REFUSED_PROMPTS: list[tuple[dict[str, Any], str, str]] = [
    ({"job_id": ""}, "job_id", "characters"),
    ({"job_id": "../../etc/passwd"}, "job_id", "characters"),
    ({"job_id": "a..b"}, "job_id", "characters"),
    ({"job_id": ".hidden"}, "job_id", "characters"),
    ({"job_id": "file:///etc/passwd"}, "job_id", "characters"),
    ({"job_id": "a/b"}, "job_id", "characters"),
    ({"job_id": "a\\b"}, "job_id", "characters"),
    ({"job_id": "a%2e%2e"}, "job_id", "characters"),
    ({"job_id": "a\n"}, "job_id", "characters"),
    ({"job_id": "ünïcode"}, "job_id", "characters"),
    ({"job_id": "a" * 101}, "job_id", "characters"),
    ({"tenant": "a/b"}, "tenant", "characters"),
    ({"tenant": ""}, "tenant", "characters"),
    ({"tenant": "a" * 65}, "tenant", "characters"),
    ({"text": ""}, "text", "required"),
    ({"text": " \n\t "}, "text", "required"),
    ({"text": "x" * 10_001}, "text", "length"),
    ({"text": "x" * 100_000}, "text", "length"),
    ({"text": "a boat\0"}, "text", "control_characters"),
    ({"text": "a \x1b[31mred boat"}, "text", "control_characters"),
    ({"text": "a boat\x85"}, "text", "control_characters"),
    ({"text": "a boat\u202egpj.exe"}, "text", "invisible_characters"),
    ({"text": "a\u200bboat"}, "text", "invisible_characters"),
    ({"text": "a boat\U000e0041"}, "text", "invisible_characters"),
    ({"shots": [{"prompt": "a boat", "camera": "pan\ufeff"}]}, "shots[0].camera", "invisible_characters"),
    ({"negative": ["people", ""]}, "negative[1]", "required"),
    ({"negative": ["people\0"]}, "negative[0]", "control_characters"),
    ({"negative": ["people"] * 51}, "negative", "count"),
    ({"negative": ["ü" * 10_000] * 6}, "text", "total_length"),
    ({"duration_s": -1.0}, "duration_s", "range"),
    ({"duration_s": 0.0}, "duration_s", "range"),
    ({"duration_s": 0.49}, "duration_s", "range"),
    ({"duration_s": 3601.0}, "duration_s", "range"),
    ({"duration_s": 1e300}, "duration_s", "range"),
    ({"duration_s": 3600.0, "fps": 120.0}, "duration_s", "segments"),
    ({"duration_s": 0.5, "fps": 1.0}, "duration_s", "frames"),
    ({"width": 641}, "width", "even"),
    ({"height": 361}, "height", "even"),
    ({"engine": "causal_dit", "width": 640, "height": 360}, "height", "multiple"),
    ({"width": 0}, "width", "range"),
    ({"height": -360}, "height", "range"),
    ({"width": 62}, "width", "range"),
    ({"width": 1 << 70}, "width", "range"),
    ({"width": 8192, "height": 8192}, "width", "pixels"),
    ({"fps": 0.0}, "fps", "range"),
    ({"fps": -24.0}, "fps", "range"),
    ({"fps": 120.5}, "fps", "range"),
    ({"fps": 1e-9}, "fps", "range"),
    ({"engine": "sora"}, "engine", "unknown_engine"),
    ({"engine": ""}, "engine", "unknown_engine"),
    ({"engine_options": {"Drift": "1"}}, "engine_options", "characters"),
    ({"engine_options": {"../x": "1"}}, "engine_options", "characters"),
    ({"engine_options": {"drift": "x" * 257}}, "engine_options.drift", "length"),
    ({"engine_options": {"drift": "\0"}}, "engine_options.drift", "control_characters"),
    ({"engine_options": {f"o{i}": "1" for i in range(33)}}, "engine_options", "count"),
    ({"engine_options": {"drift": "1"}}, "engine_options.drift", "unknown_option"),
    ({"engine_options": {"drift_exposure": "2"}}, "engine_options.drift_exposure", "range"),
    ({"seed": -1}, "seed", "range"),
    ({"seed": 1 << 63}, "seed", "range"),
    ({"submitted_us": -1}, "submitted_us", "range"),
    ({"submitted_us": 1 << 62}, "submitted_us", "range"),
    ({"shots": [{"prompt": ""}]}, "shots[0].prompt", "required"),
    ({"shots": [{"prompt": "a"}, {"prompt": "b\x07"}]}, "shots[1].prompt", "control_characters"),
    ({"shots": [{"prompt": "a", "camera": "x" * 201}]}, "shots[0].camera", "length"),
    ({"shots": [{"prompt": "a", "transition": "swirl"}]}, "shots[0].transition", "transition"),
    ({"shots": [{"prompt": "a", "seed": -1}]}, "shots[0].seed", "range"),
    ({"shots": [{"prompt": "a", "seconds": -2.0}]}, "shots[0].seconds", "range"),
    ({"shots": [{"prompt": "a", "seconds": 0.1}]}, "shots[0].seconds", "range"),
    ({"shots": [{"prompt": "a", "seconds": 2.0}], "duration_s": 4.0}, "duration_s", "sum"),
    ({"shots": [{"prompt": "a", "seconds": 3.9}, {"prompt": "b"}], "duration_s": 4.0}, "duration_s", "sum"),
    ({"shots": [{"prompt": "a"}] * 9, "duration_s": 4.0}, "duration_s", "sum"),
    ({"shots": [{"prompt": "a", "seconds": 2000.0}] * 2, "duration_s": None}, "shots", "range"),
    ({"shots": [{"prompt": "a", "seconds": 1.0}] * 501, "duration_s": None}, "shots", "count"),
    ({"shots": [{"prompt": "a", "colour": "red"}]}, "shots[0].colour", "unknown_field"),
    ({"shots": "a"}, "shots", "type"),
    ({"priority": 9}, "priority", "unknown_field"),
    ({"text": 5}, "text", "type"),
    ({"width": "640"}, "width", "type"),
    ({"width": 640.5}, "width", "type"),
    ({"engine_options": {"drift": 1}}, "engine_options[...]", "type"),
]
AVRO_ONLY: list[tuple[dict[str, Any], str, str]] = [
    ({"fps": float("nan")}, "fps", "range"),
    ({"fps": float("inf")}, "fps", "range"),
    ({"duration_s": float("nan")}, "duration_s", "range"),
    ({"duration_s": float("inf")}, "duration_s", "range"),
    ({"shots": (r.Shot(prompt="a", seconds=float("nan")),)}, "shots[0].seconds", "range"),
]
NEITHER_AVRO_NOR_JSON: list[tuple[bytes | None, str]] = [
    (None, "framing"),
    (b"", "framing"),
    (b"hello", "framing"),
    (b"{", "framing"),
    (b"\xff\xfe\x00", "framing"),
    (b'{"job_id": "a", "fps": NaN}', "framing"),
    (b'{"job_id": "a", "text": "\xff"}', "framing"),
    (b'{"job_id": "a", "text": "\\ud800"}', "framing"),
    (b'{"job_id": "a", "duration_s": 1e999', "framing"),
    (b'{"job_id": "a", "seed": ' + b"9" * 5000 + b"}", "framing"),
    (b"[" * 100_000, "framing"),
    (b"[]", "type"),
    (b"null", "type"),
    (b"\0", "framing"),
    (b"\0" + struct.pack(">I", 9999), "schema_id"),
    (encode(prompt())[:-3], "avro"),
    (encode(prompt()) + b"x", "avro"),
    (encode(r.CancelRequested(job_id="harbour")), "record"),
]


@pytest.mark.parametrize("number", [b"1e999", b"1" + b"0" * 400])
def test_a_number_that_no_float_holds_is_refused_by_its_field(number: bytes) -> None:
    value = b'{"job_id": "harbour", "text": "a boat", "duration_s": ' + number + b"}"
    decision = decider().decide(raw_message(PROMPTS, value), None, 1)
    (event,) = decision.events
    assert isinstance(event, r.PromptRefused)
    assert event.field == "duration_s"


@pytest.mark.parametrize(("fields", "field", "rule"), REFUSED_PROMPTS)
def test_a_bad_prompt_is_refused_with_field_and_rule(fields: dict[str, Any], field: str, rule: str) -> None:
    wish = {"job_id": "harbour", "text": "A boat leaves the harbour", "duration_s": 4.0} | fields
    key = str(wish["job_id"]).encode()
    decision = decider().decide(raw_message(PROMPTS, json.dumps(wish).encode(), key=key), None, 1)
    assert decision.state is None
    assert decision.refused is not None
    assert (decision.refused.field, decision.refused.rule) == (field, rule)
    if wish["job_id"]:
        (event,) = decision.events
        assert isinstance(event, r.PromptRefused)
        assert (event.field, event.rule, event.message) == (field, rule, decision.refused.message)
        assert encode(event)


@pytest.mark.parametrize(("fields", "field", "rule"), AVRO_ONLY)
def test_a_bad_number_in_avro_is_refused_with_field_and_rule(fields: dict[str, Any], field: str, rule: str) -> None:
    decision = decider().decide(message(prompt(**fields)), None, 1)
    assert decision.refused is not None
    assert (decision.refused.field, decision.refused.rule) == (field, rule)


@pytest.mark.parametrize(("value", "rule"), NEITHER_AVRO_NOR_JSON)
def test_bytes_that_are_no_prompt_are_dead_letters(value: bytes | None, rule: str) -> None:
    decision = decider().decide(raw_message(PROMPTS, value), None, 1)
    assert decision.events == ()
    assert decision.refused is not None
    assert (decision.refused.field, decision.refused.rule) == ("value", rule)


def test_a_key_that_differs_from_job_id_is_refused_and_leaves_the_row_of_the_key_alone() -> None:
    line = Line()
    line.send(prompt(job_id="other"))
    for key in (b"other", b"", None):
        decision = decider().decide(raw_message(PROMPTS, encode(prompt()), key=key), line.row, 1)
        assert decision.state is None
        assert decision.refused is not None
        assert (decision.refused.field, decision.refused.rule) == ("key", "job_id")


def test_a_worker_event_under_a_foreign_key_is_a_dead_letter() -> None:
    line = Line()
    line.send(prompt())
    event = r.CancelRequested(job_id="harbour")
    decision = decider().decide(raw_message(event.topic, encode(event), key=b"other"), line.row, 1)
    assert decision.refused is not None
    assert decision.refused.field == "key"


def test_json_is_not_read_on_the_other_topics() -> None:
    decision = decider().decide(raw_message(r.CancelRequested.topic, b'{"job_id": "harbour"}'), None, 1)
    assert decision.refused is not None
    assert decision.refused.rule == "framing"


def test_a_refusal_is_small_and_printable_whatever_was_sent() -> None:
    wish = {"job_id": "\x1b[31m" + "x" * 100_000, "text": "a", "y" * 100_000: 1}
    (event,) = decider().decide(raw_message(PROMPTS, json.dumps(wish).encode()), None, 1).events
    assert isinstance(event, r.PromptRefused)
    assert event.job_id.isprintable()
    assert len(encode(event)) < 1500


def test_a_prompt_in_json_is_as_good_as_one_in_avro() -> None:
    wish = b'{"job_id": "harbour", "text": "A boat leaves the harbour", "duration_s": 4}'
    from_json = decider().decide(raw_message(PROMPTS, wish), None, 1)
    assert from_json == decider().decide(message(prompt()), None, 1)
