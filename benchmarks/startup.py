"""From the start of an engine process to its first frames: weights that are not in the page cache, and weights read ahead into it."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_PARTS = ("transformer.safetensors", "vae.safetensors")


def measure() -> dict[str, float]:
    """The middle-sized model on the CPU."""
    return started("medium", 64, 48)


def started(name: str, width: int, height: int) -> dict[str, float]:
    """Seconds of a process from its start to the first block's frames, and those of loading alone, cold and read ahead."""
    with tempfile.TemporaryDirectory(prefix="longtake-startup-") as folder:
        _process("write", folder, name, width, height)
        found: dict[str, float] = {}
        for how in ("cold", "ahead"):
            _forget(Path(folder))
            found |= {
                f"startup_{how}_{figure}": value for figure, value in _process(how, folder, name, width, height).items()
            }
    found["startup_load_ratio"] = found["startup_cold_load_s"] / found["startup_ahead_load_s"]
    return found


def _process(how: str, folder: str, name: str, width: int, height: int) -> dict[str, float]:
    said = [how, folder, name, str(width), str(height), str(time.time())]
    command = [sys.executable, "-m", "benchmarks.startup", *said]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=300)
    return json.loads(done.stdout)


def _forget(folder: Path) -> None:
    """Out of the page cache, after it is all on the disk."""
    for file in folder.iterdir():
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def main() -> None:
    """What `_process` starts; prints its figures."""
    how, folder, name, width, height, began = sys.argv[1:]
    files = [Path(folder) / part for part in _PARTS]
    if how == "ahead":
        from gpu_consumers.engines.causal_dit.ahead import read_ahead

        read_ahead(files)
    from benchmarks import startup_model  # torch: after the disk has something to do

    size = int(width), int(height)
    figures = (
        startup_model.write(files, name) if how == "write" else startup_model.start(files, name, size, float(began))
    )
    sys.stdout.write(json.dumps(figures))


if __name__ == "__main__":
    main()
