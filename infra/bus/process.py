"""How a worker's process is told to stop, and how it ends."""

import logging
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

from infra.bus.errors import TooManyDeadLettersError

CRASHED = 1
"""Start it again: it takes up where it stopped."""
SUSPECT = 78  # EX_CONFIG of sysexits.h
"""Starting the same program again would only put more records aside."""

log = logging.getLogger(__name__)


def stop_on_signals() -> threading.Event:
    """An event that SIGTERM and SIGINT set. Call from the main thread."""
    stop = threading.Event()

    def handle(_: int, __: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)
    return stop


def run_process(run: Callable[[], None]) -> NoReturn:
    """The `main()` of a worker: an error is logged once, then the process ends at once.

    An orderly exit would wait for threads that are at work, and a consumer that was not closed can hold it up for ever.
    """
    code = 0
    try:
        run()
    except TooManyDeadLettersError as error:
        log.critical("stopped: %s", error)
        code = SUSPECT
    except Exception:
        log.critical("ended by an error; nothing is lost, the restart goes on", exc_info=True)
        code = CRASHED
    logging.shutdown()
    os._exit(code)
