"""The generate worker's work with a real engine process: continued, interleaved, killed, stalled, misled."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

from gpu_consumers.generate import Generate
from gpu_consumers.supervisor import EngineProcessError
from infra.objects import Objects
from infra.settings import Settings
from schemas.codec import encode, sealed
from schemas.errors import BadInputError
from schemas.records import FailureKind, SegmentFailed, SegmentGenerated, SegmentRequested
from schemas.topics import Event
from tests.gpu_consumers.requests import blob, message_of, segment_request

ANSWER_S = 60.0
SEGMENTS = 4
Start = Callable[..., Generate]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(objects=(tmp_path / "objects").as_uri(), state=tmp_path / "state")


@pytest.fixture
def start(settings: Settings) -> Iterator[Start]:
    """Starts workers; all are closed at the end."""
    started: list[Generate] = []

    def start(worker: str = "generate-0", **changes: object) -> Generate:
        started.append(Generate(settings.model_copy(update=changes), worker))
        return started[-1]

    yield start
    for work in started:
        work.close()


def only(outcome: "Future[Sequence[Event]]") -> Event:
    (event,) = outcome.result(ANSWER_S)
    return event


def generated(work: Generate, request: SegmentRequested) -> SegmentGenerated:
    event = only(work.submit(message_of(request)))
    assert isinstance(event, SegmentGenerated), event
    return event


def failed(work: Generate, request: SegmentRequested) -> SegmentFailed:
    event = only(work.submit(message_of(request)))
    assert isinstance(event, SegmentFailed), event
    return event


def take(
    work: Generate, job_id: str, before: Sequence[SegmentGenerated] = (), attempt: int = 1
) -> list[SegmentGenerated]:
    """The rest of a job, segment by segment."""
    events = list(before)
    while len(events) < SEGMENTS:
        events.append(generated(work, segment_request(job_id, events, attempt=attempt)))
    return events


def pictures(settings: Settings, event: SegmentGenerated) -> np.ndarray:
    return Objects(settings.objects).get_tensors(event.frames)["frames"]


def children() -> list[psutil.Process]:
    return [p for p in psutil.Process().children() if "gpu_consumers.child" in p.cmdline()]


def until(condition: Callable[[], object], timeout_s: float = 30.0) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.01)


def denoises(caplog: pytest.LogCaptureFixture, job_id: str) -> bool:
    return any(r.getMessage() == f"{job_id} segment 0: denoise" for r in caplog.records)


def test_a_job_interrupted_after_any_segment_and_continued_in_another_process_is_the_same_job(
    settings: Settings, start: Start
) -> None:
    whole = take(start(), "job-1")
    assert [event.restored for event in whole] == [False] * SEGMENTS
    for boundary in range(1, SEGMENTS):
        again = take(start(), "job-1", whole[:boundary], attempt=1 + boundary)
        assert [event.restored for event in again[boundary:]] == [True] + [False] * (SEGMENTS - boundary - 1)
        for one, other in zip(whole, again, strict=True):
            assert other.latents.digest == one.latents.digest
            assert np.array_equal(pictures(settings, other), pictures(settings, one))


def test_four_jobs_in_flight_are_the_jobs_they_are_alone(settings: Settings, start: Start) -> None:
    jobs = [f"job-{number}" for number in range(4)]
    together = start()
    done: dict[str, list[SegmentGenerated]] = {job: [] for job in jobs}
    for _ in range(2):
        outcomes = {job: together.submit(message_of(segment_request(job, done[job]))) for job in jobs}
        for job, outcome in outcomes.items():
            event = only(outcome)
            assert isinstance(event, SegmentGenerated)
            assert not event.restored
            done[job].append(event)
    alone = start()
    for job in jobs:
        first = generated(alone, segment_request(job, attempt=2))
        second = generated(alone, segment_request(job, [first], attempt=2))
        assert [e.latents.digest for e in (first, second)] == [e.latents.digest for e in done[job]]
        assert np.array_equal(pictures(settings, second), pictures(settings, done[job][1]))
    assert len({event.latents.digest for events in done.values() for event in events}) == 8


def test_the_store_holds_what_the_event_says(settings: Settings, start: Start) -> None:
    request = segment_request()
    before_us = time.time_ns() // 1000
    event = generated(start("generate-7"), request)
    tensors = Objects(settings.objects).get_tensors(event.frames)
    assert tensors["frames"].shape == event.frames.shape == (12, 90, 160, 3)
    assert tensors["frames"].dtype == np.uint8
    for times in (tensors["generated_us"], tensors["decoded_us"]):
        assert times.shape == (12,)
        assert times.dtype == np.int64
        assert np.all(np.diff(times) >= 0)
    assert np.all(tensors["generated_us"] <= tensors["decoded_us"])
    assert before_us <= event.started_us <= tensors["generated_us"][0]
    assert tensors["decoded_us"][-1] <= event.finished_us <= time.time_ns() // 1000
    latents = Objects(settings.objects).get_tensors(event.latents)["latents"]
    assert latents.shape == event.latents.shape
    assert (event.worker, event.engine, bool(event.engine_version)) == ("generate-7", "animatic", True)
    assert event.request_hash == request.request_hash


def test_done_work_is_announced_again_and_not_done_again(settings: Settings, start: Start) -> None:
    request = segment_request()
    first = generated(start("generate-0"), request)
    stored = stored_files(settings)
    assert generated(start("generate-1"), request) == first
    assert stored_files(settings) == stored


def stored_files(settings: Settings) -> set[str]:
    folder = Path(settings.objects.removeprefix("file://"))
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("nan", FailureKind.NAN),
        ("black", FailureKind.BLACK),
        ("freeze", FailureKind.FROZEN),
        ("short", FailureKind.WRONG_FRAME_COUNT),
        ("oom", FailureKind.OUT_OF_MEMORY),
        ("crash", FailureKind.CRASHED),
    ],
)
def test_a_segment_that_goes_wrong_fails_and_its_next_attempt_comes_out(
    start: Start, fault: str, kind: FailureKind
) -> None:
    work = start()
    event = failed(work, segment_request(options={"fault": fault}))
    assert (event.kind, event.retryable, event.worker) == (kind, True, "generate-0")
    assert event.reason
    generated(work, segment_request(options={"fault": fault}, attempt=2))


def test_the_latents_are_stored_before_anything_is_decoded(settings: Settings, start: Start) -> None:
    failed(start(), segment_request(options={"fault": "short"}))
    assert [name for name in stored_files(settings) if name.endswith("-latents.safetensors")]


def test_an_engine_or_option_that_does_not_exist_is_not_tried_again(start: Start) -> None:
    work = start()
    nobody = failed(work, sealed(replace(segment_request(), engine="nobody")))
    assert (nobody.kind, nobody.retryable) == (FailureKind.ENGINE, False)
    assert not failed(work, segment_request(options={"fault": "gremlins"})).retryable


def test_latents_that_are_missing_or_changed_are_a_missing_state(settings: Settings, start: Start) -> None:
    first = generated(start(), segment_request())
    wrong = replace(first.latents, digest="xxh3:" + "0" * 32)
    outside = blob("xxh3:" + "0" * 32)
    other = first.frames
    fresh = start()
    for reference in (wrong, outside, other):
        request = sealed(replace(segment_request(before=[first]), latent_ref=(reference,)))
        assert failed(fresh, request).kind is FailureKind.STATE_MISSING
    generated(fresh, segment_request(before=[first]))


def test_a_crash_fails_one_segment_and_the_others_come_out(start: Start) -> None:
    work = start()
    requests = [segment_request("bad", options={"fault": "crash"}), *(segment_request(f"good-{n}") for n in range(3))]
    events = [only(outcome) for outcome in [work.submit(message_of(request)) for request in requests]]
    assert [type(event) for event in events] == [SegmentFailed, *[SegmentGenerated] * 3]
    generated(work, segment_request("next"))


def test_a_killed_engine_process_fails_the_segment_in_its_hands_only(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "gpu_consumers.supervisor")
    work = start()
    requests = [segment_request("held", options={"fault": "stall"}), *(segment_request(f"good-{n}") for n in range(3))]
    outcomes = [work.submit(message_of(request)) for request in requests]
    until(lambda: denoises(caplog, "held"))
    (child,) = children()
    child.kill()
    events = [only(outcome) for outcome in outcomes]
    assert [type(event) for event in events] == [SegmentFailed, *[SegmentGenerated] * 3]
    assert isinstance(events[0], SegmentFailed)
    assert events[0].kind is FailureKind.CRASHED
    assert "SIGKILL" in events[0].reason
    generated(work, segment_request("next"))


def test_a_stalled_engine_is_killed_and_only_the_stalled_segment_fails(start: Start) -> None:
    work = start(segment_timeout_s=3.0)
    stalled = work.submit(message_of(segment_request("stalled", options={"fault": "stall"})))
    waiting = work.submit(message_of(segment_request("waiting")))
    event = only(stalled)
    assert isinstance(event, SegmentFailed)
    assert (event.kind, event.retryable) == (FailureKind.TIMEOUT, True)
    assert isinstance(only(waiting), SegmentGenerated)


def test_a_stopped_engine_process_is_found_and_replaced(start: Start) -> None:
    work = start(segment_timeout_s=3.0)
    generated(work, segment_request("first"))
    (child,) = children()
    child.suspend()
    generated(work, segment_request("second"))
    assert not psutil.pid_exists(child.pid)


def test_closing_gives_up_at_once_and_leaves_no_process(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "gpu_consumers.supervisor")
    work = start()
    outcome = work.submit(message_of(segment_request("held", options={"fault": "stall"})))
    until(lambda: denoises(caplog, "held"))
    begun_s = time.monotonic()
    work.close()
    assert time.monotonic() - begun_s < 2.0
    assert children() == []
    with pytest.raises(EngineProcessError):
        outcome.result(0)
    with pytest.raises(EngineProcessError):
        work.submit(message_of(segment_request("late"))).result(0)


def test_an_object_store_that_cannot_be_written_ends_the_worker_and_fails_no_segment(
    settings: Settings, start: Start
) -> None:
    folder = Path(settings.objects.removeprefix("file://"))
    folder.mkdir(parents=True)
    (folder / "jobs").write_text("in the way")
    with pytest.raises(EngineProcessError, match="in a row"):
        only(start().submit(message_of(segment_request())))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"value": b""}, "value"),
        ({"value": b"{}"}, "value"),
        ({"value": encode(segment_request()) + b"x"}, "value"),
        ({"key": b"other"}, "key"),
    ],
)
def test_a_record_that_is_no_request_is_refused(start: Start, change: dict[str, bytes], field: str) -> None:
    with pytest.raises(BadInputError) as refused:
        start().submit(message_of(segment_request(), **change)).result(ANSWER_S)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (replace(segment_request(), frames=13), "request_hash"),
        (segment_request("../../etc"), "job_id"),
        (segment_request("a/../b"), "job_id"),
    ],
)
def test_a_forged_request_is_refused(start: Start, request_: SegmentRequested, field: str) -> None:
    with pytest.raises(BadInputError) as refused:
        start().submit(message_of(request_)).result(ANSWER_S)
    assert refused.value.field == field


def test_another_event_on_the_topic_is_refused(settings: Settings, start: Start) -> None:
    work = start()
    event = generated(work, segment_request())
    with pytest.raises(BadInputError, match="SegmentGenerated"):
        work.submit(message_of(segment_request(), value=encode(event))).result(ANSWER_S)


def test_the_engine_process_dies_with_a_killed_worker(settings: Settings) -> None:
    program = (
        "import sys, threading; from gpu_consumers.generate import Generate; from infra.settings import Settings;"
        f"work = Generate(Settings(objects={settings.objects!r}), 'generate-0'); print('up', flush=True);"
        "threading.Event().wait()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as worker:
        assert worker.stdout
        assert worker.stdout.readline() == b"up\n"
        until(lambda: psutil.Process(worker.pid).children())
        (child,) = psutil.Process(worker.pid).children()
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait()
        until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
