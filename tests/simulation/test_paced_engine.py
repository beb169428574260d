"""The engine that only takes time: found as other packages' engines are, never faster than it says, with pictures that pass."""

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.paced import FRAME_S, LIMITS, PacedState, install
from gpu_consumers import checks
from gpu_consumers.engines.engine import create
from schemas import engines
from schemas.records import SegmentRequested, VideoFormat
from tests.director.builders import Line, prompt

REQUEST = replace(
    Line().until(SegmentRequested, prompt()),
    engine="paced",
    format=VideoFormat(width=128, height=72, fps_num=24, fps_den=1),
    start_frame=24,
    frames=24,
)


def paced(frame_s: float) -> SegmentRequested:
    return replace(REQUEST, engine_options={FRAME_S: str(frame_s)})


def test_an_installed_paced_engine_is_found_and_planned_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(engines, "ENGINES", dict(engines.ENGINES))
    engines.add_installed()
    assert create("paced").name == "paced"
    assert engines.ENGINES["paced"] == LIMITS


def test_a_segment_takes_its_time_and_no_chunk_comes_before_its_own() -> None:
    begun_s, made = time.monotonic(), 0
    for chunk in PacedState().denoise(paced(0.005)):
        made += len(chunk)
        assert time.monotonic() - begun_s >= made * 0.005
    assert made == 24


def test_frames_are_a_function_of_their_number_and_pass_as_pictures() -> None:
    state = PacedState()
    frames = np.concatenate([state.decode(paced(0.0), chunk) for chunk in state.denoise(paced(0.0))])
    assert frames.shape == (24, 72, 128, 3)
    checks.check_pictures(frames, REQUEST)
    later = replace(paced(0.0), start_frame=40)
    again = [state.decode(later, chunk) for chunk in state.denoise(later)]
    np.testing.assert_array_equal(again[0], frames[16:20])
