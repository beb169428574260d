"""Whether there is room for more: below it no new job starts, and those that run have the rest."""

import logging
import shutil
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

from infra.settings import Settings

_LOOK_S = 1.0
_MORE_BYTES = 128 << 20
"""Above the limit, before jobs start again: not with every file that goes."""

log = logging.getLogger(__name__)


def shortage(settings: Settings, more_bytes: int = 0) -> str:
    """Which disk has less free than `settings.min_free_bytes`, and `more_bytes`; empty: none has."""
    folders = [settings.state]
    if settings.objects.startswith("file:"):
        folders.append(Path(unquote(urlsplit(settings.objects).path)))
    for folder in folders:
        there = next(path for path in (folder, *folder.parents) if path.exists())
        free = shutil.disk_usage(there).free
        if free < settings.min_free_bytes + more_bytes:
            return f"{_size(free)} free for {folder}, {_size(settings.min_free_bytes + more_bytes)} are kept free"
    return ""


class DiskWatch:
    """Looks at most once a second, and says in the log when that changes."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._next_s = 0.0
        self._short = ""

    def has_room(self) -> bool:
        """Whether new jobs may start."""
        now_s = time.monotonic()
        if now_s < self._next_s:
            return not self._short
        self._next_s = now_s + _LOOK_S
        before, self._short = self._short, shortage(self._settings, _MORE_BYTES if self._short else 0)
        if self._short and not before:
            log.error("no new job starts: %s", self._short)
        elif before and not self._short:
            log.warning("there is room again: jobs start")
        return not self._short


def _size(count: int) -> str:
    return f"{count / (1 << 30):.2f} GiB"
