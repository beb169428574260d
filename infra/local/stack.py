"""The local stack as others see it: started in the background, and ended."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from infra.local.pidfile import AlreadyRunningError, running_pid
from infra.local.process import ServiceError, tail
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
    if pid := running_pid(settings.state):
        raise AlreadyRunningError(settings.state, pid)
    settings.state.mkdir(parents=True, exist_ok=True, mode=0o700)
    log = settings.state / "logs" / "supervisor.log"
    log.parent.mkdir(exist_ok=True)
    with log.open("ab") as output:
        supervisor = subprocess.Popen(
            [sys.executable, "-m", "infra.local.supervisor", *(f"{role}={n}" for role, n in workers.items())],
            cwd=settings.state,
            env=environment(settings),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    with contextlib.ExitStack() as undo:
        undo.callback(supervisor.terminate)
        services = _ready(settings, supervisor, log)
        undo.pop_all()
    return services


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


def _ready(settings: Settings, supervisor: "subprocess.Popen[bytes]", log: Path) -> Services:
    deadline = time.monotonic() + _READY_S
    while (services := read_services(settings.state)) is None or services.pid != supervisor.pid:
        if supervisor.poll() == ALREADY_RUNNING:
            raise AlreadyRunningError(settings.state, running_pid(settings.state) or 0)
        if supervisor.poll() is not None or time.monotonic() > deadline:
            raise ServiceError(f"the stack did not start, see {log}:\n{tail(log)}")
        time.sleep(_POLL_S)
    return services
