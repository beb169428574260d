"""LoRA adapters in peft's layout: merged into the weights for good, or live beside them for one job.

Live adapters never touch the model's weights: a job gets a copy of the module tree that shares every tensor with the loaded
model and has the adapters' small matrices beside it. So jobs with different adapters on one loaded model cannot mix, and
changing them leaves no trace.
"""

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

import torch
import torch.nn.functional as nn_functional
from torch import Tensor, nn

from gpu_consumers.engines.causal_dit.checkpoint import CheckpointError, check_finite, check_floating, naming, read
from gpu_consumers.engines.causal_dit.layouts import original_names

Net = TypeVar("Net", bound=nn.Module)
_PREFIXES = ("base_model.model.", "diffusion_model.", "transformer.")
"""Of peft itself, of ComfyUI's trainers and of diffusers."""


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class Lora:
    """An adapter: for each weight the pair (down [rank, in], up [out, rank]); the weight grows by `scale` * up @ down."""

    pairs: dict[str, tuple[Tensor, Tensor]]
    scales: dict[str, float]
    """By weight: alpha / rank."""

    @property
    def size_bytes(self) -> int:
        """What it occupies when it is kept beside the weights."""
        return sum(t.numel() * t.element_size() for pair in self.pairs.values() for t in pair)

    def to(self, device: torch.device, dtype: torch.dtype) -> "Lora":
        """A copy on a device: a mapped tensor's alignment, and with it the last bit of a sum, differs from file to file."""
        pairs = {
            name: (down.to(device, dtype, copy=True), up.to(device, dtype, copy=True))
            for name, (down, up) in self.pairs.items()
        }
        return Lora(pairs=pairs, scales=self.scales)


class LiveLinear(nn.Module):
    """A linear layer with adapters: y = W x + b + sum of weight * scale * up (down x)."""

    def __init__(self, base: nn.Linear, adapters: Sequence[tuple[Tensor, Tensor, float]]) -> None:
        """`adapters`: down, up and weight * scale of each."""
        super().__init__()
        self.base = base
        self.factors = tuple(factor for *_, factor in adapters)
        for index, (down, up, _) in enumerate(adapters):
            self.register_buffer(f"down_{index}", down, persistent=False)
            self.register_buffer(f"up_{index}", up, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """x [..., in]."""
        y = self.base(x)
        for index, factor in enumerate(self.factors):
            down, up = self.get_buffer(f"down_{index}"), self.get_buffer(f"up_{index}")
            y = y + factor * nn_functional.linear(nn_functional.linear(x, down), up)
        return y


def read_lora(path: Path) -> Lora:
    """An adapter in peft's layout: `adapter_model.safetensors` and `adapter_config.json` in a folder, or the file alone (alpha = rank).

    Raises: CheckpointError if a weight has only half of its pair, or naming the tensors that are no part of a pair.
    """
    file = path / "adapter_model.safetensors" if path.is_dir() else path
    halves = original_names({_bare(name): t for name, t in read(file).items()})
    with naming(file):
        check_floating(halves)
    pairs: dict[str, tuple[Tensor, Tensor]] = {}
    left = set(halves)
    for name, down in halves.items():
        base, dot, _ = name.partition(".lora_A.")
        other = name.replace(".lora_A.", ".lora_B.")
        if dot and other not in halves:
            raise CheckpointError(f"{file}: {base} has lora_A and no lora_B")
        if dot and not down.ndim == halves[other].ndim == 2:
            raise CheckpointError(f"{file}: {base} has a pair that is no matrices")
        if dot:
            pairs[f"{base}.weight"] = (down, halves[other])
            left -= {name, other}
    if left or not pairs:
        raise CheckpointError(
            f"{file}: not a LoRA adapter in peft's layout: {', '.join(sorted(left)) or 'it is empty'}"
        )
    return Lora(pairs=pairs, scales=_scales(path, pairs))


def finite_lora(path: Path) -> Lora:
    """`read_lora`, and all of it is read: once, where it is to be used. Raises: CheckpointError naming what is not finite, too."""
    lora = read_lora(path)
    halves = {
        f"{name.removesuffix('.weight')}.lora_{half}.weight": t
        for name, pair in lora.pairs.items()
        for half, t in zip("AB", pair, strict=True)
    }
    with naming(path):
        check_finite(halves)
    return lora


@torch.no_grad()
def merge(model: nn.Module, lora: Lora, weight: float) -> None:
    """Add the adapter to the weights, `weight` times. Merging with `-weight` takes it out again, up to rounding.

    Raises: CheckpointError if the adapter is for another model: the tensors that do not fit are named, nothing is changed.
    """
    check(model, lora)
    parameters = dict(model.named_parameters())
    for name, (down, up) in lora.pairs.items():
        target = parameters[name]
        change = up.to(target.device, torch.float64) @ down.to(target.device, torch.float64)
        target += (weight * lora.scales[name] * change).to(target.dtype)


def with_loras(model: Net, loras: Sequence[tuple[Lora, float]]) -> Net:
    """A model with the same tensors and the adapters live beside them, each with its weight. `model` is as it was.

    The adapters are on the model's device. Raises: CheckpointError as `merge`.
    """
    for lora, _ in loras:
        check(model, lora)
    adapted = sharing(model)
    for name in sorted({name for lora, _ in loras for name in lora.pairs}):
        module = name.removesuffix(".weight")
        parent, _, child = module.rpartition(".")
        pairs = [(*lora.pairs[name], weight * lora.scales[name]) for lora, weight in loras if name in lora.pairs]
        setattr(adapted.get_submodule(parent), child, LiveLinear(cast(nn.Linear, adapted.get_submodule(module)), pairs))
    return adapted


def sharing(model: Net) -> Net:
    """A copy of the module tree; its parameters and buffers are the model's own."""
    return copy.deepcopy(model, {id(t): t for t in (*model.parameters(), *model.buffers())})


def check(model: nn.Module, lora: Lora) -> None:
    """Raises: CheckpointError naming the weights that the model has not, or has in another shape."""
    layers = {f"{name}.weight": m for name, m in model.named_modules() if isinstance(m, nn.Linear)}
    unknown = sorted(lora.pairs.keys() - layers.keys())
    if unknown:
        raise CheckpointError(f"the adapter changes what the model has not: {', '.join(unknown)}")
    for name, (down, up) in lora.pairs.items():
        out, into = layers[name].weight.shape
        rank = down.shape[0]
        if tuple(down.shape) != (rank, into) or tuple(up.shape) != (out, rank):
            found = f"down {tuple(down.shape)}, up {tuple(up.shape)}"
            raise CheckpointError(f"the adapter's {name} has {found} instead of (r, {into}), ({out}, r)")


def _bare(name: str) -> str:
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name


def _scales(path: Path, pairs: dict[str, tuple[Tensor, Tensor]]) -> dict[str, float]:
    """alpha / rank, or alpha / sqrt(rank) where peft was told so (`use_rslora`)."""
    ranks = {name: down.shape[0] for name, (down, _) in pairs.items()}
    if not path.is_dir():
        return dict.fromkeys(ranks, 1.0)
    config = _config(path / "adapter_config.json")
    unread = [key for key in ("alpha_pattern", "use_dora") if config.get(key)]
    if unread:
        raise CheckpointError(f"{path}: {', '.join(unread)} of adapter_config.json is not supported")
    alpha = config.get("lora_alpha")
    if not isinstance(alpha, int | float) or not all(ranks.values()):
        raise CheckpointError(f"{path}: lora_alpha of adapter_config.json is no number, or a rank is 0")
    power = 0.5 if config.get("use_rslora") else 1.0
    return {name: alpha / rank**power for name, rank in ranks.items()}


def _config(file: Path) -> dict[str, object]:
    try:
        found: object = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{file} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise CheckpointError(f"{file}: not an object")
    return cast("dict[str, object]", found)
