"""The animatic engine's state: continued, restored, in another process, cut anywhere, it is the same take."""

import hashlib
import itertools
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from gpu_consumers.engines.animatic.engine import AnimaticEngine
from gpu_consumers.engines.engine import EngineError, create
from schemas.codec import encode
from schemas.records import FailureKind, SegmentRequested, Transition
from tests.engines.takes import OVERLAP, chain, continued, first_of, following, make, request, restored, shot

_OTHER_PROCESS = """
import hashlib, sys
from pathlib import Path
import numpy as np
from safetensors.numpy import load_file
from gpu_consumers.engines.engine import create
from schemas.codec import decode
asked = decode(Path(sys.argv[1]).read_bytes())
state = create("animatic").restore(asked, [load_file(sys.argv[2])["latents"]])
chunks = list(state.denoise(asked))
frames = [state.decode(asked, chunk) for chunk in chunks]
print(hashlib.sha256(np.concatenate(chunks).tobytes() + np.concatenate(frames).tobytes()).hexdigest())
"""


def _continuous() -> list[SegmentRequested]:
    """Four segments over a continuous change of place and light in the third."""
    day = shot("A woman walks through a city, tracking shot", 44)
    night = shot(
        "A woman walks through a forest at night, dolly in", 44, start=44, number=1, transition=Transition.CONTINUOUS
    )
    first = request(shots=(day,))
    second = following(first, shots=(day,))
    third = following(second, shots=(day, night))
    return [first, second, third, following(third, shots=(day, night))]


@pytest.mark.parametrize("boundary", [1, 2, 3])
def test_a_restored_segment_is_the_continued_one_bit_for_bit(boundary: int) -> None:
    asked = _continuous()
    whole = list(continued(asked))
    again = restored(asked[boundary], whole[boundary - 1].latents)
    assert np.array_equal(again.latents, whole[boundary].latents)
    assert np.array_equal(again.frames, whole[boundary].frames)


def test_another_process_restores_the_same_bits(tmp_path: Path) -> None:
    first, second = continued(chain(2, "A sailing boat crosses the sea at sunset, crane up"))
    save_file({"latents": first.latents}, tmp_path / "latents.safetensors")
    (tmp_path / "request").write_bytes(encode(second.request))
    command = [sys.executable, "-c", _OTHER_PROCESS, str(tmp_path / "request"), str(tmp_path / "latents.safetensors")]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()
    assert printed == hashlib.sha256(second.latents.tobytes() + second.frames.tobytes()).hexdigest()


def test_the_overlap_shows_the_same_pictures_on_both_sides() -> None:
    made = list(continued(_continuous()))
    for before, after in itertools.pairwise(made):
        assert np.array_equal(before.frames[-OVERLAP:], after.frames[:OVERLAP])


def test_however_a_take_is_cut_its_pictures_are_the_same() -> None:
    short = list(continued(chain(4)))
    total = short[-1].request.start_frame + short[-1].request.frames
    long = first_of(replace(short[0].request, frames=total))
    for part in short:
        start = part.request.start_frame
        assert np.array_equal(part.frames, long.frames[start : start + len(part.frames)])


def test_a_state_goes_on_after_two_segments_without_being_asked_for_frames() -> None:
    asked = chain(3)
    state = AnimaticEngine().restore(asked[0], [])
    for one in asked[:2]:
        list(state.denoise(one))
    assert np.array_equal(make(state, asked[2]).frames, list(continued(asked))[2].frames)


def test_a_variation_differs_after_the_overlap_and_joins_in_it() -> None:
    first, second = continued(chain(2, "A ship on the sea, static"))
    other = restored(replace(second.request, variation=1), first.latents)
    assert np.array_equal(other.frames[:OVERLAP], second.frames[:OVERLAP])
    assert not np.array_equal(other.frames[-1], second.frames[-1])


def test_another_attempt_of_the_same_variation_is_the_same() -> None:
    asked = request()
    assert np.array_equal(first_of(asked).frames, first_of(replace(asked, attempt=2)).frames)


def test_the_seed_makes_the_world() -> None:
    asked = request("An empty city, static")
    one, same, other = first_of(asked), first_of(asked), first_of(replace(asked, seed=10))
    assert np.array_equal(one.frames, same.frames)
    assert np.abs(one.frames[0].astype(int) - other.frames[0]).mean() > 5


def test_a_cut_starts_from_nothing() -> None:
    first = first_of(request())
    scene = shot("A cat sits in a kitchen, static", start=24, number=1)
    second = replace(first.request, segment=1, start_frame=24, shots=(scene,))
    assert np.array_equal(
        restored(second, first.latents).frames, make(AnimaticEngine().restore(second, []), second).frames
    )


def test_a_continuous_change_starts_where_the_old_shot_was_and_ends_in_the_new() -> None:
    made = list(continued(_continuous()))
    old, new, late = made[2].frame(43), made[2].frame(44), made[3].frame(70)

    def step(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.abs(a[20:80].astype(int) - b[20:80]).mean())

    assert step(old, new) < 3 * step(made[2].frame(42), old) + 1
    assert step(old, late) > 20


def test_shots_in_the_same_place_and_light_share_their_world() -> None:
    day = shot("A man walks in a city, static", 20)
    on = shot("A man runs in a city, static", 60, start=20, number=1, transition=Transition.CONTINUOUS)
    made = first_of(request(shots=(day, on), frames=48))
    sky = slice(20, 40)
    assert np.abs(made.frames[18][sky].astype(int) - made.frames[46][sky]).mean() < 12


def test_every_chunk_is_a_heartbeat() -> None:
    asked = request(frames=21)
    state = create("animatic").restore(asked, [])
    chunks = list(state.denoise(asked))
    assert [len(chunk) for chunk in chunks] == [4, 4, 4, 4, 4, 1]
    assert [len(state.decode(asked, chunk)) for chunk in chunks] == [4, 4, 4, 4, 4, 1]


def test_latents_that_do_not_fit_are_state_missing() -> None:
    first, second, third = continued(chain(3))
    wrong = [first.latents, second.latents.astype(np.float64), second.latents[..., :-1], second.latents[:0]]
    for latents in wrong:
        with pytest.raises(EngineError) as caught:
            AnimaticEngine().restore(third.request, [latents])
        assert caught.value.kind is FailureKind.STATE_MISSING
    with pytest.raises(EngineError) as caught:
        list(AnimaticEngine().restore(third.request, []).denoise(third.request))
    assert caught.value.kind is FailureKind.STATE_MISSING


def test_there_is_no_engine_of_an_unknown_name() -> None:
    with pytest.raises(EngineError, match="animatic"):
        create("animatronic")
