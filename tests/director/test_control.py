"""Cancel, retry, and the scan for jobs without progress."""

import pytest

from schemas import records as r
from schemas.topics import Event
from streams.control import EARLY_US, cancelled_early
from streams.jobs import changed
from tests.director.builders import (
    SECOND_US,
    START_US,
    Line,
    assembled,
    decider,
    generated,
    message,
    prompt,
    rejected,
    segment_failed,
    stitched,
)

CANCEL = r.CancelRequested(job_id="harbour", reason="changed my mind")
STALE_US = 300 * SECOND_US


def retry(from_segment: int = 0) -> r.RetryRequested:
    return r.RetryRequested(job_id="harbour", from_segment=from_segment)


def scanned(line: Line, after_us: int) -> tuple[object, ...]:
    line.now_us += after_us
    decisions = line.decider.scan([line.job], line.now_us)
    return tuple(event for decision in decisions for event in line.take(decision))


def test_a_cancelled_job_stops_and_late_answers_are_dropped() -> None:
    line = Line()
    request = line.until(r.SegmentRequested, prompt(), index=1)
    (change,) = line.send(CANCEL)
    assert isinstance(change, r.JobChanged)
    assert (change.stage, change.reason) == (r.Stage.CANCELLED, "changed my mind")
    assert line.send(generated(request)) == ()


@pytest.mark.parametrize("event", [CANCEL, retry()])
def test_control_of_a_finished_job_changes_nothing_and_is_answered_with_its_state(event: Event) -> None:
    line = Line()
    line.run(prompt())
    before = line.row
    assert line.send(event) == (changed(line.job),)
    assert line.row == before


def test_a_running_job_is_not_retried_and_a_cancelled_one_not_cancelled_again() -> None:
    line = Line()
    line.until(r.SegmentRequested, prompt(), index=1)
    assert line.send(retry()) == (changed(line.job),)
    line.send(CANCEL)
    before = line.row
    assert line.send(CANCEL) == (changed(line.job),)
    assert line.row == before


def test_a_queued_job_is_cancelled_before_anything_is_asked_for_and_may_be_retried() -> None:
    line = Line()
    line.take(line.decider.decide(message(prompt()), None, START_US))
    assert line.job.stage is r.Stage.QUEUED
    (change,) = line.send(CANCEL)
    assert isinstance(change, r.JobChanged)
    assert change.stage is r.Stage.CANCELLED
    line.run(*line.send(retry()), generated(line.last(r.SegmentRequested)))
    assert line.job.stage is r.Stage.FINISHED


def test_a_cancellation_that_is_read_before_its_prompt_holds_and_the_job_may_be_retried() -> None:
    line = Line()
    assert line.send(CANCEL) == ()
    assert line.send(generated(Line().until(r.SegmentRequested, prompt()))) == ()
    (change,) = line.send(prompt())
    assert isinstance(change, r.JobChanged)
    assert (change.stage, change.reason) == (r.Stage.CANCELLED, "changed my mind")
    line.run(*line.send(retry()), generated(line.last(r.SegmentRequested)))
    assert line.job.stage is r.Stage.FINISHED


def test_a_cancellation_without_a_prompt_is_forgotten_after_an_hour() -> None:
    line = Line()
    line.send(CANCEL)
    line.now_us += EARLY_US
    line.run(prompt())
    assert line.job.stage is r.Stage.FINISHED


@pytest.mark.parametrize("job_id", ["", "../../up", "a b", "x" * 101])
def test_a_cancellation_of_what_can_be_no_job_makes_no_row(job_id: str) -> None:
    decision = decider().decide(message(r.CancelRequested(job_id=job_id)), None, START_US)
    assert decision.state is None
    assert decision.refused is not None
    assert (decision.refused.field, decision.refused.rule) == ("job_id", "characters")


def test_a_retry_of_an_unknown_job_is_a_dead_letter() -> None:
    for row in (None, cancelled_early(CANCEL, START_US)):
        decision = decider().decide(message(retry()), row, START_US)
        assert decision.refused is not None
        assert (decision.refused.field, decision.refused.rule) == ("job_id", "unknown_job")


def test_a_failed_job_runs_again_from_the_segment_asked_for() -> None:
    line = Line()
    last = line.until(r.SegmentRequested, prompt(), index=2)
    line.run()
    line.send(segment_failed(last, retryable=False))
    kept = line.job.pieces[0]
    again, change = line.send(retry(1))
    assert isinstance(again, r.SegmentRequested)
    assert (again.segment, again.attempt) == (1, 2)
    assert isinstance(change, r.JobChanged)
    assert (change.stage, change.reason) == (r.Stage.GENERATING, "")
    assert kept.checked
    assert line.job.pieces[0] == kept
    line.run(generated(again))
    assert line.job.stage is r.Stage.FINISHED


def test_a_retry_keeps_segments_and_stitches_again_what_had_not_passed() -> None:
    line = Line()
    piece = line.until(r.PieceRequested, prompt(), index=1)
    line.run()
    line.send(CANCEL)
    last, again, _ = line.send(retry(2))
    assert isinstance(last, r.SegmentRequested)
    assert last.segment == 2
    assert isinstance(again, r.PieceRequested)
    assert (again.piece, again.attempt, again.segment_frames) == (1, 2, piece.segment_frames)
    line.run(generated(last), stitched(again))
    assert line.job.stage is r.Stage.FINISHED


def test_a_job_whose_video_failed_may_be_retried_from_its_assembly_on() -> None:
    line = Line()
    video = assembled(line.until(r.AssemblyRequested, prompt()))
    line.send(CANCEL)
    again, _ = line.send(retry(3))
    assert isinstance(again, r.AssemblyRequested)
    assert again.attempt == 2
    assert line.send(video) == ()
    line.run(assembled(again))
    assert line.job.stage is r.Stage.FINISHED


def test_a_cancelled_job_comes_out_bit_by_bit_the_same_when_it_is_retried() -> None:
    line = Line()
    line.until(r.SegmentRequested, prompt(), index=2)
    line.run()
    line.send(CANCEL)
    (again, _) = line.send(retry())
    line.run(generated(again))  # type: ignore[arg-type]
    undisturbed = Line()
    undisturbed.run(prompt())
    assert line.last(r.VideoFinished).video == undisturbed.last(r.VideoFinished).video


def test_a_segment_that_was_rejected_too_often_is_retried_with_another_variation() -> None:
    line = Line(decider=decider(segment_attempts=1))
    line.send(rejected(line.until(r.PieceRequested, prompt(), index=1)))
    assert line.job.stage is r.Stage.FAILED
    line.pending.clear()
    again, *_ = line.send(retry(1))
    assert isinstance(again, r.SegmentRequested)
    assert (again.segment, again.variation) == (1, 1)


def test_a_retried_job_has_its_full_number_of_tries_again() -> None:
    line = Line(decider=decider(segment_attempts=2))
    request = line.until(r.SegmentRequested, prompt())
    for _ in range(2):
        line.send(segment_failed(line.last(r.SegmentRequested)))
    assert line.job.stage is r.Stage.FAILED
    line.send(retry())
    line.send(segment_failed(line.last(r.SegmentRequested)))
    assert line.job.stage is r.Stage.GENERATING
    assert line.last(r.SegmentRequested).attempt == request.attempt + 3


def test_a_job_without_progress_is_asked_for_again_with_the_same_hash() -> None:
    line = Line()
    request = line.until(r.SegmentRequested, prompt())
    assert scanned(line, STALE_US - 1) == ()
    (again,) = scanned(line, 1)
    assert isinstance(again, r.SegmentRequested)
    assert (again.request_hash, again.attempt) == (request.request_hash, request.attempt)
    assert again.requested_us == line.now_us


def test_the_scan_waits_twice_as_long_each_time() -> None:
    line = Line()
    line.until(r.SegmentRequested, prompt())
    times = [second for second in range(100, 5000, 100) if scanned(line, 100 * SECOND_US)]
    assert times == [300, 600, 1200, 2400, 4800]


def test_progress_starts_the_wait_anew() -> None:
    line = Line()
    request = line.until(r.SegmentRequested, prompt())
    scanned(line, STALE_US)
    scanned(line, STALE_US)
    line.send(generated(request))
    assert scanned(line, STALE_US - 1) == ()
    assert scanned(line, 1)


def test_a_piece_without_a_verdict_is_asked_for_again_so_that_it_is_announced_and_checked_again() -> None:
    line = Line()
    piece = line.until(r.PieceRequested, prompt())
    segment = line.until(r.SegmentRequested, index=2)
    line.send(stitched(piece))
    again = {event.request_hash for event in scanned(line, STALE_US)}  # type: ignore[attr-defined]
    second = line.all(r.PieceRequested)[1]
    assert again == {segment.request_hash, piece.request_hash, second.request_hash}


def test_a_video_without_a_verdict_is_asked_for_again() -> None:
    line = Line()
    request = line.until(r.AssemblyRequested, prompt())
    line.send(assembled(request))
    (again,) = scanned(line, STALE_US)
    assert isinstance(again, r.AssemblyRequested)
    assert again.request_hash == request.request_hash


def test_the_scan_leaves_final_jobs_alone() -> None:
    for ending in (CANCEL, None):
        line = Line()
        line.until(r.SegmentRequested, prompt())
        line.run(*([ending] if ending else [generated(line.last(r.SegmentRequested))]))
        assert line.job.stage in (r.Stage.CANCELLED, r.Stage.FINISHED)
        assert scanned(line, 100 * STALE_US) == ()
