"""Alerts from a real broker to a local server: none is lost over failures and restarts, and nobody waits for a dead address."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pydantic import SecretStr

from infra.alerts.attempt import Pace
from infra.alerts.hooks import hooks_of
from infra.alerts.worker import serve
from infra.bus.clients import plain_producer
from infra.local.services import environment
from infra.settings import Settings
from schemas.codec import encode
from schemas.records import JobChanged, Stage
from tests.alerts.receiver import Answer, Receiver, receiver
from tests.cli import events

SECRET = "canary-secret-7f3a91"  # noqa: S105 (a test)
PACE = Pace(first_s=0.05, most_s=0.2, keep_s=3600)


def failed(job_id: str, *, ago_s: float = 0.0) -> JobChanged:
    return replace(events.job(job_id, Stage.FAILED, reason="x"), changed_us=time.time_ns() // 1000 - int(ago_s * 1e6))


def publish(settings: Settings, *told: JobChanged) -> None:
    producer = plain_producer(settings, "test")
    for event in told:
        producer.produce(event.topic, encode(event), event.job_id.encode())
    assert producer.flush(30) == 0


def with_hooks(settings: Settings, **urls: str) -> Settings:
    entries = [{"name": name, "url": url, "secret": SECRET} for name, url in urls.items()]
    return settings.model_copy(update={"webhooks": SecretStr(json.dumps(entries))})


@contextmanager
def telling(settings: Settings, pace: Pace = PACE) -> Generator[None]:
    """The couriers in threads of this process."""
    stop = threading.Event()
    threads = [threading.Thread(target=serve, args=(settings, hook, 0, stop, pace)) for hook in hooks_of(settings)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
    assert not any(thread.is_alive() for thread in threads)


def until(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def jobs(server: Receiver) -> list[str]:
    return [got.json["job_id"] for got in server.received]


def test_an_alert_is_tried_until_it_arrives_and_a_dead_address_keeps_nobody_waiting(bus_settings: Settings) -> None:
    with receiver() as gone:
        pass
    with receiver() as server:
        server.answers = [Answer(status=503), Answer(status=0), Answer(), Answer(status=404)]
        settings = with_hooks(bus_settings, ops=server.url, dead=gone.url)
        publish(settings, events.job("quiet"), failed("old", ago_s=7200), failed("a"))
        with telling(settings):
            until(lambda: len(server.received) == 3, "the third try arrives")
            assert len({got.headers["webhook-id"] for got in server.received}) == 1
            publish(settings, failed("b"), failed("c"))
            until(lambda: len(jobs(server)) == 5, "one that is refused is not tried again")
        assert jobs(server)[:3] == ["a"] * 3
        assert sorted(jobs(server)[3:]) == ["b", "c"]
        with telling(settings):
            publish(settings, failed("d"))
            until(lambda: jobs(server)[5:] == ["d"], "a restart goes on where it was")


def test_what_was_not_delivered_when_it_was_killed_comes_again_with_the_same_id(bus_settings: Settings) -> None:
    with receiver() as server:
        server.answers = [Answer(status=503)] * 100
        settings = with_hooks(bus_settings, ops=server.url)
        settings.state.mkdir(exist_ok=True)
        publish(settings, failed("a"))
        command = [sys.executable, "-m", "infra.cli.worker", "alerts"]
        for number in (signal.SIGKILL, signal.SIGTERM):
            seen = len(server.received)
            ran = subprocess.Popen(command, env=os.environ | environment(settings), stderr=subprocess.PIPE, text=True)
            try:
                until(lambda seen=seen: len(server.received) > seen, "it is tried")
            finally:
                os.kill(ran.pid, number)
                _, log = ran.communicate(timeout=30)
            assert SECRET not in log
            assert "canary" not in log
            server.answers = [] if number == signal.SIGKILL else server.answers
        assert len({got.headers["webhook-id"] for got in server.received}) == 1
        assert "delivered" in log


def test_without_webhooks_it_waits_to_be_stopped(tmp_path: Path) -> None:
    ran = subprocess.Popen(
        [sys.executable, "-m", "infra.cli.worker", "alerts"],
        env=os.environ | environment(Settings(kafka="127.0.0.1:1", state=tmp_path)),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert ran.stderr
    until(lambda: "none is configured" in (ran.stderr.readline() if ran.stderr else ""), "it says so")
    ran.terminate()
    assert ran.wait(20) == 0
