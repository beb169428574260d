"""longtake.jobs.v1 -> assets that are on this machine before work asks for them. Outside every group; nothing depends on it.

Jobs say what they are made with and how far they are. A worker fetches for those whose requests come to it, one asset after the
other, the one that is needed first first; whoever waits for bytes goes before it (`cache.py`).
"""

import contextlib
import logging
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager

from confluent_kafka import murmur2
from obstore.exceptions import BaseError

from infra.assets.cache import AssetCache, content_of
from infra.bus import clients
from infra.bus.following import following
from infra.bus.message import Partition
from infra.bus.topics import partition_counts
from infra.objects import BlobError
from infra.settings import Settings
from schemas.records import AssetRef, JobChanged, Stage
from schemas.topics import Event

_PAST_S = 600.0
"""A worker that starts hears of jobs that moved while it was away for so long; the others say so when they move."""
_TURN_S = 0.2
_AGAIN_S = 30.0
"""After what was wanted could not be fetched."""
_LEAVE_S = 1.0
_RANKS = {Stage.ASSEMBLING: 0, Stage.GENERATING: 1, Stage.QUEUED: 2}

log = logging.getLogger(__name__)


def in_need(jobs: Iterable[JobChanged]) -> Iterator[AssetRef]:
    """Assets by when they are needed: of jobs that are being assembled, of those with the fewest frames to go, of those that wait.

    Each once, in the order of use within a job.
    """
    waiting = sorted((job for job in jobs if job.stage in _RANKS), key=_nearness)
    yield from dict.fromkeys(asset for job in waiting for asset in job.assets)


def within(assets: Iterable[AssetRef], budget_bytes: int) -> Iterator[AssetRef]:
    """Those that fit in together, the first ones first: more would push each other out."""
    for asset in assets:
        if asset.content.size_bytes <= budget_bytes:
            budget_bytes -= asset.content.size_bytes
            yield asset


class Ahead:
    """What is known of jobs, and a thread that fetches. Told from other threads."""

    def __init__(self, cache: AssetCache, partitions: int) -> None:
        self._cache = cache
        self._partitions = partitions
        self._mine: frozenset[int] = frozenset()
        self._jobs: dict[str, JobChanged] = {}
        self._failed_s: dict[str, float] = {}
        self._changed = threading.Event()
        self._lock = threading.Lock()

    def hold(self, places: frozenset[Partition]) -> None:
        """These partitions' jobs come to this worker."""
        self._mine = frozenset(partition for _, partition in places)
        self._changed.set()

    def take(self, event: Event) -> None:
        """What is said of a job; a finished or failed one needs nothing."""
        if not isinstance(event, JobChanged) or not (event.assets or event.job_id in self._jobs):
            return
        with self._lock:
            if event.stage in _RANKS:
                self._jobs[event.job_id] = event
            else:
                self._jobs.pop(event.job_id, None)
        self._changed.set()

    def run(self, over: threading.Event) -> None:
        """Fetch until `over`."""
        while not over.is_set():
            self._changed.wait(_AGAIN_S if self._failed_s else None)
            self._changed.clear()
            while not over.is_set() and self.fetch_next():
                pass
            over.wait(_TURN_S)  # jobs move many times a second

    def stop(self) -> None:
        """Wake the thread up."""
        self._changed.set()

    def fetch_next(self) -> bool:
        """Fetch the first that is needed and not here. False: there is none."""
        with self._lock:
            jobs = list(self._jobs.values())
        mine = [job for job in jobs if murmur2(job.job_id.encode(), self._partitions) in self._mine]
        self._cache.wanted = frozenset(_contents(in_need(jobs)))
        now_s = time.monotonic()
        self._failed_s = {content: at for content, at in self._failed_s.items() if now_s - at < _AGAIN_S}
        return any(self._fetched(asset) for asset in within(in_need(mine), self._cache.budget_bytes))

    def _fetched(self, asset: AssetRef) -> bool:
        if asset.content.digest in self._failed_s:
            return False
        try:
            return self._cache.fetch_ahead(asset)
        except (BlobError, BaseError, OSError) as error:
            log.warning("asset %s@%s is not fetched ahead: %s", asset.name, asset.version, error)
            self._failed_s[asset.content.digest] = time.monotonic()
            return False


@contextmanager
def fetching_ahead(settings: Settings, cache: AssetCache) -> Generator[Ahead]:
    """Fetch ahead in a thread of its own; say which partitions are held. Raises: TopicsError."""
    partitions = partition_counts(clients.admin(settings), [JobChanged.topic])[JobChanged.topic]
    ahead, over = Ahead(cache, partitions), threading.Event()
    thread = threading.Thread(target=ahead.run, args=(over,), name="assets-ahead", daemon=True)
    thread.start()
    try:
        with following(settings, JobChanged.topic, ahead.take, past_s=_PAST_S):
            yield ahead
    finally:
        over.set()
        ahead.stop()
        thread.join(_LEAVE_S)


def _nearness(job: JobChanged) -> tuple[int, float, int]:
    done = job.pieces_checked / job.segments if job.segments else 0.0
    return _RANKS[job.stage], job.frames * (1 - done), job.submitted_us


def _contents(assets: Iterable[AssetRef]) -> Iterator[str]:
    for asset in assets:
        with contextlib.suppress(BlobError):
            yield content_of(asset)
