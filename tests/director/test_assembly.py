"""Pieces: stitched in order, each from the correction of the one before; joined when all have passed."""

import pytest

from schemas import records as r
from tests.director.builders import (
    Line,
    assembled,
    generated,
    piece_checked,
    prompt,
    rejected,
    segment_failed,
    stitched,
    video_checked,
)


def test_a_piece_waits_for_the_correction_of_the_one_before() -> None:
    line = Line()
    first = line.until(r.PieceRequested, prompt())
    line.run()
    assert line.job.segments[-1].latents
    assert line.all(r.PieceRequested) == [first]
    answer = stitched(first)
    second, _ = line.send(answer)
    assert isinstance(second, r.PieceRequested)
    assert (second.piece, second.previous_correction) == (1, answer.correction)
    assert second.previous_frames == first.segment_frames


def test_a_piece_waits_for_its_segment() -> None:
    line = Line()
    held = line.until(r.SegmentRequested, prompt(), index=1)
    line.run()
    assert line.job.pieces[0].checked
    assert [e.piece for e in line.all(r.PieceRequested)] == [0]
    line.run(generated(held))
    assert line.job.stage is r.Stage.FINISHED


def test_pieces_are_the_frames_of_their_segments_without_the_tail() -> None:
    line = Line()
    line.run(prompt())
    frames = [range(e.start_frame, e.start_frame + e.frames) for e in line.all(r.PieceRequested)]
    assert [frame for part in frames for frame in part] == list(range(96))


def test_all_pieces_are_encoded_with_the_same_parameters() -> None:
    line = Line()
    line.run(prompt())
    assert len({e.encode for e in line.all(r.PieceRequested)}) == 1


def test_a_rejected_seam_has_its_segment_generated_again_differently() -> None:
    line = Line()
    piece = line.until(r.PieceRequested, prompt(), index=1)
    request, _ = line.send(rejected(piece))
    assert isinstance(request, r.SegmentRequested)
    assert (request.segment, request.attempt, request.variation) == (1, 2, 1)


def test_what_continued_from_a_rejected_segment_is_dropped_and_made_again() -> None:
    line = Line()
    piece = line.until(r.PieceRequested, prompt(), index=1)
    line.run()
    assert all(segment.latents for segment in line.job.segments)
    line.run(rejected(piece))
    used = {e.piece: e.segment_frames for e in line.all(r.PieceRequested)}
    last = {e.segment: e for e in line.all(r.SegmentRequested)}
    assert [last[i].attempt for i in range(3)] == [1, 2, 2]
    assert last[2].latent_ref == (generated(last[1]).latents,)
    assert used == {i: generated(last[i]).frames for i in range(3)}
    assert line.last(r.VideoFinished).attempts == 2


def test_a_late_answer_to_a_dropped_request_is_dropped() -> None:
    line = Line()
    piece = line.until(r.PieceRequested, prompt(), index=1)
    late = line.last(r.SegmentRequested)
    assert late.segment == 2
    line.send(rejected(piece))
    before = line.row
    assert line.send(generated(late)) == ()
    assert line.send(segment_failed(late)) == ()
    assert line.send(stitched(piece)) == ()
    assert line.send(rejected(piece)) == ()
    assert line.row == before


def test_pieces_of_dropped_segments_wait_for_new_corrections() -> None:
    line = Line()
    second = line.until(r.PieceRequested, prompt(), index=1)
    first = line.all(r.PieceRequested)[0]
    line.run()
    line.send(piece_checked(stitched(second), r.Verdict.REGENERATE))
    line.pending = [generated(line.last(r.SegmentRequested))]
    again = line.until(r.PieceRequested, index=1)
    line.run()
    assert line.job.segments[2].latents
    assert line.last(r.PieceRequested) == again
    assert line.send(stitched(second)) == ()
    third, _ = line.send(stitched(again))
    assert isinstance(third, r.PieceRequested)
    assert third.previous_correction == stitched(again).correction != stitched(second).correction
    assert again.previous_correction == stitched(first).correction


def test_a_late_piece_is_dropped_even_if_its_segment_is_there_again() -> None:
    line = Line()
    second = line.until(r.PieceRequested, prompt(), index=1)
    line.run()
    third, _ = line.send(stitched(second))
    assert isinstance(third, r.PieceRequested)
    line.send(piece_checked(stitched(second), r.Verdict.REGENERATE))
    for _ in range(2):
        line.send(generated(line.last(r.SegmentRequested)))
    assert all(segment.latents for segment in line.job.segments)
    assert line.send(stitched(third)) == ()
    assert line.send(piece_checked(stitched(third))) == ()


def test_a_seam_that_is_rejected_three_times_ends_the_job_with_the_reason() -> None:
    line = Line()
    line.send(rejected(line.until(r.PieceRequested, prompt(), index=1)))
    line.pending = [generated(line.last(r.SegmentRequested))]
    line.send(rejected(line.until(r.PieceRequested, index=1)))
    line.pending = [generated(line.last(r.SegmentRequested))]
    (change,) = line.send(rejected(line.until(r.PieceRequested, index=1)))
    assert isinstance(change, r.JobChanged)
    assert change.stage is r.Stage.FAILED
    assert change.reason == "segment 1 did not come out 3 times, last rejected at its seam: offset 5 frames"
    assert [e.variation for e in line.all(r.SegmentRequested) if e.segment == 1] == [0, 1, 2]


def test_the_assembly_is_asked_for_once_every_piece_has_passed() -> None:
    line = Line()
    line.run(prompt())
    (request,) = line.all(r.AssemblyRequested)
    assert [(p.start_frame, p.video) for p in request.pieces] == [
        (e.start_frame, stitched(e).video) for e in line.all(r.PieceRequested)
    ]
    assert request.frames == 96


def test_a_verdict_that_overtakes_its_piece_is_kept() -> None:
    line = Line()
    last = line.until(r.PieceRequested, prompt(), index=2)
    line.run()
    assert line.send(piece_checked(stitched(last)))
    assert line.all(r.AssemblyRequested) == []
    request, _ = line.send(stitched(last))
    assert isinstance(request, r.AssemblyRequested)


def test_a_verdict_that_overtakes_its_video_is_kept() -> None:
    line = Line()
    request = line.until(r.AssemblyRequested, prompt())
    video = assembled(request)
    line.send(video_checked(video))
    assert line.job.stage is r.Stage.ASSEMBLING
    finished, _ = line.send(video)
    assert isinstance(finished, r.VideoFinished)
    assert finished.video == video.video


@pytest.mark.parametrize("piece", [-1, 1, 3, 10**9])
def test_an_answer_about_a_piece_nobody_asked_for_is_dropped(piece: int) -> None:
    line = Line()
    request = line.until(r.PieceRequested, prompt())
    assert line.send(stitched(request, piece=piece)) == ()
    assert line.send(piece_checked(stitched(request), piece=piece)) == ()


def test_a_second_answer_of_a_stitcher_is_dropped() -> None:
    line = Line()
    request = line.until(r.PieceRequested, prompt())
    line.send(stitched(request))
    before = line.row
    assert line.send(stitched(request)) == ()
    assert line.send(rejected(request)) == ()
    assert line.row == before


def test_a_second_video_of_the_same_request_is_dropped() -> None:
    line = Line()
    request = line.until(r.AssemblyRequested, prompt())
    line.send(assembled(request))
    before = line.row
    assert line.send(assembled(request)) == ()
    assert line.row == before
