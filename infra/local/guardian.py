"""Ends the process groups of a supervisor that was killed: also the descendants that no leash reaches.

The guardian is a small process of its own. It reads `+GROUP` and `-GROUP` lines from the supervisor; when the pipe ends,
it kills the groups that are left. It inherits the lock of the pid file, so the stack counts as running until the last
of them is gone. Standard library only.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable

_GONE_S = 10.0


class Guardian:
    """Owns the guardian process of a supervisor."""

    def __init__(self, lock: int) -> None:
        self._popen = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__], stdin=subprocess.PIPE, start_new_session=True, pass_fds=(lock,)
        )

    def watch(self, group: int) -> None:
        """End `group` when this process dies."""
        self._say(f"+{group}")

    def forget(self, group: int) -> None:
        """`group` has ended: its number may come again."""
        self._say(f"-{group}")

    def close(self) -> None:
        """End what is still watched, then the guardian."""
        if self._popen.stdin:
            self._popen.stdin.close()
        self._popen.wait()

    def _say(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):
            if self._popen.stdin:
                self._popen.stdin.write(f"{line}\n".encode())
                self._popen.stdin.flush()


def main() -> None:
    """Until standard input ends."""
    groups: set[int] = set()
    for line in sys.stdin:
        group = int(line[1:])
        groups = groups | {group} if line.startswith("+") else groups - {group}
    for group in groups:
        _signal(group, signal.SIGKILL)
    deadline = time.monotonic() + _GONE_S
    while _left(groups) and time.monotonic() < deadline:
        time.sleep(0.02)


def _left(groups: Iterable[int]) -> bool:
    return any(_signal(group, 0) for group in groups)


def _signal(group: int, number: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)
        return True
    return False


if __name__ == "__main__":
    main()
