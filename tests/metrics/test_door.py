"""Metrics and probes of a process."""

import threading
import time

import httpx
import pytest

from infra.bus.clients import Member
from infra.bus.watchdog import Watchdog
from infra.bus.work import ThreadWork
from infra.bus.worker import run_worker
from infra.bus.writer import publish
from infra.local.ports import free_port
from infra.metrics.door import Door, Health
from infra.settings import Settings
from schemas.headers import trace_root
from schemas.records import CancelRequested, JobProgress
from tests.bus.line import eventually


def get(port: int, path: str) -> httpx.Response:
    return httpx.get(f"http://127.0.0.1:{port}{path}", timeout=5)


def value(port: int, name: str) -> float:
    lines = get(port, "/metrics").text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.partition(" ")[0].partition("{")[0] == name)


def test_probes_say_what_is_wrong_and_metrics_say_it_in_numbers() -> None:
    settings = Settings(metrics_port=free_port())
    problems = {"unready": "", "unhealthy": ""}
    health = Health(age_s=lambda: 7.5, unhealthy=lambda: problems["unhealthy"], unready=lambda: problems["unready"])
    with Door(settings, health):
        assert get(settings.metrics_port, "/healthz").text == "ok\n"
        assert value(settings.metrics_port, "longtake_ready") == 1
        problems["unready"] = "GPU memory is at 97%"
        answer = get(settings.metrics_port, "/readyz")
        assert (answer.status_code, answer.text) == (503, "GPU memory is at 97%\n")
        assert get(settings.metrics_port, "/healthz").status_code == 200
        assert value(settings.metrics_port, "longtake_ready") == 0
        assert value(settings.metrics_port, "longtake_loop_turn_age_seconds") == 7.5
        assert get(settings.metrics_port, "/elsewhere").status_code == 404
    with pytest.raises(httpx.ConnectError):
        get(settings.metrics_port, "/healthz")


def test_a_loop_that_stands_still_is_unhealthy_before_it_is_ended() -> None:
    with Watchdog("still", 30) as dog:
        assert dog.stopped() == ""
        dog._last = time.monotonic() - 31
        assert dog.stopped() == "the loop has not turned for 31.0 s"


class Gate(ThreadWork):
    """Work that can be told to take no more."""

    problem = "warming up"

    def unready(self) -> str:
        return self.problem


def test_a_worker_that_is_not_ready_takes_no_new_work_and_then_all_of_it(bus_settings: Settings) -> None:
    settings = bus_settings.model_copy(update={"metrics_port": free_port()})
    publish(settings, [CancelRequested(job_id=f"j{n}") for n in range(4)], trace_root("gate"))
    handled: list[str] = []

    def handle(message: object) -> list[JobProgress]:
        handled.append(str(message))
        return []

    work, stop = Gate(handle, 2), threading.Event()
    member = Member(role="gated", topics=(CancelRequested.topic,))
    thread = threading.Thread(target=run_worker, args=(settings, member, work, stop))
    thread.start()
    try:
        eventually(lambda: _readiness(settings.metrics_port) == "warming up\n", "the work's own problem")
        eventually(lambda: value(settings.metrics_port, "longtake_assigned_partitions") > 0, "partitions")
        assert handled == []
        consumed = value(settings.metrics_port, "longtake_records_consumed_total")
        work.problem = ""
        eventually(lambda: len(handled) == 4, "all records")
        eventually(lambda: value(settings.metrics_port, "longtake_records_consumed_total") >= consumed + 4, "commits")
        assert get(settings.metrics_port, "/readyz").text == "ok\n"
        assert value(settings.metrics_port, "longtake_transaction_seconds_count") >= 1
    finally:
        stop.set()
        thread.join()


def _readiness(port: int) -> str:
    try:
        return get(port, "/readyz").text
    except httpx.ConnectError:
        return "no door yet"
