"""Pieces as they are delivered: every frame once, at its time, with its history, beside a reference that is exact."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest

from infra.objects import Objects
from schemas.codec import sealed
from schemas.errors import BadInputError
from schemas.records import Correction, Encode, PieceStitched, SeamKind, SeamRejected, VideoFormat
from streams.mp4 import clock_of, examine
from streams.stitcher.picture import render, rounded
from streams.stitcher.worker import Stitch
from tests.stitcher.clips import OVERLAP, Drift, segment, shot
from tests.stitcher.takes import Take, decoded, rejected, stitch, stitcher, store, take

SMALL = {"width": 256, "height": 144}
FRAMES = 24


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    return Objects((tmp_path / "objects").as_uri())


@pytest.fixture
def work(objects: Objects, tmp_path: Path) -> Stitch:
    return stitcher(objects, tmp_path / "scratch")


def drifting(objects: Objects, count: int = 3, **changes: object) -> Take:
    drifts = [Drift(offset_frames=2 * (i % 2), x_px=0.3 * i, gain=(1 + 0.02 * i,) * 3) for i in range(count)]
    return take(objects, *(segment(i, FRAMES, drift, **SMALL) for i, drift in enumerate(drifts)), **changes)


def pictures(objects: Objects, piece: PieceStitched, folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of the reference: head context, the piece, tail context."""
    all_ = decoded(objects, piece.reference, folder)
    head, tail = piece.reference_head_context, piece.reference_tail_context
    return all_[:head], all_[head : len(all_) - tail], all_[len(all_) - tail :]


def ticks(objects: Objects, piece: PieceStitched, folder: Path) -> tuple[Fraction, list[int]]:
    with av.open(str(objects.get_file(piece.video, folder))) as container:
        return container.streams.video[0].time_base, [frame.pts for frame in container.decode(video=0)]


# --- frames -----------------------------------------------------------------------------------------------------------


def test_pieces_cover_the_timeline_once(objects: Objects, work: Stitch, tmp_path: Path) -> None:
    pieces = stitch(drifting(objects), work)
    assert [(p.start_frame, p.frames) for p in pieces] == [(0, 16), (16, 16), (32, 24)]
    for piece in pieces:
        assert len(decoded(objects, piece.video, tmp_path)) == piece.frames
        assert len(pictures(objects, piece, tmp_path)[1]) == piece.frames


def test_the_reference_is_lossless(objects: Objects, work: Stitch, tmp_path: Path) -> None:
    frames = segment(0, FRAMES, **SMALL)
    (piece,) = stitch(take(objects, frames), work)
    head, exact, tail = pictures(objects, piece, tmp_path)
    np.testing.assert_array_equal(exact, [rounded(render(frame, Correction())) for frame in frames])
    assert (len(head), len(tail)) == (0, 0)


def test_the_piece_shows_what_its_reference_shows(objects: Objects, work: Stitch, tmp_path: Path) -> None:
    for piece in stitch(drifting(objects), work):
        error = decoded(objects, piece.video, tmp_path).astype(int) - pictures(objects, piece, tmp_path)[1]
        psnr = 10 * np.log10(255**2 / np.square(error).mean(axis=(1, 2)))
        assert psnr.min() > 38


def test_context_frames_are_exactly_what_the_neighbours_show(objects: Objects, work: Stitch, tmp_path: Path) -> None:
    """Also across a segment that was delayed, moved and brightened."""
    references = [pictures(objects, piece, tmp_path) for piece in stitch(drifting(objects), work)]
    assert [(len(head), len(tail)) for head, _, tail in references] == [(0, 1), (1, 1), (1, 0)]
    for (_, before, tail), (head, after, _) in pairwise(references):
        np.testing.assert_array_equal(head[0], before[-1])
        np.testing.assert_array_equal(tail[0], after[0])


def test_a_drifting_take_shows_the_shot_without_drift(objects: Objects, work: Stitch, tmp_path: Path) -> None:
    take_ = drifting(objects)
    shown = np.concatenate([pictures(objects, piece, tmp_path)[1] for piece in stitch(take_, work)])
    truth = np.stack([rounded(render(frame, Correction())) for frame in shot(0, len(shown), **SMALL)])
    error = (shown.astype(int) - truth)[:, 8:136, 8:-8]
    assert (10 * np.log10(255**2 / (np.square(error).mean(axis=(1, 2)) + 1e-3))).min() > 33


# --- times ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fps", "timescale", "step"),
    [((24, 1), 24000, 1000), ((24000, 1001), 24000, 1001), ((30, 1), 30000, 1000), ((60000, 1001), 60000, 1001)],
)
def test_frame_n_is_shown_at_exactly_n_frame_times(
    objects: Objects, work: Stitch, tmp_path: Path, fps: tuple[int, int], timescale: int, step: int
) -> None:
    (piece,) = stitch(take(objects, segment(0, FRAMES, **SMALL), fps=fps), work)
    assert ticks(objects, piece, tmp_path) == (Fraction(1, timescale), [n * step for n in range(FRAMES)])
    assert Fraction(step, timescale) == Fraction(fps[1], fps[0])


def test_every_frame_has_its_history(objects: Objects, work: Stitch) -> None:
    """Segment 1 runs two frames ahead, so it is shown two frames later; until its fade begins the old segment is seen."""
    pieces = stitch(drifting(objects, 2), work)
    assert pieces[0].generated_us == tuple(range(1000, 1016))
    assert pieces[1].generated_us == (1016, 1017, 1018, *range(1001, 1022))
    assert pieces[1].decoded_us == tuple(us + 1000 for us in pieces[1].generated_us)
    for piece in pieces:
        assert len(set(piece.encoded_us)) == piece.frames
        assert piece.started_us < min(piece.encoded_us)
        assert max(piece.encoded_us) < piece.finished_us


# --- what lets pieces join by copying ---------------------------------------------------------------------------------


def test_the_decoder_configuration_does_not_depend_on_content_length_or_crf(objects: Objects, work: Stitch) -> None:
    def coded() -> Iterator[PieceStitched]:
        noise = np.random.default_rng(1).integers(0, 256, (40, 144, 256, 3), dtype=np.uint8)
        clip = segment(0, FRAMES, **SMALL)
        for crf in (4, 18, 40):
            for frames in (noise, np.zeros_like(noise), clip, clip[:3], clip[:2], clip[:1]):
                yield from stitch(take(objects, frames, encode=Encode(crf=crf)), work)

    assert len({piece.decoder_config for piece in coded()}) == 1


def test_every_group_of_pictures_begins_with_an_idr(objects: Objects, work: Stitch, tmp_path: Path) -> None:
    cuts = np.concatenate([shot(start, 7, **SMALL) for start in (0, 50, 20, 60, 10)])
    (piece,) = stitch(take(objects, cuts, encode=Encode(gop_frames=12)), work)
    assert examine(objects.get_file(piece.video, tmp_path), clock_of(piece.format)).idr_frames == (0, 12, 24)


def test_the_file_says_how_its_colours_are_meant(objects: Objects, work: Stitch, tmp_path: Path) -> None:
    (piece,) = stitch(take(objects, segment(0, 4, **SMALL)), work)
    for blob in (piece.video, piece.reference):
        with av.open(str(objects.get_file(blob, tmp_path))) as container:
            context = container.streams.video[0].codec_context
            next(container.decode(video=0))
            assert (context.color_primaries, context.color_trc, context.colorspace, context.color_range) == (1, 1, 1, 1)
            assert context.sample_aspect_ratio == 1
            assert (context.pix_fmt, context.width, context.height) == ("yuv420p", 256, 144)


def test_the_same_request_gives_the_same_bytes(objects: Objects, work: Stitch, tmp_path: Path) -> None:
    request = drifting(objects, 2).request(1)
    first, second = work(request), stitcher(objects, tmp_path)(request)
    assert isinstance(first, PieceStitched)
    assert isinstance(second, PieceStitched)
    blobs = ((event.video.digest, event.reference.digest, event.seam) for event in (first, second))
    assert next(blobs) == next(blobs)
    assert first.video.uri != second.video.uri, "neither overwrites what the other has announced"


# --- seams of every kind ----------------------------------------------------------------------------------------------


def test_a_cut_takes_its_context_from_the_shot_before(objects: Objects, work: Stitch, tmp_path: Path) -> None:
    take_ = take(objects, shot(0, 12, **SMALL), shot(60, 12, **SMALL), overlap=0, seam=SeamKind.CUT)
    before, after = stitch(take_, work)
    assert after.correction == Correction()
    np.testing.assert_array_equal(pictures(objects, after, tmp_path)[0][0], pictures(objects, before, tmp_path)[1][-1])


def test_a_dissolve_is_encoded_once(objects: Objects, work: Stitch, tmp_path: Path) -> None:
    take_ = take(objects, shot(0, FRAMES, **SMALL), shot(60, FRAMES, **SMALL), seam=SeamKind.DISSOLVE)
    before, after = stitch(take_, work)
    assert (before.frames, after.frames, after.seam.kind) == (16, 24, SeamKind.DISSOLVE)
    np.testing.assert_array_equal(pictures(objects, before, tmp_path)[2][0], pictures(objects, after, tmp_path)[1][0])


def test_a_segment_that_cannot_be_joined_is_sent_back_for_the_same_reason_every_time(
    objects: Objects, work: Stitch
) -> None:
    wrong = segment(1, FRAMES, Drift(gain=(1.4, 1.4, 1.4)), **SMALL)
    request = take(objects, segment(0, FRAMES, **SMALL), wrong).request(1)
    first, second = rejected(work(request)), rejected(work(request))
    assert "colour" in first.reason
    assert replace(first, rejected_us=0) == replace(second, rejected_us=0)
    assert (first.job_id, first.piece, first.attempt, first.request_hash) == ("job", 1, 1, request.request_hash)


def test_nothing_is_left_in_the_scratch_folder(objects: Objects, work: Stitch, tmp_path: Path) -> None:
    stitch(drifting(objects, 2), work)
    assert list((tmp_path / "scratch").iterdir()) == []


# --- requests that no other try would meet ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "rule", "changes"),
    [
        ("job_id", "format", {"job_id": "../../etc"}),
        ("format", "even", {"format": VideoFormat(width=255, height=144, fps_num=24, fps_den=1)}),
        ("format", "range", {"format": VideoFormat(width=256, height=144, fps_num=24, fps_den=0)}),
        ("head_overlap", "range", {"head_overlap": -1}),
        ("head_overlap", "range", {"seam": SeamKind.CUT}),
        ("previous_frames", "required", {"previous_frames": None}),
        ("encode.codec", "unknown_codec", {"encode": Encode(codec="vp8")}),
        ("encode.preset", "unknown_preset", {"encode": Encode(preset="fast:qp=0")}),
        ("encode", "range", {"encode": Encode(crf=99)}),
        ("encode", "range", {"encode": Encode(gop_frames=0)}),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_with_field_and_rule(
    objects: Objects, work: Stitch, field: str, rule: str, changes: dict[str, object]
) -> None:
    request = take(objects, segment(0, FRAMES, **SMALL), segment(1, FRAMES, **SMALL)).request(1)
    with pytest.raises(BadInputError) as refused:
        work(sealed(replace(request, **changes)))  # pyright: ignore[reportArgumentType] (one wrong field at a time)
    assert (refused.value.field, refused.value.rule) == (field, rule)


def test_a_segment_that_is_gone_or_damaged_is_asked_for_again(objects: Objects, work: Stitch, tmp_path: Path) -> None:
    blob = store(objects, segment(0, 4, **SMALL))
    request = Take(segments=(blob,)).request(0)
    path = objects.get_file(blob, tmp_path)
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    damaged = work(request)
    path.unlink()
    gone = work(request)
    for answer, reason in ((damaged, "digest"), (gone, "not there")):
        assert isinstance(answer, SeamRejected)
        assert (answer.piece, answer.request_hash) == (request.piece, request.request_hash)
        assert answer.reason.startswith("segment_frames: ")
        assert reason in answer.reason


@pytest.mark.parametrize(
    ("reason", "changes"),
    [
        ("frames are", {"format": VideoFormat(width=144, height=256, fps_num=24, fps_den=1)}),
        ("24 frames, not 40", {"frames": 40, "tail_overlap": 0}),
    ],
)
def test_frames_of_another_size_or_number_are_asked_for_again(
    objects: Objects, work: Stitch, reason: str, changes: dict[str, object]
) -> None:
    request = take(objects, segment(0, FRAMES, **SMALL)).request(0)
    answer = rejected(work(sealed(replace(request, **changes))))  # pyright: ignore[reportArgumentType] (one wrong field)
    assert reason in answer.reason
    assert answer.lost == (request.segment_frames,)


def test_a_segment_shorter_than_the_overlap_after_it_is_asked_for_again(objects: Objects, work: Stitch) -> None:
    request = take(objects, segment(0, OVERLAP - 1, **SMALL), segment(1, FRAMES, **SMALL)).request(1)
    assert rejected(work(request)).lost == (request.previous_frames,)
