"""The allocator's pool, looked after while no segment is worked on: fragmentation is measured, and a pool too broken up is rebuilt."""

import gc
import logging
import sys
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

from gpu_consumers.memory.fragmentation import Care, care, fragmentation

log = logging.getLogger(__name__)


class Pool:
    """Knows when work is under way in it. Once it has to be rebuilt no further work begins, and when the last has ended it is."""

    def __init__(self, stats: Callable[[], Mapping[str, int]], rebuild: Callable[[], None]) -> None:
        """`stats`: as of `torch.cuda.memory_stats()`; `rebuild` gives everything back that can be."""
        self._stats, self._rebuild = stats, rebuild
        self.fragmentation = 0.0
        """Of the pool, when it was looked at last."""
        self._working = 0
        self._due = False
        self._futile = False
        """The last rebuild has not helped: another one would only cost."""
        self._changed = threading.Condition()

    @contextmanager
    def segment(self) -> Generator[None]:
        """Around all work on one segment in one stage. It may have to wait until the work of other threads has ended."""
        with self._changed:
            self._changed.wait_for(lambda: not self._due)
            self._working += 1
        try:
            yield
        except BaseException:
            self._leave(Care.NONE)  # a lost device has no statistics, and its error must not be hidden
            raise
        self._leave(self._look())

    def _leave(self, wanted: Care) -> None:
        with self._changed:
            self._working -= 1
            self._due = self._due or (wanted is Care.REBUILD and not self._futile)
            self._futile = self._futile and wanted is Care.REBUILD
            if self._due and not self._working:
                self._rebuild()
                self._futile = self._look() is Care.REBUILD
                self._due = False
                self._changed.notify_all()

    def _look(self) -> Care:
        self.fragmentation = ratio = fragmentation(self._stats())
        wanted = care(ratio)
        if wanted is not Care.NONE:
            log.info("memory pool: %.0f %% of it lies idle between blocks in use: %s", 100 * ratio, wanted)
        return wanted


def cuda_stats() -> Mapping[str, int]:
    """The allocator's statistics; none where torch has no device in use: it is not imported to ask."""
    torch = sys.modules.get("torch")
    return torch.cuda.memory_stats() if torch and torch.cuda.is_initialized() else {}


def empty_cuda_cache() -> None:
    """Give back all memory in which no tensor lies."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
