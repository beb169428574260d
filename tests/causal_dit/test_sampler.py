"""Steps, seeds and the clean pass, on a tiny transformer."""

from collections.abc import Iterator

import pytest
import torch
from diffusers import UniPCMultistepScheduler
from torch import Tensor

from gpu_consumers.engines.causal_dit.config import TINY, Window
from gpu_consumers.engines.causal_dit.memory import KvCache, device_cache
from gpu_consumers.engines.causal_dit.sampler import DISTILLED, Schedule, denoise, euler, generator, recache, unipc
from gpu_consumers.engines.causal_dit.transformer import Context, Transformer

GRID = (2, 3)
SHAPE = (1, 16, 3, 4, 6)


@pytest.fixture(scope="module")
def model() -> Transformer:
    torch.manual_seed(1)
    model = Transformer(TINY).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.15)
    return model


@torch.no_grad()
def prompt(model: Transformer, *seeds: int) -> Context:
    texts = [torch.randn(TINY.text_tokens, TINY.text_dim, generator=torch.Generator().manual_seed(s)) for s in seeds]
    return model.context(torch.stack(texts).double())


def noise_of(block: int, variation: int = 0) -> Iterator[Tensor]:
    source = generator(5, 0, block, variation)
    while True:
        yield torch.randn(SHAPE, generator=source).double()


def take(model: Transformer, context: Context, schedule: Schedule, blocks: int, cache: KvCache) -> list[Tensor]:
    out: list[Tensor] = []
    for block in range(blocks):
        cache.begin(block * 3)
        *_, clean = denoise(model, cache, context, schedule, noise_of(block))
        out.append(clean)
    return out


def cache_of(batch: int = 1) -> KvCache:
    return device_cache(TINY, Window(), GRID, like=torch.zeros(batch, dtype=torch.float64))


def test_the_warped_steps_are_those_of_self_forcing() -> None:
    assert [round(s * 1000, 2) for s in DISTILLED.sigmas] == [1000, 937.5, 833.33, 625]


def test_a_block_takes_five_passes_and_each_is_a_heartbeat(model: Transformer) -> None:
    cache = cache_of()
    cache.begin(0)
    beats = list(denoise(model, cache, prompt(model, 1), DISTILLED, noise_of(0)))
    assert len(beats) == 5
    assert torch.equal(beats[-1], beats[-2])
    assert torch.equal(beats[-1], beats[-1].half().double())


def test_the_last_pass_leaves_clean_keys_behind(model: Transformer) -> None:
    context, cache, replay = prompt(model, 1), cache_of(), cache_of()
    clean = take(model, context, DISTILLED, 2, cache)
    recache(model, replay, [(context, block) for block in clean])
    for layer in range(TINY.layers):
        assert torch.equal(cache.storage.layer(layer).k, replay.storage.layer(layer).k)
        assert torch.equal(cache.storage.layer(layer).v, replay.storage.layer(layer).v)


def test_replayed_blocks_continue_bit_identically(model: Transformer) -> None:
    context = prompt(model, 1)
    whole = take(model, context, DISTILLED, 8, cache_of())
    cache = cache_of()
    recache(model, cache, [(context, block) for block in whole[:7]])
    cache.begin(21)
    *_, eighth = denoise(model, cache, context, DISTILLED, noise_of(7))
    assert torch.equal(eighth, whole[7])


def test_a_new_prompt_changes_what_comes_next_and_the_recache_forgets_the_old_one(model: Transformer) -> None:
    old, new, cache = prompt(model, 1), prompt(model, 2), cache_of()
    clean = take(model, old, DISTILLED, 2, cache)
    keys = [cache.storage.layer(layer).k.clone() for layer in range(2)]
    recache(model, cache, [(new, block) for block in clean])
    assert torch.equal(cache.storage.layer(0).k, keys[0])
    assert not torch.allclose(cache.storage.layer(1).k, keys[1])


def test_seeds_are_those_of_job_shot_block_and_variation() -> None:
    def draw(*key: int) -> Tensor:
        return torch.randn(4, generator=generator(*key))

    torch.manual_seed(0)
    first = draw(1, 2, 3, 0)
    torch.rand(5)
    assert torch.equal(draw(1, 2, 3, 0), first)
    assert all(not torch.equal(draw(*key), first) for key in ((2, 2, 3, 0), (1, 3, 3, 0), (1, 2, 4, 0), (1, 2, 3, 1)))


def test_euler_steps_follow_a_straight_flow_exactly(model: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    target = torch.full(SHAPE, 3.0, dtype=torch.float64)
    start = next(noise_of(0))
    monkeypatch.setattr(Transformer, "forward", lambda _self, x, *_: (start - target).expand(x.shape))
    cache = cache_of()
    cache.begin(0)
    *_, out = denoise(model, cache, prompt(model, 1), euler(7, guidance=1.0), noise_of(0))
    assert torch.allclose(out, target, atol=1e-3)


def test_guidance_moves_away_from_the_negative(model: Transformer) -> None:
    def clean(guidance: float, *seeds: int) -> Tensor:
        cache = cache_of(len(seeds))
        cache.begin(0)
        *_, out = denoise(model, cache, prompt(model, *seeds), euler(3, guidance=guidance), noise_of(0))
        return out

    alone, negative = clean(1.0, 1), clean(1.0, 2)
    assert torch.allclose(clean(1.0, 1, 2), alone, atol=1e-3)
    assert torch.allclose(clean(0.0, 1, 2), negative, atol=1e-3)
    away = clean(3.0, 1, 2)
    assert (away - negative).norm() > (alone - negative).norm()


def test_unipc_is_chosen_by_the_schedule_and_ends_where_its_last_prediction_is(model: Transformer) -> None:
    """The whole run against diffusers' scheduler around the same model (its own parity: test_unipc.py)."""
    schedule, context, cache = unipc(4, guidance=1.0), prompt(model, 1), cache_of()
    scheduler = UniPCMultistepScheduler(prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=5.0)
    scheduler.set_timesteps(4)
    scheduler.sigmas = torch.tensor([*schedule.sigmas, 0.0], dtype=torch.float64)
    cache.begin(0)
    steps = list(denoise(model, cache, context, schedule, noise_of(0)))
    x = next(noise_of(0))
    for time, ours in zip(scheduler.timesteps, steps[:4], strict=True):
        with torch.no_grad():
            flow = model(x, time[None].double(), context, cache)
        x = scheduler.step(flow, time, x).prev_sample
        assert (ours - x).abs().max() < (1e-10 if time > scheduler.timesteps[-1] else 1e-2)
    assert torch.equal(steps[4], x.half().double())
