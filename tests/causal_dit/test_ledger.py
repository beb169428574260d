"""The memory that is predicted against the memory that is used, part by part, and against the published sizes."""

from pathlib import Path

import pytest
import torch

from gpu_consumers.engines.causal_dit.decode import DecodeStream
from gpu_consumers.engines.causal_dit.ledger import Ledger, predict
from gpu_consumers.engines.causal_dit.live import LiveBytes
from gpu_consumers.engines.causal_dit.memory import device_cache
from gpu_consumers.engines.causal_dit.models import MODELS, build
from gpu_consumers.engines.causal_dit.sampler import denoise, generator

SIZE = (96, 64)


def test_live_bytes_are_those_of_tensors_that_something_refers_to() -> None:
    before = torch.zeros(1000)
    with LiveBytes() as live:
        a = torch.ones(250)
        view = a[:10]
        assert live.now == 1000
        b = before + 1
        del a
        assert live.now == 5000
        del b
        view = view + 1
        before.add_(1)
        assert (live.now, live.peak) == (40, 5000)


@torch.no_grad()
def measured() -> Ledger:
    model = build(MODELS["tiny"], Path("none"), torch.device("cpu"))
    config, size = model.config, (SIZE[1] // 8, SIZE[0] // 8)

    def noise() -> torch.Tensor:
        return torch.randn(1, 16, 3, *size, generator=generator(1, 0, 0, 0))

    with LiveBytes() as caches:
        cache = device_cache(config.dit, config.window, (size[0] // 2, size[1] // 2), torch.zeros(1))
        kv = caches.now - 4
        context = model.transformer.context(model.text("a fox")[None])
    cross = sum(t.numel() * 4 for layer in context.layers for pair in layer for t in pair)
    block = torch.empty(0)
    with LiveBytes() as denoising:
        for _ in range(6):
            cache.begin(cache.latents)
            *_, block = denoise(model.transformer, cache, context, config.schedule, iter(noise, None))
    stream = DecodeStream(model.vae)
    with LiveBytes() as decoding:
        for _ in range(3):
            stream.decode(block)
        held = decoding.now
    weights, vae = (sum(p.numel() * 4 for p in m.parameters()) for m in (model.transformer, model.vae))
    return Ledger(
        weights=weights,
        kv_cache=kv,
        cross_kv=cross,
        vae_weights=vae,
        vae_cache=held,
        activations=denoising.peak + decoding.peak - held,
    )


def test_the_prediction_is_within_five_percent_of_a_run() -> None:
    predicted, used = predict(MODELS["tiny"], *SIZE, torch.float32), measured()
    for part in ("weights", "kv_cache", "cross_kv", "vae_weights", "vae_cache", "activations", "total"):
        assert getattr(predicted, part) == pytest.approx(getattr(used, part), rel=0.05), part


def test_the_model_of_1_3_billion_has_its_published_sizes() -> None:
    ledger = predict(MODELS["self-forcing-1.3b"], 832, 480, torch.bfloat16)
    assert ledger.weights == 2 * 1_418_996_800
    assert ledger.kv_cache == 12 * 1560 * 1536 * 30 * 2 * 2
    assert ledger.cross_kv == pytest.approx(94e6, rel=0.01)
    assert ledger.vae_weights == pytest.approx(0.25e9, rel=0.05)
    assert ledger.jobs_on(8 << 30) == 0
    assert ledger.jobs_on(80 << 30) > ledger.jobs_on(24 << 30) >= 1
