"""The native engine through its protocol, tiny on the CPU: continued, restored, restored elsewhere: the same bits."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from gpu_consumers.engines.causal_dit.config import Window
from gpu_consumers.engines.causal_dit.engine import CausalDitEngine, CausalDitState
from gpu_consumers.engines.causal_dit.grid import blocks_for, frames_of
from gpu_consumers.engines.engine import EngineError
from schemas.records import FailureKind, Instruction, PlannedShot, SegmentRequested, Transition, VideoFormat


def shot(number: int, start: int, text: str) -> PlannedShot:
    transition = Transition.CONTINUOUS if number else Transition.CUT
    instruction = Instruction(text=text)
    return PlannedShot(
        shot=number, start_frame=start, frames=60, transition=transition, seed=1, instruction=instruction
    )


SHOTS = (shot(0, 0, "a fox"), shot(1, 69, "a wolf"), shot(2, 105, "a hare"))
BORDERS = (0, 33, 69, 105, 129)
"""The first shot is longer than the window: what came before a prompt is then seen through the window only."""
Segment = tuple[NDArray[np.generic], NDArray[np.uint8]]


def request(segment: int) -> SegmentRequested:
    start, end = BORDERS[segment : segment + 2]
    return SegmentRequested(
        job_id="j",
        segment=segment,
        attempt=1,
        request_hash="",
        variation=0,
        engine="causal_dit",
        engine_options={"config": "tiny"},
        format=VideoFormat(width=32, height=16, fps_num=16, fps_den=1),
        start_frame=start,
        frames=end - start,
        head_overlap=0,
        tail_overlap=0,
        shots=tuple(s for s in SHOTS if s.start_frame < end)[-2:],
        negative=(),
        seed=11,
        latent_ref=(),
        requested_us=0,
    )


def run(state: CausalDitState, segment: int) -> Segment:
    wanted = request(segment)
    chunks = list(state.denoise(wanted))
    frames = [state.decode(wanted, chunk) for chunk in chunks if len(chunk)]
    return np.concatenate(chunks), np.concatenate(frames)


@pytest.fixture(scope="module")
def whole() -> list[Segment]:
    state = CausalDitEngine().restore(request(0), [])
    return [run(state, segment) for segment in range(4)]


def test_a_take_is_what_was_asked(whole: list[Segment]) -> None:
    for segment, (latents, frames) in enumerate(whole):
        wanted = request(segment)
        assert frames.shape == (wanted.frames, 16, 32, 3)
        assert frames.dtype == np.uint8
        assert latents.dtype == np.float16
    assert sum(len(latents) for latents, _ in whole) == 33
    assert np.std(whole[3][1].astype(float)) > 1


@pytest.mark.parametrize("segment", [1, 2, 3])
def test_restored_from_latents_it_continues_to_the_last_bit(whole: list[Segment], segment: int) -> None:
    state = CausalDitEngine().restore(request(segment), [latents for latents, _ in whole[:segment]])
    latents, frames = run(state, segment)
    assert np.array_equal(latents, whole[segment][0])
    assert np.array_equal(frames, whole[segment][1])


def test_another_process_gives_the_same_bits(whole: list[Segment], tmp_path: Path) -> None:
    for index, (latents, _) in enumerate(whole[:2]):
        np.save(tmp_path / f"{index}.npy", latents)
    code = (
        "import sys, numpy as np, torch; torch.set_num_threads(1); from pathlib import Path\n"
        "from tests.causal_dit.test_engine import CausalDitEngine, request, run\n"
        "folder = Path(sys.argv[1])\n"
        "state = CausalDitEngine().restore(request(2), [np.load(folder / f'{i}.npy') for i in range(2)])\n"
        "latents, frames = run(state, 2)\n"
        "np.save(folder / 'latents.npy', latents); np.save(folder / 'frames.npy', frames)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=120)
    assert np.array_equal(np.load(tmp_path / "latents.npy"), whole[2][0])
    assert np.array_equal(np.load(tmp_path / "frames.npy"), whole[2][1])


def test_a_long_take_warms_its_decoder_to_the_last_bit() -> None:
    engine = CausalDitEngine()
    long = replace(request(0), frames=225)
    state = engine.restore(long, [])
    chunks = [chunk for chunk in state.denoise(long) if len(chunk)]
    for chunk in chunks:
        state.decode(long, chunk)
    after = replace(request(0), start_frame=225, frames=12, shots=SHOTS[:1])
    continued = [state.decode(after, chunk) for chunk in state.denoise(after) if len(chunk)]
    restored_state = engine.restore(after, [np.concatenate(chunks)])
    restored = [restored_state.decode(after, chunk) for chunk in restored_state.denoise(after) if len(chunk)]
    assert np.array_equal(np.concatenate(continued), np.concatenate(restored))


def test_another_variation_is_another_picture_and_the_same_seed_the_same(whole: list[Segment]) -> None:
    again = CausalDitEngine().restore(request(0), [])
    assert np.array_equal(run(again, 0)[0], whole[0][0])
    varied = replace(request(0), variation=1)
    other = CausalDitEngine().restore(varied, [])
    assert not np.array_equal(np.concatenate(list(other.denoise(varied))), whole[0][0])


def test_latents_that_do_not_lead_to_the_segment_are_a_missing_state(whole: list[Segment]) -> None:
    with pytest.raises(EngineError) as caught:
        CausalDitEngine().restore(request(1), [whole[0][0][:2]])
    assert caught.value.kind is FailureKind.STATE_MISSING
    for latents in (whole[0][0][:, :4], whole[0][0][:, :, :1]):
        with pytest.raises(EngineError, match="are not 2x4") as caught:
            CausalDitEngine().restore(request(1), [latents])
        assert caught.value.kind is FailureKind.STATE_MISSING
    state = CausalDitEngine().restore(request(0), [])
    with pytest.raises(EngineError, match="at frame 0"):
        next(iter(state.denoise(request(1))))


def test_what_cannot_be_is_refused_by_name() -> None:
    with pytest.raises(EngineError, match="no config 'huge'") as caught:
        CausalDitEngine().restore(replace(request(0), engine_options={"config": "huge"}), [])
    assert not caught.value.retryable
    with pytest.raises(EngineError, match="multiples of 16"):
        CausalDitEngine().restore(replace(request(0), format=replace(request(0).format, width=24)), [])
    with pytest.raises(EngineError, match=r"docs/engines\.md"):
        CausalDitEngine().restore(replace(request(0), engine_options={"config": "wan-1.3b"}), [])


def test_nan_is_found_at_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    state = CausalDitEngine().restore(request(0), [])
    with torch.no_grad():
        state._model.transformer.head.head.bias.fill_(float("nan"))
    with pytest.raises(EngineError) as caught:
        list(state.denoise(request(0)))
    assert caught.value.kind is FailureKind.NAN


def test_blocks_hold_nine_frames_and_then_twelve() -> None:
    assert [frames_of(3 * blocks) for blocks in range(4)] == [0, 9, 21, 33]
    assert [blocks_for(frames, Window()) for frames in (1, 9, 10, 21, 22, 33)] == [1, 1, 2, 2, 3, 3]


def test_every_pass_and_every_latent_is_a_heartbeat() -> None:
    """Four steps and the clean pass for a block; its latents, and so their frames, come one by one: 1 frame, then 4 each."""
    state = CausalDitEngine().restore(request(0), [])
    chunks = list(state.denoise(request(0)))
    assert [len(chunk) for chunk in chunks] == 3 * [0, 0, 0, 0, 0, 1, 1, 1]
    assert [len(state.decode(request(0), chunk)) for chunk in chunks if len(chunk)] == [1, *8 * [4]]


def test_pixels_that_are_not_numbers_are_found_at_the_latent() -> None:
    state = CausalDitEngine().restore(request(0), [])
    latents = next(chunk for chunk in state.denoise(request(0)) if len(chunk))
    with torch.no_grad():
        next(iter(state._model.vae.decoder.parameters())).fill_(float("nan"))
    with pytest.raises(EngineError) as caught:
        state.decode(request(0), latents)
    assert caught.value.kind is FailureKind.NAN
