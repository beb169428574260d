"""The numbers of the derived streams, without Kafka."""

from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.records import EngineBaseline, LineThroughput, Stage
from schemas.topics import Event
from streams.insights.facts import JobFacts, dump, load, observe, progress
from streams.insights.totals import Totals, totals_of
from tests.insights.events import START_US, changed, checked, failed, generated

# Two segments of 40 frames with 8 of overlap: 72 frames in 4 s of wall time, half of it busy.
TWO_SEGMENTS: list[Event] = [
    changed(),
    generated(segment=0, start_frame=0, started_s=0, finished_s=2),
    changed(segments_generated=1, changed_s=2),
    generated(segment=1, start_frame=32, started_s=2, finished_s=4),
    checked(piece=0, frames=32, checked_s=5),
    changed(segments_generated=2, changed_s=5),
]


def facts_of(events: list[Event]) -> JobFacts:
    facts = reduce(observe, events, None)
    assert facts
    return facts


def test_progress_counts_frames_of_the_timeline_and_not_overlaps_twice() -> None:
    seen = progress(facts_of(TWO_SEGMENTS))
    assert (seen.frames, seen.frames_generated, seen.frames_checked) == (288, 72, 32)
    assert seen.generate_fps == pytest.approx(80 / 2.0)


def test_time_left_is_generation_at_the_jobs_own_pace_and_the_way_of_the_last_frame() -> None:
    # 216 frames left at 72 in 4 s are 12 s from t=4; a piece is checked 3 s behind its segment; now is t=5.
    assert progress(facts_of(TWO_SEGMENTS)).remaining_s == pytest.approx(4 + 12 + 3 - 5)


def test_time_left_is_unknown_before_the_first_segment_and_nothing_at_the_end() -> None:
    assert progress(facts_of([changed()])).remaining_s is None
    finished = [*TWO_SEGMENTS, changed(stage=Stage.FINISHED, segments_generated=9, changed_s=20)]
    assert progress(facts_of(finished)).remaining_s == 0.0
    failed_job = [*TWO_SEGMENTS, changed(stage=Stage.FAILED, segments_generated=2, changed_s=20)]
    assert progress(facts_of(failed_job)).remaining_s is None


def test_a_rework_takes_frames_back() -> None:
    rejected = [*TWO_SEGMENTS, changed(segments_generated=1, changed_s=6)]
    assert progress(facts_of(rejected)).frames_generated == 40


def test_an_older_change_does_not_replace_a_newer_one() -> None:
    late = [*TWO_SEGMENTS, changed(stage=Stage.GENERATING, segments_generated=0, changed_s=1)]
    assert facts_of(late) == facts_of(TWO_SEGMENTS)


@given(st.permutations(TWO_SEGMENTS), st.lists(st.sampled_from(TWO_SEGMENTS)))
def test_order_and_repetition_change_nothing(events: list[Event], again: list[Event]) -> None:
    assert facts_of([*events, *again]) == facts_of(TWO_SEGMENTS)


def test_a_row_comes_back_from_the_changelog_as_it_was() -> None:
    assert load(dump(facts_of(TWO_SEGMENTS))) == facts_of(TWO_SEGMENTS)


def sums_after(events: list[Event]) -> dict[str, Event]:
    totals, rows = Totals(), dict[str, JobFacts]()
    last: dict[str, Event] = {}
    for event in events:
        job = getattr(event, "job_id", "")
        new = observe(rows.get(job), event)
        assert new
        for out in totals.replace(rows.get(job), new):
            last[str((type(out).__name__, getattr(out, "engine_version", ""), getattr(out, "minute_us", "")))] = out
        rows[job] = new
    assert totals_of(rows.values()).sums == {
        key: amounts for key, amounts in totals.sums.items() if any(amounts.values())
    }
    return last


def test_a_baseline_is_over_all_jobs_and_counts_a_repeated_event_once() -> None:
    events: list[Event] = [
        generated("a", 0, busy_s=1),
        generated("b", 0, busy_s=3),
        failed("b", 1, attempt=1),
        generated("b", 1, attempt=2, busy_s=1),
        generated("a", 0, busy_s=1),
        failed("b", 1, attempt=1),
    ]
    (baseline,) = (e for e in sums_after(events).values() if isinstance(e, EngineBaseline))
    assert (baseline.segments, baseline.failures, baseline.frames, baseline.busy_us) == (3, 1, 120, 5_000_000)
    assert baseline.failure_rate == pytest.approx(0.25)
    assert baseline.fps == pytest.approx(24.0)


def test_versions_of_an_engine_have_baselines_of_their_own() -> None:
    sums = sums_after([generated("a", 0, version="1"), generated("a", 1, version="2")])
    assert sorted(e.engine_version for e in sums.values() if isinstance(e, EngineBaseline)) == ["1", "2"]


def test_throughput_is_by_the_minute_in_which_it_happened() -> None:
    base = -(START_US % 60_000_000) / 1e6
    events: list[Event] = [
        generated("a", 0, finished_s=base + 59),
        generated("a", 1, finished_s=base + 61),
        changed("a", stage=Stage.FINISHED, changed_s=base + 62),
    ]
    minutes = [e for e in sums_after(events).values() if isinstance(e, LineThroughput)]
    assert [(m.frames, m.segments, m.videos) for m in sorted(minutes, key=lambda m: m.minute_us)] == [
        (40, 1, 0),
        (40, 1, 1),
    ]


def test_a_job_that_finished_later_than_said_first_moves_to_the_later_minute() -> None:
    base = -(START_US % 60_000_000) / 1e6
    sums = sums_after([changed(stage=Stage.FINISHED, changed_s=base + s) for s in (30, 90)])
    minutes = [e for e in sums.values() if isinstance(e, LineThroughput)]
    assert [m.videos for m in sorted(minutes, key=lambda m: m.minute_us)] == [0, 1]
