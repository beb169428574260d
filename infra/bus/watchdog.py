"""Ends a process whose loop has stopped turning: Kafka's clients can block for ever without an error."""

import faulthandler
import logging
import os
import threading
import time
from types import TracebackType
from typing import Self

EXIT_CODE = 70  # EX_SOFTWARE of sysexits.h
_STDERR = 2

log = logging.getLogger(__name__)


class Watchdog:
    """A thread that ends the process unless `beat` is called at least every `limit_s`. A context manager.

    A call that never returns may also keep the interpreter lock: then the thread cannot run either, and faulthandler's
    timer, which needs no lock, ends the process.
    """

    def __init__(self, name: str, limit_s: float) -> None:
        self._name = name
        self._limit_s = limit_s
        self._last = time.monotonic()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def beat(self) -> None:
        """The loop turns."""
        self._last = time.monotonic()

    def age_s(self) -> float:
        """Since the loop turned last."""
        return time.monotonic() - self._last

    def stopped(self) -> str:
        """What is wrong if the loop does not turn."""
        age_s = self.age_s()
        return f"the loop has not turned for {age_s:.1f} s" if age_s > self._limit_s else ""

    def __enter__(self) -> Self:
        self.beat()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(self._limit_s / 10):
            faulthandler.dump_traceback_later(self._limit_s, exit=True, file=_STDERR)
            still_s = self.age_s()
            if still_s > self._limit_s:
                log.critical("%s: the loop has not turned for %.1f s; ending the process", self._name, still_s)
                faulthandler.dump_traceback(file=_STDERR)
                os._exit(EXIT_CODE)
        faulthandler.cancel_dump_traceback_later()
