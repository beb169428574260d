"""The animatic engine drifts by exactly what it is told, and fails where it is told."""

import itertools
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from gpu_consumers.engines.animatic.engine import AnimaticEngine
from gpu_consumers.engines.animatic.options import Fault, parse_options
from gpu_consumers.engines.engine import EngineError
from gpu_consumers.engines.options import check_options
from schemas.errors import BadInputError
from schemas.records import FailureKind
from tests.engines.takes import OVERLAP, Made, chain, continued, first_of, make, request, restored

_TEXT = "A woman walks through a city, pan right"
_SIZE = (320, 180)
Luma = NDArray[np.float64]


def _luma(frames: NDArray[np.uint8]) -> Luma:
    return frames.astype(np.float64) @ (0.2126, 0.7152, 0.0722)


def _psnr(a: Luma, b: Luma) -> float:
    return float(10 * np.log10(255**2 / max(float(((a - b) ** 2).mean()), 1e-6)))


def _shift(moved: Luma, still: Luma) -> tuple[float, float]:
    """(x, y) by which `moved` lies right of and below `still`: least squares on the gradient, iterated."""
    dx = dy = 0.0
    gy, gx = np.gradient(still)
    inner = (slice(12, -12), slice(12, -12))
    matrix = np.stack([gx[inner].ravel(), gy[inner].ravel()], axis=1)
    ky, kx = np.fft.fftfreq(still.shape[0])[:, None], np.fft.fftfreq(still.shape[1])[None, :]
    for _ in range(8):
        back = np.fft.ifft2(np.fft.fft2(moved) * np.exp(2j * np.pi * (kx * dx + ky * dy))).real
        step, *_ = np.linalg.lstsq(matrix, (still - back)[inner].ravel(), rcond=None)
        dx, dy = dx + float(step[0]), dy + float(step[1])
    return dx, dy


def _seam(**options: str) -> tuple[NDArray[np.uint8], Made]:
    """The right pictures of the second segment's overlap, and the second segment as it drifted."""
    first, second = continued(chain(2, _TEXT, size=_SIZE, engine_options=options))
    return first.frames[-OVERLAP:], second


def test_the_first_segment_of_a_take_never_drifts() -> None:
    options = {"drift_exposure": "0.1", "drift_color": "0.1", "drift_shift_px": "1,1", "drift_offset_frames": "2"}
    asked = request(_TEXT, size=_SIZE)
    assert np.array_equal(first_of(asked).frames, first_of(replace(asked, engine_options=options)).frames)


@pytest.mark.parametrize("exposure", [0.03, -0.05])
def test_exposure_is_found_to_half_a_per_cent(exposure: float) -> None:
    right, second = _seam(drift_exposure=str(exposure))
    measured = second.frames[:OVERLAP].mean() / right.mean()
    assert measured == pytest.approx(1 + exposure, abs=0.005)


def test_colour_drift_warms_the_picture() -> None:
    right, second = _seam(drift_color="0.04")
    gains = second.frames[:OVERLAP].mean(axis=(0, 1, 2)) / right.mean(axis=(0, 1, 2))
    assert gains == pytest.approx([1.04, 1.0, 0.96], abs=0.005)


@pytest.mark.parametrize("shift", [(0.5, -0.25), (-1.3, 2.6)])
def test_a_shift_is_found_to_a_seventh_of_a_pixel(shift: tuple[float, float]) -> None:
    right, second = _seam(drift_shift_px=f"{shift[0]},{shift[1]}")
    measured = _shift(_luma(second.frames[3]), _luma(right[3]))
    assert measured == pytest.approx(shift, abs=0.15)


@pytest.mark.parametrize("offset", [-4, -1, 2, 4])
def test_an_offset_in_time_stands_out_by_three_decibels(offset: int) -> None:
    right, second = _seam(drift_offset_frames=str(offset))
    tail, head = _luma(right), _luma(second.frames[:OVERLAP])
    scores: dict[int, float] = {}
    for k in range(-4, 5):
        pairs = [(head[j], tail[j + k]) for j in range(OVERLAP) if 0 <= j + k < OVERLAP]
        scores[k] = float(np.mean([_psnr(a, b) for a, b in pairs]))
    best, *others = sorted(scores, key=scores.__getitem__, reverse=True)
    assert best == offset
    assert scores[best] > max(scores[k] for k in others) + 3


def test_offset_segments_are_the_same_take_seen_later() -> None:
    options = {"drift_offset_frames": "3"}
    right = first_of(request(_TEXT, frames=70))
    made = list(continued(chain(3, _TEXT, engine_options=options)))
    assert np.array_equal(made[1].frames, right.frames[16 + 3 : 16 + 3 + 24])
    assert np.array_equal(made[2].frames, right.frames[32 : 32 + 24])


def test_drift_goes_up_and_down_with_the_level_and_stays_in_range() -> None:
    options = parse_options({"drift_exposure": "0.1", "drift_shift_px": "1,-2", "drift_offset_frames": "4"})
    drifts = [options.drift(n) for n in range(9)]
    assert [round(d.gain[1], 3) for d in drifts] == [1, 1.1, 1.2, 1.1, 1, 0.9, 0.8, 0.9, 1]
    assert [d.shift_y_px for d in drifts] == [0, -2, -4, -2, 0, 2, 4, 2, 0]
    assert {d.offset_frames for d in drifts} <= {-4, 0, 4}


def test_a_drifting_take_is_restored_bit_for_bit() -> None:
    options = {"drift_exposure": "0.02", "drift_shift_px": "0.4,0.3", "drift_offset_frames": "2"}
    made = list(continued(chain(4, _TEXT, engine_options=options)))
    for before, after in itertools.pairwise(made):
        assert np.array_equal(restored(after.request, before.latents).frames, after.frames)


@pytest.mark.parametrize(
    ("options", "field", "rule"),
    [
        ({"drift_exposure": "a lot"}, "engine_options.drift_exposure", "type"),
        ({"drift_exposure": "0.5"}, "engine_options.drift_exposure", "range"),
        ({"drift_exposure": "nan"}, "engine_options.drift_exposure", "type"),
        ({"drift_shift_px": "1"}, "engine_options.drift_shift_px", "format"),
        ({"drift_shift_px": "1,2,3"}, "engine_options.drift_shift_px", "format"),
        ({"drift_shift_px": "1,9"}, "engine_options.drift_shift_px", "range"),
        ({"drift_offset_frames": "1.5"}, "engine_options.drift_offset_frames", "type"),
        ({"drift_offset_frames": "9"}, "engine_options.drift_offset_frames", "range"),
        ({"fault": "earthquake"}, "engine_options.fault", "choice"),
        ({"fault_segment": "-1"}, "engine_options.fault_segment", "range"),
        ({"exposure": "0.1"}, "engine_options.exposure", "unknown_option"),
    ],
)
def test_wrong_options_are_named(options: dict[str, str], field: str, rule: str) -> None:
    with pytest.raises(BadInputError) as caught:
        check_options("animatic", options)
    assert (caught.value.field, caught.value.rule) == (field, rule)


def test_wrong_options_are_not_tried_again() -> None:
    asked = request(engine_options={"fault": "earthquake"})
    with pytest.raises(EngineError) as caught:
        list(AnimaticEngine().restore(asked, []).denoise(asked))
    assert (caught.value.kind, caught.value.retryable) == (FailureKind.ENGINE, False)


def _faulty(fault: Fault, **changes: object) -> Made:
    return first_of(request(_TEXT, engine_options={"fault": fault.value}, **changes))


def test_nan_latents() -> None:
    asked = request(_TEXT, engine_options={"fault": "nan"})
    state = AnimaticEngine().restore(asked, [])
    chunks = list(state.denoise(asked))
    assert [bool(np.isfinite(chunk).all()) for chunk in chunks] == [True] * 3 + [False] * 3
    with pytest.raises(EngineError) as caught:
        state.decode(asked, chunks[-1])
    assert caught.value.kind is FailureKind.NAN


def test_a_frozen_segment() -> None:
    made = _faulty(Fault.FREEZE)
    assert all(np.array_equal(frame, made.frames[0]) for frame in made.frames)


def test_a_black_segment() -> None:
    assert not _faulty(Fault.BLACK).frames.any()


def test_a_short_segment() -> None:
    made = _faulty(Fault.SHORT)
    assert len(made.frames) == made.request.frames - 1


def test_a_jump_has_nothing_to_do_with_what_was_before() -> None:
    first, second = continued(chain(2, _TEXT, engine_options={"fault": "jump", "fault_segment": "1"}))
    assert _psnr(_luma(first.frames[-1]), _luma(second.frames[OVERLAP - 1])) < 25
    assert np.array_equal(second.frames[-1], restored(second.request, first.latents).frames[-1])


def test_out_of_memory() -> None:
    with pytest.raises(EngineError) as caught:
        _faulty(Fault.OOM)
    assert caught.value.kind is FailureKind.OUT_OF_MEMORY


@pytest.mark.parametrize("fault", [f for f in Fault if f is not Fault.NONE])
def test_faults_pass_with_the_attempt(fault: Fault) -> None:
    asked = request(_TEXT, engine_options={"fault": fault.value, "fault_attempts": "2"}, attempt=3)
    assert np.array_equal(first_of(asked).frames, first_of(request(_TEXT)).frames)


def test_faults_hit_their_segment_only() -> None:
    made = list(continued(chain(2, _TEXT, engine_options={"fault": "black", "fault_segment": "1"})))
    assert made[0].frames.all(axis=-1).any()
    assert not made[1].frames.any()


_HALF_WAY = """
from tests.engines.takes import request
from gpu_consumers.engines.animatic.engine import AnimaticEngine
asked = request(engine_options={"fault": "FAULT"})
for chunk in AnimaticEngine().restore(asked, []).denoise(asked):
    print(len(chunk), flush=True)
print("end")
"""


def test_a_crash_kills_the_process_half_way() -> None:
    code = _HALF_WAY.replace("FAULT", "crash")
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == -9
    assert done.stdout.split() == ["4", "4", "4"]


def test_a_stall_makes_some_steps_and_then_none() -> None:
    code = _HALF_WAY.replace("FAULT", "stall")
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert [process.stdout.readline().strip() for _ in range(3)] == ["4", "4", "4"]
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.5)
        process.kill()
        assert process.stdout.read() == ""


def test_a_segment_after_a_fault_goes_on_from_the_good_try() -> None:
    asked = chain(2, _TEXT, engine_options={"fault": "freeze", "fault_segment": "1"})
    first = first_of(asked[0])
    good = restored(replace(asked[1], attempt=2), first.latents)
    assert np.array_equal(good.frames, list(continued(chain(2, _TEXT)))[1].frames)


def test_decoding_needs_no_order_with_another_job() -> None:
    engine = AnimaticEngine()
    a, b = request(_TEXT), request("A ship on the sea at night, static")
    state_a, state_b = engine.restore(a, []), engine.restore(b, [])
    chunks_a, chunks_b = list(state_a.denoise(a)), list(state_b.denoise(b))
    mixed: list[NDArray[np.uint8]] = []
    for one, other in zip(chunks_a, chunks_b, strict=True):
        mixed.append(state_a.decode(a, one))
        state_b.decode(b, other)
    assert np.array_equal(np.concatenate(mixed), make(AnimaticEngine().restore(a, []), a).frames)
