"""How much of the time in which requests wait the engine works: the number that says whether the GPU is kept fed."""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager


class BusyMeter:
    """Adds up two times: requests were waiting for the engine (`waiting_us`), and meanwhile it worked (`busy_us`).

    A request waits from its arrival to its last decoding step. The engine works while it is inside a denoising or decoding
    step of any request. Restoring, storing and checking are not work: they should be hidden behind it.
    """

    def __init__(self, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock_ns = clock_ns
        self._lock = threading.Lock()
        self._waiting: set[int] = set()
        self._working = 0
        self._since_ns = clock_ns()
        self._busy_ns = 0
        self._waiting_ns = 0

    def arrived(self, number: int) -> None:
        """Request `number` waits from now on."""
        with self._lock:
            self._settle()
            self._waiting.add(number)

    def served(self, number: int) -> None:
        """Request `number` waits no more. Without effect the second time."""
        with self._lock:
            self._settle()
            self._waiting.discard(number)

    @contextmanager
    def working(self) -> Generator[None, None, None]:
        """Around one step of the engine."""
        self._work(1)
        try:
            yield
        finally:
            self._work(-1)

    def totals_us(self) -> tuple[int, int]:
        """`(busy_us, waiting_us)` since the start."""
        with self._lock:
            self._settle()
            return self._busy_ns // 1000, self._waiting_ns // 1000

    def _work(self, change: int) -> None:
        with self._lock:
            self._settle()
            self._working += change

    def _settle(self) -> None:
        now_ns = self._clock_ns()
        if self._waiting:
            self._waiting_ns += now_ns - self._since_ns
            self._busy_ns += now_ns - self._since_ns if self._working else 0
        self._since_ns = now_ns
