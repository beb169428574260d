"""How a worker's process is told to stop."""

import signal
import threading
from types import FrameType


def stop_on_signals() -> threading.Event:
    """An event that SIGTERM and SIGINT set. Call from the main thread."""
    stop = threading.Event()

    def handle(_: int, __: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)
    return stop
