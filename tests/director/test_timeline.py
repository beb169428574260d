"""The timeline's arithmetic, as sentences and as properties."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.engines import ENGINES, EngineLimits
from schemas.records import SeamKind, SegmentPlan, Transition
from streams.timeline import cut, shot_starts

CUT, CONTINUOUS, DISSOLVE = Transition.CUT, Transition.CONTINUOUS, Transition.DISSOLVE
ANIMATIC = ENGINES["animatic"]
patient = settings(deadline=None)


def limits(*, frames: int = 40, overlap: int = 8) -> EngineLimits:
    return EngineLimits(max_segment_frames=frames, overlap_frames=overlap, state_segments=1, max_pixels=1 << 23)


def pieces(segments: tuple[SegmentPlan, ...]) -> list[tuple[int, int]]:
    return [(s.start_frame, s.start_frame + s.frames - s.tail_overlap) for s in segments]


@st.composite
def timelines(draw: st.DrawFn) -> tuple[list[int], list[Transition]]:
    lengths = draw(st.lists(st.integers(1, 400), min_size=1, max_size=12))
    transitions = draw(st.lists(st.sampled_from(Transition), min_size=len(lengths), max_size=len(lengths)))
    return [sum(lengths[:k]) for k in range(len(lengths) + 1)], transitions


engines = st.integers(0, 24).flatmap(
    lambda overlap: st.builds(limits, frames=st.integers(max(3 * overlap, 8), 240), overlap=st.just(overlap))
)


@given(timelines(), engines)
@patient
def test_pieces_tile_the_timeline_and_no_segment_is_longer_than_the_engine_allows(
    timeline: tuple[list[int], list[Transition]], engine: EngineLimits
) -> None:
    starts, transitions = timeline
    segments = cut(starts, transitions, engine)
    ranges = pieces(segments)
    assert ranges[0][0] == 0
    assert ranges[-1][1] == starts[-1]
    assert all(before[1] == after[0] for before, after in pairwise(ranges))
    assert all(begin < end for begin, end in ranges)
    assert all(s.frames <= engine.max_segment_frames for s in segments)


@given(timelines(), engines)
@patient
def test_every_overlap_is_generated_by_both_neighbours(
    timeline: tuple[list[int], list[Transition]], engine: EngineLimits
) -> None:
    segments = cut(*timeline, engine)
    assert segments[0].head_overlap == 0
    assert segments[0].seam is SeamKind.FIRST
    assert segments[-1].tail_overlap == 0
    for before, after in pairwise(segments):
        assert before.tail_overlap == after.head_overlap
        assert before.start_frame + before.frames == after.start_frame + after.head_overlap
    assert all(s.head_overlap + s.tail_overlap <= s.frames for s in segments)


@given(timelines(), engines)
@patient
def test_seams_are_of_the_kind_the_storyboard_asks_for(
    timeline: tuple[list[int], list[Transition]], engine: EngineLimits
) -> None:
    starts, transitions = timeline
    asked = dict(zip(starts, transitions, strict=False))
    for segment in cut(starts, transitions, engine)[1:]:
        match segment.seam:
            case SeamKind.CONTINUOUS:
                assert segment.head_overlap == engine.overlap_frames
                assert asked.get(segment.start_frame) in (None, CONTINUOUS)
            case SeamKind.DISSOLVE | SeamKind.WIPE:
                assert 1 <= segment.head_overlap <= 12
                assert asked[segment.start_frame] == segment.seam.value
            case _:
                assert segment.head_overlap == 0
                assert asked[segment.start_frame] is not CONTINUOUS


@given(st.integers(2, 5000), engines)
@patient
def test_the_segments_of_one_long_shot_are_of_near_equal_length(frames: int, engine: EngineLimits) -> None:
    lengths = [s.frames for s in cut([0, frames], [CUT], engine)]
    assert max(lengths) - min(lengths) <= 1


@given(timelines(), engines)
@patient
def test_no_segment_is_tiny_unless_its_shot_is(
    timeline: tuple[list[int], list[Transition]], engine: EngineLimits
) -> None:
    starts, transitions = timeline
    shortest_shot = min(b - a for a, b in pairwise(starts))
    least = min(shortest_shot, (engine.max_segment_frames - engine.overlap_frames) // 2)
    assert all(s.frames >= least for s in cut(starts, transitions, engine))


def test_two_minutes_at_24_fps_are_90_segments_of_the_animatic_engine() -> None:
    segments = cut([0, 2880], [CUT], ANIMATIC)
    assert len(segments) == 90
    assert {s.frames for s in segments} == {39, 40}


def test_a_cut_has_no_overlap() -> None:
    before, after = cut([0, 30, 60], [CUT, CUT], ANIMATIC)
    assert (before.start_frame, before.frames, before.tail_overlap) == (0, 30, 0)
    assert (after.start_frame, after.frames, after.seam) == (30, 30, SeamKind.CUT)


def test_both_sides_of_a_dissolve_generate_its_frames() -> None:
    before, after = cut([0, 28, 60], [CUT, DISSOLVE], ANIMATIC)
    assert (before.start_frame, before.frames, before.tail_overlap) == (0, 40, 12)
    assert (after.start_frame, after.frames, after.head_overlap, after.seam) == (28, 32, 12, SeamKind.DISSOLVE)


def test_a_dissolve_takes_at_most_half_of_the_shorter_shot() -> None:
    *_, last = cut([0, 100, 110], [CUT, DISSOLVE], ANIMATIC)
    assert last.head_overlap == 5


def test_a_shot_of_one_frame_cannot_dissolve_and_is_cut() -> None:
    *_, last = cut([0, 100, 101], [CUT, DISSOLVE], ANIMATIC)
    assert (last.head_overlap, last.seam) == (0, SeamKind.CUT)


def test_a_continuous_shot_begins_an_overlap_after_the_border_of_its_segment() -> None:
    segments = cut([0, 96, 192], [CUT, CONTINUOUS], ANIMATIC)
    carrier = next(s for s in segments if s.start_frame == 88)
    assert (carrier.head_overlap, carrier.seam) == (8, SeamKind.CONTINUOUS)


def test_a_continuous_change_close_to_the_start_falls_inside_a_segment() -> None:
    assert [s.start_frame for s in cut([0, 12, 40], [CUT, CONTINUOUS], ANIMATIC)] == [0]


def test_an_engine_that_continues_exactly_has_continuous_seams_without_overlap() -> None:
    segments = cut([0, 100], [CUT], limits(frames=40, overlap=0))
    assert [s.frames for s in segments] == [33, 33, 34]
    assert [s.seam for s in segments] == [SeamKind.FIRST, SeamKind.CONTINUOUS, SeamKind.CONTINUOUS]
    assert {(s.head_overlap, s.tail_overlap) for s in segments} == {(0, 0)}


@pytest.mark.parametrize(
    ("seconds", "fps", "starts"),
    [
        (["12"], "24", (0, 288)),
        (["0.1"] * 10, "24", (0, 2, 5, 7, 10, 12, 14, 17, 19, 22, 24)),
        (["4", "4"], "24000/1001", (0, 96, 192)),
        (["120"], "30000/1001", (0, 3596)),
    ],
)
def test_shot_starts_round_the_sum_and_not_the_shots(seconds: list[str], fps: str, starts: tuple[int, ...]) -> None:
    assert shot_starts([Fraction(s) for s in seconds], Fraction(fps)) == starts


@given(timelines())
@patient
def test_segments_of_a_block_engine_end_where_its_blocks_do(timeline: tuple[list[int], list[Transition]]) -> None:
    engine = ENGINES["causal_dit"]
    segments = cut(*timeline, engine)
    take = 0
    for segment, following in pairwise(segments):
        take = take if segment.seam is SeamKind.CONTINUOUS else segment.start_frame
        assert segment.frames <= engine.max_segment_frames
        if following.seam is SeamKind.CONTINUOUS:
            assert segment.tail_overlap == 0
            assert (segment.start_frame + segment.frames - take - 9) % 12 == 0


def test_a_take_of_blocks_is_cut_evenly() -> None:
    assert [s.frames for s in cut((0, 192), (CUT,), ENGINES["causal_dit"])] == [33, 36, 48, 36, 39]
