"""Every kind of worker ends in time with work in hand, a rolling restart costs nothing, and `longtake down` leaves nothing."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from infra.local.pidfile import PidFile
from infra.local.ports import port_is_free
from infra.local.services import filled
from infra.local.stack import down, up
from infra.local.supervisor import WORKERS
from infra.settings import Settings
from schemas import records as r
from tests.chaos.line import Run
from tests.chaos.stack import Stack
from tests.chaos.watch import Groups, Watch

pytestmark = pytest.mark.timeout(400)

ENDED_S = 10.0
JOBS = 12
WITHOUT_GROUP = frozenset({"sweep", "exporter"})


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    """The stack as `longtake up` starts it; the test has ended it."""
    settings = Settings(state=tmp_path / "state")
    services = up(settings)
    try:
        yield Stack(filled(settings, services))
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(services.pid).kill()


def eventually(true: Callable[[], bool], what: str, timeout_s: float = 60.0) -> None:
    until_s = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < until_s, f"not in {timeout_s:.0f} s: {what}"
        time.sleep(0.02)


def test_a_rolling_restart_under_load_costs_no_attempt_and_down_leaves_nothing(stack: Stack) -> None:
    run = Run(stack, seed=1)
    groups = Groups(stack.settings)
    watch = Watch(groups, run.tail)
    run.submit(range(JOBS))
    eventually(lambda: bool(_looked(run).tail.last.get((r.JobChanged.topic, 0))), "the line is at work")
    slow = {role: took_s for role in WORKERS if (took_s := _restarted(stack, run, watch, groups, role)) > ENDED_S}
    assert not slow
    eventually(lambda: _looked(run).finished == JOBS, "every job is finished", 120)
    videos = run.videos()
    assert sorted(video.job_id for video in videos) == sorted({video.job_id for video in videos})
    assert {video.job_id: video.attempts for video in videos} == {f"job-{number}": 0 for number in range(JOBS)}
    assert all(len(set(run.film(video.job_id))) == video.frames for video in videos)

    run.submit(range(JOBS, JOBS + 2))  # so that workers have something in hand
    _down_leaves_nothing(stack)


def _looked(run: Run) -> Run:
    run.look()
    return run


def _restarted(stack: Stack, run: Run, watch: Watch, groups: Groups, role: str) -> float:
    """SIGTERM for the role's worker, once it has something in hand; how long it took to end. The next one is there then."""
    name = f"{role}-0"
    pid = stack.pid(name)
    if role not in WITHOUT_GROUP:
        group = groups.of_role(role)
        _until_busy(lambda: bool(watch.waiting(group, None)), run)
    process = psutil.Process(pid)
    started_s = time.monotonic()
    os.kill(pid, signal.SIGTERM)
    process.wait(60)
    took_s = time.monotonic() - started_s
    eventually(lambda: stack.pid(name) not in {0, pid}, f"{name} is started again")
    assert stack.exit_code(name) == 0, f"{name} did not end in order"
    return took_s


def _until_busy(busy: Callable[[], bool], run: Run) -> None:
    """A worker that is seldom at work is not waited for longer than a job takes."""
    until_s = time.monotonic() + 5
    while not busy() and time.monotonic() < until_s:
        run.look()
        time.sleep(0.02)


def _down_leaves_nothing(stack: Stack) -> None:
    settings = Settings(state=stack.settings.state)
    family = psutil.Process(stack.supervisor_pid()).children(recursive=True)
    ports = {c.laddr.port for p in family for c in p.net_connections("tcp") if c.status == psutil.CONN_LISTEN}
    assert len(ports) >= 4
    down(settings)
    assert not [process for process in family if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]
    assert all(port_is_free(port) for port in ports)
    PidFile(settings.state).release()
    assert not (settings.state / "services.json").exists()
