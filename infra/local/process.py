"""Processes of the local stack: started on a leash, in a group of their own, with a log file each."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_LEASH = Path(__file__).with_name("leash.py")
_TAIL_BYTES = 2000


class ServiceError(Exception):
    """A local service does not start or has ended. The message has the end of its log."""


class Process:
    """A command in a process group of its own, which the kernel kills when the thread that started it ends."""

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        log: Path,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        metrics_port: int = 0,
    ) -> None:
        self.log = log
        self.metrics_port = metrics_port
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            self._popen = subprocess.Popen(
                [sys.executable, "-I", "-S", _LEASH, str(os.getpid()), *command],
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid = self._popen.pid

    def running(self) -> bool:
        return self._popen.poll() is None

    def exit_code(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        return self._popen.poll()

    def terminate(self) -> None:
        """Ask the process to end."""
        if self.running():
            self._popen.terminate()

    def stop(self, grace_s: float) -> None:
        """Ask the process to end, wait, then kill what is left of its group."""
        self.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(grace_s)
        self.kill()

    def kill(self) -> None:
        """Kill the whole group, also when only descendants of the process are left."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._popen.wait()

    def failed(self, what: str) -> ServiceError:
        """The error that says why `what` is not there."""
        return ServiceError(f"{what} (exit code {self.exit_code()}), see {self.log}:\n{tail(self.log)}")


def tail(log: Path) -> str:
    """The end of a log file."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        return file.read().decode(errors="replace").strip()
