"""A small disk of its own for the object store, which can be filled to the last byte. Only root can mount one."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_STEPS = (16 << 20, 1 << 16, 1 << 12)


class Disk:
    """Owns a mounted tmpfs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._balloon = folder / ".balloon"

    def fill(self) -> None:
        """No room for anything, while others write."""
        with self._balloon.open("wb") as file:
            end = 0
            for step in _STEPS:
                with contextlib.suppress(OSError):
                    while True:
                        os.posix_fallocate(file.fileno(), end, step)
                        end += step

    def free(self) -> None:
        """Room again."""
        self._balloon.unlink(missing_ok=True)


def can_mount() -> bool:
    """Whether this process may mount a disk."""
    return os.geteuid() == 0 and subprocess.run(["/usr/bin/unshare", "-m", "/bin/true"], check=False).returncode == 0


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Disk]:
    """A tmpfs of this size on `folder`. Raises: CalledProcessError if it cannot be mounted."""
    folder.mkdir(parents=True)
    subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "longtake-chaos", folder], check=True)
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["/bin/umount", "-l", folder], check=True)
