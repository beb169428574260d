"""Files of assets on a machine's disk, named by their content: shared by its processes, kept within a budget.

owned/HEX, guests/HEX   whole files, read-only; their time of change says when they were used last
parts/                  what is still coming
locks/                  one lock for each 256th of all contents, and one for making room; a process that dies lets go of its own
"""

import contextlib
import errno
import fcntl
import os
import re
import shutil
import time
import uuid
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from infra.objects import file_digest

_HEX = re.compile(r"[0-9a-f]{64}")
_KINDS = ("owned", "guests")
_ROOM = "room"
_ABANDONED_S = 3600.0
_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP)


class DamagedError(Exception):
    """A file on the shelf had other bytes than its name says; it was taken away."""


class Shelf:
    """Owns a folder. Safe for threads and processes: files appear whole, and whoever has linked one keeps it."""

    def __init__(self, folder: Path, budget_bytes: int) -> None:
        self.budget_bytes = budget_bytes
        self._folder = folder
        for name in (*_KINDS, "parts", "locks"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self._clear()

    def holds(self, content: str) -> bool:
        """Whether there is a file of that content, unread."""
        return any(self._path(kind, content).exists() for kind in _KINDS)

    def link(self, content: str, target: Path) -> bool:
        """A file `target` of that content, checked, which stays when the shelf's own goes. False: there is none.

        Raises: DamagedError.
        """
        for kind in _KINDS:
            path = self._path(kind, content)
            try:
                link_or_copy(path, target)
            except FileNotFoundError:
                continue
            if file_digest(target, "sha256") == f"sha256:{content}":
                with contextlib.suppress(FileNotFoundError):
                    _used(path)
                return True
            _drop_if_same(path, target)
            raise DamagedError(f"{path} is damaged")
        return False

    def part(self) -> Path:
        """Where to write what is to be put."""
        return self._folder / "parts" / uuid.uuid4().hex

    def put(self, part: Path, content: str, *, kind: str) -> None:
        """Take a whole, checked file; it is `owned`, or one of the `guests`, which go first when room is needed."""
        part.chmod(0o444)
        _used(part)
        part.replace(self._path(kind, content))
        for other in (k for k in _KINDS if k != kind):
            self._path(other, content).unlink(missing_ok=True)

    def sort(self, content: str, *, kind: str) -> None:
        """Have it among those: which machines keep what may have changed."""
        for other in (k for k in _KINDS if k != kind):
            with contextlib.suppress(FileNotFoundError):
                self._path(other, content).replace(self._path(kind, content))

    def make_room(self, wanted: Collection[str]) -> None:
        """Down to the budget: guests before those owned, both before what is wanted, and what was used last stays longest."""
        with self._locked(_ROOM):
            files = [(kind, content, stat) for kind in _KINDS for content, stat in self._files(kind)]
            order = sorted(files, key=lambda f: (f[1] in wanted, f[0] == "owned", f[2].st_mtime_ns))
            over_bytes = sum(stat.st_size for *_, stat in files) - self.budget_bytes
            for kind, content, stat in order:
                if over_bytes <= 0:
                    return
                self._path(kind, content).unlink(missing_ok=True)
                over_bytes -= stat.st_size

    def size_bytes(self, kind: str) -> int:
        """Of all files of that kind."""
        return sum(stat.st_size for _, stat in self._files(kind))

    @contextmanager
    def alone_with(self, content: str) -> Generator[None]:
        """Nobody else on this machine fetches that content meanwhile."""
        with self._locked(lock_of(content)):
            yield

    @contextmanager
    def _locked(self, name: str) -> Generator[None]:
        with (self._folder / "locks" / name).open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _files(self, kind: str) -> Iterator[tuple[str, os.stat_result]]:
        with os.scandir(self._folder / kind) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # another process takes files away
                    yield entry.name, entry.stat()

    def _path(self, kind: str, content: str) -> Path:
        if kind not in _KINDS or not _HEX.fullmatch(content):
            raise ValueError(f"not a content: {kind!r}, {content!r}")
        return self._folder / kind / content

    def _clear(self) -> None:
        """What died half written."""
        for part in (self._folder / "parts").iterdir():
            with contextlib.suppress(FileNotFoundError):
                if time.time() - part.stat().st_mtime >= _ABANDONED_S:
                    part.unlink()


def lock_of(content: str) -> str:
    """The lock that a content shares with every 256th other."""
    return content[:2]


def link_or_copy(path: Path, target: Path) -> None:
    """Another name for the file, where the file system has such. Raises: FileNotFoundError if there is no `path`."""
    target.unlink(missing_ok=True)
    try:
        target.hardlink_to(path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copyfile(path, target)


def _used(path: Path) -> None:
    """Now, to the nanosecond: file systems' own clocks tick in milliseconds."""
    now_ns = time.time_ns()
    os.utime(path, ns=(now_ns, now_ns))


def _drop_if_same(path: Path, target: Path) -> None:
    """Somebody may have put a good one in its place since."""
    with contextlib.suppress(FileNotFoundError):
        if path.samefile(target) or file_digest(path, "sha256") != f"sha256:{path.name}":
            path.unlink()
    target.unlink()
