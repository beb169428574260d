"""From noise to a block of clean latents: few warped steps of a distilled model, or guided flow steps of one that is not."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import torch
import xxhash
from torch import Tensor

from gpu_consumers.engines.causal_dit.memory import KvCache
from gpu_consumers.engines.causal_dit.transformer import Context, Transformer, wide
from gpu_consumers.engines.causal_dit.unipc import UniPc

_TRAINED_STEPS = 1000
_BELOW_ONE = 1 - 1e-6
"""UniPC counts in the logarithm of signal to noise: there has to be some signal. As in diffusers."""
STORED = torch.float16
"""Clean latents are rounded to it before anything is made of them: what is stored is what was used."""


class Solver(StrEnum):
    """How one noise level leads to the next."""

    RENOISE = "renoise"
    """Fresh noise is mixed into the clean latents: distilled models, as Self-Forcing does."""
    EULER = "euler"
    """A straight step along the flow."""
    UNIPC = "unipc"
    """A predictor and a corrector of second order (unipc.py): Wan's own choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Which noise levels a block goes through, and how. `guidance` above 1 needs a batch of two: the prompt, then the negative."""

    times: tuple[float, ...]
    shift: float
    guidance: float = 1.0
    solver: Solver = Solver.RENOISE

    @property
    def sigmas(self) -> tuple[float, ...]:
        """Noise levels in (0, 1], warped: shift * s / (1 + (shift - 1) * s)."""
        levels = [time / _TRAINED_STEPS for time in self.times]
        warped = tuple(self.shift * s / (1 + (self.shift - 1) * s) for s in levels)
        return tuple(min(s, _BELOW_ONE) for s in warped) if self.solver is Solver.UNIPC else warped

    def time_of(self, sigma: float) -> float:
        """What the model is told: 0 .. 1000; with UniPC whole steps, as Wan and diffusers have them."""
        time = sigma * _TRAINED_STEPS
        return float(int(time)) if self.solver is Solver.UNIPC else time


DISTILLED = Schedule(times=(1000, 750, 500, 250), shift=5.0)
"""Self-Forcing and LongLive: 1000, 937.5, 833.33 and 625 after the warp."""


def euler(steps: int, *, shift: float = 5.0, guidance: float = 5.0) -> Schedule:
    """Evenly spaced flow steps for checkpoints that are not distilled."""
    times = tuple(_TRAINED_STEPS * (1 - i / steps) for i in range(steps))
    return Schedule(times=times, shift=shift, guidance=guidance, solver=Solver.EULER)


def unipc(steps: int, *, shift: float = 5.0, guidance: float = 5.0) -> Schedule:
    """The same for UniPC, which wants fewer of them: from 1000 to just above 1, as in diffusers with `use_flow_sigmas`."""
    times = tuple(_TRAINED_STEPS - (_TRAINED_STEPS - 1) * i / steps for i in range(steps))
    return Schedule(times=times, shift=shift, guidance=guidance, solver=Solver.UNIPC)


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
    stored = x.dtype
    x = x if schedule.solver is Solver.RENOISE else wide(x)  # many small steps would be lost in half precision
    sigmas = schedule.sigmas
    solver = UniPc(sigmas)
    for sigma, following in zip(sigmas, (*sigmas[1:], 0.0), strict=True):
        flow = guided(model, x, schedule.time_of(sigma), context, cache, schedule.guidance)
        if schedule.solver is Solver.UNIPC:
            x = solver.step(x, flow)
        elif schedule.solver is Solver.EULER:
            x = x + (following - sigma) * flow
        else:
            clean = x - sigma * flow
            x = (1 - following) * clean + following * next(noise) if following else clean
        x = x if following else x.to(STORED).to(stored)
        yield x
    guided(model, x, 0.0, context, cache, schedule.guidance)
    yield x


def guided(model: Transformer, x: Tensor, time: float, context: Context, cache: KvCache, guidance: float) -> Tensor:
    """The flow at `time` in 0 .. 1000, in x's precision; with guidance the model is asked for prompt and negative at once."""
    like = context.layers[0][0][0]
    batch = like.shape[0]
    times = torch.full((batch,), time, device=x.device)
    flow = model(x.to(like.dtype).expand(batch, -1, -1, -1, -1), times, context, cache).to(x.dtype)
    return flow if batch == 1 else flow[1:] + guidance * (flow[:1] - flow[1:])


@torch.no_grad()
def recache(model: Transformer, cache: KvCache, blocks: Iterable[tuple[Context, Tensor]]) -> None:
    """Run the clean blocks of sink and window again under a new prompt: what comes next attends to context of that prompt only."""
    cache.reset()
    for context, block in blocks:
        take_in(model, cache, context, block)


@torch.no_grad()
def take_in(model: Transformer, cache: KvCache, context: Context, block: Tensor) -> None:
    """Put a clean block's keys and values behind those the cache has: a fifth of what it cost to make."""
    cache.begin(cache.latents)
    guided(model, block, 0.0, context, cache, 1.0)
