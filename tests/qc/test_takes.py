"""What is said of takes, by impressions made up by hand: drift, shifts, collapse, stills; and by a clip of their own."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import pytest

from qc_consumers.detectors import Reel
from qc_consumers.detectors.impressions import Impression, Impressions, likeness
from qc_consumers.profile import load_profiles
from qc_consumers.takes import Seen, take_evidence
from tests.qc.clips import Frames, bunny

PROFILE = load_profiles()[-1]
CELLS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Pictures of one place: a pattern of cells by its seed."""

    seed: int = 1
    light: float = 100.0
    u: float = 120.0
    contrast: float = 20.0
    alive: float = 2.0

    def at(self, index: int) -> Impression:
        pattern = np.random.default_rng(self.seed).normal(0, self.contrast, CELLS)
        pattern[0] += self.alive * (index % 2)
        embedding = np.zeros(200)
        embedding[[self.seed, 199 - self.seed]] = 1
        return Impression(
            first=12 * index,
            frames=12,
            grid=tuple(pattern + self.light),
            luma=self.light,
            u=self.u,
            v=128.0,
            contrast=float(pattern.std()),
            sharpness=10.0,
            embedding=tuple(embedding),
        )


def found(scenes: Sequence[Scene], *, cuts: Sequence[int] = ()) -> list[tuple[str, int]]:
    """Gate and frame of each finding; each scene is a piece of half a second."""
    pieces = [Seen(begins_take=n in (0, *cuts), impressions=(scene.at(n),)) for n, scene in enumerate(scenes)]
    return [(finding.gate, finding.frame) for finding in PROFILE.judged(take_evidence(pieces, 24.0, PROFILE))]


def test_a_take_that_stays_as_it_is_has_no_findings() -> None:
    assert found([Scene()] * 12) == []


def test_a_picture_without_motion_for_two_seconds_is_below_the_floor() -> None:
    still = Scene(alive=0.5)
    assert found([Scene()] * 3 + [still] * 5 + [Scene()] * 3) == [("motion_floor", 24)]
    assert found([Scene()] * 3 + [still] * 2 + [Scene()] * 4) == []


def test_the_same_picture_in_other_colours_is_a_shift_and_a_fade_is_none() -> None:
    assert ("colour_shift", 48) in found([Scene()] * 4 + [Scene(u=130.0)] * 4)
    fade = [Scene(light=16 + 84 * gain, u=128 - 8 * gain, contrast=20 * gain) for gain in (1, 0.8, 0.6, 0.4, 0.3)]
    assert "colour_shift" not in [gate for gate, _ in found(fade)]


def test_other_colours_behind_a_planned_cut_are_no_shift() -> None:
    assert found([Scene()] * 4 + [Scene(u=130.0)] * 4, cuts=[4]) == []


def test_colours_that_run_away_over_ten_pieces_drift() -> None:
    assert ("drift", 108) in found([Scene(u=120.0 - n) for n in range(10)])
    assert found([Scene(u=120.0 - n % 3) for n in range(10)]) == []


def test_a_picture_that_snaps_back_to_the_first_ones_has_collapsed() -> None:
    scenes = [Scene()] * 3 + [Scene(seed=2)] * 4 + [Scene()] * 3
    assert [frame for gate, frame in found(scenes) if gate == "collapse"] == [84]
    assert [gate for gate, _ in found(scenes, cuts=[7]) if gate == "collapse"] == []


def test_a_take_that_ends_with_something_else_has_lost_its_subject() -> None:
    scenes = [Scene()] * 5 + [Scene(seed=2)] * 5
    assert ("subject_drift", 108) in found(scenes)


def shown(frames: Frames, *, skipped: int, own: int) -> tuple[Impression, ...]:
    reel, watcher = Reel(), Impressions(start_frame=100, skipped=skipped, frames=own, per_chunk=12)
    for frame in frames:
        chroma = frame[180:].reshape(2, 90, 160)[:, :, ::2]
        watcher.process_frame(reel.next(np.ascontiguousarray(frame[:180:2, ::2]), chroma))
    return watcher.post_process()


def test_impressions_cover_the_frames_of_the_piece_and_no_others() -> None:
    made = shown(bunny()[:42], skipped=1, own=40)
    assert [(each.first, each.frames) for each in made] == [(100, 13), (113, 13), (126, 14)]
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(made), type=tuple[Impression, ...]) == made
    assert made[0].luma == pytest.approx(bunny()[1:14, :180:2, ::2].mean(), abs=0.01)


def test_embeddings_of_one_shot_are_alike_and_those_of_its_mirror_image_are_not() -> None:
    plain = shown(bunny()[:24], skipped=0, own=24)
    turned = bunny()[:24].copy()
    turned[:, :180] = turned[:, :180][:, ::-1, ::-1]
    other = shown(turned, skipped=0, own=24)
    assert likeness(plain[0].embedding, plain[1].embedding) > likeness(plain[0].embedding, other[1].embedding) + 0.1
