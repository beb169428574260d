"""What a gate finds is made again, that alone, by the real stitcher, engine and checks; and the finished event says what was done."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from schemas import records as r
from schemas.topics import Event
from streams.stitcher.encode import REFERENCE, piece_options
from tests.qc.clips import decoded, encoded, stored, with_black
from tests.storage.shop import Shop

PIECE, BLACK = 1, 8


def spoilt(shop: Shop, event: Event) -> Event:
    """The first try of one piece was encoded far too coarsely."""
    if not _first_try(event):
        return event
    assert isinstance(event, r.PieceStitched)
    frames = decoded(shop.path(event.video), event.format)
    path = encoded(shop.folder / "spoilt.mp4", frames, event.format, {"crf": "48", "preset": "veryfast", "g": "24"})
    return replace(event, video=stored(shop.objects, "spoilt.mp4", path))


def blackened(shop: Shop, event: Event) -> Event:
    """The first try of one segment came out with a black frame: so piece and reference have it."""
    if not _first_try(event):
        return event
    assert isinstance(event, r.PieceStitched)
    shown = with_black(decoded(shop.path(event.reference), event.format), [BLACK + event.reference_head_context])
    first, last = event.reference_head_context, len(shown) - event.reference_tail_context
    video = encoded(shop.folder / "black.mp4", shown[first:last], event.format, piece_options(event.encode))
    reference = encoded(shop.folder / "black-reference.mp4", shown, event.format, REFERENCE)
    return replace(
        event, video=stored(shop.objects, video.name, video), reference=stored(shop.objects, reference.name, reference)
    )


def _first_try(event: Event) -> bool:
    return isinstance(event, r.PieceStitched) and (event.piece, event.attempt) == (PIECE, 1)


def test_a_piece_that_was_encoded_badly_is_encoded_again_and_the_event_says_so(tmp_path: Path) -> None:
    shop = Shop(folder=tmp_path, accident=spoilt, measures=True)
    assert shop.run().stage is r.Stage.FINISHED
    assert [(e.piece, e.attempt, e.encode.crf) for e in shop.all(r.PieceRequested)] == [
        (0, 1, 18),
        (1, 1, 18),
        (1, 2, 14),
    ]
    assert [e.attempt for e in shop.all(r.SegmentRequested)] == [1, 1]
    (rework,) = shop.finished().reworked
    assert (rework.verdict, rework.index, rework.attempt) == (r.Verdict.REENCODE, PIECE, 1)
    assert rework.finding.gate in ("psnr_y", "vmaf")
    assert rework.finding.value < rework.finding.limit


def test_a_segment_with_a_black_frame_is_generated_again_and_the_event_says_so(tmp_path: Path) -> None:
    shop = Shop(folder=tmp_path, accident=blackened, measures=True)
    assert shop.run().stage is r.Stage.FINISHED
    assert [(e.segment, e.attempt) for e in shop.all(r.SegmentRequested)] == [(0, 1), (1, 1), (1, 2)]
    assert [(e.piece, e.attempt) for e in shop.all(r.PieceRequested)] == [(0, 1), (1, 1), (1, 2)]
    (rework,) = shop.finished().reworked
    start = shop.all(r.PieceStitched)[1].start_frame
    assert (rework.verdict, rework.index, rework.finding.gate) == (r.Verdict.REGENERATE, PIECE, "black")
    assert rework.finding.frame == start + BLACK
    assert np.all(shop.pictures()[:, :96].mean(axis=(1, 2)) > 20)


def test_nothing_is_said_of_a_job_that_needed_nothing(tmp_path: Path) -> None:
    shop = Shop(folder=tmp_path, measures=True)
    assert shop.run().stage is r.Stage.FINISHED
    assert shop.finished().reworked == ()
