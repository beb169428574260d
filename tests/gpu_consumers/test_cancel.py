"""A cancelled job's work in hand stops within two seconds, from the command to the engine process, on a real broker."""

import subprocess
import time
from collections.abc import Callable

import psutil
import pytest

from gpu_consumers.generate import Generate
from infra.bus.reader import Reader, event_of
from infra.bus.writer import publish
from infra.settings import Settings
from schemas.headers import trace_root
from schemas.records import (
    CancelRequested,
    JobChanged,
    PromptSubmitted,
    RetryRequested,
    SegmentGenerated,
    Stage,
)
from tests.director.processes import directors
from tests.gpu_consumers.answers import Start, generated
from tests.gpu_consumers.requests import message_of, segment_request
from tests.gpu_consumers.test_on_the_broker import worker
from tests.gpu_consumers.test_supervisor import children, denoises, until

STOP_S = 2.0
QUIET_S = 60.0


def prompt(job_id: str, **options: str) -> PromptSubmitted:
    return PromptSubmitted(
        job_id=job_id, text="A boat leaves", duration_s=2.0, width=160, height=96, engine_options=options
    )


def saw(reader: Reader, wanted: Callable[[object], bool]) -> None:
    for message in reader.for_seconds(QUIET_S):
        if wanted(event_of(message)):
            return
    raise AssertionError("nothing of that was said")


def stage_of(event: object, job_id: str) -> Stage | None:
    return event.stage if isinstance(event, JobChanged) and event.job_id == job_id else None


def engine_of(process: subprocess.Popen[bytes]) -> psutil.Process:
    (child,) = psutil.Process(process.pid).children()
    return child


def test_a_cancellation_ends_a_stalled_engine_process_and_the_jobs_behind_it_come_out(bus_settings: Settings) -> None:
    topics = [JobChanged.topic, SegmentGenerated.topic]
    with (
        directors(bus_settings),
        worker(bus_settings) as process,
        Reader.from_now(bus_settings, topics) as reader,
    ):
        publish(bus_settings, [prompt("first")], trace_root("first"))
        saw(reader, lambda event: isinstance(event, SegmentGenerated))
        publish(bus_settings, [prompt("stalls", fault="stall")], trace_root("stalls"))
        saw(reader, lambda event: stage_of(event, "stalls") is Stage.GENERATING)
        child = engine_of(process)
        time.sleep(1.0)  # there is no sign on the bus that the engine has begun
        begun_s = time.monotonic()
        publish(bus_settings, [CancelRequested(job_id="stalls")], trace_root("stalls"))
        child.wait(10)
        assert time.monotonic() - begun_s <= STOP_S
        publish(bus_settings, [RetryRequested(job_id="stalls", from_segment=0)], trace_root("stalls"))
        saw(reader, lambda event: isinstance(event, SegmentGenerated) and event.job_id == "stalls")


def test_a_request_in_hand_is_dropped_at_its_next_step_and_others_are_not_disturbed(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "gpu_consumers.supervisor")
    others = children()
    work = start()
    generated(work, segment_request("warm"))
    (child,) = children() - others
    long = work.submit(message_of(segment_request("long", frames=480)))
    until(lambda: denoises(caplog, "long"))
    work.ended("long", 2)
    assert long.result(STOP_S) == ()
    generated(work, segment_request("other"))
    assert child.is_running()
    assert work.submit(message_of(segment_request("long"))).result(0) == ()


def test_what_is_asked_for_after_the_end_of_a_job_is_done(shared: Generate) -> None:
    shared.ended("again", 1)  # requests of these tests are made at 1
    generated(shared, segment_request("again"))


def test_a_process_that_is_killed_for_one_job_gives_the_others_to_the_next_one(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "gpu_consumers.supervisor")
    work = start()
    stalled = work.submit(message_of(segment_request("stalled", options={"fault": "stall"})))
    waiting = work.submit(message_of(segment_request("waiting")))
    until(lambda: denoises(caplog, "stalled"))
    work.ended("stalled", 2)
    assert stalled.result(STOP_S) == ()
    (event,) = waiting.result(60)
    assert isinstance(event, SegmentGenerated)
