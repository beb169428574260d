"""`python leash.py PARENT COMMAND...`: become a command that the kernel kills when its parent dies.

Standard library only, so that it costs 15 ms. The kernel means the *thread* that started the command: start services
from a thread that lives as long as they should.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h; kept across execve


def main() -> None:
    """Never returns. Exits with 1 if the parent died before the leash was on."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)
    os.execv(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main()
