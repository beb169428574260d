"""One engine process, seen from the worker: started on a leash, spoken to through a socket pair, killed without ado."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from multiprocessing.connection import Connection
from pathlib import Path

from gpu_consumers.memory.environment import engine_environment
from gpu_consumers.memory.topology import Device
from gpu_consumers.pipe import FromChild, Open, ParentEnd, ToChild
from infra.local import leash

_GRACE_S = 5.0
"""For a process that has closed its socket to be gone."""


class EngineProcess:
    """A running `gpu_consumers.child`. The kernel kills it when the thread that made it ends."""

    def __init__(self, config: Open, device: Device | None) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._popen = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", Path(leash.__file__), str(os.getpid())),
                    *(sys.executable, "-m", "gpu_consumers.child", str(theirs.fileno())),
                ],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                env=engine_environment(os.environ, device),
            )
        self.pid = self._popen.pid
        self._pipe = ParentEnd(ours.detach())
        self.send(config)

    @property
    def connection(self) -> Connection:
        """To wait for messages on."""
        return self._pipe.connection

    def send(self, message: ToChild) -> None:
        """A process that is gone hears nothing: `receive` tells."""
        with contextlib.suppress(ConnectionError):
            self._pipe.send(message)

    def receive(self) -> FromChild | None:
        """The next message, waiting for it. None: the process is gone or going."""
        return self._pipe.receive()

    def kill(self) -> None:
        """Kill it and whatever it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def end(self) -> int:
        """Wait for its end, with a kill if that takes too long, and return its exit code: negative for a signal."""
        try:
            code = self._popen.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self._popen.wait()
        self._pipe.close()
        return code
