"""Sink collapse: a windowed model forgets where it was, and the picture snaps back to the first frames it still attends to.

Latents are [T, C, h, w].
"""

import numpy as np
from numpy.typing import NDArray

from gpu_consumers.engines.engine import EngineError, Latents
from schemas.records import FailureKind

REACH = 3
"""Latents over which a snap may stretch: one block."""
JUMP = 0.3
"""Correlation with the first frames may rise this much within a snap's reach: a slow return to them rises less."""


def collapse_at(sink: Latents, before: Latents, latents: Latents) -> int | None:
    """The first of `latents` that is nearer to the take's first ones, `sink`, than to what was shown just before it.

    `before`: at least REACH latents that `latents` follow, none of them of the sink. A picture that never left its first
    frames does not collapse to them, and neither does one that goes back there slowly.
    """
    shown = _patterns(np.concatenate((before[-REACH:], latents)))
    to_sink = (shown @ _patterns(sink).T).max(axis=1)
    for index in range(len(latents)):
        now, then = index + REACH, index
        returned = to_sink[now] - to_sink[then] >= JUMP
        if returned and to_sink[now] > shown[now] @ shown[then]:
            return index
    return None


def check_collapse(sink: Latents, before: Latents, latents: Latents) -> None:
    """Raises: EngineError (SINK_COLLAPSE) where `collapse_at` finds one."""
    found = collapse_at(sink, before, latents)
    if found is not None:
        raise EngineError(FailureKind.SINK_COLLAPSE, f"latent {found} of {len(latents)} snapped back to the first ones")


def _patterns(latents: Latents) -> NDArray[np.float64]:
    """[T, C * h * w]: what a latent shows, without each channel's mean over the picture, at unit length."""
    flat = latents.astype(np.float64)
    flat = (flat - flat.mean(axis=(2, 3), keepdims=True)).reshape(len(flat), -1)
    return flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-12)
