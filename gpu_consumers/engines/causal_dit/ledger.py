"""What a configuration needs on the card, by part, before anything is loaded: the model is built and run without its numbers.

Sizes are exact for weights and caches. Activations are the peak of one block's pass and of one block's decoding, side by side
as they run; the card's allocator and its libraries add to that (`RESERVE`).
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from gpu_consumers.engines.causal_dit.config import DitConfig
from gpu_consumers.engines.causal_dit.decode import DecodeStream
from gpu_consumers.engines.causal_dit.live import LiveBytes
from gpu_consumers.engines.causal_dit.memory import device_cache
from gpu_consumers.engines.causal_dit.models import ModelConfig
from gpu_consumers.engines.causal_dit.sampler import take_in
from gpu_consumers.engines.causal_dit.transformer import Transformer
from gpu_consumers.engines.causal_dit.vae import Vae

RESERVE = 0.06
"""Of the card: CUDA context, library workspaces, fragmentation below the 30 % at which nothing is done."""
TEXT_ENCODER_BYTES = 11_361_845_248
"""umT5-xxl in bf16; the embedding is kept and the encoder freed, or it lives elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Bytes on the card by part."""

    weights: int
    kv_cache: int
    cross_kv: int
    vae_weights: int
    vae_cache: int
    activations: int

    @property
    def total(self) -> int:
        """All parts, without the reserve and the text encoder."""
        return self.weights + self.kv_cache + self.cross_kv + self.vae_weights + self.vae_cache + self.activations

    def per_job(self) -> int:
        """What every further job on the card adds: its caches; weights and activations are shared."""
        return self.kv_cache + self.cross_kv + self.vae_cache

    def jobs_on(self, card_bytes: int) -> int:
        """How many jobs fit on a card at once; 0: not even one."""
        room = card_bytes * (1 - RESERVE) - (self.total - self.per_job())
        return max(0, int(room // self.per_job()))


def predict(config: ModelConfig, width: int, height: int, dtype: torch.dtype) -> Ledger:
    """The ledger for pictures of `width` x `height`, by a dry run on tensors without storage."""
    with FakeTensorMode(), torch.no_grad(), _default(dtype):
        transformer, vae = Transformer(config.dit), Vae(config.vae)
        size = (height // 8, width // 8)
        batch = 2 if config.schedule.guidance > 1 else 1
        like = torch.zeros(batch, dtype=dtype)
        cache = device_cache(config.dit, config.window, (size[0] // 2, size[1] // 2), like, kept=config.kept)
        block = torch.zeros(1, config.vae.channels, config.window.block, *size, dtype=dtype)
        context = transformer.context(torch.zeros(batch, config.dit.text_tokens, config.dit.text_dim, dtype=dtype))
        while cache.latents < config.window.latents:
            cache.begin(cache.latents)
        with LiveBytes() as denoising:
            take_in(transformer, cache, context, block)
        stream = DecodeStream(vae)
        with LiveBytes() as decoding:
            stream.decode(block)
            stream.decode(block)
            held = decoding.now
    return Ledger(
        weights=_bytes_of(transformer),
        kv_cache=cache.storage.device_bytes,
        cross_kv=cross_bytes(config.dit, batch, dtype),
        vae_weights=_bytes_of(vae),
        vae_cache=held,
        activations=denoising.peak + decoding.peak - held,
    )


def cross_bytes(dit: DitConfig, batch: int, dtype: torch.dtype) -> int:
    """Cross-attention's keys and values of one prompt."""
    return 2 * dit.attention_layers * batch * dit.text_tokens * dit.dim * dtype.itemsize


@contextmanager
def _default(dtype: torch.dtype) -> Generator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _bytes_of(module: torch.nn.Module) -> int:
    return sum(p.numel() * p.element_size() for p in module.parameters())
