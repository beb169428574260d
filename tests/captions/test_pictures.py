"""Cards, fades, wipes and burnt-in subtitles: frames are counted, joined and scored like all others."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from infra.assets.catalogue import Catalogue
from infra.objects import Objects
from qc_consumers.check import Bench
from qc_consumers.pieces import check_piece
from schemas.codec import sealed
from schemas.errors import BadInputError
from schemas.records import Caption, Captions, Curtain, PieceStitched, PlannedCard, SeamKind, Verdict
from tests.assets.files import SUBRIP, card
from tests.qc.conftest import bench as _bench
from tests.sound.builders import file_asset
from tests.stitcher.clips import shot
from tests.stitcher.takes import Take, decoded, stitcher, take

bench = _bench
SMALL = {"width": 256, "height": 144}
TITLE = PlannedCard(start_frame=0, frames=12, text="A fox", colour="#203060", text_colour="#ffffff")
HELLO = Caption(start_us=500_000, end_us=1_500_000, text="Hello")


@pytest.fixture
def objects(bench: Bench) -> Objects:
    return bench.objects


def made(objects: Objects, folder: Path, frames: int = 36, **fields: Any) -> PieceStitched:
    """One piece of a shot with this around it."""
    plain = take(objects, shot(0, frames, **SMALL)).request(0)
    cards = sum(each.frames for each in fields.get("cards", ()))
    answer = stitcher(objects, folder / "scratch")(sealed(replace(plain, frames=frames + cards, **fields)))
    assert isinstance(answer, PieceStitched), answer
    return answer


def luma(objects: Objects, piece: PieceStitched, folder: Path) -> np.ndarray:
    return decoded(objects, piece.reference, folder)[:, :144].astype(int)


def test_cards_stand_before_and_behind_the_segment_and_pass_the_gates(
    objects: Objects, bench: Bench, tmp_path: Path
) -> None:
    logo = file_asset(objects, Catalogue(), card(tmp_path / "logo.png"), "logo")
    end = PlannedCard(start_frame=48, frames=10, text="", colour="#000000", text_colour="#ffffff", asset=logo)
    piece = made(objects, tmp_path, cards=(TITLE, end))
    assert piece.frames == 58
    assert piece.designed_frames == (0, 12, 48, 58)
    assert len(piece.generated_us) == len(piece.decoded_us) == len(piece.encoded_us) == 58
    seen = luma(objects, piece, tmp_path)
    assert all((seen[n] == seen[0]).all() for n in range(12))
    assert all((seen[n] == seen[48]).all() for n in range(48, 58))
    assert (seen[12] != seen[0]).any()
    plain = made(objects, tmp_path)
    np.testing.assert_array_equal(seen[12:48], luma(objects, plain, tmp_path))
    assert seen[0, 0, 0] == seen[0, 143, 255] < 70 < seen[0, 40:104].max()
    check = check_piece(piece, bench).measured
    assert {finding.gate for finding in check.findings} <= {"psnr_y_min"}, "a hard frame of the shot"
    assert len(check.quality.vmaf if check.quality else ()) == 58


def test_without_the_word_of_the_stitcher_a_card_would_be_a_frozen_picture(
    objects: Objects, bench: Bench, tmp_path: Path
) -> None:
    piece = replace(made(objects, tmp_path, cards=(TITLE,)), designed_frames=())
    found = check_piece(piece, bench).measured.findings
    assert [f.gate for f in found if f.verdict is Verdict.REGENERATE] == ["frozen"]


def test_a_fade_reaches_nearly_black_at_its_border_and_passes_the_gates(
    objects: Objects, bench: Bench, tmp_path: Path
) -> None:
    piece = made(objects, tmp_path, curtains=(Curtain(frame=18, frames=12, colour="#000000"),))
    means = luma(objects, piece, tmp_path).mean(axis=(1, 2))
    plain = luma(objects, made(objects, tmp_path), tmp_path).mean(axis=(1, 2))
    np.testing.assert_array_equal(means[:6], plain[:6])
    np.testing.assert_array_equal(means[30:], plain[30:])
    share = (means - 16) / (plain - 16)
    assert share[17] == pytest.approx(0.5 / 12, abs=0.02)
    assert share[11] == pytest.approx(6.5 / 12, abs=0.02)
    assert (np.diff(share[6:18]) < 0).all()
    assert (np.diff(share[18:30]) > 0).all()
    assert [f for f in check_piece(piece, bench).measured.findings if f.verdict is not Verdict.PASS] == []


def test_a_subtitle_is_seen_from_its_first_frame_to_its_last_and_nowhere_else(
    objects: Objects, bench: Bench, tmp_path: Path
) -> None:
    piece = made(objects, tmp_path, captions=Captions(shown="burnt", lines=(HELLO,)))
    seen, plain = luma(objects, piece, tmp_path), luma(objects, made(objects, tmp_path), tmp_path)
    different = [n for n in range(36) if (seen[n] != plain[n]).any()]
    assert different == list(range(12, 36))
    rows = np.flatnonzero((seen[12] != plain[12]).any(axis=1))
    assert rows.min() > 110
    assert seen[12, 110:].max() == 235
    assert [f for f in check_piece(piece, bench).measured.findings if f.verdict is not Verdict.PASS] == []


def test_subtitles_of_a_file_are_drawn_like_written_ones(objects: Objects, tmp_path: Path) -> None:
    (tmp_path / "film.srt").write_text(SUBRIP)
    asset = file_asset(objects, Catalogue(), tmp_path / "film.srt", "film")
    line = replace(HELLO, start_us=1_000_000, end_us=2_500_000)
    pieces = [
        made(objects, tmp_path, captions=captions)
        for captions in (Captions(shown="burnt", asset=asset), Captions(shown="burnt", lines=(line,)))
    ]
    assert pieces[0].video.digest == pieces[1].video.digest


def test_a_lost_picture_is_said_by_its_field(objects: Objects, tmp_path: Path) -> None:
    logo = file_asset(objects, Catalogue(), card(tmp_path / "logo.png"), "logo")
    objects.delete([objects.key_of(logo.content)])
    with pytest.raises(BadInputError) as error:
        made(objects, tmp_path, cards=(replace(TITLE, asset=logo),))
    assert (error.value.field, error.value.rule) == ("cards.asset", "lost")


def test_a_wipe_shows_the_new_shot_on_the_left_of_its_edge(objects: Objects, tmp_path: Path) -> None:
    wiped: Take = take(objects, shot(0, 32, **SMALL), shot(300, 32, **SMALL), seam=SeamKind.WIPE)
    work = stitcher(objects, tmp_path / "scratch")
    piece = work(wiped.request(1))
    assert isinstance(piece, PieceStitched)
    dissolved = work(replace(wiped.request(1), seam=SeamKind.CUT, head_overlap=0, previous_frames=None))
    assert isinstance(dissolved, PieceStitched)
    overlap, head = wiped.overlap, piece.reference_head_context
    seen, new = luma(objects, piece, tmp_path)[head:], luma(objects, dissolved, tmp_path)
    assert piece.seam.blend == "wipe"
    assert piece.designed_frames == (piece.start_frame, piece.start_frame + overlap)
    for j in range(1, overlap):
        edge = round(256 * j / overlap)
        np.testing.assert_array_equal(seen[j, :, :edge], new[j, :, :edge])
        assert (seen[j, :, edge:] != new[j, :, edge:]).any()
    np.testing.assert_array_equal(seen[overlap:], new[overlap:])
