"""From noise to a block of clean latents: few warped steps of a distilled model, or guided flow steps of one that is not."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
import xxhash
from torch import Tensor

from gpu_consumers.engines.causal_dit.memory import KvCache
from gpu_consumers.engines.causal_dit.transformer import Transformer

Context = list[list[tuple[Tensor, Tensor]]]
_TRAINED_STEPS = 1000
STORED = torch.float16
"""Clean latents are rounded to it before anything is made of them: what is stored is what was used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Which noise levels a block goes through. `guidance` above 1 needs a batch of two: the prompt, then the negative.

    `renoise`: after each step fresh noise is mixed in (distilled models, Self-Forcing); else the flow is followed (Euler).
    """

    times: tuple[float, ...]
    shift: float
    guidance: float = 1.0
    renoise: bool = True

    @property
    def sigmas(self) -> tuple[float, ...]:
        """Noise levels in (0, 1], warped: shift * s / (1 + (shift - 1) * s)."""
        levels = [time / _TRAINED_STEPS for time in self.times]
        return tuple(self.shift * s / (1 + (self.shift - 1) * s) for s in levels)


DISTILLED = Schedule(times=(1000, 750, 500, 250), shift=5.0)
"""Self-Forcing and LongLive: 1000, 937.5, 833.33 and 625 after the warp."""


def euler(steps: int, *, shift: float = 5.0, guidance: float = 5.0) -> Schedule:
    """Evenly spaced flow steps for checkpoints that are not distilled."""
    times = tuple(_TRAINED_STEPS * (1 - i / steps) for i in range(steps))
    return Schedule(times=times, shift=shift, guidance=guidance, renoise=False)


def generator(seed: int, shot: int, block: int, variation: int) -> torch.Generator:
    """The randomness of one block of one job: never the global one, so that a resumed job is the same job. On the CPU, so on any card the same."""
    key = f"{seed}/{shot}/{block}/{variation}".encode()
    return torch.Generator().manual_seed(xxhash.xxh3_64_intdigest(key) >> 1)


@torch.no_grad()
def denoise(
    model: Transformer, cache: KvCache, context: Context, schedule: Schedule, noise: Iterator[Tensor]
) -> Iterator[Tensor]:
    """One block that the cache has in hand; yields after every forward pass (a heartbeat), at last the clean latents [1, C, T, H, W].

    `noise` gives a fresh standard normal each time. The last pass, on the clean latents at t = 0, leaves their keys and values
    in the cache: later blocks see clean context.
    """
    x = next(noise)
    sigmas = schedule.sigmas
    for sigma, following in zip(sigmas, (*sigmas[1:], 0.0), strict=True):
        flow = guided(model, x, sigma, context, cache, schedule.guidance)
        if schedule.renoise:
            clean = x - sigma * flow
            x = (1 - following) * clean + following * next(noise) if following else clean
        else:
            x = x + (following - sigma) * flow
        x = x if following else x.to(STORED).to(x.dtype)
        yield x
    guided(model, x, 0.0, context, cache, schedule.guidance)
    yield x


def guided(model: Transformer, x: Tensor, sigma: float, context: Context, cache: KvCache, guidance: float) -> Tensor:
    """The flow at noise level `sigma`; with guidance the model is asked for prompt and negative at once."""
    batch = context[0][0][0].shape[0]
    time = torch.full((batch,), sigma * _TRAINED_STEPS, device=x.device)
    flow = model(x.expand(batch, -1, -1, -1, -1), time, context, cache)
    return flow if batch == 1 else flow[1:] + guidance * (flow[:1] - flow[1:])


@torch.no_grad()
def recache(model: Transformer, cache: KvCache, context: Context, blocks: Iterable[Tensor]) -> None:
    """Run the clean blocks of sink and window again under a new prompt: what comes next attends to context of that prompt only."""
    cache.reset()
    for block in blocks:
        take_in(model, cache, context, block)


@torch.no_grad()
def take_in(model: Transformer, cache: KvCache, context: Context, block: Tensor) -> None:
    """Put a clean block's keys and values behind those the cache has: a fifth of what it cost to make."""
    cache.begin(cache.latents)
    guided(model, block, 0.0, context, cache, 1.0)
