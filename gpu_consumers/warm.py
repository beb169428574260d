"""An engine made ready before its worker says so: weights read ahead while libraries load, then one block on the wanted size.

What to warm is said by `LONGTAKE_WARM`: engine, size, options, as in `causal_dit 832x480 config=self-forcing-1.3b kv=int8`.
"""

import os
import re
import time
from pathlib import Path

from gpu_consumers.engines.causal_dit.ahead import FILES, read_ahead
from gpu_consumers.engines.causal_options import causal_options
from gpu_consumers.engines.engine import Engine, EngineError
from gpu_consumers.engines.options import check_options
from schemas.engines import ENGINES
from schemas.errors import BadInputError
from schemas.records import Instruction, PlannedShot, SegmentRequested, Transition, VideoFormat

_WISH = re.compile(r"([\w-]+) (\d{2,5})x(\d{2,5})((?: [a-z_]+=\S+)*)")


def warm_request(text: str) -> SegmentRequested:
    """The first block of a take as the text says. Raises: BadInputError."""
    match = _WISH.fullmatch(text)
    if not match:
        raise BadInputError(field="warm", rule="format", message=f"engine, size, options: not {text[:80]!r}")
    engine, width, height, rest = match.groups()
    options = dict(option.split("=", 1) for option in rest.split())
    if engine not in ENGINES:
        raise BadInputError(field="warm", rule="unknown_engine", message=f"{engine} is not one of {', '.join(ENGINES)}")
    check_options(engine, options)
    frames = ENGINES[engine].first_block_frames
    shot = PlannedShot(
        shot=0, start_frame=0, frames=frames, transition=Transition.CUT, seed=0, instruction=Instruction(text="warm-up")
    )
    return SegmentRequested(
        job_id="warm-up",
        segment=0,
        attempt=1,
        request_hash="",
        variation=0,
        engine=engine,
        engine_options=options,
        format=VideoFormat(width=int(width), height=int(height), fps_num=16, fps_den=1),
        start_frame=0,
        frames=frames,
        head_overlap=0,
        tail_overlap=0,
        shots=(shot,),
        negative=(),
        seed=0,
        latent_ref=(),
        requested_us=0,
    )


def begin(request: SegmentRequested) -> None:
    """Let the disk work while torch is imported. Returns at once."""
    if request.engine == "causal_dit":
        folder = Path(os.environ.get("LONGTAKE_MODELS", "models"))
        read_ahead(folder / file for file in FILES.get(causal_options(request.engine_options).config, ()))


def warmed(engine: Engine, request: SegmentRequested) -> str:
    """Make the block; what it took, in words. Called in the thread that will denoise: CUDA graphs belong to a thread."""
    begun_s = time.monotonic()
    try:
        state = engine.restore(request, [])
        restored_s = time.monotonic()
        for chunk in state.denoise(request):
            if len(chunk):
                state.decode(request, chunk)
    except (
        EngineError,
        RuntimeError,
    ) as error:  # torch's own errors are RuntimeErrors; a job that fails so is answered
        return f"not warmed: {error}"
    size = f"{request.format.width}x{request.format.height}"
    return (
        f"{engine.name} {engine.version} warmed at {size}: "
        f"loaded in {restored_s - begun_s:.1f} s, first block in {time.monotonic() - restored_s:.1f} s"
    )
