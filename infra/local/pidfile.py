"""The pid file of the local stack. The lock on it says that the stack runs; what is written in it only says as whom."""

import contextlib
import fcntl
import os
from pathlib import Path


class AlreadyRunningError(Exception):
    """The stack of this state folder is running. `pid` is its supervisor, 0 if that is just starting."""

    def __init__(self, state: Path, pid: int) -> None:
        super().__init__(f"the stack of {state} is already running, pid {pid}")
        self.pid = pid


class PidFile:
    """Held from creation until `release`, or until this process and those that inherited `descriptor` are gone.

    Raises: AlreadyRunningError.
    """

    def __init__(self, state: Path) -> None:
        self.descriptor = os.open(_path(state), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self.descriptor)
            raise AlreadyRunningError(state, _written(state)) from error
        os.pwrite(self.descriptor, f"{os.getpid():>10}\n".encode(), 0)

    def release(self) -> None:
        """Say that the stack has ended. The file stays: to remove it would let two processes lock two files."""
        os.close(self.descriptor)


def running_pid(state: Path) -> int | None:
    """The supervisor's pid, or None if no stack runs: a file that a killed supervisor left is not locked."""
    with contextlib.suppress(FileNotFoundError), _path(state).open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _written(state)
    return None


def _path(state: Path) -> Path:
    return state / "longtake.pid"


def _written(state: Path) -> int:
    return int(_path(state).read_text().strip() or 0)
