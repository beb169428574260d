"""Storyboard files: YAML and JSON, and what they say when they are wrong."""

import json

import pytest

from schemas.errors import BadInputError
from schemas.records import PromptSubmitted, Shot
from streams.prompts.storyboard import MAX_BYTES, parse_storyboard

_YAML = """
title: Harbour at dawn
size: 1280 x 720
fps: 23.976
negative: [people, text]
engine_options: {drift_exposure: 0.03, fault: nan}
shots:
  - prompt: A fishing boat leaves the harbour at dawn
    seconds: 4
    camera: pan right
  - prompt: The boat sails into the fog
    transition: dissolve
    seed: 7
"""


def test_a_yaml_storyboard_is_a_prompt() -> None:
    assert parse_storyboard(_YAML, "job-1") == PromptSubmitted(
        job_id="job-1",
        text="Harbour at dawn",
        width=1280,
        height=720,
        fps=23.976,
        negative=("people", "text"),
        engine_options={"drift_exposure": "0.03", "fault": "nan"},
        shots=(
            Shot(prompt="A fishing boat leaves the harbour at dawn", seconds=4.0, camera="pan right"),
            Shot(prompt="The boat sails into the fog", transition="dissolve", seed=7),
        ),
    )


def test_a_json_storyboard_is_the_same() -> None:
    board = {"text": "T", "job_id": "mine", "width": 64, "height": 64, "shots": [{"prompt": "\U0001f600 a dog runs"}]}
    prompt = parse_storyboard(json.dumps(board), "other")
    assert (prompt.job_id, prompt.text, prompt.shots[0].prompt) == ("mine", "T", "\U0001f600 a dog runs")


@pytest.mark.parametrize(
    ("text", "field", "rule"),
    [
        ("", "storyboard", "type"),
        ("- a", "storyboard", "type"),
        ("1: 2", "storyboard", "type"),
        ("shots: [", "storyboard", "syntax"),
        ('{"shots": [}', "storyboard", "syntax"),
        ("\0", "storyboard", "syntax"),
        ("[" * 5000, "storyboard", "syntax"),
        ('{"a":' * 5000, "storyboard", "syntax"),
        ("a: &a [x]\nshots: [{prompt: *a}]", "storyboard", "syntax"),
        ("shots: [{prompt: a}]\nx: !!python/object/apply:os.getcwd []", "storyboard", "syntax"),
        ("x" * (MAX_BYTES + 1), "storyboard", "size"),
        ("title: t", "shots", "required"),
        ("shots: []", "shots", "required"),
        ("shots: {prompt: a}", "shots", "type"),
        ("shots: [{seconds: 4}]", "shots[0].prompt", "required"),
        ("shots: [{prompt: a, seconds: long}]", "shots[0].seconds", "type"),
        ("shots: [{prompt: a}, {prompt: b, lens: 35}]", "shots[1].lens", "unknown_field"),
        ("shots: [{prompt: a}]\nlength: 4", "length", "unknown_field"),
        ("shots: [{prompt: a}]\nseed: 1.5", "seed", "type"),
        ("shots: [{prompt: a}]\nsize: big", "size", "format"),
        ("shots: [{prompt: a}]\nsize: 64x64\nwidth: 64", "size", "exclusive"),
        ("shots: [{prompt: a}]\ntitle: t\ntext: t", "title", "exclusive"),
    ],
)
def test_a_wrong_file_names_field_and_rule(text: str, field: str, rule: str) -> None:
    with pytest.raises(BadInputError) as caught:
        parse_storyboard(text, "job-1")
    assert (caught.value.field, caught.value.rule) == (field, rule)
