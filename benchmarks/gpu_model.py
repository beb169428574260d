"""The model of the GPU benchmark: random weights, 1.3 billion of them at 832x480 on a card, tiny on the CPU."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gpu_consumers.engines.causal_dit.config import Kept
from gpu_consumers.engines.causal_dit.memory import KvCache, device_cache
from gpu_consumers.engines.causal_dit.models import MODELS, Model, ModelConfig
from gpu_consumers.engines.causal_dit.take import Take
from gpu_consumers.engines.causal_dit.text import tiny_umt5
from gpu_consumers.engines.causal_dit.transformer import Context, Transformer
from gpu_consumers.engines.causal_dit.vae import Vae


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """What is run: `blocks` are timed after the window is full."""

    config: ModelConfig
    width: int
    height: int
    blocks: int
    latents: int
    device: torch.device
    dtype: torch.dtype

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of a latent."""
        return self.height // 8, self.width // 8

    @property
    def grid(self) -> tuple[int, int]:
        """Of tokens."""
        return self.size[0] // 2, self.size[1] // 2


def scale(*, tiny: bool) -> Scale:
    """For this machine. Two threads on the CPU, or tiny tensors cost more to share than to compute."""
    torch.set_grad_enabled(False)
    if tiny or not torch.cuda.is_available():
        torch.set_num_threads(1)
        config, cpu = MODELS["tiny"], torch.device("cpu")
        return Scale(config=config, width=64, height=32, blocks=3, latents=60, device=cpu, dtype=torch.float32)
    card = torch.device("cuda")
    config = MODELS["self-forcing-1.3b"]
    return Scale(config=config, width=832, height=480, blocks=8, latents=501, device=card, dtype=torch.bfloat16)


def random_model(wanted: Scale) -> Model:
    """On the device, without a file; the text encoder is not part of what is measured."""
    torch.manual_seed(1)
    with wanted.device:
        transformer, vae = Transformer(wanted.config.dit).to(wanted.dtype), Vae(wanted.config.vae).to(wanted.dtype)
    for parameter in (*transformer.parameters(), *vae.parameters()):
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=parameter[0].numel() ** -0.5)
    return Model(
        config=wanted.config,
        transformer=transformer.eval().requires_grad_(False),
        vae=vae.eval().requires_grad_(False),
        text=tiny_umt5(tokens=8, width=32, seed=1),
        device=wanted.device,
        dtype=wanted.dtype,
    )


def context_of(model: Model) -> Context:
    """Of a random prompt."""
    dit = model.config.dit
    text = torch.randn(1, dit.text_tokens, dit.text_dim, device=model.device, dtype=model.dtype)
    return model.transformer.context(text)


def cache_of(wanted: Scale, kept: Kept | None = None) -> KvCache:
    """For one take."""
    like = torch.zeros(1, dtype=wanted.dtype, device=wanted.device)
    return device_cache(wanted.config.dit, wanted.config.window, wanted.grid, like, kept=kept or wanted.config.kept)


def take_of(wanted: Scale, model: Model, kept: Kept | None = None) -> Take:
    """A new take with a prompt."""
    side = torch.cuda.Stream() if wanted.device.type == "cuda" else None
    mine = model if kept is None else replace(model, config=replace(model.config, kept=kept))
    take = Take(mine, cache_of(wanted, kept), wanted.size, 1, side)
    take.prompt(context_of(model))
    return take


def block_of(wanted: Scale, seed: int = 2) -> Tensor:
    """Clean latents as they are stored, in host memory."""
    shape = (1, wanted.config.vae.channels, wanted.config.window.block, *wanted.size)
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(torch.float16)


def fill(take: Take, wanted: Scale) -> None:
    """Until the window is full and kernels are chosen."""
    for index in range(wanted.config.window.latents // wanted.config.window.block + 1):
        take.replay(block_of(wanted, index))


def seconds(wanted: Scale, work: Callable[[], object], times: int) -> float:
    """Of one run, the device's queue included, after one that is not counted."""
    work()
    synchronise(wanted)
    begun_s = time.perf_counter()
    for _ in range(times):
        work()
    synchronise(wanted)
    return (time.perf_counter() - begun_s) / times


def synchronise(wanted: Scale) -> None:
    """Wait for the device."""
    if wanted.device.type == "cuda":
        torch.cuda.synchronize()


def relative(found: Tensor, exact: Tensor) -> float:
    """Size of the difference, in sizes of the exact one."""
    exact = exact.double().cpu()
    return float((found.double().cpu() - exact).norm() / exact.norm())
