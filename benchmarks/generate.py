"""How busy the generate worker keeps its engine while four jobs wait, each asking for its next segment when it has the last."""

import tempfile
import time
from concurrent.futures import FIRST_COMPLETED, wait
from pathlib import Path

from gpu_consumers.engines.engine import create
from gpu_consumers.generate import Generate
from infra.bus.message import Message
from infra.settings import Settings
from schemas.codec import encode, sealed
from schemas.records import (
    Instruction,
    PlannedShot,
    SegmentGenerated,
    SegmentRequested,
    Transition,
    VideoFormat,
)

_FRAMES = 40
_OVERLAP = 8


def measure(*, jobs: int = 4, segments: int = 6, width: int = 640, height: int = 360) -> dict[str, float]:
    """`engine_busy_share`: of the time in which requests waited. `generate_fps` of the worker against `engine_fps`, the same
    engine called in a loop that stores nothing."""
    size = VideoFormat(width=width, height=height, fps_num=24, fps_den=1)
    with tempfile.TemporaryDirectory(prefix="longtake-bench-") as folder:
        work = Generate(Settings(objects=Path(folder).as_uri(), slots=jobs), "generate-bench")
        try:
            _run(work, size, jobs, 1)  # starts the process, opens the engine
            warm_busy_us, warm_waiting_us = work.busy_us()
            begun_s = time.monotonic()
            _run(work, size, jobs, segments)
            wall_s = time.monotonic() - begun_s
            busy_us, waiting_us = work.busy_us()
        finally:
            work.close()
    return {
        "engine_busy_share": (busy_us - warm_busy_us) / (waiting_us - warm_waiting_us),
        "generate_fps": jobs * segments * _FRAMES / wall_s,
        "engine_fps": _engine_fps(size, segments),
    }


def _run(work: Generate, size: VideoFormat, jobs: int, segments: int) -> None:
    done: dict[str, list[SegmentGenerated]] = {f"bench-{segments}-{job}": [] for job in range(jobs)}
    waiting = {work.submit(_message(_request(job, [], size))): job for job in done}
    while waiting:
        for outcome in wait(waiting, return_when=FIRST_COMPLETED).done:
            job = waiting.pop(outcome)
            (event,) = outcome.result()
            assert isinstance(event, SegmentGenerated), event
            done[job].append(event)
            if len(done[job]) < segments:
                waiting[work.submit(_message(_request(job, done[job], size)))] = job


def _engine_fps(size: VideoFormat, segments: int) -> float:
    engine = create("animatic")
    request = _request("bench", [], size)
    frames = 0
    begun_s = time.monotonic()
    for _ in range(segments):
        state = engine.restore(request, [])
        for chunk in list(state.denoise(request)):
            frames += len(state.decode(request, chunk))
    seconds = time.monotonic() - begun_s
    engine.close()
    return frames / seconds


def _request(job_id: str, before: list[SegmentGenerated], size: VideoFormat) -> SegmentRequested:
    text = "a lighthouse on a cliff at night, storm waves below, the camera cranes up"
    instruction = Instruction(text=text, subject="lighthouse", setting="sea", camera="crane up", light="night")
    shot = PlannedShot(
        shot=0, start_frame=0, frames=1 << 20, transition=Transition.CUT, seed=1, instruction=instruction
    )
    return sealed(
        SegmentRequested(
            job_id=job_id,
            segment=len(before),
            attempt=1,
            request_hash="",
            variation=0,
            engine="animatic",
            engine_options={},
            format=size,
            start_frame=len(before) * (_FRAMES - _OVERLAP),
            frames=_FRAMES,
            head_overlap=_OVERLAP if before else 0,
            tail_overlap=_OVERLAP,
            shots=(shot,),
            negative=(),
            seed=1,
            latent_ref=tuple(event.latents for event in before[-1:]),
            requested_us=0,
        )
    )


def _message(request: SegmentRequested) -> Message:
    return Message(
        topic=SegmentRequested.topic,
        partition=0,
        offset=0,
        key=request.job_id.encode(),
        value=encode(request),
        headers=(),
        timestamp_us=0,
    )
