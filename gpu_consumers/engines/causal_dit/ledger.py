"""What a configuration needs on the card, by part, before anything is loaded: the model is built and run without its numbers.

Sizes are exact for weights and caches. Activations are the peak of one block's pass and of one block's decoding, side by side
as they run; the card's allocator and its libraries add to that (`RESERVE`).
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import repeat

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from gpu_consumers.engines.causal_dit.config import DitConfig
from gpu_consumers.engines.causal_dit.control import ControlVideo
from gpu_consumers.engines.causal_dit.decode import DecodeStream
from gpu_consumers.engines.causal_dit.live import LiveBytes
from gpu_consumers.engines.causal_dit.lora import Lora, with_loras
from gpu_consumers.engines.causal_dit.memory import KvCache, device_cache
from gpu_consumers.engines.causal_dit.models import ModelConfig
from gpu_consumers.engines.causal_dit.preview import PreviewDecoder, PreviewStream
from gpu_consumers.engines.causal_dit.sampler import take_in
from gpu_consumers.engines.causal_dit.transformer import Transformer
from gpu_consumers.engines.causal_dit.vae import Vae

RESERVE = 0.06
"""Of the card: CUDA context, library workspaces, fragmentation below the 30 % at which nothing is done."""
TEXT_ENCODER_BYTES = 11_361_845_248
"""umT5-xxl in bf16; the embedding is kept and the encoder freed, or it lives elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Bytes on the card by part. Those that a job adds by its options are 0 without them."""

    weights: int
    lora: int
    """Adapters beside the weights."""
    control: int
    """The control branch's weights."""
    kv_cache: int
    cross_kv: int
    control_cache: int
    """The control branch's keys and values, its part of the prompt's, the control's latents and its encoder's memory."""
    vae_weights: int
    preview: int
    """The preview decoder's weights."""
    vae_cache: int
    """The memory of the decoder that is used."""
    activations: int

    @property
    def total(self) -> int:
        """All parts, without the reserve and the text encoder."""
        return self.weights + self.control + self.vae_weights + self.preview + self.activations + self.per_job()

    def per_job(self) -> int:
        """What every further job on the card adds: its caches and adapters; weights and activations are shared."""
        return self.lora + self.kv_cache + self.cross_kv + self.control_cache + self.vae_cache

    def jobs_on(self, card_bytes: int) -> int:
        """How many jobs fit on a card at once; 0: not even one."""
        room = card_bytes * (1 - RESERVE) - (self.total - self.per_job())
        return max(0, int(room // self.per_job()))


def predict(config: ModelConfig, width: int, height: int, dtype: torch.dtype) -> Ledger:
    """The ledger for pictures of `width` x `height`, by a dry run on tensors without storage."""
    with FakeTensorMode(), torch.no_grad(), _default(dtype):
        transformer, vae = Transformer(config.dit), Vae(config.vae)
        adapters = [_adapter(transformer, ranks) for ranks in config.adapters]
        size = (height // 8, width // 8)
        batch = batch_of(config)
        cache = device_cache(
            config.dit, config.window, (size[0] // 2, size[1] // 2), torch.zeros(batch, dtype=dtype), kept=config.kept
        )
        steering = _steering(config, vae, (height, width))
        denoising = _denoising(config, with_loras(transformer, [(lora, 1.0) for lora in adapters]), cache, size)
        preview = PreviewDecoder(config.preview_sizes) if config.previewed else None
        decoding = _decoding(config, DecodeStream(vae) if preview is None else PreviewStream(preview), size)
    branch = sum(_size(p) for name, p in transformer.named_parameters() if name.startswith("vace_"))
    attention, layers = config.dit.attention_layers, config.dit.layers
    caches, cross = cache.storage.device_bytes, cross_bytes(config.dit, batch, dtype)
    return Ledger(
        weights=bytes_of(transformer) - branch,
        lora=sum(lora.size_bytes for lora in adapters),
        control=branch,
        kv_cache=caches * layers // attention,
        cross_kv=cross * layers // attention,
        control_cache=(caches + cross) * (attention - layers) // attention + steering.held,
        vae_weights=bytes_of(vae),
        preview=0 if preview is None else bytes_of(preview),
        vae_cache=decoding.held,
        activations=max(denoising.passing, steering.passing) + decoding.passing,
    )


def cross_bytes(dit: DitConfig, batch: int, dtype: torch.dtype) -> int:
    """Cross-attention's keys and values of one prompt."""
    return 2 * dit.attention_layers * batch * dit.text_tokens * dit.dim * dtype.itemsize


def batch_of(config: ModelConfig) -> int:
    """2 where the model is asked for the prompt and for the negative one."""
    return 2 if config.schedule.guidance > 1 else 1


def bytes_of(module: torch.nn.Module) -> int:
    """Of its parameters."""
    return sum(map(_size, module.parameters()))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bytes:
    """What a stage keeps from block to block, and what it needs on top while it runs."""

    held: int = 0
    passing: int = 0


def _denoising(config: ModelConfig, transformer: Transformer, cache: KvCache, size: tuple[int, int]) -> _Bytes:
    batch, dit = batch_of(config), config.dit
    block = torch.zeros(1, config.vae.channels, config.window.block, *size)
    context = transformer.context(torch.zeros(batch, dit.text_tokens, dit.text_dim))
    if dit.control_layers:
        context = replace(context, control=torch.zeros(1, dit.control_channels, config.window.block, *size))
    while cache.latents < config.window.latents:
        cache.begin(cache.latents)
    with LiveBytes() as live:
        take_in(transformer, cache, context, block)
    return _Bytes(passing=live.peak)


def _steering(config: ModelConfig, vae: Vae, size: tuple[int, int]) -> _Bytes:
    """Two blocks are encoded; of the latents as many are kept as there are blocks in the window."""
    if not config.dit.control_layers:
        return _Bytes()
    control = ControlVideo(vae, repeat(torch.zeros(3, *size)), config.window)
    with LiveBytes() as live:
        kept = [control.block(index) for index in range(2)]
        now = live.now
    more = config.window.latents // config.window.block - len(kept)
    return _Bytes(held=now + more * _size(kept[1]), passing=live.peak - now)


def _decoding(config: ModelConfig, stream: DecodeStream | PreviewStream, size: tuple[int, int]) -> _Bytes:
    block = torch.zeros(1, config.vae.channels, config.window.block, *size)
    with LiveBytes() as live:
        stream.decode(block)
        stream.decode(block)
        held = live.now
    return _Bytes(held=held, passing=live.peak - held)


def _adapter(transformer: Transformer, ranks: tuple[tuple[str, int], ...]) -> Lora:
    """Of these ranks, without numbers; a weight that the model has not is left to the loading to refuse."""
    shapes = {name: p.shape for name, p in transformer.named_parameters()}
    found = [(name, rank, *shapes[name]) for name, rank in ranks if name in shapes]
    pairs = {name: (torch.zeros(rank, into), torch.zeros(out, rank)) for name, rank, out, into in found}
    return Lora(pairs=pairs, scales=dict.fromkeys(pairs, 1.0))


@contextmanager
def _default(dtype: torch.dtype) -> Generator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _size(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()
