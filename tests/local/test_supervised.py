import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from infra.bus.process import SUSPECT
from infra.local.guardian import Guardian
from infra.local.process import Process
from infra.local.supervised import LOG_BYTES, Supervised, bound_logs, restart_delay_s


@pytest.fixture
def guardian(tmp_path: Path) -> Iterator[Guardian]:
    with (tmp_path / "lock").open("w") as lock:
        guardian = Guardian(lock.fileno())
        yield guardian
        guardian.close()


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_the_first_restart_is_at_once_and_quick_deaths_wait_longer_each_time() -> None:
    assert [restart_delay_s(deaths) for deaths in range(1, 9)] == [0, 0.5, 1, 2, 4, 8, 10, 10]


def test_a_process_that_lived_for_long_is_started_again_at_once_whatever_it_did_before(
    guardian: Guardian, tmp_path: Path
) -> None:
    supervised = Supervised("dies", lambda: Process(["/bin/false"], log=tmp_path / "log", cwd=tmp_path), guardian)
    now_s = 1000.0
    supervised.start(now_s)

    def restarts_after(lived_s: float, waited_s: float) -> int:
        nonlocal now_s
        _until(lambda: _gone(supervised.status().pid))
        now_s += lived_s
        supervised.turn(now_s)
        if waited_s:  # a second turn at once could meet the new process dead already
            now_s += waited_s
            supervised.turn(now_s)
        return supervised.status().restarts

    assert restarts_after(lived_s=1, waited_s=0) == 1
    assert restarts_after(lived_s=1, waited_s=0.4) == 1
    assert supervised.status().pid == 0
    now_s += 0.2
    assert supervised.turn(now_s)
    assert restarts_after(lived_s=60, waited_s=0) == 3
    assert supervised.status().exit_code == 1
    supervised.stop(0)


def test_a_process_that_suspects_itself_is_not_started_again(guardian: Guardian, tmp_path: Path) -> None:
    command = ["/bin/sh", "-c", f"exit {SUSPECT}"]
    supervised = Supervised("worker", lambda: Process(command, log=tmp_path / "log", cwd=tmp_path), guardian)
    supervised.start(0)
    _until(lambda: _gone(supervised.status().pid))
    assert supervised.turn(1)
    assert not supervised.turn(1e6)
    assert (supervised.status().restarts, supervised.status().exit_code) == (0, SUSPECT)


def test_what_a_dead_process_leaves_behind_is_ended(guardian: Guardian, tmp_path: Path) -> None:
    script = "sleep 1000 & echo $! > child; kill -9 $$"
    supervised = Supervised(
        "parent", lambda: Process(["/bin/sh", "-c", script], log=tmp_path / "log", cwd=tmp_path), guardian
    )
    supervised.start(0)
    _until(lambda: _gone(supervised.status().pid))
    child = int((tmp_path / "child").read_text())
    assert not _gone(child)
    supervised.turn(0.1)
    _until(lambda: _gone(child))
    assert supervised.status().exit_code == -9
    supervised.stop(0)


def test_a_process_that_does_not_want_to_end_is_killed(tmp_path: Path) -> None:
    script = "trap '' TERM; touch ready; while :; do sleep 0.1; done"
    process = Process(["/bin/sh", "-c", script], log=tmp_path / "log", cwd=tmp_path)
    _until((tmp_path / "ready").exists)
    process.stop(grace_s=0.2)
    assert process.exit_code() == -9


def test_a_log_is_bounded_while_its_process_goes_on_writing(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    log.write_bytes(b"x" * (LOG_BYTES + 1))
    script = f"while [ -s {log} ]; do sleep 0.01; done; echo after"
    process = Process(["/bin/sh", "-c", script], log=log, cwd=tmp_path)
    bound_logs(tmp_path)
    _until(lambda: not process.running())
    assert log.read_text() == "after\n"
    assert (tmp_path / "worker.log.1").stat().st_size == LOG_BYTES + 1


def test_the_kernel_ends_a_process_when_its_parent_dies(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from infra.local.process import Process; import os, signal; "
        f"p = Process(['/bin/sleep', '1000'], log=Path({str(tmp_path / 'log')!r}), cwd=Path({str(tmp_path)!r})); "
        "print(p.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=False)
    _until(lambda: _gone(int(done.stdout)))
