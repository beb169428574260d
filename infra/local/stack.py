"""The local stack as others see it: started in the background, and ended."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path

from infra.local.pidfile import AlreadyRunningError, running_pid
from infra.local.process import Process, ServiceError, tail
from infra.local.services import NotRunningError, Services, environment, read_services
from infra.local.supervisor import ALREADY_RUNNING, WORKERS
from infra.settings import Settings

_READY_S = 180.0
_ENDED_S = 60.0
_KILLED_S = 15.0
_POLL_S = 0.05


def up(settings: Settings, workers: Mapping[str, int] = WORKERS) -> Services:
    """Start the stack in the background and wait until it is ready. What `settings` has an address for is not started.

    `workers` is how many processes each role has. Raises: AlreadyRunningError; ServiceError with the reason.
    """
    log = _prepared(settings)
    with log.open("ab") as output:
        supervisor = subprocess.Popen(
            _command(workers),
            cwd=settings.state,
            env=environment(settings),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    with contextlib.ExitStack() as undo:
        undo.callback(supervisor.terminate)
        services = _ready(settings, supervisor.pid, supervisor.poll, log)
        undo.pop_all()
    return services


@contextlib.contextmanager
def attached(settings: Settings, workers: Mapping[str, int] = WORKERS) -> Generator[Services]:
    """A stack that ends with the block, and with the thread that began it, however that ends. Raises: like `up`."""
    log = _prepared(settings)
    supervisor = Process(_command(workers), log=log, cwd=settings.state, env=environment(settings))
    try:
        yield _ready(settings, supervisor.pid, supervisor.exit_code, log)
    finally:
        supervisor.stop(_ENDED_S)


def down(settings: Settings) -> None:
    """End the stack and wait until nothing is left of it. Raises: NotRunningError; ServiceError if something is left."""
    pid = running_pid(settings.state)
    if not pid:
        raise NotRunningError(f"no stack is running in {settings.state}")
    for number, patience_s in ((signal.SIGTERM, _ENDED_S), (signal.SIGKILL, _KILLED_S)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            if running_pid(settings.state) is None:
                return
            time.sleep(_POLL_S)
    raise ServiceError(f"the supervisor, pid {pid}, does not end")


def _prepared(settings: Settings) -> Path:
    if pid := running_pid(settings.state):
        raise AlreadyRunningError(settings.state, pid)
    settings.state.mkdir(parents=True, exist_ok=True, mode=0o700)
    log = settings.state / "logs" / "supervisor.log"
    log.parent.mkdir(exist_ok=True)
    return log


def _command(workers: Mapping[str, int]) -> list[str]:
    return [sys.executable, "-m", "infra.local.supervisor", *(f"{role}={n}" for role, n in workers.items())]


def _ready(settings: Settings, pid: int, exit_code: Callable[[], int | None], log: Path) -> Services:
    deadline = time.monotonic() + _READY_S
    while (services := read_services(settings.state)) is None or services.pid != pid:
        if exit_code() == ALREADY_RUNNING:
            raise AlreadyRunningError(settings.state, running_pid(settings.state) or 0)
        if exit_code() is not None or time.monotonic() > deadline:
            raise ServiceError(f"the stack did not start, see {log}:\n{tail(log)}")
        time.sleep(_POLL_S)
    return services
