"""Segment requests as the director makes them, with defaults."""

import zlib
from collections.abc import Mapping, Sequence

from infra.bus.message import Message
from schemas.codec import encode, sealed
from schemas.records import (
    Blob,
    Instruction,
    PlannedShot,
    SegmentGenerated,
    SegmentRequested,
    Transition,
    VideoFormat,
)

SMALL = VideoFormat(width=160, height=90, fps_num=24, fps_den=1)
OVERLAP = 2


def segment_request(
    job_id: str = "job-1",
    before: Sequence[SegmentGenerated] = (),
    *,
    frames: int = 12,
    options: Mapping[str, str] | None = None,
    attempt: int = 1,
    format: VideoFormat = SMALL,  # noqa: A002
) -> SegmentRequested:
    """The request after the segments in `before`: each resumes from the last one's latents. Every job has a seed of its own."""
    start = len(before) * (frames - OVERLAP)
    return sealed(
        SegmentRequested(
            job_id=job_id,
            segment=len(before),
            attempt=attempt,
            request_hash="",
            variation=0,
            engine="animatic",
            engine_options=dict(options or {}),
            format=format,
            start_frame=start,
            frames=frames,
            head_overlap=OVERLAP if before else 0,
            tail_overlap=OVERLAP,
            shots=(shot(),),
            negative=(),
            seed=zlib.crc32(job_id.encode()),
            latent_ref=tuple(event.latents for event in before[-1:]),
            requested_us=1,
        )
    )


def shot(camera: str = "pan left", action: str = "walk") -> PlannedShot:
    """A shot that lasts longer than any test."""
    instruction = Instruction(
        text=f"a person {action}s through the forest, {camera}",
        subject="person",
        action=action,
        setting="forest",
        camera=camera,
        light="day",
    )
    return PlannedShot(shot=0, start_frame=0, frames=2400, transition=Transition.CUT, seed=7, instruction=instruction)


def message_of(request: SegmentRequested, *, key: bytes | None = None, value: bytes | None = None) -> Message:
    """The record in which the request would come."""
    return Message(
        topic=SegmentRequested.topic,
        partition=0,
        offset=0,
        key=key if key is not None else request.job_id.encode(),
        value=value if value is not None else encode(request),
        headers=(),
        timestamp_us=0,
    )


def blob(digest: str) -> Blob:
    """A pointer to nothing."""
    return Blob(uri="file:///nowhere/x", digest=digest, size_bytes=1, media_type="application/x-safetensors")
