"""SVT-AV1 opened by root makes the thread that opens it real-time (SCHED_FIFO 99), and with it all threads and processes that it starts.

An encode would then take the machine from all else: measured, a Kafka broker and a browser beside it stood still for minutes.
"""

import contextlib
import os
from collections.abc import Generator
from pathlib import Path


@contextlib.contextmanager
def ordinary_threads() -> Generator[None]:
    """No thread of this process is real-time after the block. A process that was made so by whoever runs it stays so."""
    wished = os.sched_getscheduler(0) != os.SCHED_OTHER
    yield
    if wished:
        return
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(ProcessLookupError):
            if os.sched_getscheduler(int(task.name)) == os.SCHED_FIFO:
                os.sched_setscheduler(int(task.name), os.SCHED_OTHER, os.sched_param(0))
