"""Floods and bombs on the real broker: one tenant does not starve another, one job does not take the workers of the others."""

import os
import signal
import threading

import pytest

from infra.bus.clients import Member
from infra.bus.message import Message
from infra.bus.process import run_process, stop_on_signals
from infra.bus.reader import Reader, event_of
from infra.bus.requests import event_in
from infra.bus.work import ThreadWork
from infra.bus.worker import run_worker
from infra.bus.writer import Writer, publish
from infra.settings import Settings
from schemas import records as r
from schemas.headers import trace_root
from schemas.topics import Event
from tests.bus.processes import in_process
from tests.director.builders import generated, prompt
from tests.director.processes import directors, instant_workers

FLOOD = 300
QUIET_S = 60.0
GENERATE = Member(role="generate", topics=(r.SegmentRequested.topic,))


def serve(settings: Settings) -> None:
    run_process(lambda: run_worker(settings, GENERATE, ThreadWork(generate, 4), stop_on_signals()))


def generate(message: Message) -> list[Event]:
    """An engine that takes its worker's whole process with it, for one job."""
    request = event_in(message, r.SegmentRequested)
    if request.job_id == "bomb":
        threading.Event().wait(0.2)
        os.kill(os.getpid(), signal.SIGKILL)
    return [generated(request)]


@pytest.mark.timeout(400)
def test_a_flood_of_one_tenant_does_not_starve_another(bus_settings: Settings) -> None:
    settings = bus_settings.model_copy(update={"jobs_in_flight": 4, "tenant_jobs_in_flight": 4})
    finished: list[str] = []
    with Reader.from_now(settings, [r.JobChanged.topic]) as reader, directors(settings), Writer(settings) as writer:
        writer.publish([prompt(job_id=f"flood-{n}", tenant="flood") for n in range(FLOOD)], trace_root("flood"))
        writer.publish([prompt(job_id="mine", tenant="small")], trace_root("mine"))
        changes = reader.for_seconds(QUIET_S)
        next(m for m in changes if m.job_id == "mine")
        with instant_workers(settings):
            for event in map(event_of, changes):
                if isinstance(event, r.JobChanged) and event.stage is r.Stage.FINISHED:
                    finished.append(event.job_id)
                    if event.job_id == "mine":
                        break
    assert len(finished) < FLOOD / 3


@pytest.mark.timeout(400)
def test_a_job_that_kills_its_worker_three_times_fails_with_the_evidence_and_others_go_on(
    bus_settings: Settings,
) -> None:
    publish(bus_settings, [prompt(job_id="bomb"), prompt(job_id="good")], trace_root("bomb"))
    with Reader.from_beginning(bus_settings, [r.JobChanged.topic]) as reader, directors(bus_settings):
        changes = map(event_of, reader.for_seconds(QUIET_S))
        for _ in range(3):
            with in_process(serve, bus_settings) as process:
                process.join(60)
                assert process.exitcode == -signal.SIGKILL
        with in_process(serve, bus_settings) as process:
            last: dict[str, r.JobChanged] = {}
            for event in changes:
                assert isinstance(event, r.JobChanged)
                last[event.job_id] = event
                failed = "bomb" in last and last["bomb"].stage is r.Stage.FAILED
                if failed and "good" in last and last["good"].segments_generated == last["good"].segments:
                    break
            assert process.is_alive()
    assert "3 workers ended with it in hand" in last["bomb"].reason
    assert "quarantined" in last["bomb"].reason
