"""Gates: pass, encode again, generate again, or give up with a reason; and what a finished job says."""

import pytest

from schemas import records as r
from schemas.codec import encode
from schemas.rows import RowEncoder
from streams.finishing import combined
from tests.director.builders import (
    START_US,
    Line,
    assembled,
    finding,
    generated,
    piece_checked,
    prompt,
    scores,
    stitched,
    video_checked,
)

PASS, REENCODE, REGENERATE, QUARANTINE = r.Verdict


def checked(verdict: r.Verdict, *, piece: int = 1) -> tuple[Line, tuple[r.PieceRequested, tuple[object, ...]]]:
    """A line in which everything is done but this piece, which got the verdict; and what the director said to it."""
    line = Line()
    request = line.until(r.PieceRequested, prompt(), index=piece)
    answer = stitched(request)
    line.send(answer)
    said = line.send(piece_checked(answer, verdict))
    return line, (request, said)


def test_a_job_finishes_exactly_once() -> None:
    line = Line()
    line.run(prompt())
    event = line.last(r.VideoFinished)
    video = assembled(line.last(r.AssemblyRequested))
    assert len(line.all(r.VideoFinished)) == 1
    assert (event.verdict, event.video, event.frames, event.duration_us) == (PASS, video.video, 96, 4_000_000)
    assert [seam.kind for seam in event.seams] == [r.SeamKind.FIRST, r.SeamKind.CONTINUOUS, r.SeamKind.CONTINUOUS]
    assert event.live == "file:///objects/live/master.m3u8"
    assert line.send(video) == ()
    assert line.send(video_checked(video)) == ()


def test_a_finished_job_keeps_a_small_row() -> None:
    line = Line()
    line.run(prompt(text="A boat leaves the harbour. " * 300, duration_s=120.0))
    assert len(encode(line.job)) < 2000
    assert (line.job.segments, line.job.pieces) == ((), ())
    change = line.last(r.JobChanged)
    assert (change.segments, change.segments_generated, change.pieces_stitched, change.pieces_checked) == (90,) * 4


def test_a_piece_is_encoded_again_once_with_a_lower_crf() -> None:
    line, (request, (again, _)) = checked(REENCODE)
    assert isinstance(again, r.PieceRequested)
    assert (again.piece, again.attempt, again.encode.crf) == (1, 2, 14.0)
    assert again.previous_correction == request.previous_correction
    line.send(stitched(again))
    line.send(piece_checked(stitched(again), REENCODE))
    assert line.job.stage is r.Stage.FAILED
    assert line.job.reason == "piece 1: reencode: vmaf_mean is 71.5, limit 82 at frame 29"


def test_a_piece_that_passes_after_a_re_encode_finishes_the_job() -> None:
    line, (_, (again, _)) = checked(REENCODE)
    assert RowEncoder().encode(line.job) == encode(line.job)
    assert isinstance(again, r.PieceRequested)
    line.run(stitched(again))
    assert line.job.stage is r.Stage.FINISHED
    assert [e.attempt for e in line.all(r.PieceRequested) if e.piece == 1] == [1, 2]
    (rework,) = line.last(r.VideoFinished).reworked
    assert (rework.verdict, rework.index, rework.attempt, rework.finding.gate) == (REENCODE, 1, 1, "vmaf_mean")
    assert line.job.reworked == ()


def test_the_piece_after_one_that_is_encoded_again_is_not_held_up() -> None:
    line = Line()
    request = line.until(r.PieceRequested, prompt(), index=1)
    line.send(piece_checked(stitched(request), REENCODE))
    assert line.job.stage is r.Stage.GENERATING
    line.run(stitched(line.last(r.PieceRequested)))
    assert line.job.stage is r.Stage.FINISHED


def test_a_piece_that_is_encoded_again_does_not_have_its_successor_stitched_again() -> None:
    line = Line()
    first = stitched(line.until(r.PieceRequested, prompt()))
    line.run()
    second, _ = line.send(first)
    again, _ = line.send(piece_checked(first, REENCODE))
    assert isinstance(second, r.PieceRequested)
    assert isinstance(again, r.PieceRequested)
    line.send(stitched(again))
    assert line.last(r.PieceRequested) == again
    line.run(stitched(second), piece_checked(stitched(again)))
    assert line.job.stage is r.Stage.FINISHED


def test_a_bad_picture_has_its_segment_generated_again_once_per_job() -> None:
    line, (_, (again, _)) = checked(REGENERATE)
    assert isinstance(again, r.SegmentRequested)
    assert (again.segment, again.attempt, again.variation) == (1, 2, 1)
    line.pending = [generated(again)]
    second = stitched(line.until(r.PieceRequested, index=2))
    line.send(second)
    line.send(piece_checked(second, REGENERATE))
    assert line.job.stage is r.Stage.FAILED
    assert line.job.reason.startswith("piece 2: regenerate: vmaf_mean")


def test_a_piece_that_does_not_decode_ends_the_job() -> None:
    _, (_, (change,)) = checked(QUARANTINE)
    assert isinstance(change, r.JobChanged)
    assert change.stage is r.Stage.FAILED
    assert change.reason == "piece 1: quarantine: vmaf_mean is 71.5, limit 82 at frame 29"


def test_a_second_verdict_on_the_same_piece_is_dropped() -> None:
    line, (request, _) = checked(PASS)
    before = line.row
    assert line.send(piece_checked(stitched(request), QUARANTINE)) == ()
    assert line.row == before


def test_a_video_that_fails_as_a_whole_is_assembled_again_once() -> None:
    line = Line()
    video = assembled(line.until(r.AssemblyRequested, prompt()))
    line.send(video)
    again, _ = line.send(video_checked(video, QUARANTINE))
    assert isinstance(again, r.AssemblyRequested)
    assert again.attempt == 2
    line.send(assembled(again))
    line.send(video_checked(assembled(again), QUARANTINE))
    assert line.job.stage is r.Stage.FAILED
    assert line.job.reason == "video: quarantine: vmaf_mean is 71.5, limit 82"


def test_a_verdict_on_an_earlier_video_is_dropped() -> None:
    line = Line()
    video = assembled(line.until(r.AssemblyRequested, prompt()))
    line.send(video_checked(video, QUARANTINE))
    before = line.row
    assert line.send(video_checked(video, QUARANTINE)) == ()
    assert line.send(video) == ()
    assert line.row == before


@pytest.mark.parametrize(("frame", "piece"), [(0, 0), (28, 0), (29, 1), (95, 2)])
def test_a_video_with_a_bad_frame_has_its_piece_encoded_again(frame: int, piece: int) -> None:
    line = Line()
    video = assembled(line.until(r.AssemblyRequested, prompt()))
    line.send(video)
    again, _ = line.send(video_checked(video, REENCODE, frame))
    assert isinstance(again, r.PieceRequested)
    assert (again.piece, again.attempt) == (piece, 2)
    line.run(stitched(again))
    assert line.job.stage is r.Stage.FINISHED
    assert line.last(r.AssemblyRequested).attempt == 2


def test_a_video_with_a_bad_picture_has_its_segment_generated_again() -> None:
    line = Line()
    video = assembled(line.until(r.AssemblyRequested, prompt()))
    again, _ = line.send(video_checked(video, REGENERATE, 40))
    assert isinstance(again, r.SegmentRequested)
    assert (again.segment, again.variation) == (1, 1)
    assert line.send(video) == ()
    line.run(generated(again))
    assert line.last(r.VideoFinished).video != video.video


def test_warnings_of_pieces_and_video_are_in_the_finished_event() -> None:
    line = Line()
    first = stitched(line.until(r.PieceRequested, prompt()))
    line.send(first)
    line.send(piece_checked(first, findings=(finding(PASS, frame=3),)))
    line.run(*[stitched(line.last(r.PieceRequested))])
    assert line.last(r.VideoFinished).warnings == (finding(PASS, frame=3),)


def test_scores_of_a_video_are_weighted_by_frames_and_its_minima_are_those_of_the_worst_piece() -> None:
    a = scores(frames=10, psnr_y_mean=40.0, psnr_y_min=30.0, vmaf_mean=90.0, vmaf_p1=80.0, vmaf_worst_second=85.0)
    b = scores(frames=30, psnr_y_mean=44.0, psnr_y_min=35.0, vmaf_mean=98.0, vmaf_p1=70.0, vmaf_worst_second=88.0)
    whole = combined([a, b])
    assert (whole.frames, whole.psnr_y_mean, whole.vmaf_mean) == (40, 43.0, 96.0)
    assert (whole.psnr_y_min, whole.vmaf_p1, whole.vmaf_worst_second) == (30.0, 70.0, 85.0)
    assert whole.vmaf_model == "vmaf_v0.6.1"


def test_a_finished_job_says_when() -> None:
    line = Line()
    line.run(prompt())
    assert line.last(r.VideoFinished).finished_us == START_US
    assert line.job.changed_us == START_US
