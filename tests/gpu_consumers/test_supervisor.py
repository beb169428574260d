"""An engine process that crashes, is killed, stalls, is stopped, or loses its worker or its store."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from gpu_consumers.generate import Generate
from gpu_consumers.inject import arm
from gpu_consumers.pipe import Open, Stage
from gpu_consumers.supervisor import EngineProcessError, Supervisor
from gpu_consumers.warm import warm_request
from infra.settings import Settings
from schemas.records import FailureKind, SegmentFailed, SegmentGenerated
from tests.gpu_consumers.answers import ANSWER_S, Start, failed, generated, only
from tests.gpu_consumers.requests import message_of, segment_request

STALL_S = 5.0
"""More than a loaded machine needs to open the engine."""


def children() -> set[psutil.Process]:
    return set(psutil.Process().children())


def until(condition: Callable[[], object], timeout_s: float = 30.0) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.01)


def denoises(caplog: pytest.LogCaptureFixture, job_id: str) -> bool:
    return any(r.getMessage() == f"{job_id} segment 0: denoise" for r in caplog.records)


def test_a_crash_fails_one_segment_and_the_others_come_out(shared: Generate) -> None:
    requests = [segment_request("bad", options={"fault": "crash"}), *(segment_request(f"good-{n}") for n in range(3))]
    events = [only(outcome) for outcome in [shared.submit(message_of(request)) for request in requests]]
    assert [type(event) for event in events] == [SegmentFailed, *[SegmentGenerated] * 3]


def test_a_killed_engine_process_fails_the_segment_in_its_hands_only(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "gpu_consumers.supervisor")
    others = children()
    work = start()
    requests = [segment_request("held", options={"fault": "stall"}), *(segment_request(f"good-{n}") for n in range(3))]
    outcomes = [work.submit(message_of(request)) for request in requests]
    until(lambda: denoises(caplog, "held"))
    (child,) = children() - others
    child.kill()
    events = [only(outcome) for outcome in outcomes]
    assert [type(event) for event in events] == [SegmentFailed, *[SegmentGenerated] * 3]
    assert isinstance(events[0], SegmentFailed)
    assert events[0].kind is FailureKind.CRASHED
    assert "SIGKILL" in events[0].reason
    generated(work, segment_request("next"))


def test_a_stalled_engine_is_killed_and_only_the_stalled_segment_fails(start: Start) -> None:
    work = start(segment_timeout_s=STALL_S)
    stalled = work.submit(message_of(segment_request("stalled", options={"fault": "stall"})))
    waiting = work.submit(message_of(segment_request("waiting")))
    event = only(stalled)
    assert isinstance(event, SegmentFailed)
    assert (event.kind, event.retryable) == (FailureKind.TIMEOUT, True)
    assert isinstance(only(waiting), SegmentGenerated)


def test_a_stopped_engine_process_is_found_and_replaced(start: Start) -> None:
    others = children()
    work = start(segment_timeout_s=STALL_S)
    generated(work, segment_request("first"))
    (child,) = children() - others
    child.suspend()
    generated(work, segment_request("second"))
    assert not child.is_running()


def test_closing_gives_up_at_once_and_leaves_no_process(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "gpu_consumers.supervisor")
    others = children()
    work = start()
    outcome = work.submit(message_of(segment_request("held", options={"fault": "stall"})))
    until(lambda: denoises(caplog, "held"))
    begun_s = time.monotonic()
    work.close()
    assert time.monotonic() - begun_s < 2.0
    assert children() == others
    with pytest.raises(EngineProcessError):
        outcome.result(0)
    with pytest.raises(EngineProcessError):
        work.submit(message_of(segment_request("late"))).result(0)


def test_the_engine_process_logs_as_the_worker_does(start: Start, capfd: pytest.CaptureFixture[str]) -> None:
    failed(start(logs="json"), segment_request("full", options={"fault": "oom"}))
    (said,) = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert (said["level"], said["logger"], said["role"]) == ("CRITICAL", "__main__", "engine")
    assert "EngineError" in said["error"]


def test_an_engine_that_dies_while_it_is_made_ready_costs_no_request_its_attempt(
    settings: Settings, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    wish = "animatic 64x64"
    fault = arm(tmp_path, warm_request(wish), Stage.RESTORE, FailureKind.IO)
    config = Open(objects=settings.objects, worker="generate-0", held_states=1, warm=wish, faults=str(tmp_path))
    with closing(Supervisor(config, ANSWER_S)) as work:
        event = only(work.submit(segment_request()))
    assert isinstance(event, SegmentGenerated)
    assert not fault.exists()
    assert "ended while an engine was made ready" in capfd.readouterr().err


def test_an_object_store_that_cannot_be_written_ends_the_worker_and_fails_no_segment(
    settings: Settings, start: Start
) -> None:
    folder = Path(settings.objects.removeprefix("file://"))
    folder.mkdir(parents=True)
    (folder / "jobs").write_text("in the way")
    with pytest.raises(EngineProcessError, match="in a row"):
        only(start().submit(message_of(segment_request())))


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
