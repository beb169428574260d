"""What a segment is about: which of its shots it shows, in what words, and whether it goes on from the segment before."""

import pytest

from gpu_consumers.engines.shots import begins_take, shown, text_of
from schemas.records import Transition
from tests.engines_more.requests import clip_request, planned_shot

FOX = planned_shot("a fox runs", 0, 40)
WOLF = planned_shot("a wolf follows", 40, 20, Transition.CONTINUOUS, 1)
SEA = planned_shot("the sea", 60, 100, Transition.CUT, 2)
SHOTS = (FOX, WOLF, SEA)


@pytest.mark.parametrize(
    ("start", "frames", "wanted"),
    [(0, 40, (FOX,)), (0, 41, (FOX, WOLF)), (39, 1, (FOX,)), (40, 20, (WOLF,)), (60, 50, (SEA,)), (0, 160, SHOTS)],
)
def test_a_shot_is_shown_from_its_start_to_the_next_ones(start: int, frames: int, wanted: tuple[object, ...]) -> None:
    assert shown(clip_request("veo", 1, start=start, frames=frames, shots=SHOTS)) == wanted


def test_the_text_says_the_shots_in_their_order() -> None:
    request = clip_request("veo", start=0, frames=60, shots=SHOTS)
    assert text_of(request) == "a fox runs Then: a wolf follows"


@pytest.mark.parametrize(
    ("segment", "start", "begins"), [(0, 0, True), (1, 20, False), (2, 40, False), (3, 60, True), (4, 80, False)]
)
def test_only_a_cut_begins_a_new_take(segment: int, start: int, begins: bool) -> None:
    shots = tuple(shot for shot in SHOTS if shot.start_frame < start + 20)
    assert begins_take(clip_request("veo", segment, start=start, frames=20, shots=shots)) == begins
