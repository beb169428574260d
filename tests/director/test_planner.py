"""Segments: one after the other, from the latents of those before, and again when they fail."""

from typing import Any

import pytest

from schemas import records as r
from schemas.engines import ENGINES
from streams.jobs import LOOKAHEAD
from tests.director.builders import Line, decider, generated, prompt, segment_failed, stitched


def requested(line: Line, index: int) -> r.SegmentRequested:
    return line.until(r.SegmentRequested, *((prompt(),) if line.row is None else ()), index=index)


def test_the_next_segment_continues_from_the_latents_of_the_one_before() -> None:
    line = Line()
    first = requested(line, 0)
    answer = generated(first)
    second, piece, change = line.send(answer)
    assert isinstance(second, r.SegmentRequested)
    assert (second.segment, second.latent_ref) == (1, (answer.latents,))
    assert isinstance(piece, r.PieceRequested)
    assert piece.segment_frames == answer.frames
    assert isinstance(change, r.JobChanged)
    assert change.segments_generated == 1


@pytest.mark.parametrize(("state_segments", "given"), [(1, [3]), (2, [2, 3]), (9, [0, 1, 2, 3]), (0, [0, 1, 2, 3])])
def test_an_engine_gets_the_latents_of_as_many_segments_as_it_resumes_from(
    state_segments: int, given: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: dict[str, Any] = {"max_segment_frames": 16, "overlap_frames": 4, "max_pixels": 1 << 20}
    engine = type(ENGINES["animatic"])(state_segments=state_segments, **limits)
    monkeypatch.setitem(ENGINES, "animatic", engine)
    line = Line()
    last = requested(line, 4)
    answers = [generated(e) for e in line.all(r.SegmentRequested)]
    assert last.latent_ref == tuple(answers[i].latents for i in given)


def test_a_crashed_segment_is_asked_for_again_with_the_same_variation() -> None:
    line = Line()
    first = requested(line, 0)
    again, _ = line.send(segment_failed(first))
    assert isinstance(again, r.SegmentRequested)
    assert (again.segment, again.attempt, again.variation) == (0, 2, 0)
    assert again.request_hash != first.request_hash
    assert line.job.attempts == 1


@pytest.mark.parametrize(
    "kind", [r.FailureKind.NAN, r.FailureKind.BLACK, r.FailureKind.FROZEN, r.FailureKind.SINK_COLLAPSE]
)
def test_a_bad_picture_is_asked_for_again_with_another_variation(kind: r.FailureKind) -> None:
    line = Line()
    again, _ = line.send(segment_failed(requested(line, 0), kind=kind))
    assert isinstance(again, r.SegmentRequested)
    assert (again.attempt, again.variation) == (2, 1)


def test_a_segment_without_room_is_asked_for_with_less_and_so_are_those_behind_it() -> None:
    line = Line()
    take = prompt(engine="causal_dit", engine_options={"config": "tiny"}, width=64, height=64, fps=16.0, duration_s=12)
    request = line.until(r.SegmentRequested, take, index=1)
    again, _ = line.send(segment_failed(request, kind=r.FailureKind.OUT_OF_MEMORY))
    assert isinstance(again, r.SegmentRequested)
    assert again.engine_options == {"config": "tiny", "offload": "3"}
    assert again.variation == 0
    third, _ = line.send(segment_failed(again, kind=r.FailureKind.OUT_OF_MEMORY))
    assert isinstance(third, r.SegmentRequested)
    assert third.engine_options == {"config": "tiny", "offload": "3", "kv": "int8"}
    following, *_ = line.send(generated(third))
    assert isinstance(following, r.SegmentRequested)
    assert (following.segment, following.engine_options) == (2, third.engine_options)


def test_an_engine_without_a_cache_has_nothing_to_give_up() -> None:
    line = Line()
    request = requested(line, 0)
    again, _ = line.send(segment_failed(request, kind=r.FailureKind.OUT_OF_MEMORY))
    assert isinstance(again, r.SegmentRequested)
    assert again.engine_options == request.engine_options


def test_a_segment_that_fails_three_times_ends_the_job_with_the_reason() -> None:
    line = Line()
    request = requested(line, 0)
    for _ in range(2):
        request, _ = line.send(segment_failed(request))
        assert isinstance(request, r.SegmentRequested)
    (change,) = line.send(segment_failed(request, kind=r.FailureKind.OUT_OF_MEMORY, reason="12 GB"))
    assert isinstance(change, r.JobChanged)
    assert change.stage is r.Stage.FAILED
    assert change.reason == "segment 0 failed 3 times, last with out_of_memory: 12 GB"


def test_failures_of_different_segments_do_not_add_up() -> None:
    line = Line()
    for index in range(3):
        request = requested(line, index)
        for _ in range(2):
            request, _ = line.send(segment_failed(request))
            assert isinstance(request, r.SegmentRequested)
        line.pending.append(generated(request))
    line.run()
    assert line.last(r.VideoFinished).attempts == 6


def test_a_failure_that_cannot_be_retried_ends_the_job_at_once() -> None:
    line = Line()
    line.send(segment_failed(requested(line, 0), kind=r.FailureKind.ENGINE, reason="no such model", retryable=False))
    assert line.job.stage is r.Stage.FAILED
    assert "no such model" in line.job.reason


def test_the_number_of_tries_is_a_setting() -> None:
    line = Line(decider=decider(segment_attempts=1))
    line.send(segment_failed(requested(line, 0)))
    assert line.job.stage is r.Stage.FAILED


def test_an_answer_to_an_older_attempt_is_dropped() -> None:
    line = Line()
    first = requested(line, 0)
    line.send(segment_failed(first))
    before = line.row
    assert line.send(generated(first)) == ()
    assert line.send(segment_failed(first)) == ()
    assert line.row == before


def test_a_second_answer_to_the_same_request_is_dropped() -> None:
    line = Line()
    first = requested(line, 0)
    line.send(generated(first))
    before = line.row
    assert line.send(generated(first)) == ()
    assert line.row == before


@pytest.mark.parametrize("segment", [-1, 1, 3, 10**9])
def test_an_answer_about_a_segment_nobody_asked_for_is_dropped(segment: int) -> None:
    line = Line()
    first = requested(line, 0)
    assert line.send(generated(first, segment=segment)) == ()


def test_an_answer_for_an_unknown_job_is_dropped() -> None:
    request = requested(Line(), 0)
    assert Line().send(generated(request)) == ()


def test_a_segment_is_requested_with_the_shots_it_shows() -> None:
    shots = (
        r.Shot(prompt="a", seconds=4.0),
        r.Shot(prompt="b", seconds=4.0, transition="dissolve"),
        r.Shot(prompt="c", seconds=4.0, transition="continuous"),
    )
    line = Line()
    line.run(prompt(shots=shots, duration_s=None))
    shown = {s.start_frame: [shot.instruction.text for shot in s.shots] for s in line.all(r.SegmentRequested)}
    into_dissolve = max(start for start in shown if start < 96)
    assert shown[into_dissolve] == ["a"]
    assert shown[96] == ["b"]
    assert shown[192 - 8] == ["b", "c"]
    assert all(texts == ["b", "c"] for start, texts in shown.items() if start > 184)


def test_segments_wait_for_the_stitcher_and_are_asked_for_once() -> None:
    line = Line()
    events = line.send(prompt(duration_s=20.0))
    while requests := [e for e in events if isinstance(e, r.SegmentRequested)]:
        events = line.send(generated(requests[0]))
    asked = line.all(r.SegmentRequested)
    assert [e.segment for e in asked] == list(range(LOOKAHEAD))
    later = line.now_us + 10**15
    assert not [e for e in line.decider.scan([line.job], later)[0].events if isinstance(e, r.SegmentRequested)]
    events = line.send(stitched(line.all(r.PieceRequested)[0]))
    assert [e.segment for e in events if isinstance(e, r.SegmentRequested)] == [LOOKAHEAD]
    assert [e.piece for e in events if isinstance(e, r.PieceRequested)] == [1]
