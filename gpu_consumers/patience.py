"""How long to wait for an engine's next step: learnt from its steps, so that a stall is found in seconds, not minutes."""

from collections.abc import Hashable

_FLOOR_S = 30.0
"""A machine may swap or compile for this long and still be well."""
_FACTOR = 20.0
_ENOUGH_STEPS = 8
"""The first steps load kernels and compile: they say little about the next, and are given the limit."""


class Patience:
    """Time-outs per kind of step (engine, picture size, stage), never above `limit_s`. For one engine process: a new one warms up again."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._steps: dict[Hashable, int] = {}
        self._slowest_s: dict[Hashable, float] = {}

    def saw(self, kind: Hashable, step_s: float) -> None:
        """A step of this kind took `step_s`."""
        self._steps[kind] = self._steps.get(kind, 0) + 1
        self._slowest_s[kind] = max(step_s, self._slowest_s.get(kind, 0.0))

    def timeout_s(self, kind: Hashable) -> float:
        """After this long without a step the engine is taken to have stalled."""
        if self._steps.get(kind, 0) < _ENOUGH_STEPS:
            return self._limit_s
        return min(self._limit_s, max(_FLOOR_S, _FACTOR * self._slowest_s[kind]))
