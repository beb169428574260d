"""Folders for temporary files, one per worker."""

import shutil
from pathlib import Path

from infra.settings import Settings


def scratch_of(settings: Settings, worker: str) -> Path:
    """The worker's own folder, empty: what a killed one left behind is removed."""
    scratch = settings.state / "scratch" / worker
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    return scratch
