"""What the events of a run say of it, and what must hold before anything is extrapolated."""

from dataclasses import replace

import pytest

from benchmarks.scaling.figures import Load, Scaled
from benchmarks.scaling.replay import UnlikeError, check, errors, print_loads
from benchmarks.scaling.run import Run, busy_share, fairness, gaps_s, times_of
from benchmarks.scaling.sizes import fps_for, jobs_for, videos_per_day
from benchmarks.simulation.line import Times
from schemas import records as r
from schemas.topics import Event
from tests.director.builders import Line, assembled, generated, piece_checked, prompt, stitched, video_checked
from tests.simulation.test_simulated_line import times

SECOND_US = 1_000_000
REQUEST = Line().until(r.SegmentRequested, prompt())


def segment(
    job: str, number: int, worker: int, *, asked_s: float, begun_s: float, ended_s: float
) -> tuple[Event, Event]:
    """Asked for, worked at, and stored a second later."""
    request = replace(REQUEST, job_id=job, segment=number, requested_us=at(asked_s))
    made = generated(
        request,
        started_us=at(begun_s),
        denoise_us=at(ended_s - begun_s),
        finished_us=at(ended_s + 1),
        worker=f"longtake.generate-{worker}",
    )
    return request, made


def run(*segments: tuple[Event, Event]) -> Run:
    events = tuple(event for pair in segments for event in pair)
    return Run(begun_us=0, events=events, partitions={"a": 3, "b": 5})


def test_a_gap_counts_only_where_the_next_segment_was_waiting() -> None:
    waited = segment("b", 0, 0, asked_s=1.0, begun_s=10.5, ended_s=20.0)
    late = segment("a", 1, 0, asked_s=21.0, begun_s=22.0, ended_s=30.0)
    found = run(segment("a", 0, 0, asked_s=0.0, begun_s=0.0, ended_s=10.0), waited, late)
    assert gaps_s(found) == [0.5]
    assert busy_share(found) == pytest.approx((10 + 9.5 + 8) / 30)
    assert found.owners == {3: 0, 5: 0}
    assert sorted(found.jobs) == [(3, 2), (5, 1)]


def test_engines_of_two_workers_are_looked_at_apart() -> None:
    found = run(
        segment("a", 0, 0, asked_s=0.0, begun_s=0.0, ended_s=10.0),
        segment("b", 0, 1, asked_s=0.0, begun_s=0.0, ended_s=5.0),
    )
    assert gaps_s(found) == []
    assert busy_share(found) == 0.75


def test_times_are_medians_of_what_each_part_took_and_a_second_try_is_not_mixed_with_the_first() -> None:
    line = Line()
    line.run(prompt())
    events: list[Event] = []
    for request in line.all(r.SegmentRequested):
        asked_us = at(10.0 * request.segment)
        events.append(replace(request, requested_us=asked_us))
        events.append(generated(request, started_us=asked_us + at(1), denoise_us=at(5), finished_us=asked_us + at(7)))
    for request in line.all(r.PieceRequested):
        for attempt, asked_s in ((1, 10.0 * request.piece), (2, 500.0)):
            again = replace(request, attempt=attempt, requested_us=at(asked_s))
            made = stitched(again, finished_us=at(asked_s + 2))
            events += [again, made, piece_checked(made, checked_us=at(asked_s + 3.5))]
    assembly = replace(line.last(r.AssemblyRequested), requested_us=at(600))
    video = replace(assembled(assembly), finished_us=at(604))
    events += [assembly, video, replace(video_checked(video), checked_us=at(605))]
    events.append(replace(line.last(r.VideoFinished), finished_us=at(605.5)))
    assert times_of(Run(begun_us=at(-2), events=tuple(events), partitions={})) == Times(
        intake_s=2.0,
        dispatch_s=1.0,
        engine_s=5.0,
        store_s=1.0,
        hop_s=3.0,
        stitch_s=2.0,
        check_s=1.5,
        assemble_s=4.0,
        video_check_s=1.0,
        finish_s=0.5,
    )


def at(seconds: float) -> int:
    return round(seconds * SECOND_US)


def test_jobs_by_turns_are_fair_and_one_before_the_other_is_not() -> None:
    def order(*names: str) -> Run:
        numbers = {"a": 0, "b": 0}
        made: list[tuple[Event, Event]] = []
        for at, name in enumerate(names):
            made.append(segment(name, numbers[name], 0, asked_s=0.0, begun_s=float(at), ended_s=at + 1.0))
            numbers[name] += 1
        return run(*made)

    assert fairness(order("a", "b", "a", "b")) == 1.0
    assert fairness(order("a", "a", "b", "b")) == 0.5


def load(makespan_s: float) -> Load:
    return Load(
        name="even",
        workers=1,
        jobs=((0, 10),),
        owners=(0, 0),
        makespan_s=makespan_s,
        frames=240,
        busy_share=1.0,
        gap_p50_s=0.0,
        gap_p95_s=0.0,
        fairness=1.0,
    )


def test_nothing_is_extrapolated_from_a_simulation_that_is_off_by_more_than_a_tenth(
    capsys: pytest.CaptureFixture[str],
) -> None:
    exact = errors(Scaled(times=times(), loads=(load(1.0),)))[0] + 1
    good = Scaled(times=times(), loads=(load(exact), load(exact * 1.05)))
    check(good)
    print_loads(good)
    assert "| +0.0 % |" in capsys.readouterr().out
    with pytest.raises(UnlikeError, match=r"off by \+25\.0 %"):
        check(Scaled(times=times(), loads=(load(exact), load(exact * 0.8))))


def test_eight_videos_a_day_take_a_quarter_of_a_frame_a_second() -> None:
    assert fps_for(8, 1) == pytest.approx(0.2667, abs=1e-4)
    assert videos_per_day(fps_for(8, 1)) == pytest.approx(8.0)


def test_jobs_for_a_busy_share_are_those_of_the_closed_network() -> None:
    jobs = jobs_for(100, 0.95)
    assert jobs / (jobs + 99) >= 0.95 > (jobs - 1) / (jobs + 98)
