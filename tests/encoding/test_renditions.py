"""Renditions are the frames of the piece, join by copying, and have gates of their own."""

import subprocess
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import av
import imageio_ffmpeg
import numpy as np
import pytest

from infra.inserts import Database
from infra.objects import Objects, job_key
from qc_consumers.check import Bench
from qc_consumers.gates import worst
from qc_consumers.pieces import check_piece
from qc_consumers.videos import check_video
from schemas.codec import sealed
from schemas.records import AssemblyFailed, PieceStitched, Rendition, Verdict, VideoAssembled
from streams.assembler import Assemble
from tests.encoding.builders import AV1, H264, HEVC
from tests.stitcher.clips import segment
from tests.stitcher.takes import Take, assembly, decoded, stitch, stitcher, take

FRAMES = 30 + 30 + 38
SMALL = {"width": 256, "height": 144}


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A take of three pieces with three renditions, and its video."""

    objects: Objects
    folder: Path
    take: Take
    pieces: list[PieceStitched]
    video: VideoAssembled


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("renditions")
    objects = Objects((folder / "objects").as_uri())
    segments = [segment(index, 38, **SMALL) for index in range(3)]
    whole = take(objects, *segments, renditions=(H264, HEVC, AV1))
    pieces = stitch(whole, stitcher(objects, folder / "scratch"))
    video = assembler(objects, folder)(assembly(pieces))
    assert isinstance(video, VideoAssembled), video.reason
    return Made(objects=objects, folder=folder, take=whole, pieces=pieces, video=video)


@pytest.fixture
def bench(made: Made, tmp_path: Path) -> Bench:
    """Checks that measure and judge; nothing is inserted."""
    unused: Database = None  # pyright: ignore[reportAssignmentType] (checks are called without their worker)
    return Bench(objects=made.objects, database=unused, scratch=tmp_path, worker="check-0")


def assembler(objects: Objects, folder: Path) -> Assemble:
    clock = count(1)
    return Assemble(objects, folder / "scratch", "assemble-0", lambda: next(clock))


def luma(pictures: np.ndarray) -> np.ndarray:
    return pictures[:, : pictures.shape[1] * 2 // 3].astype(np.float32)


def test_every_rendition_shows_the_frames_of_the_video(made: Made) -> None:
    main = luma(decoded(made.objects, made.video.video, made.folder))
    small = main.reshape(len(main), 36, 4, 64, 4).mean(axis=(2, 4))
    for each in made.video.renditions:
        pictures = luma(decoded(made.objects, each.video, made.folder))
        assert pictures.shape == (FRAMES, 108, 192)
        reduced = pictures.reshape(FRAMES, 36, 3, 64, 3).mean(axis=(2, 4))
        own, late = np.abs(reduced - small), np.abs(reduced[2:] - small[:-2])
        assert own.mean() < 3, each.name
        assert own.mean(axis=(1, 2)).max() < late.mean(), f"{each.name}: two frames late would be as near"


def test_the_event_says_what_players_ask_for(made: Made) -> None:
    said = [(each.name, each.codec, each.width, each.height) for each in made.video.renditions]
    assert said == [
        ("phone", "avc1.4d401f", 192, 108),
        ("hevc", "hvc1.2.4.L93.90", 192, 108),
        ("av1", "av01.0.05M.08", 192, 108),
    ]
    assert all(each.video.digest.startswith("sha256:") for each in made.video.renditions)


def test_hevc_is_named_as_players_of_apple_want_it(made: Made) -> None:
    _, hevc, _ = made.video.renditions
    with av.open(str(made.objects.get_file(hevc.video, made.folder))) as container:
        context = container.streams.video[0].codec_context
        assert (context.codec_tag, context.pix_fmt) == ("hvc1", "yuv420p10le")


def test_another_decoder_plays_them_without_an_error(made: Made) -> None:
    for each in made.video.renditions:
        path = str(made.objects.get_file(each.video, made.folder))
        command = [imageio_ffmpeg.get_ffmpeg_exe(), "-nostdin", "-v", "error", "-xerror", "-i", path]
        done = subprocess.run([*command, "-f", "null", "-"], capture_output=True, text=True, timeout=60, check=True)
        assert done.stderr == "", each.name


def test_the_piece_itself_is_what_it_is_without_renditions(made: Made, tmp_path: Path) -> None:
    plain = stitch(replace(made.take, renditions=()), stitcher(made.objects, tmp_path))
    for with_, without in zip(made.pieces, plain, strict=True):
        assert (with_.reference.digest, with_.decoder_config) == (without.reference.digest, without.decoder_config)
        assert (with_.correction, with_.encode, without.renditions) == (without.correction, without.encode, ())


# --- pieces of renditions that have to be stitched again --------------------------------------------------------------


def spoiled(made: Made, piece: int, index: int, **changes: object) -> list[PieceStitched]:
    """The pieces with one rendition of one of them changed."""
    renditions = list(made.pieces[piece].renditions)
    renditions[index] = replace(renditions[index], **changes)  # pyright: ignore[reportArgumentType] (a builder's changes)
    pieces = list(made.pieces)
    pieces[piece] = replace(pieces[piece], renditions=tuple(renditions))
    return pieces


def test_a_rendition_that_would_not_play_between_the_others_is_at_fault(made: Made, tmp_path: Path) -> None:
    other = replace(made.take, renditions=(replace(H264, profile="high"), HEVC, AV1))
    odd = stitch(other, stitcher(made.objects, tmp_path / "scratch"))
    answer = assembler(made.objects, tmp_path)(assembly([made.pieces[0], odd[1], made.pieces[2]]))
    assert isinstance(answer, AssemblyFailed)
    assert (answer.pieces, answer.reason) == ((1,), "piece 1: rendition phone: would not play between the others")


def test_a_rendition_that_is_missing_or_of_another_piece_is_at_fault(made: Made, tmp_path: Path) -> None:
    swapped = spoiled(made, 2, 2, video=made.pieces[0].renditions[2].video)
    swapped[0] = replace(swapped[0], renditions=swapped[0].renditions[:2])
    answer = assembler(made.objects, tmp_path)(sealed(assembly(swapped)))
    assert isinstance(answer, AssemblyFailed)
    assert (answer.pieces, answer.reason) == (
        (0, 2),
        "piece 0: rendition av1: is missing; piece 2: rendition av1: 30 frames, not 38",
    )


# --- gates ------------------------------------------------------------------------------------------------------------


def of_renditions(findings: tuple[object, ...]) -> list[object]:
    return [finding for finding in findings if "rendition" in getattr(finding, "detail", "")]


def test_renditions_without_fault_pass_and_their_video_is_not_decoded_again(
    made: Made, bench: Bench, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for piece in made.pieces:
        assert of_renditions(check_piece(piece, bench).measured.findings) == []
    monkeypatch.setattr("qc_consumers.renditions.watch", never)
    assert of_renditions(check_video(made.video, bench).measured.findings) == []


def never(*_: object, **__: object) -> None:
    raise AssertionError("what is made of proven pieces is decoded again")


def damaged(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes(200) + data[middle + 200 :]


@pytest.mark.parametrize("index", [0, 1, 2])
def test_a_damaged_rendition_is_quarantined(made: Made, bench: Bench, index: int, tmp_path: Path) -> None:
    path = made.objects.get_file(made.pieces[1].renditions[index].video, tmp_path)
    bad = made.objects.put_bytes(job_key("job", "pieces", f"bad-{index}.mp4"), damaged(path.read_bytes()), "video/mp4")
    measured = check_piece(spoiled(made, 1, index, video=bad)[1], bench).measured
    named = [finding for finding in measured.findings if "rendition" in finding.detail]
    assert worst(named) is Verdict.QUARANTINE, named


@pytest.mark.parametrize(
    ("wish", "gate"),
    [
        (replace(H264, gop_frames=60), "gop"),
        (replace(H264, width=160, height=90), "tags"),
        (replace(H264, profile="high"), "tags"),
    ],
)
def test_a_rendition_that_is_not_as_announced_is_encoded_again(
    made: Made, bench: Bench, tmp_path: Path, wish: Rendition, gate: str
) -> None:
    long = take(made.objects, segment(0, 60, **SMALL), renditions=(wish,))
    (other,) = stitch(long, stitcher(made.objects, tmp_path / "scratch"))
    (good,) = stitch(replace(long, renditions=(H264,)), stitcher(made.objects, tmp_path / "scratch"))
    said = replace(good.renditions[0], video=other.renditions[0].video)
    measured = check_piece(replace(good, renditions=(said,)), bench).measured
    found = [finding for finding in measured.findings if "rendition" in finding.detail]
    assert gate in [finding.gate for finding in found]
    assert worst(found) is Verdict.REENCODE


def test_a_lost_rendition_is_made_again(made: Made, bench: Bench) -> None:
    gone = replace(made.pieces[0].renditions[0].video, uri=made.pieces[0].renditions[0].video.uri + "x")
    measured = check_piece(spoiled(made, 0, 0, video=gone)[0], bench).measured
    assert [(f.gate, f.verdict) for f in measured.findings if "rendition" in f.detail] == [("blob", Verdict.QUARANTINE)]
