"""Which engine state a request continues with, and which are dropped."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gpu_consumers.engines.engine import Frames, Latents
from gpu_consumers.held import Held, HeldStates
from schemas.records import SegmentRequested
from tests.gpu_consumers.requests import blob, segment_request


class State:
    """An EngineState that is only looked at."""

    def denoise(self, request: SegmentRequested) -> Iterator[Latents]:
        yield np.zeros((0, 1, 1, 1))

    def decode(self, request: SegmentRequested, latents: Latents) -> Frames:
        return np.zeros((0, 1, 1, 3), np.uint8)


def request(job_id: str, *digests: str) -> SegmentRequested:
    return replace(segment_request(job_id), latent_ref=tuple(blob(digest) for digest in digests))


def held(*digests: str) -> Held:
    return Held(state=State(), digests=digests)


def test_a_state_is_taken_by_the_request_that_points_at_its_latents() -> None:
    states = HeldStates(4)
    mine = held("d0", "d1")
    states.put("a", mine)
    assert states.take(request("a", "d1")) is mine
    assert states.take(request("a", "d1")) is None, "it is out while it works"


def test_all_references_have_to_match() -> None:
    for digests in (("d0", "d1"), ("d1",)):
        states = HeldStates(4)
        states.put("a", held("d0", "d1"))
        assert states.take(request("a", *digests))
    for digests in (("dx", "d1"), ("d0",), ("d1", "d2"), ("d", "d0", "d1"), ()):
        states = HeldStates(4)
        states.put("a", held("d0", "d1"))
        assert states.take(request("a", *digests)) is None


def test_a_state_that_does_not_match_is_dropped() -> None:
    states = HeldStates(4)
    states.put("a", held("d0"))
    assert states.take(request("a", "other")) is None
    assert states.take(request("a", "d0")) is None


def test_the_least_recently_used_state_goes_first() -> None:
    states = HeldStates(2)
    states.put("a", held("a0"))
    states.put("b", held("b0"))
    again = states.take(request("a", "a0"))
    assert again
    states.put("a", held("a0", "a1"))
    states.put("c", held("c0"))
    assert states.take(request("b", "b0")) is None
    assert states.take(request("a", "a1"))
    assert states.take(request("c", "c0"))
