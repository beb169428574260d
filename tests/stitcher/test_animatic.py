"""The animatic engine is told to drift; the stitcher is not told."""

from pathlib import Path

import numpy as np
import pytest

from gpu_consumers.engines.animatic.options import parse_options
from gpu_consumers.engines.engine import Engine, Latents, create
from infra.objects import Objects
from schemas.codec import sealed
from schemas.records import Instruction, PlannedShot, SegmentRequested, Transition, VideoFormat
from tests.stitcher.clips import OVERLAP, Drift, Frames
from tests.stitcher.joins import assert_measured, assert_undone
from tests.stitcher.takes import stitch, stitcher, take

SIZE = VideoFormat(width=320, height=180, fps_num=24, fps_den=1)
FRAMES = 24
DRIFT = {
    "drift_exposure": "0.06",
    "drift_color": "0.02",
    "drift_shift_px": "0.6,-0.4",
    "drift_offset_frames": "2",
}


def request(index: int, options: dict[str, str], text: str, camera: str) -> SegmentRequested:
    instruction = Instruction(text=text, subject="fox", action="run", setting="forest", camera=camera)
    shot = PlannedShot(shot=0, start_frame=0, frames=1000, transition=Transition.CUT, seed=7, instruction=instruction)
    return sealed(
        SegmentRequested(
            job_id="job",
            segment=index,
            attempt=1,
            request_hash="",
            variation=0,
            engine="animatic",
            engine_options=options,
            format=SIZE,
            start_frame=index * (FRAMES - OVERLAP),
            frames=FRAMES,
            head_overlap=OVERLAP if index else 0,
            tail_overlap=OVERLAP,
            shots=(shot,),
            negative=(),
            seed=7,
            latent_ref=(),
            requested_us=1,
        )
    )


def generated(engine: Engine, asked: SegmentRequested, before: list[Latents]) -> tuple[Latents, Frames]:
    state = engine.restore(asked, before)
    chunks = list(state.denoise(asked))
    return np.concatenate(chunks), np.concatenate([state.decode(asked, chunk) for chunk in chunks])


@pytest.mark.parametrize("camera", ["static", "tracking"])
def test_the_drift_of_an_engine_is_recovered(tmp_path: Path, camera: str) -> None:
    engine = create("animatic")
    latents: list[Latents] = []
    segments: list[Frames] = []
    for index in range(4):
        asked = request(index, DRIFT, f"a fox runs through a forest in the rain, {camera}", camera)
        latent, frames = generated(engine, asked, latents[-1:])
        latents.append(latent)
        segments.append(frames)
    objects = Objects((tmp_path / "objects").as_uri())
    pieces = stitch(take(objects, *segments), stitcher(objects, tmp_path / "scratch"))
    for index, piece in enumerate(pieces[1:], 1):
        told = parse_options(DRIFT).drift(index)
        drift = Drift(offset_frames=told.offset_frames, x_px=told.shift_x_px, y_px=told.shift_y_px, gain=told.gain)
        assert_measured(piece.seam, drift)
        assert_undone(piece.correction, drift)
        assert piece.seam.score > 0.3
