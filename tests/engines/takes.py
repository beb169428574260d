"""Builders: shots, requests and whole takes of the animatic engine, small by default."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from gpu_consumers.engines.animatic.engine import AnimaticEngine
from gpu_consumers.engines.engine import EngineState, Frames, Latents
from schemas.records import PlannedShot, SegmentRequested, Transition, VideoFormat
from streams.prompts.instruct import instruct

OVERLAP = 8


def shot(
    text: str, frames: int = 96, *, start: int = 0, number: int = 0, transition: Transition = Transition.CUT
) -> PlannedShot:
    """A planned shot of this text."""
    instruction, _ = instruct(text)
    return PlannedShot(
        shot=number, start_frame=start, frames=frames, transition=transition, seed=5 + number, instruction=instruction
    )


def request(text: str = "A dog runs in a field, pan right", **changes: object) -> SegmentRequested:
    """The first segment of a one-shot job; `size` is (width, height)."""
    width, height = changes.pop("size", (160, 96))  # pyright: ignore[reportGeneralTypeIssues]
    first = SegmentRequested(
        job_id="job",
        segment=0,
        attempt=1,
        request_hash="",
        variation=0,
        engine="animatic",
        engine_options={},
        format=VideoFormat(width=width, height=height, fps_num=24, fps_den=1),
        start_frame=0,
        frames=24,
        head_overlap=0,
        tail_overlap=OVERLAP,
        shots=(shot(text),),
        negative=(),
        seed=9,
        latent_ref=(),
        requested_us=0,
    )
    return replace(first, **changes)  # pyright: ignore[reportArgumentType]


def following(before: SegmentRequested, **changes: object) -> SegmentRequested:
    """The next segment after `before`, overlapping it."""
    start = before.start_frame + before.frames - OVERLAP
    moved = replace(before, segment=before.segment + 1, start_frame=start, head_overlap=OVERLAP)
    return replace(moved, **changes)  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What came out of one segment."""

    request: SegmentRequested
    latents: NDArray[np.float32]
    frames: Frames

    def frame(self, time: int) -> NDArray[np.uint8]:
        """The picture of a frame of the timeline."""
        return self.frames[time - self.request.start_frame]


def make(state: EngineState, asked: SegmentRequested) -> Made:
    """Denoise, then decode, as the child process does."""
    chunks = list(state.denoise(asked))
    frames = [state.decode(asked, chunk) for chunk in chunks]
    return Made(request=asked, latents=np.concatenate(chunks), frames=np.concatenate(frames))  # pyright: ignore[reportArgumentType]


@cache
def _engine() -> AnimaticEngine:
    """One for the tests that do not ask for a new one: worlds are built once."""
    return AnimaticEngine()


def first_of(asked: SegmentRequested) -> Made:
    """A first segment."""
    return make(_engine().restore(asked, []), asked)


def continued(requests: Sequence[SegmentRequested]) -> Iterator[Made]:
    """Segments one after another from one state."""
    state = _engine().restore(requests[0], [])
    for asked in requests:
        yield make(state, asked)


def restored(asked: SegmentRequested, before: Latents) -> Made:
    """A segment from a new engine and the latents of the one before."""
    return make(AnimaticEngine().restore(asked, [before]), asked)


def chain(count: int, text: str = "A dog runs in a field, pan right", **changes: object) -> list[SegmentRequested]:
    """Requests for `count` segments of one shot."""
    requests = [request(text, **changes)]
    while len(requests) < count:
        requests.append(following(requests[-1]))
    return requests
