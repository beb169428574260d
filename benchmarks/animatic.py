"""How fast the animatic engine renders on one core: a storyboard with day, night, weather and camera moves at 640x360."""

import time

from gpu_consumers.engines.animatic.engine import AnimaticEngine
from schemas.records import PlannedShot, SegmentRequested, Transition, VideoFormat
from streams.prompts.instruct import instruct

_SEGMENT = 40
_SHOTS = (
    "A red car drives down a desert road at noon, tracking shot",
    "A woman walks through a rainy city at night, slow dolly in",
    "A sailing boat crosses the sea at sunset, pan right",
    "A deer stands in a misty forest at dawn, handheld",
)


def measure() -> dict[str, float]:
    """`animatic_fps_per_core`: frames per second of processor time, worlds built from nothing; best of three runs."""
    return {"animatic_fps_per_core": max(_fps() for _ in range(3))}


def _fps() -> float:
    engine = AnimaticEngine()
    requests = [_request(number, text) for number, text in enumerate(_SHOTS)]
    begun = time.process_time()
    for request in requests:
        state = engine.restore(request, [])
        for chunk in list(state.denoise(request)):
            state.decode(request, chunk)
    return sum(request.frames for request in requests) / (time.process_time() - begun)


def _request(number: int, text: str) -> SegmentRequested:
    frames = 2 * _SEGMENT
    shot = PlannedShot(
        shot=number, start_frame=0, frames=96, transition=Transition.CUT, seed=number, instruction=instruct(text)[0]
    )
    return SegmentRequested(
        job_id="benchmark",
        segment=0,
        attempt=1,
        request_hash="",
        variation=0,
        engine="animatic",
        engine_options={},
        format=VideoFormat(width=640, height=360, fps_num=24, fps_den=1),
        start_frame=0,
        frames=frames,
        head_overlap=0,
        tail_overlap=0,
        shots=(shot,),
        negative=(),
        seed=1,
        latent_ref=(),
        requested_us=0,
    )
