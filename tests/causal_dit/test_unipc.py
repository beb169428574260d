"""UniPC against diffusers' own scheduler, in float64."""

import pytest
import torch
from diffusers import UniPCMultistepScheduler
from torch import Tensor

from gpu_consumers.engines.causal_dit.sampler import unipc
from gpu_consumers.engines.causal_dit.unipc import UniPc


def reference(steps: int, shift: float) -> UniPCMultistepScheduler:
    """Its table of noise levels is float32: replaced by the same levels in float64, once they are seen to be the same."""
    scheduler = UniPCMultistepScheduler(prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=shift)
    scheduler.set_timesteps(steps)
    sigmas = torch.tensor([*unipc(steps, shift=shift).sigmas, 0.0], dtype=torch.float64)
    assert torch.equal(scheduler.sigmas, sigmas.to(torch.float32))
    scheduler.sigmas = sigmas
    return scheduler


def flow(x: Tensor, sigma: float) -> Tensor:
    """Something curved, so that every order counts."""
    return torch.sin(3 * x) + x.roll(1, dims=-1) * sigma**2


@pytest.mark.parametrize(("steps", "shift"), [(1, 5.0), (2, 5.0), (3, 1.0), (8, 3.0), (50, 5.0)])
def test_every_step_equals_diffusers_to_1e_10(steps: int, shift: float) -> None:
    x = torch.randn(1, 16, 3, 4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    scheduler, ours = reference(steps, shift), UniPc(unipc(steps, shift=shift).sigmas)
    expected = x
    for time, sigma in zip(scheduler.timesteps, unipc(steps, shift=shift).sigmas, strict=True):
        expected = scheduler.step(flow(expected, sigma), time, expected).prev_sample
        x = ours.step(x, flow(x, sigma))
        assert (x - expected).abs().max() < 1e-10 < expected.abs().max()


def test_it_is_nearer_to_the_true_path_than_euler_with_the_same_steps() -> None:
    """dx/dsigma = -x: from 1 down to 0 that is a factor of e."""

    def error(steps: int) -> tuple[float, float]:
        start = torch.ones(1, 1, 1, 1, 1, dtype=torch.float64)
        sigmas = unipc(steps, shift=1.0).sigmas
        solver, x, plain = UniPc(sigmas), start, start
        for sigma, following in zip(sigmas, (*sigmas[1:], 0.0), strict=True):
            plain = plain + (following - sigma) * -plain
            x = solver.step(x, -x)
        return abs(float(x) - torch.e), abs(float(plain) - torch.e)

    assert error(20)[0] < 0.1 * error(20)[1]
