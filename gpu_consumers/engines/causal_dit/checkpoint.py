"""Checkpoints as files: safetensors mapped into memory, `.pt` with `weights_only=True`; LoRA pairs in peft's layout."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from safetensors import safe_open
from torch import Tensor, nn

from gpu_consumers.engines.causal_dit.layouts import original_names

_NESTED = ("generator_ema", "generator_lora", "generator", "model", "state_dict")
"""Where training scripts keep the weights inside a `.pt`, best first."""
_PEFT = "base_model.model."


class CheckpointError(Exception):
    """The file is not the model's: the message lists the tensors that are missing, left over or of another shape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lora:
    """An adapter: for each weight the pair (down [rank, in], up [out, rank]); the weight grows by `scale` * up @ down."""

    pairs: dict[str, tuple[Tensor, Tensor]]
    scale: float

    @property
    def size_bytes(self) -> int:
        """What it occupies when it is kept beside the weights."""
        return sum(t.numel() * t.element_size() for pair in self.pairs.values() for t in pair)


def read(path: Path) -> dict[str, Tensor]:
    """The tensors of a checkpoint under the names it uses: a file, or a folder of safetensors shards. Nothing is copied yet.

    Raises: CheckpointError if there is nothing to load.
    """
    files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
    if not files or not all(file.is_file() for file in files):
        raise CheckpointError(f"{path}: no checkpoint")
    tensors: dict[str, Tensor] = {}
    for file in files:
        tensors.update(_safetensors(file) if file.suffix == ".safetensors" else _pickled(file))
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


def read_lora(path: Path) -> Lora:
    """An adapter in peft's layout: `adapter_model.safetensors` and `adapter_config.json` in a folder, or the file alone (alpha = rank).

    Raises: CheckpointError if a weight has only half of its pair.
    """
    file = path / "adapter_model.safetensors" if path.is_dir() else path
    config = path / "adapter_config.json"
    halves = original_names({name.removeprefix(_PEFT): t for name, t in read(file).items()})
    pairs: dict[str, tuple[Tensor, Tensor]] = {}
    for name, down in halves.items():
        base, dot, _ = name.partition(".lora_A.")
        if dot:
            up = halves.get(name.replace(".lora_A.", ".lora_B."))
            if up is None:
                raise CheckpointError(f"{file}: {base} has lora_A and no lora_B")
            pairs[f"{base}.weight"] = (down, up)
    if not pairs or 2 * len(pairs) != len(halves):
        raise CheckpointError(f"{file}: not a LoRA adapter in peft's layout")
    rank = next(iter(pairs.values()))[0].shape[0]
    alpha = cast(float, json.loads(config.read_text())["lora_alpha"]) if path.is_dir() else rank
    return Lora(pairs=pairs, scale=alpha / rank)


@torch.no_grad()
def merge(model: nn.Module, lora: Lora, weight: float) -> None:
    """Add the adapter to the weights, `weight` times. Merging with `-weight` takes it out again, up to rounding.

    Raises: CheckpointError if the adapter is for another model.
    """
    parameters = dict(model.named_parameters())
    unknown = sorted(lora.pairs.keys() - parameters.keys())
    if unknown:
        raise CheckpointError(f"the adapter changes what the model has not: {', '.join(unknown)}")
    for name, (down, up) in lora.pairs.items():
        target = parameters[name]
        change = up.to(target.device, torch.float64) @ down.to(target.device, torch.float64)
        target += (weight * lora.scale * change).to(target.dtype)


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
