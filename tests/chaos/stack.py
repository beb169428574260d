"""A stack under attack: the real supervisor with its services and workers, whose processes are found, killed and stopped."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

from infra.local.pidfile import running_pid
from infra.local.process import Process
from infra.local.services import ProcessStatus, environment, filled, read_services
from infra.settings import Settings

_READY_S = 300.0
_DOWN_S = 60.0


class Stack:
    """A running stack. `settings` have its addresses."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def pid(self, name: str) -> int:
        """Of a process of the stack; 0: it is between two lives."""
        status = self._status(name)
        return status.pid if status else 0

    def exit_code(self, name: str) -> int | None:
        """Of the last life of a process; negative: the signal that ended it."""
        status = self._status(name)
        return status.exit_code if status else None

    def supervisor_pid(self) -> int:
        return running_pid(self.settings.state) or 0

    def family(self, name: str) -> list[psutil.Process]:
        """The process and all its descendants."""
        try:
            process = psutil.Process(self.pid(name))
            return [process, *process.children(recursive=True)]
        except (psutil.NoSuchProcess, ValueError):
            return []

    def engine(self, name: str) -> int:
        """The engine process of a generate worker; 0: it is between two lives."""
        return next((process.pid for process in self.family(name) if _is_engine(process)), 0)

    def clock(self, name: str) -> Path:
        """The file that says how wrong the clock of a process is."""
        return _clock(self.settings, name)

    def _status(self, name: str) -> ProcessStatus | None:
        services = read_services(self.settings.state)
        return next((process for process in services.processes if process.name == name), None) if services else None


@contextmanager
def running_stack(
    settings: Settings, commands: Mapping[str, Sequence[str]], variables: Mapping[str, str] | None = None
) -> Iterator[Stack]:
    """The stack of these processes, with `variables` in their environment. It is ended in order at the end, and with this process."""
    settings.state.mkdir(parents=True, exist_ok=True)
    supervisor = Process(
        [sys.executable, "-m", "tests.local.stand_in", json.dumps(commands)],
        log=settings.state / "supervisor.log",
        cwd=Path(__file__).parents[2],
        env=environment(settings) | dict(variables or {}),
    )
    try:
        yield Stack(_ready(settings, supervisor))
    finally:
        supervisor.stop(_DOWN_S)
        until_s = time.monotonic() + _DOWN_S
        while running_pid(settings.state) is not None and time.monotonic() < until_s:
            time.sleep(0.05)


def with_wrong_clocks(commands: Mapping[str, Sequence[str]], settings: Settings) -> dict[str, list[str]]:
    """The same commands; each process has a wall clock of its own, which is right until its file says otherwise.

    Raises: FileNotFoundError without a C compiler; CalledProcessError.
    """
    compiler = shutil.which("cc")
    if not compiler:
        raise FileNotFoundError("no C compiler, which clock steps need: 'apt-get install gcc libc6-dev'")
    settings.state.mkdir(parents=True, exist_ok=True)
    library = settings.state / "clock.so"
    source = Path(__file__).with_name("clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"], check=True)
    wrapped: dict[str, list[str]] = {}
    for name, command in commands.items():
        file = _clock(settings, name)
        file.write_text("0\n")
        wrapped[name] = ["/usr/bin/env", f"LD_PRELOAD={library}", f"WRONG_CLOCK={file}", *command]
    return wrapped


def send(processes: Sequence[psutil.Process], number: signal.Signals) -> None:
    """A signal to all of them that still live."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


def _ready(settings: Settings, supervisor: Process) -> Settings:
    until_s = time.monotonic() + _READY_S
    while (services := read_services(settings.state)) is None:
        if not supervisor.running() or time.monotonic() > until_s:
            raise supervisor.failed("the stack does not start")
        time.sleep(0.05)
    return filled(settings, services)


def _is_engine(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return "gpu_consumers.child" in process.cmdline()
    return False


def _clock(settings: Settings, name: str) -> Path:
    return settings.state / f"clock-{name}"
