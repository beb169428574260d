"""Remarks say what a prompt lacks, and only that."""

import pytest

from schemas.records import Lint, PlannedShot, Transition
from streams.prompts.instruct import instruct
from streams.prompts.lint import lint_plan


def _codes(text: str, camera: str | None = None, negative: tuple[str, ...] = ()) -> set[str]:
    return {lint.code for lint in instruct(text, camera, negative=negative)[1]}


def _message(text: str, code: str) -> str:
    return next(lint.message for lint in instruct(text)[1] if lint.code == code)


def _shots(*texts: str, transition: Transition = Transition.CUT, frames: int = 96) -> list[PlannedShot]:
    return [
        PlannedShot(
            shot=number,
            start_frame=number * frames,
            frames=frames,
            transition=transition if number else Transition.CUT,
            seed=1,
            instruction=instruct(text)[0],
        )
        for number, text in enumerate(texts)
    ]


def test_a_good_prompt_has_no_remarks() -> None:
    assert _codes("A woman walks through a forest at dawn, slow dolly in") == set()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Glowing in a forest at dawn, static shot", "no_subject"),
        ("A dog in a forest, static shot", "no_action"),
        ("A dog runs through a forest", "no_camera"),
        ("A beautiful dog runs through an epic forest, static shot", "vague_words"),
        ("A dog, a cat, a horse and a bird run in a field, static shot", "many_subjects"),
        ("A dog runs, static shot, the camera pans left", "camera_contradiction"),
        ("A dog runs, zoom in, then zoom out", "camera_contradiction"),
        ("A dog runs in a field by day and at night, pan left", "light_contradiction"),
        ("A dog runs in a field without people, pan left", "negation"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_else(text: str, code: str) -> None:
    assert _codes(text) == {code}


def test_messages_name_the_words() -> None:
    assert "beautiful, epic" in _message("A beautiful dog in an epic forest", "vague_words")
    assert "'static' is used" in _message("A dog runs, static shot, pan left", "camera_contradiction")
    assert "dog, cat, horse, bird" in _message("A dog, a cat, a horse and a bird run", "many_subjects")


def test_moves_that_go_together_are_no_contradiction() -> None:
    assert _codes("A dog runs, pan left, tilt up, dolly in, zoom out, handheld") == set()


def test_the_camera_field_counts_as_camera_term_and_as_contradiction() -> None:
    assert _codes("A dog runs", "pan left") == set()
    assert _codes("A dog runs, zoom out", "static") == {"camera_contradiction"}


def test_a_prompt_that_asks_for_what_it_forbids_is_told() -> None:
    assert _codes("A dog runs in the rain, pan left", negative=("blur", "cats, rain")) == {"negative_contradiction"}
    assert _codes("A small teapot whistles, static", negative=("a small teapot",)) == {"negative_contradiction"}
    assert _codes("A dog runs in the sun, pan left", negative=("rain", "people")) == set()


def test_a_shot_shorter_than_a_segment_is_told() -> None:
    shots = _shots("A dog runs, pan left", frames=30)
    assert lint_plan(shots, 40)[0].code == "short_shot"
    assert "30 frames" in lint_plan(shots, 40)[0].message
    assert lint_plan(shots, 30) == ()


def test_the_first_shot_has_nothing_to_come_from() -> None:
    (shot,) = _shots("A dog runs, pan left")
    for transition in (Transition.DISSOLVE, Transition.CONTINUOUS):
        late = PlannedShot(
            shot=0, start_frame=0, frames=96, transition=transition, seed=1, instruction=shot.instruction
        )
        assert [lint.code for lint in lint_plan([late], 40)] == ["unsafe_transition"]


def test_no_take_goes_on_from_the_street_to_the_sea_bed() -> None:
    shots = _shots("A man walks in a city", "A whale swims underwater", transition=Transition.CONTINUOUS)
    assert [(lint.shot, lint.code) for lint in lint_plan(shots, 40)] == [(1, "unsafe_transition")]
    assert "city to underwater" in lint_plan(shots, 40)[0].message


@pytest.mark.parametrize(
    ("texts", "transition"),
    [
        (("A man walks in a city", "A whale swims underwater"), Transition.CUT),
        (("A man walks in a city", "A whale swims underwater"), Transition.DISSOLVE),
        (("A man walks in a city", "A man runs through a village"), Transition.CONTINUOUS),
        (("A man walks in a city", "A man runs"), Transition.CONTINUOUS),
        (("A fish swims underwater", "A whale swims underwater"), Transition.CONTINUOUS),
    ],
)
def test_other_changes_are_safe(texts: tuple[str, str], transition: Transition) -> None:
    assert lint_plan(_shots(*texts, transition=transition), 40) == ()


def test_remarks_know_their_shot() -> None:
    assert instruct("A dog", "static", shot=4)[1][0] == Lint(
        shot=4,
        code="no_action",
        message="nothing happens: say what is done with a verb a camera can see ('walks', 'turns', 'rises')",
    )
