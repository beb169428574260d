"""Pictures that snap back to their first frames, and pictures that do something like it on purpose."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from gpu_consumers.collapse import REACH, Shown, collapse_at, restored, watched
from gpu_consumers.engines.engine import EngineError, Latents
from schemas.engines import sink_of
from schemas.records import FailureKind, SegmentRequested, Transition, VideoFormat
from tests.gpu_consumers.requests import segment_request

SINK, SHAPE = 3, (16, 12, 20)
Take = NDArray[np.float32]


def drifting(latents: int, seed: int = 1, step: float = 0.25) -> Take:
    """A take that moves on: each latent is the one before, a little changed. Nothing is left of the first after about 40."""
    random = np.random.default_rng(seed)
    frames = [random.standard_normal(SHAPE)]
    for _ in range(latents - 1):
        frames.append((1 - step**2) ** 0.5 * frames[-1] + step * random.standard_normal(SHAPE))
    return np.stack(frames).astype(np.float32)


def first_collapse(take: Latents) -> int | None:
    """The latent at which a take collapses, looked at block by block as an engine makes it."""
    for start in range(SINK + REACH, len(take), REACH):
        found = collapse_at(take[:SINK], take[start - REACH : start], take[start : start + REACH])
        if found is not None:
            return start + found
    return None


@pytest.mark.parametrize("at", [132, 133, 134, 201])
def test_a_picture_that_snaps_back_is_found_where_it_does(at: int) -> None:
    take = drifting(240)
    noise = np.random.default_rng(2).standard_normal(take[at:].shape)
    take[at:] = take[1] + 0.3 * noise + 0.2  # the sink's picture, at another brightness
    assert first_collapse(take) == at


def test_a_snap_that_takes_a_block_is_found() -> None:
    take = drifting(180)
    for index, share in enumerate((0.4, 0.7, 1.0)):
        take[132 + index] = share * take[0] + (1 - share) * take[131]
    take[135:] = take[0]
    found = first_collapse(take)
    assert found is not None
    assert 132 <= found <= 134


def test_a_take_that_moves_on_does_not_collapse() -> None:
    assert first_collapse(drifting(300)) is None


def test_a_still_scene_does_not_collapse() -> None:
    still = drifting(1) + 0.05 * drifting(200, seed=3)
    assert first_collapse(still) is None


def test_a_camera_that_goes_slowly_back_does_not_collapse() -> None:
    there = drifting(60, step=0.15)
    assert first_collapse(np.concatenate((there, there[::-1]))) is None


def test_a_picture_that_comes_nearer_to_the_first_ones_but_is_still_its_own_does_not_collapse() -> None:
    sink, other = drifting(1, seed=4)[0], drifting(1, seed=5)[0]

    def mixed(share: float) -> Take:
        return (share * sink + (1 - share**2) ** 0.5 * other)[None]

    before, after = np.repeat(mixed(0.3), REACH, axis=0), np.repeat(mixed(0.65), REACH, axis=0)
    assert collapse_at(sink[None], before, after) is None
    assert collapse_at(sink[None], before, np.repeat(mixed(0.99), REACH, axis=0)) == 0


def test_a_new_scene_is_not_the_old_one() -> None:
    take = drifting(120)
    take[60:] = drifting(60, seed=9)
    assert first_collapse(take) is None


def test_a_flat_picture_is_no_division_by_zero() -> None:
    assert collapse_at(np.zeros((3, *SHAPE)), np.zeros((3, *SHAPE)), np.zeros((3, *SHAPE))) is None


def asked(start: int, frames: int = 48) -> SegmentRequested:
    """48 frames at 16 per second: 12 latents."""
    at_16 = VideoFormat(width=160, height=96, fps_num=16, fps_den=1)
    return replace(segment_request(format=at_16), segment=start // frames, start_frame=start, frames=frames)


def followed(take: Latents, requests: Sequence[SegmentRequested]) -> Shown | None:
    """The take's segments of 12 latents, each looked at as the engine process does."""
    shown = None
    for index, request in enumerate(requests):
        shown = watched(request, shown, take[12 * index : 12 * index + 12], SINK)
    return shown


def test_a_collapse_is_a_failure_of_the_segment() -> None:
    take = drifting(96)
    requests = [asked(start) for start in range(0, 384, 48)]
    assert followed(take, requests)
    take[64:] = take[1]
    with pytest.raises(EngineError, match="latent 4 of 12") as caught:
        followed(take.astype(np.float16), requests)
    assert caught.value.kind is FailureKind.SINK_COLLAPSE
    assert caught.value.retryable


def test_a_restored_take_knows_what_it_has_shown() -> None:
    take = drifting(60)
    parts = [take[start : start + 12] for start in range(0, 60, 12)]
    assert restored([], SINK) is None
    for segments in (1, 2, 5):
        held = followed(take, [asked(48 * index) for index in range(segments)])
        again = restored(parts[:segments], SINK)
        assert held
        assert again
        assert np.array_equal(held.first, again.first)
        assert np.array_equal(held.newest, again.newest)


def test_a_story_that_goes_back_to_where_it_began_does_not_collapse() -> None:
    take = drifting(60)
    take[40:] = take[1]  # in the segment of frames 144 to 192, at frame 160
    requests = [asked(48 * index) for index in range(5)]
    back = replace(requests[3].shots[0], shot=1, start_frame=150, transition=Transition.CONTINUOUS)
    told = [replace(request, shots=(*request.shots, back)) if request.segment >= 3 else request for request in requests]
    followed(take, told)
    with pytest.raises(EngineError, match="snapped back"):
        followed(take, requests)


def test_a_cut_begins_another_take() -> None:
    take = drifting(36)
    take[24:] = take[:12]
    cut = replace(asked(96), shots=(replace(asked(96).shots[0], start_frame=96),))
    shown = followed(take, [asked(0), asked(48), cut])
    assert shown
    assert np.array_equal(shown.first, take[24:27])


def test_nothing_is_looked_for_where_there_is_no_sink() -> None:
    assert watched(asked(0), None, drifting(12), 0) is None
    assert (sink_of("causal_dit"), sink_of("animatic"), sink_of("nobody")) == (3, 0, 0)
