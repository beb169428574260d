"""Checkpoints as files: safetensors mapped into memory, `.pt` with `weights_only=True`."""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import cast

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from gpu_consumers.engines.causal_dit.layouts import CheckpointError, original_names

_NESTED = ("generator_ema", "generator_lora", "generator", "model", "state_dict")
"""Where training scripts keep the weights inside a `.pt`, best first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one of `ranks` processes reads from disk: together all tensors, each once, bytes spread evenly."""

    rank: int
    ranks: int


WHOLE = Share(rank=0, ranks=1)


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


def load_file(model: nn.Module, path: Path, *, dtype: torch.dtype, device: torch.device, share: Share = WHOLE) -> None:
    """`load` from a file or folder of shards. Raises: CheckpointError naming it, and the model is as before."""
    tensors = read(path)
    with naming(path):
        load(model, tensors, dtype=dtype, device=device, share=share)


@contextmanager
def naming(path: Path) -> Generator[None]:
    """What is wrong inside is said of this file."""
    try:
        yield
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error


def load(
    model: nn.Module,
    tensors: Mapping[str, Tensor],
    *,
    dtype: torch.dtype,
    device: torch.device,
    share: Share = WHOLE,
) -> None:
    """Give the model its weights, whichever layout they are in; of a share only these are read, the others stay as they were.

    Raises: CheckpointError naming what is missing, left over, of another shape, no floating point or not finite, and the
    model is as before.
    """
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
    check_floating(ours)
    # Copied even where nothing changes: a mapped tensor's alignment differs from file to file, and with it the last bit of a sum.
    placed = {name: ours[name].to(device=device, dtype=dtype, copy=True) for name in _of(share, ours)}
    check_finite(placed)
    model.load_state_dict(placed, strict=share == WHOLE, assign=True)


def check_floating(tensors: Mapping[str, Tensor]) -> None:
    """By what the file says of them: nothing is read. Raises: CheckpointError naming those that cannot be weights."""
    wrong = [
        f"{name} is {str(t.dtype).removeprefix('torch.')}" for name, t in tensors.items() if not t.is_floating_point()
    ]
    if wrong:
        raise CheckpointError(f"no floating point: {', '.join(sorted(wrong))}")


def check_finite(tensors: Mapping[str, Tensor]) -> None:
    """By their extremes, which a NaN becomes too: 0.05 s per GB on one core, where `isfinite` takes 1.2 s.

    Raises: CheckpointError naming those with NaN or infinity in them.
    """
    wrong = [name for name, t in tensors.items() if t.numel() and not bool(torch.stack(t.aminmax()).isfinite().all())]
    if wrong:
        raise CheckpointError(f"NaN or infinity in: {', '.join(sorted(wrong))}")


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


def shard_of(sizes: Mapping[str, int], share: Share) -> list[str]:
    """The names of a share's tensors, dealt out largest first."""
    shards: list[list[str]] = [[] for _ in range(share.ranks)]
    filled = [0] * share.ranks
    for name in sorted(sizes, key=lambda n: (-sizes[n], n)):
        least = filled.index(min(filled))
        shards[least].append(name)
        filled[least] += sizes[name]
    return shards[share.rank]


def _of(share: Share, tensors: Mapping[str, Tensor]) -> list[str]:
    if share == WHOLE:
        return list(tensors)
    return shard_of({name: t.numel() * t.element_size() for name, t in tensors.items()}, share)


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
