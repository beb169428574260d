"""The native engine, tiny on the CPU: against diffusers' transformer, against recomputing, against whole-clip decoding."""

import statistics
import time
from collections.abc import Callable

import torch
from diffusers import AutoencoderKLWan, WanTransformer3DModel
from torch import Tensor

from gpu_consumers.engines.causal_dit.config import DitConfig, Window
from gpu_consumers.engines.causal_dit.decode import DecodeStream
from gpu_consumers.engines.causal_dit.layouts import original_names
from gpu_consumers.engines.causal_dit.live import LiveBytes
from gpu_consumers.engines.causal_dit.memory import WholeClip, device_cache
from gpu_consumers.engines.causal_dit.transformer import Transformer
from gpu_consumers.engines.causal_dit.vae import Vae, VaeConfig

_SMALL = DitConfig(layers=4, dim=192, ffn_dim=768, heads=4, text_dim=64, text_tokens=16)
_GRID = (8, 12)
_ROUNDS = 7


@torch.no_grad()
def measure() -> dict[str, float]:
    """Ratios of time, ours below the line: above 1 is faster than the peer."""
    torch.set_num_threads(1)
    return {**_forward(), **_cached(), **_decoding()}


def _forward() -> dict[str, float]:
    torch.manual_seed(1)
    reference = WanTransformer3DModel(
        num_attention_heads=_SMALL.heads,
        attention_head_dim=_SMALL.head_dim,
        text_dim=_SMALL.text_dim,
        ffn_dim=_SMALL.ffn_dim,
        num_layers=_SMALL.layers,
    ).eval()
    ours = Transformer(_SMALL).eval()
    ours.load_state_dict(original_names(reference.state_dict()))
    x, text, time_ = torch.randn(1, 16, 4, _GRID[0] * 2, _GRID[1] * 2), _text(), torch.tensor([500.0])
    memory = WholeClip(4, *_GRID, _SMALL.head_dim)
    theirs, mine = _paired(
        lambda: reference(x, time_, text, return_dict=False)[0],
        lambda: ours(x, time_, ours.context(text), memory),
    )
    return {"dit_forward_ratio": theirs / mine}


def _cached() -> dict[str, float]:
    """A block's step with the cache against a run over everything so far, at growing length."""
    model = Transformer(_SMALL).eval()
    context, window = model.context(_text()), Window(latents=0, sink=0)
    found: dict[str, float] = {}
    for blocks in (2, 4, 8):
        x = torch.randn(1, 16, 3 * blocks, _GRID[0] * 2, _GRID[1] * 2)
        cache = device_cache(_SMALL, window, _GRID, x, capacity=3 * blocks)
        for block in range(blocks):
            cache.begin(3 * block)
            model(x[:, :, 3 * block : 3 * block + 3], torch.zeros(1), context, cache)
        memory = WholeClip(3 * blocks, *_GRID, _SMALL.head_dim, block=3)
        again, step = _paired(
            lambda x=x, memory=memory: model(x, torch.zeros(1), context, memory),
            lambda x=x, cache=cache: model(x[:, :, -3:], torch.zeros(1), context, cache),
        )
        found[f"cached_block_ratio_{3 * blocks}_latents"] = again / step
    return found


def _decoding() -> dict[str, float]:
    config = VaeConfig(dim=16)
    reference = AutoencoderKLWan(base_dim=config.dim).eval()
    vae = Vae(config).eval()
    vae.load_state_dict(reference.state_dict())
    z = torch.randn(1, 16, 12, 8, 8)

    def streaming() -> Tensor:
        stream = DecodeStream(vae)
        return torch.stack([stream.decode(z[:, :, i : i + 3]).mean() for i in range(0, 12, 3)])

    whole, ours = _paired(lambda: reference.decode(z).sample, streaming)
    peaks: list[int] = []
    for latents in (6, 12):
        stream = DecodeStream(vae)
        with LiveBytes() as live:
            for i in range(0, latents, 3):
                stream.decode(z[:, :, i : i + 3])
        peaks.append(live.peak)
    return {"streaming_decode_ratio": whole / ours, "streaming_decode_memory_ratio": peaks[1] / peaks[0]}


def _paired(peer: Callable[[], Tensor], ours: Callable[[], Tensor]) -> tuple[float, float]:
    """Median seconds of each, in turn, so that both see the same machine."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(_ROUNDS + 1):
        for which, call in enumerate((peer, ours)):
            started = time.perf_counter()
            call()
            times[which].append(time.perf_counter() - started)
    return statistics.median(times[0][1:]), statistics.median(times[1][1:])


def _text() -> Tensor:
    return torch.randn(1, _SMALL.text_tokens, _SMALL.text_dim)
