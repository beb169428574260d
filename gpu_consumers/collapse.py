"""Sink collapse: a windowed model forgets where it was, and the picture snaps back to the first frames it still attends to.

Latents are [T, C, h, w].
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpu_consumers.engines.engine import EngineError, Latents
from gpu_consumers.engines.shots import begins_take
from schemas.records import FailureKind, SegmentRequested

REACH = 3
"""Latents over which a snap may stretch: one block."""
JUMP = 0.3
"""Correlation with the first frames may rise this much within a snap's reach: a slow return to them rises less."""
LEVEL = 0.7
"""Correlation with the first frames from which on half of what is shown is theirs (0.7 squared): noise stays below it."""
GRACE_S = 3.0
"""A picture follows a new prompt within this time, also back to where the take began: that is no collapse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a take has shown, as far as it counts: the first latents, which the model always sees, and of the others the newest REACH."""

    first: Latents
    newest: Latents


def restored(parts: Sequence[Latents], sink: int) -> Shown | None:
    """After a take's segments so far, all of them in order. None: there are none."""
    if not parts:
        return None
    last = parts[-1] if len(parts) > 1 else parts[0][sink:]
    return Shown(first=parts[0][:sink], newest=last[-REACH:])


def watched(request: SegmentRequested, before: Shown | None, latents: Latents, sink: int) -> Shown | None:
    """What the take has shown with the request's segment. `sink`: latents that the model always sees; 0: none, nothing is looked for.

    Raises: EngineError (SINK_COLLAPSE), unless the picture follows a new prompt.
    """
    if not sink:
        return None
    if before is None or begins_take(request):
        before = Shown(first=latents[:0], newest=latents[:0])
    taken = max(0, sink - len(before.first))
    first = np.concatenate((before.first, latents[:taken]))
    shown = np.concatenate((before.newest, latents[taken:]))
    for index in _collapses(first, shown):
        at = index + len(latents) - len(shown)
        if _since_prompt_s(request, at / len(latents)) >= GRACE_S:
            reason = f"latent {at} of {len(latents)} snapped back to the first ones"
            raise EngineError(FailureKind.SINK_COLLAPSE, reason)
    return Shown(first=first, newest=shown[-REACH:])


def collapse_at(sink: Latents, before: Latents, latents: Latents) -> int | None:
    """The first of `latents` that is nearer to the take's first ones, `sink`, than to what was shown just before it.

    `before`: at least REACH latents that `latents` follow, none of them of the sink. A picture that never left its first
    frames does not collapse to them, and neither does one that goes back there slowly.
    """
    found = next(_collapses(sink, np.concatenate((before[-REACH:], latents))), None)
    return None if found is None else found - REACH


def _collapses(sink: Latents, shown: Latents) -> Iterator[int]:
    """Of latents in a row, from the REACH-th on, all that `collapse_at` would say of."""
    if len(shown) <= REACH:
        return
    patterns = _patterns(shown)
    to_sink = (patterns @ _patterns(sink).T).max(axis=1)
    for now in range(REACH, len(shown)):
        then = now - REACH
        returned = to_sink[now] >= LEVEL and to_sink[now] - to_sink[then] >= JUMP
        if returned and to_sink[now] > patterns[now] @ patterns[then]:
            yield now


def _since_prompt_s(request: SegmentRequested, share: float) -> float:
    """Seconds between the beginning of the shot that is shown after this share of the segment, and that moment."""
    frame = request.start_frame + share * request.frames
    start = max(shot.start_frame for shot in request.shots if shot.start_frame <= frame)
    return (frame - start) * request.format.fps_den / request.format.fps_num


def _patterns(latents: Latents) -> NDArray[np.float64]:
    """[T, C * h * w]: what a latent shows, without each channel's mean over the picture, at unit length."""
    flat = latents.astype(np.float64)
    flat = (flat - flat.mean(axis=(2, 3), keepdims=True)).reshape(len(flat), -1)
    return flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-12)
