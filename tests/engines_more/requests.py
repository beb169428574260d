"""Segment requests for engines that make a clip at a time, with defaults."""

from collections.abc import Mapping

from schemas.records import Instruction, PlannedShot, SegmentRequested, Transition, VideoFormat


def planned_shot(
    text: str = "a fox runs",
    start: int = 0,
    frames: int = 1000,
    transition: Transition = Transition.CUT,
    number: int = 0,
) -> PlannedShot:
    return PlannedShot(
        shot=number,
        start_frame=start,
        frames=frames,
        transition=transition,
        seed=1,
        instruction=Instruction(text=text),
    )


def clip_request(
    engine: str,
    segment: int = 0,
    *,
    options: Mapping[str, str] | None = None,
    start: int | None = None,
    frames: int = 5,
    size: tuple[int, int] = (32, 32),
    fps: int = 24,
    shots: tuple[PlannedShot, ...] = (planned_shot(),),
    negative: tuple[str, ...] = (),
    seed: int = 11,
    variation: int = 0,
) -> SegmentRequested:
    """Segments of `frames` each, one after another; `start` if they do not."""
    return SegmentRequested(
        job_id="j",
        segment=segment,
        attempt=1,
        request_hash="",
        variation=variation,
        engine=engine,
        engine_options=dict(options or {}),
        format=VideoFormat(width=size[0], height=size[1], fps_num=fps, fps_den=1),
        start_frame=segment * frames if start is None else start,
        frames=frames,
        head_overlap=0,
        tail_overlap=0,
        shots=shots,
        negative=negative,
        seed=seed,
        latent_ref=(),
        requested_us=0,
    )
