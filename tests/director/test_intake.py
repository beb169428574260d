"""What becomes of a good prompt, and of the same one again."""

from fractions import Fraction

import pytest

from schemas import records as r
from schemas.codec import content_hash
from schemas.headers import trace_id
from streams.storyboard import exact_fps
from tests.director.builders import START_US, Line, decider, message, prompt


def accepted(**fields: object) -> Line:
    line = Line()
    line.send(prompt(**fields))
    return line


def plan(**fields: object) -> r.Plan:
    found = accepted(**fields).job.plan
    assert found is not None
    return found


def test_a_prompt_becomes_a_row_and_the_request_of_its_first_segment() -> None:
    line = accepted()
    queued, request, change = line.said
    assert isinstance(queued, r.JobChanged)
    assert queued.stage is r.Stage.QUEUED
    assert isinstance(request, r.SegmentRequested)
    assert (request.segment, request.attempt, request.latent_ref) == (0, 1, ())
    assert isinstance(change, r.JobChanged)
    assert (change.stage, change.frames, change.segments) == (r.Stage.GENERATING, 96, 3)
    assert line.job.content_hash == content_hash(prompt())


def test_the_same_prompt_again_is_answered_and_runs_nothing() -> None:
    line = accepted()
    before = line.row
    (answer,) = line.send(prompt(submitted_us=START_US))
    assert answer == line.last(r.JobChanged)
    assert line.row == before


def test_the_same_prompt_after_the_job_has_finished_is_answered_with_the_video() -> None:
    line = Line()
    line.run(prompt())
    last = line.last(r.JobChanged)
    assert line.send(prompt()) == (last,)
    assert last.video == line.last(r.VideoFinished).video


def test_another_prompt_under_the_same_id_is_refused_and_the_job_goes_on() -> None:
    line = accepted()
    before = line.row
    decision = decider().decide(message(prompt(seed=5)), line.row, START_US)
    assert decision.refused is not None
    assert (decision.refused.field, decision.refused.rule) == ("job_id", "content")
    (event,) = decision.events
    assert isinstance(event, r.PromptRefused)
    assert event.content_hash == content_hash(prompt(seed=5))
    assert decision.state is None
    assert line.row == before


def test_a_refused_prompt_may_be_corrected_under_the_same_id() -> None:
    line = Line()
    line.send(prompt(width=641))
    assert line.row is None
    line.send(prompt())
    assert line.job.stage is r.Stage.GENERATING


def test_the_trace_of_the_producer_goes_on_in_the_row() -> None:
    header = ("traceparent", b"00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")
    state = decider().decide(message(prompt(), headers=(header,)), None, START_US).state
    assert state is not None
    assert trace_id(state.traceparent) == "0123456789abcdef0123456789abcdef"


def test_a_job_is_submitted_when_the_broker_took_it_unless_the_producer_says_when() -> None:
    assert accepted().job.submitted_us == START_US
    assert accepted(submitted_us=5).job.submitted_us == 5


@pytest.mark.parametrize(
    ("fps", "exact"),
    [
        (24.0, "24"),
        (23.976, "24000/1001"),
        (23.98, "24000/1001"),
        (29.97, "30000/1001"),
        (47.952, "48000/1001"),
        (59.94, "60000/1001"),
        (119.88, "120000/1001"),
        (25.0, "25"),
        (12.5, "25/2"),
        (120.0, "120"),
        (23.9, "239/10"),
    ],
)
def test_frame_rates_are_exact(fps: float, exact: str) -> None:
    assert exact_fps(fps) == Fraction(exact)


def test_a_job_without_a_duration_takes_12_seconds() -> None:
    assert plan(duration_s=None).frames == 288


def test_the_shots_decide_the_duration() -> None:
    shots = (r.Shot(prompt="a", seconds=2.5), r.Shot(prompt="b", seconds=1.25))
    assert plan(duration_s=None, shots=shots).frames == 90


def test_shots_without_seconds_share_what_the_others_leave() -> None:
    shots = (r.Shot(prompt="a", seconds=2.0), r.Shot(prompt="b"), r.Shot(prompt="c"))
    assert [shot.frames for shot in plan(duration_s=6.0, shots=shots).shots] == [48, 48, 48]


def test_a_duration_may_differ_from_the_shots_by_a_frame_of_rounding() -> None:
    shots = tuple(r.Shot(prompt=name, seconds=3.333) for name in "abc")
    assert plan(duration_s=10.0, shots=shots).frames == 240


def test_shots_are_placed_with_transition_and_seed() -> None:
    shots = (r.Shot(prompt="a"), r.Shot(prompt="b", transition="dissolve", seed=9))
    first, second = plan(duration_s=8.0, shots=shots, seed=4, text="Two shots").shots
    assert (first.start_frame, first.transition, first.seed) == (0, r.Transition.CUT, 4)
    assert (second.start_frame, second.transition, second.seed) == (96, r.Transition.DISSOLVE, 9)


def test_the_title_is_one_short_line() -> None:
    assert plan(text="A boat\n leaves" + " slowly" * 100).title.startswith("A boat leaves slowly")
    assert len(plan(text="A boat\n leaves" + " slowly" * 100).title) == 120
    assert plan(text="", shots=(r.Shot(prompt="A boat"),)).title == "A boat"


def test_negatives_on_a_model_that_makes_nothing_of_them_are_remarked_and_on_others_not() -> None:
    native = {"engine": "causal_dit", "width": 832, "height": 480, "negative": ("rain",)}

    def remarks(**fields: object) -> list[str]:
        return [lint.message for lint in plan(**fields).lint if lint.code == "negative_unused"]

    (said,) = remarks(**native)
    assert "self-forcing-1.3b is distilled" in said
    assert remarks(**native, engine_options={"config": "tiny"})
    assert not remarks(**native, engine_options={"config": "wan-1.3b"})
    assert not remarks(**{**native, "negative": ()})
    assert not remarks(negative=("rain",))


def test_an_unusual_aspect_is_accepted_with_a_remark() -> None:
    assert [lint.code for lint in plan(width=640, height=480).lint] == ["aspect"]
    for width, height in ((1920, 1080), (1080, 1920), (512, 512), (854, 480)):
        assert plan(width=width, height=height).lint == ()


def test_a_group_of_pictures_lasts_a_second_at_any_frame_rate() -> None:
    assert plan(fps=59.94).encode.gop_frames == 60
    assert plan(fps=23.976).encode.gop_frames == 24


def test_forty_minutes_at_24_fps_are_accepted() -> None:
    assert plan(duration_s=2400.0).frames == 57_600
