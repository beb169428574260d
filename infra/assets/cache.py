"""Assets on this machine: files that are what they are said to be, fetched once, by whoever needs them first or ahead of that."""

import hashlib
import logging
import socket
import threading
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from infra.assets.placement import keeps
from infra.assets.shelf import DamagedError, Shelf, link_or_copy, lock_of
from infra.metrics import meters
from infra.objects import BlobError, Objects
from infra.settings import Settings
from infra.storage.disk import shortage
from schemas.records import AssetRef

SUFFIXES = {
    "audio/wav": ".wav",
    "audio/flac": ".flac",
    "audio/mpeg": ".mp3",
    "audio/ogg": ".ogg",
    "audio/mp4": ".m4a",
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/webp": ".webp",
    "text/vtt": ".vtt",
    "application/x-subrip": ".srt",
}
_YIELD_S = 30.0
"""Fetching ahead stands back no longer than that in all: it may hold a lock that somebody else's work waits for."""

log = logging.getLogger(__name__)


class AssetCache:
    """One per process; those of a machine share the files. Safe to share between threads."""

    def __init__(self, settings: Settings, objects: Objects) -> None:
        self._settings = settings
        self._objects = objects
        self._node = settings.asset_node or socket.gethostname()
        self._nodes = settings.asset_nodes
        if self._nodes and self._node not in self._nodes:
            log.warning("%s is not in LONGTAKE_ASSET_NODES: what it fetches goes first when room is needed", self._node)
        self._shelf = Shelf(settings.state / "assets", settings.asset_cache_bytes)
        self._turns = _Turns()
        self.wanted: frozenset[str] = frozenset()
        """Contents that jobs in hand will need: they go last. Replaced, never changed."""

    @property
    def budget_bytes(self) -> int:
        """Of all files together."""
        return self._shelf.budget_bytes

    def path_of(self, asset: AssetRef, folder: Path) -> Path:
        """A file with the asset's bytes, checked now, for reading. It is in `folder`, and stays while that does.

        Raises: BlobError if the store has not got it, or has other bytes; OSError or an error of the store: later, perhaps.
        """
        content = content_of(asset)
        target = folder / f"{content}{SUFFIXES.get(asset.content.media_type, '')}"
        outcome = "hit"
        if not self._linked(asset, target):
            with self._turns.needed(lock_of(content)), self._shelf.alone_with(content):
                outcome = "waited" if self._linked(asset, target) else "miss"
                if outcome == "miss":
                    self._fetched(asset, content, target)
        meters.ASSET_READS.labels(outcome).inc()
        meters.ASSET_READ_BYTES.labels(outcome).inc(asset.content.size_bytes)
        return target

    def fetch_ahead(self, asset: AssetRef) -> bool:
        """Have the file here before it is needed. False: it is already, or there is no room for it. Stands back while anybody
        waits for another one.

        Raises: as path_of.
        """
        content, size_bytes = content_of(asset), asset.content.size_bytes
        if self._shelf.holds(content) or size_bytes > self.budget_bytes or shortage(self._settings, size_bytes):
            return False
        self._turns.stand_back(lock_of(content), _YIELD_S)
        with self._shelf.alone_with(content):
            if self._shelf.holds(content):
                return False
            part = self._shelf.part()
            try:
                self._download(asset, part, why="ahead")
                self._keep(asset, content, part)
            finally:
                part.unlink(missing_ok=True)
        return True

    def _linked(self, asset: AssetRef, target: Path) -> bool:
        content = content_of(asset)
        try:
            if found := self._shelf.link(content, target):
                self._shelf.sort(content, kind=self._kind(asset))
            return found
        except DamagedError as error:
            log.warning("%s: fetched again", error)
            meters.ASSETS_DAMAGED.inc()
            return False

    def _fetched(self, asset: AssetRef, content: str, target: Path) -> None:
        part = self._shelf.part()
        try:
            self._download(asset, part, why="need")
            link_or_copy(part, target)  # before others may make room
            if asset.content.size_bytes <= self.budget_bytes:
                self._keep(asset, content, part)
        finally:
            part.unlink(missing_ok=True)

    def _keep(self, asset: AssetRef, content: str, part: Path) -> None:
        self._shelf.put(part, content, kind=self._kind(asset))
        self._shelf.make_room(self.wanted | {content})
        for kind in ("owned", "guests"):
            meters.ASSET_CACHE_BYTES.labels(kind).set(self._shelf.size_bytes(kind))

    def _kind(self, asset: AssetRef) -> str:
        return "owned" if keeps(asset, self._node, self._nodes) else "guests"

    def _download(self, asset: AssetRef, part: Path, *, why: str) -> None:
        """The whole of it, or nothing. Raises: BlobError."""
        digest, size_bytes, left_s = hashlib.sha256(), 0, _YIELD_S
        with part.open("xb") as file:
            for chunk in self._objects.chunks(asset.content):
                if why == "ahead":
                    left_s -= self._turns.stand_back(lock_of(content_of(asset)), left_s)
                size_bytes += len(chunk)
                if size_bytes > asset.content.size_bytes:
                    break
                digest.update(chunk)
                file.write(chunk)
                meters.ASSET_FETCHED_BYTES.labels(why).inc(len(chunk))
        if size_bytes != asset.content.size_bytes or f"sha256:{digest.hexdigest()}" != asset.content.digest:
            raise BlobError(f"{asset.content.uri}: not the bytes of asset {asset.name}@{asset.version}")


def content_of(asset: AssetRef) -> str:
    """The sha256 of its bytes, 64 hex digits. Raises: BlobError if it is none."""
    algorithm, _, content = asset.content.digest.partition(":")
    if algorithm != "sha256" or len(content) != 64 or not set(content) <= set("0123456789abcdef"):
        raise BlobError(f"asset {asset.name}@{asset.version}: digest {asset.content.digest!r:.80} is no sha256")
    return content


class _Turns:
    """Who waits for bytes goes before those who fetch ahead, unless they bring what it waits for."""

    def __init__(self) -> None:
        self._locks = Counter[str]()
        self._changed = threading.Condition()

    @contextmanager
    def needed(self, lock: str) -> Generator[None]:
        """Somebody waits for what is behind that lock."""
        with self._changed:
            self._locks[lock] += 1
        try:
            yield
        finally:
            with self._changed:
                self._locks[lock] -= 1
                self._locks += Counter()  # without those that are 0
                self._changed.notify_all()

    def stand_back(self, lock: str, most_s: float) -> float:
        """Wait while others are waited for, but no longer than that. Returns for how long it was, in seconds."""
        since = time.monotonic()
        with self._changed:
            self._changed.wait_for(lambda: not self._locks or lock in self._locks, max(0.0, most_s))
        return time.monotonic() - since
