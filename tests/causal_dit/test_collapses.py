"""A tiny random model never collapses; its take put back to its first frames is found."""

from dataclasses import replace

import numpy as np
import pytest

from gpu_consumers.collapse import restored, watched
from gpu_consumers.engines.causal_dit.engine import CausalDitEngine
from gpu_consumers.engines.engine import EngineError, Latents
from gpu_consumers.engines.shots import shown
from schemas.engines import sink_of
from schemas.records import FailureKind
from tests.causal_dit.test_engine import SHOTS, request

SINK = sink_of("causal_dit")
FRAMES = 129
"""33 latents, of which the last 20 are watched."""
AT = 24


@pytest.fixture(scope="module")
def engine() -> CausalDitEngine:
    return CausalDitEngine()


def take(engine: CausalDitEngine, seed: int) -> Latents:
    wanted = replace(request(0), seed=seed, frames=FRAMES, shots=SHOTS[:1])
    return np.concatenate([chunk for chunk in engine.restore(wanted, []).denoise(wanted) if len(chunk)])


@pytest.mark.parametrize("seed", range(20))
def test_random_weights_do_not_collapse_and_a_planted_collapse_is_found(engine: CausalDitEngine, seed: int) -> None:
    wanted = replace(request(0), frames=FRAMES, shots=SHOTS[:1])
    latents = take(engine, seed)
    assert watched(wanted, None, latents, SINK)
    planted = latents.copy()
    planted[AT:] = latents[: len(latents) - AT]
    with pytest.raises(EngineError, match=f"latent {AT} of") as caught:
        watched(wanted, None, planted, SINK)
    assert caught.value.kind is FailureKind.SINK_COLLAPSE


def test_a_collapse_just_behind_a_segments_border_is_found(engine: CausalDitEngine) -> None:
    latents = take(engine, 3)
    before = restored([latents[:12], latents[12:AT]], SINK)
    after = replace(request(0), segment=2, start_frame=93, frames=36, shots=shown(replace(request(0), shots=SHOTS[:1])))
    assert watched(after, before, latents[AT:], SINK)
    with pytest.raises(EngineError, match="latent 0 of 9"):
        watched(after, before, latents[: len(latents) - AT], SINK)
