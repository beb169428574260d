"""The transformer against diffusers' own, in float64 with the same random weights; the causal form against a masked run."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from diffusers import WanTransformer3DModel
from torch import Tensor

from gpu_consumers.engines.causal_dit import rope
from gpu_consumers.engines.causal_dit.attention import attend
from gpu_consumers.engines.causal_dit.config import TINY, DitConfig, Window
from gpu_consumers.engines.causal_dit.layouts import original_names
from gpu_consumers.engines.causal_dit.memory import WholeClip, device_cache
from gpu_consumers.engines.causal_dit.transformer import Transformer, sinusoid

GRID = (3, 4)
IMAGE = replace(TINY, image_dim=20, in_channels=36)


@pytest.fixture(autouse=True)
def in_float64(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """diffusers casts to float32 by `.float()` wherever the original does: for parity in float64 that cast is double."""
    monkeypatch.setattr(Tensor, "float", Tensor.double)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def reference_of(config: DitConfig) -> WanTransformer3DModel:
    torch.manual_seed(7)
    model = WanTransformer3DModel(
        patch_size=config.patch,
        num_attention_heads=config.heads,
        attention_head_dim=config.head_dim,
        in_channels=config.in_channels,
        out_channels=config.out_channels,
        text_dim=config.text_dim,
        freq_dim=config.freq_dim,
        ffn_dim=config.ffn_dim,
        num_layers=config.layers,
        image_dim=config.image_dim,
        added_kv_proj_dim=config.dim if config.image_dim else None,
    ).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    # Its sinusoid is float32 whatever the model's type; ours is float64 as in the original.
    model.condition_embedder.timesteps_proj.forward = lambda t: sinusoid(t, config.freq_dim)
    return model.eval()


def ours_of(reference: WanTransformer3DModel, config: DitConfig) -> Transformer:
    model = Transformer(config).double().eval()
    model.load_state_dict(original_names(reference.state_dict()))
    return model


def inputs(config: DitConfig, latents: int, batch: int = 1) -> tuple[Tensor, Tensor]:
    torch.manual_seed(3)
    x = torch.randn(batch, config.in_channels, latents, GRID[0] * 2, GRID[1] * 2)
    return x, torch.randn(batch, config.text_tokens, config.text_dim)


def test_the_sinusoid_is_the_references_to_its_own_precision() -> None:
    reference = WanTransformer3DModel(num_attention_heads=1, attention_head_dim=24, num_layers=1, freq_dim=256)
    times = torch.tensor([0.0, 625.0, 1000.0])
    expected = reference.condition_embedder.timesteps_proj(times)
    assert torch.allclose(sinusoid(times, 256).to(torch.float32), expected.to(torch.float32), atol=2e-4)


@torch.no_grad()
def test_text_to_video_equals_diffusers_to_1e_10() -> None:
    reference = reference_of(TINY)
    model = ours_of(reference, TINY)
    x, text = inputs(TINY, latents=5, batch=2)
    time = torch.tensor([937.5, 625.0])
    expected = reference(x, time, text, return_dict=False)[0]
    out = model(x, time, model.context(text), WholeClip(5, *GRID, TINY.head_dim))
    assert (out - expected).abs().max() < 1e-10 < expected.abs().max()


@torch.no_grad()
def test_image_to_video_equals_diffusers_to_1e_10() -> None:
    config = replace(IMAGE, text_tokens=512)
    reference = reference_of(config)
    model = ours_of(reference, config)
    x, text = inputs(config, latents=2)
    image = torch.randn(1, 257, config.image_dim or 0)
    time = torch.tensor([500.0])
    expected = reference(x, time, text, image, return_dict=False)[0]
    out = model(x, time, model.context(text, image), WholeClip(2, *GRID, config.head_dim))
    assert (out - expected).abs().max() < 1e-10 < expected.abs().max()


@torch.no_grad()
def by_blocks(model: Transformer, x: Tensor, text: Tensor, window: Window, passes: int = 1) -> Tensor:
    """One pass per block through the cache; with more, the earlier ones see noise and must leave no trace."""
    cache = device_cache(model.config, window, GRID, like=x, capacity=x.shape[2])
    context = model.context(text)
    time = torch.zeros(1)
    outs: list[Tensor] = []
    for start in range(0, x.shape[2], window.block):
        cache.begin(start)
        block = x[:, :, start : start + window.block]
        for _ in range(passes - 1):
            model(torch.randn_like(block), torch.full((1,), 800.0), context, cache)
        outs.append(model(block, time, context, cache))
    return torch.cat(outs, dim=2)


@torch.no_grad()
@pytest.mark.parametrize("passes", [1, 3])
def test_block_by_block_with_the_cache_equals_one_masked_run(passes: int) -> None:
    model = ours_of(reference_of(TINY), TINY)
    x, text = inputs(TINY, latents=12)
    expected = model(x, torch.zeros(1), model.context(text), WholeClip(12, *GRID, TINY.head_dim, block=3))
    out = by_blocks(model, x, text, Window(latents=0, sink=0), passes)
    assert (out - expected).abs().max() < 1e-10


class WindowedClip:
    """The reference for sink + window: the whole clip at once, each block's visible keys gathered by their number."""

    def __init__(self, latents: int, window: Window, head_dim: int) -> None:
        self.latents, self.window, self.head_dim = latents, window, head_dim

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        per = GRID[0] * GRID[1]
        outs: list[Tensor] = []
        for start in range(0, self.latents, self.window.block):
            end = start + self.window.block
            recent = max(self.window.sink, end - (self.window.latents - self.window.sink))
            seen = [*range(min(self.window.sink, end)), *range(recent, end)]
            rows = torch.cat([torch.arange(i * per, (i + 1) * per) for i in seen])
            turn = rope.turns(torch.arange(len(seen)), *GRID, self.head_dim, q.dtype)
            here = slice(start * per, end * per)
            outs.append(
                attend(
                    rope.rotate(q[:, here], turn[-self.window.block * per :]), rope.rotate(k[:, rows], turn), v[:, rows]
                )
            )
        return torch.cat(outs, dim=1)


@torch.no_grad()
@pytest.mark.parametrize(
    "window",
    [Window(), Window(latents=9, sink=3), Window(latents=6, sink=0), Window(block=1, latents=4, sink=2)],
    ids=str,
)
def test_sink_and_window_equal_a_run_with_the_same_visibility(window: Window) -> None:
    model = ours_of(reference_of(TINY), TINY)
    x, text = inputs(TINY, latents=24)
    expected = model(x, torch.zeros(1), model.context(text), WindowedClip(24, window, TINY.head_dim))
    out = by_blocks(model, x, text, window, passes=2)
    assert (out - expected).abs().max() < 1e-10
    whole = model(x, torch.zeros(1), model.context(text), WholeClip(24, *GRID, TINY.head_dim, block=window.block))
    assert (whole - expected).abs().max() > 1e-6


@torch.no_grad()
def test_a_take_of_two_thousand_latents_stays_in_the_table_and_its_memory_is_flat() -> None:
    config = replace(TINY, layers=1)
    model = Transformer(config).eval()
    window = Window()
    x, text = inputs(config, latents=3)
    cache = device_cache(config, window, GRID, like=x)
    context, storage = model.context(text), (cache.storage.layer(0).k.data_ptr(), cache.storage.device_bytes)
    for start in range(0, 2001, 3):
        cache.begin(start)
        out = model(x, torch.zeros(1), context, cache)
        assert sorted(cache.times) == list(range(min(start + 3, window.latents)))
    assert out.isfinite().all()
    assert cache.latents == 2001
    assert (cache.storage.layer(0).k.data_ptr(), cache.storage.device_bytes) == storage


def test_a_block_left_out_is_refused() -> None:
    cache = device_cache(TINY, Window(), GRID, like=torch.zeros(1))
    cache.begin(0)
    cache.begin(0)
    with pytest.raises(ValueError, match="does not follow"):
        cache.begin(6)
    with pytest.raises(ValueError, match="beyond the cache"):
        device_cache(TINY, Window(latents=0, sink=0), GRID, like=torch.zeros(1), capacity=2).begin(0)
