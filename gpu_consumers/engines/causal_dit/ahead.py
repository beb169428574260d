"""Weights into the page cache before anything else is ready. Without torch: its import and the card's context take seconds,
in which the disk would have nothing to do.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

_WAN = "Wan2.1-T2V-1.3B-Diffusers"
_BESIDE = (f"{_WAN}/vae", f"{_WAN}/text_encoder")
FILES: Mapping[str, tuple[str, ...]] = {
    "self-forcing-1.3b": ("Self-Forcing/checkpoints/self_forcing_dmd.pt", *_BESIDE),
    "longlive-1.3b": ("LongLive-1.3B/models/longlive_base.pt", "LongLive-1.3B/models/lora.pt", *_BESIDE),
    "wan-1.3b": ("Wan2.1-T2V-1.3B", *_BESIDE),
}
"""What each model of models.py is loaded from, in the order in which it is wanted."""


def read_ahead(paths: Iterable[Path]) -> int:
    """Ask the kernel for these checkpoints, files or folders of safetensors; returns at once with their bytes. What is not there is left out."""
    total = 0
    for path in paths:
        for file in sorted(path.glob("*.safetensors")) if path.is_dir() else [path]:
            try:
                descriptor = os.open(file, os.O_RDONLY)
            except FileNotFoundError:
                continue
            try:
                size = os.fstat(descriptor).st_size
                os.posix_fadvise(descriptor, 0, size, os.POSIX_FADV_WILLNEED)
            finally:
                os.close(descriptor)
            total += size
    return total
