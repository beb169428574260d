"""UniPC for flow models: a predictor and a corrector of second order, for checkpoints that are not distilled.

Wenliang Zhao et al., "UniPC: A Unified Predictor-Corrector Framework for Fast Sampling of Diffusion Models", 2023; B(h) =
expm1(h) on the predicted clean latents, as in diffusers' `UniPCMultistepScheduler` with `use_flow_sigmas`, Wan's own choice.
"""

import math
from collections.abc import Sequence

from torch import Tensor


class UniPc:
    """One block's way from noise to clean latents. Make a new one for each block."""

    def __init__(self, sigmas: Sequence[float]) -> None:
        """`sigmas`: falling noise levels below 1, the last one above 0."""
        self._sigmas = (*sigmas, 0.0)
        self._steps = len(sigmas)
        self._index = 0
        self._order = 1
        self._sample: Tensor | None = None
        """What the last predictor started from."""
        self._clean: list[Tensor] = []
        """The last two predictions of the clean latents, newest last."""

    def step(self, x: Tensor, flow: Tensor) -> Tensor:
        """From the noise level in hand to the next one: corrects x by what the model now says, then predicts. All [B, C, T, H, W]."""
        i = self._index
        clean = x - self._sigmas[i] * flow
        if self._sample is not None:
            x = self._corrected(self._sample, clean)
        self._clean = [*self._clean[-1:], clean]
        self._order = min(2, self._steps - i, i + 1)
        self._sample = x
        self._index += 1
        return self._predicted(x)

    def _predicted(self, x: Tensor) -> Tensor:
        i, newest = self._index - 1, self._clean[-1]
        ratio, weight, h = self._coefficients(i)
        out = ratio * x - weight * newest
        if self._order == 1:
            return out
        slope = (self._clean[-2] - newest) / self._spread(i, h)
        return out - weight * 0.5 * slope

    def _corrected(self, sample: Tensor, clean: Tensor) -> Tensor:
        i, before = self._index - 1, self._clean[-1]
        ratio, weight, h = self._coefficients(i)
        out = ratio * sample - weight * before
        if self._order == 1:
            return out - weight * 0.5 * (clean - before)
        spread = self._spread(i, h)
        first = math.expm1(-h) / -h - 1
        b1 = first / math.expm1(-h)
        b2 = 2 * (first / -h - 0.5) / math.expm1(-h)
        older = (b1 - b2) / (1 - spread)
        slope = (self._clean[-2] - before) / spread
        return out - weight * (older * slope + (b1 - older) * (clean - before))

    def _coefficients(self, i: int) -> tuple[float, float, float]:
        """From level i to the next: the sample's factor, that of the clean latents (negative), the step in log signal-to-noise."""
        here, there = self._sigmas[i], self._sigmas[i + 1]
        if not there:
            return 0.0, -1.0, math.inf
        h = _log_ratio(there) - _log_ratio(here)
        return there / here, (1 - there) * math.expm1(-h), h

    def _spread(self, i: int, h: float) -> float:
        return (_log_ratio(self._sigmas[i - 1]) - _log_ratio(self._sigmas[i])) / h


def _log_ratio(sigma: float) -> float:
    """Logarithm of signal over noise."""
    return math.log((1 - sigma) / sigma)
