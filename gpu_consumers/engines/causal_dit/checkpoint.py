"""Checkpoints as files: safetensors mapped into memory, `.pt` with `weights_only=True`."""

import os
from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import cast

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from gpu_consumers.engines.causal_dit.layouts import CheckpointError, original_names

_NESTED = ("generator_ema", "generator_lora", "generator", "model", "state_dict")
"""Where training scripts keep the weights inside a `.pt`, best first."""


def read(path: Path) -> dict[str, Tensor]:
    """The tensors of a checkpoint under the names it uses: a file, or a folder of safetensors shards. Nothing is copied yet.

    Raises: CheckpointError if there is nothing to load, or naming the file that cannot be read.
    """
    files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
    if not files or not all(file.is_file() for file in files):
        raise CheckpointError(f"{path}: no checkpoint")
    tensors: dict[str, Tensor] = {}
    for file in files:
        try:
            tensors.update(_safetensors(file) if file.suffix == ".safetensors" else _pickled(file))
        except (SafetensorError, UnpicklingError, RuntimeError, EOFError) as error:  # torch's reader says RuntimeError
            raise CheckpointError(f"{file} cannot be read: {error}") from error
    return tensors


def load(model: nn.Module, tensors: Mapping[str, Tensor], *, dtype: torch.dtype, device: torch.device) -> None:
    """Give the transformer its weights, whichever layout they are in. Raises: CheckpointError, and the model is as before."""
    ours = original_names(tensors)
    expected = {name: tuple(t.shape) for name, t in model.state_dict().items()}
    found = {name: tuple(t.shape) for name, t in ours.items()}
    faults = {
        "missing": sorted(expected.keys() - found.keys()),
        "left over": sorted(found.keys() - expected.keys()),
        "of another shape": [
            f"{name} {found[name]} instead of {expected[name]}"
            for name in sorted(expected.keys() & found.keys())
            if expected[name] != found[name]
        ],
    }
    if any(faults.values()):
        raise CheckpointError("; ".join(f"{what}: {', '.join(names)}" for what, names in faults.items() if names))
    # Copied even where nothing changes: a mapped tensor's alignment differs from file to file, and with it the last bit of a sum.
    placed = {name: t.to(device=device, dtype=dtype, copy=True) for name, t in ours.items()}
    model.load_state_dict(placed, assign=True)


def read_ahead(path: Path) -> int:
    """Ask the kernel to bring the checkpoint into the page cache; returns at once with its bytes."""
    total = 0
    for file in sorted(path.glob("*.safetensors")) if path.is_dir() else [path]:
        descriptor = os.open(file, os.O_RDONLY)
        try:
            size = os.fstat(descriptor).st_size
            os.posix_fadvise(descriptor, 0, size, os.POSIX_FADV_WILLNEED)
        finally:
            os.close(descriptor)
        total += size
    return total


def shard_of(sizes: Mapping[str, int], rank: int, ranks: int) -> list[str]:
    """The tensors that one of `ranks` processes reads from disk: together all of them, each once, bytes spread evenly (largest first)."""
    shards: list[list[str]] = [[] for _ in range(ranks)]
    filled = [0] * ranks
    for name in sorted(sizes, key=lambda n: (-sizes[n], n)):
        least = filled.index(min(filled))
        shards[least].append(name)
        filled[least] += sizes[name]
    return shards[rank]


def _safetensors(file: Path) -> dict[str, Tensor]:
    with safe_open(file, framework="pt") as tensors:
        return {name: tensors.get_tensor(name) for name in tensors.keys()}  # noqa: SIM118 (not a mapping)


def _pickled(file: Path) -> dict[str, Tensor]:
    content: object = torch.load(file, map_location="cpu", weights_only=True, mmap=True)
    for _ in range(2):
        if isinstance(content, dict):
            inner = [cast("dict[str, object]", content)[key] for key in _NESTED if key in content]
            content = inner[0] if inner else content
    if not isinstance(content, dict) or not all(isinstance(t, Tensor) for t in content.values()):
        raise CheckpointError(f"{file}: no dictionary of tensors under any of {', '.join(_NESTED)}")
    return cast("dict[str, Tensor]", content)
