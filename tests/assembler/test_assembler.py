"""The assembled video is its pieces, frame for frame and byte for byte, and plays everywhere."""

import hashlib
import re
import subprocess
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, count
from pathlib import Path

import av
import imageio_ffmpeg
import numpy as np
import pytest

from infra.objects import Objects
from schemas.codec import sealed
from schemas.errors import BadInputError
from schemas.records import AssemblyFailed, AssemblyRequested, Encode, PieceStitched, VideoAssembled
from streams.assembler import Assemble
from tests.stitcher.clips import segment, shot
from tests.stitcher.takes import ENCODE, assembly, decoded, stitch, stitcher, take

SMALL = {"width": 256, "height": 144}


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    return Objects((tmp_path / "objects").as_uri())


@pytest.fixture
def assemble(objects: Objects, tmp_path: Path) -> Assemble:
    clock = count(1)
    return Assemble(objects, tmp_path / "scratch", "assemble-0", lambda: next(clock))


@pytest.fixture
def pieces(objects: Objects, tmp_path: Path) -> list[PieceStitched]:
    """Three, of 16, 30 and 40 frames: the last two have more than one group of pictures."""
    lengths = ((0, 24), (16, 38), (46, 40))
    take_ = take(objects, *(shot(start, frames, **SMALL) for start, frames in lengths))
    return stitch(take_, stitcher(objects, tmp_path / "scratch"))


def hashes(pictures: np.ndarray) -> list[str]:
    return [hashlib.sha256(picture.tobytes()).hexdigest() for picture in pictures]


def pieces_of(objects: Objects, folder: Path, lengths: list[int], encode: Encode = ENCODE) -> list[PieceStitched]:
    """Pieces of these lengths, one after the other."""
    work = stitcher(objects, folder / "scratch")
    starts = [sum(lengths[:i]) for i in range(len(lengths))]
    single = [
        stitch(take(objects, shot(s, n, **SMALL), encode=encode), work)[0] for s, n in zip(starts, lengths, strict=True)
    ]
    return [replace(p, piece=i, start_frame=s) for i, (p, s) in enumerate(zip(single, starts, strict=True))]


def ffmpeg(*arguments: str) -> str:
    """What ffmpeg prints; any damage is an error."""
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-nostdin", "-v", "error", "-xerror", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


# --- frames and times -------------------------------------------------------------------------------------------------


def test_the_video_decodes_to_exactly_the_frames_of_its_pieces(
    objects: Objects, assemble: Assemble, pieces: list[PieceStitched], tmp_path: Path
) -> None:
    video = assemble(assembly(pieces)).video
    expected = [digest for piece in pieces for digest in hashes(decoded(objects, piece.video, tmp_path))]
    assert hashes(decoded(objects, video, tmp_path)) == expected
    path = str(objects.get_file(video, tmp_path))
    by_ffmpeg = re.findall(r"[0-9a-f]{64}", ffmpeg("-i", path, "-f", "framehash", "-hash", "sha256", "-"))
    assert by_ffmpeg == expected


def test_no_packet_is_changed(
    objects: Objects, assemble: Assemble, pieces: list[PieceStitched], tmp_path: Path
) -> None:
    def packets(path: Path) -> list[bytes]:
        with av.open(str(path)) as container:
            return [bytes(packet) for packet in container.demux(video=0) if packet.size]

    video = objects.get_file(assemble(assembly(pieces)).video, tmp_path)
    assert packets(video) == [p for piece in pieces for p in packets(objects.get_file(piece.video, tmp_path))]


@pytest.mark.parametrize("lengths", [[1, 2, 3, 40], [3, 1, 1, 2], [1], [25, 24]])
def test_pieces_of_any_length_join(objects: Objects, assemble: Assemble, tmp_path: Path, lengths: list[int]) -> None:
    pieces = pieces_of(objects, tmp_path, lengths)
    video = assemble(assembly(pieces))
    assert video.piece_starts == tuple(sum(lengths[:i]) for i in range(len(lengths)))
    path = objects.get_file(video.video, tmp_path)
    with av.open(str(path)) as container:
        pts = [frame.pts for frame in container.decode(video=0)]
    assert pts == [n * 1000 for n in range(sum(lengths))]


@pytest.mark.parametrize("fps", [(24, 1), (24000, 1001), (25, 1)])
def test_frame_n_is_shown_at_exactly_n_frame_times(
    objects: Objects, assemble: Assemble, tmp_path: Path, fps: tuple[int, int]
) -> None:
    take_ = take(objects, *(segment(i, 16, **SMALL) for i in range(3)), fps=fps)
    video = assemble(assembly(stitch(take_, stitcher(objects, tmp_path / "scratch"))))
    assert video.duration_us == round(32 * 1_000_000 * fps[1] / fps[0])
    with av.open(str(objects.get_file(video.video, tmp_path))) as container:
        stream = container.streams.video[0]
        assert (stream.average_rate, stream.start_time) == (Fraction(*fps), 0)
        assert stream.duration * stream.time_base == 32 * Fraction(fps[1], fps[0])
        times = [frame.pts * frame.time_base for frame in container.decode(stream)]
    assert times == [n * Fraction(fps[1], fps[0]) for n in range(32)]


def test_decoding_times_only_go_on_and_never_after_showing(
    objects: Objects, assemble: Assemble, pieces: list[PieceStitched], tmp_path: Path
) -> None:
    with av.open(str(objects.get_file(assemble(assembly(pieces)).video, tmp_path))) as container:
        packets = [(packet.dts, packet.pts, packet.duration) for packet in container.demux(video=0) if packet.size]
    dts = [packet[0] for packet in packets]
    assert dts == [dts[0] + 1000 * n for n in range(len(dts))]
    assert all(d <= p and duration == 1000 for d, p, duration in packets)


# --- the file ---------------------------------------------------------------------------------------------------------


def test_the_event_describes_the_file(
    objects: Objects, assemble: Assemble, pieces: list[PieceStitched], tmp_path: Path
) -> None:
    request = assembly(pieces)
    event = assemble(request)
    data = objects.get_file(event.video, tmp_path).read_bytes()
    assert event.video.digest == f"sha256:{hashlib.sha256(data).hexdigest()}"
    assert (event.job_id, event.attempt, event.request_hash) == ("job", 1, request.request_hash)
    assert (event.frames, event.duration_us, event.piece_starts) == (86, 3_583_333, (0, 16, 46))
    assert [(t.kind, t.codec, t.samples, t.duration_us) for t in event.tracks] == [("video", "h264", 86, 3_583_333)]
    assert event.gop_frames == 24
    assert event.started_us < event.finished_us


def test_players_find_the_index_before_the_pictures(
    objects: Objects, assemble: Assemble, pieces: list[PieceStitched], tmp_path: Path
) -> None:
    data = objects.get_file(assemble(assembly(pieces)).video, tmp_path).read_bytes()
    boxes: list[str] = []
    at = 0
    while at < len(data):
        boxes.append(data[at + 4 : at + 8].decode())
        at += int.from_bytes(data[at : at + 4])
    assert boxes.index("moov") < boxes.index("mdat")
    assert at == len(data)


def test_the_same_request_gives_the_same_bytes(
    objects: Objects, assemble: Assemble, pieces: list[PieceStitched]
) -> None:
    first, second = assemble(assembly(pieces)).video, assemble(assembly(pieces)).video
    assert first.digest == second.digest
    assert first.uri != second.uri, "neither overwrites what the other has announced"


def test_a_seek_lands_on_the_right_frame(
    objects: Objects, assemble: Assemble, pieces: list[PieceStitched], tmp_path: Path
) -> None:
    video = assemble(assembly(pieces)).video
    expected = hashes(decoded(objects, video, tmp_path))
    for frame in (15, 16, 17, 45, 46, 85):
        with av.open(str(objects.get_file(video, tmp_path))) as container:
            container.seek(frame * 1000, stream=container.streams.video[0])
            picture = next(f for f in container.decode(video=0) if f.pts == frame * 1000)
        assert hashes(np.stack([picture.to_ndarray()])) == [expected[frame]]


def test_a_piece_that_was_encoded_again_joins_its_neighbours(
    objects: Objects, assemble: Assemble, tmp_path: Path
) -> None:
    first = pieces_of(objects, tmp_path, [20, 20])
    better = pieces_of(objects, tmp_path, [20, 20], Encode(crf=8))
    assert assemble(assembly([first[0], better[1]])).frames == 40


# --- requests that no other try would meet ----------------------------------------------------------------------------


def refusal(assemble: Assemble, request: AssemblyRequested) -> tuple[str, str]:
    with pytest.raises(BadInputError) as refused:
        assemble(sealed(request))
    return refused.value.field, refused.value.rule


def test_pieces_that_do_not_make_up_the_timeline_are_refused(assemble: Assemble, pieces: list[PieceStitched]) -> None:
    whole = assembly(pieces)
    first, second, third = whole.pieces
    assert refusal(assemble, replace(whole, pieces=(first, third))) == ("pieces[1].start_frame", "timeline")
    assert refusal(assemble, replace(whole, frames=87)) == ("frames", "frames")
    assert refusal(assemble, replace(whole, pieces=())) == ("frames", "frames")
    short = replace(whole, pieces=(replace(first, frames=15), second, third))
    assert refusal(assemble, short) == ("pieces[1].start_frame", "timeline")
    assert refusal(assemble, replace(whole, job_id="../x")) == ("job_id", "format")


# --- pieces that have to be stitched again ----------------------------------------------------------------------------


def faults(assemble: Assemble, request: AssemblyRequested) -> AssemblyFailed:
    answer = assemble(sealed(request))
    assert isinstance(answer, AssemblyFailed)
    return answer


def test_a_piece_of_another_decoder_configuration_than_most_is_at_fault(
    objects: Objects, assemble: Assemble, tmp_path: Path
) -> None:
    fast = pieces_of(objects, tmp_path, [20, 20, 20])
    slow = pieces_of(objects, tmp_path, [20, 20, 20], Encode(preset="slow"))
    odd = faults(assemble, assembly([slow[0], *fast[1:]]))
    assert (odd.pieces, odd.reason) == ((0,), "piece 0: would not play between the others")
    lying = replace(slow[1], decoder_config=fast[0].decoder_config)
    assert faults(assemble, assembly([fast[0], lying, fast[2]])).pieces == (1,)


def test_all_pieces_at_fault_are_named_at_once(
    objects: Objects, assemble: Assemble, pieces: list[PieceStitched], tmp_path: Path
) -> None:
    whole = assembly(pieces)
    first, second, third = whole.pieces
    objects.get_file(second.video, tmp_path).unlink()
    text = objects.put_bytes("jobs/job/pieces/text.mp4", b"not a video", "video/mp4")
    answer = faults(assemble, replace(whole, pieces=(replace(first, video=text), second, third)))
    assert answer.pieces == (0, 1)
    assert "not there" in answer.reason
    longer = replace(whole, frames=whole.frames + 1, pieces=(first, third, replace(second, frames=second.frames + 1)))
    starts = accumulate((piece.frames for piece in longer.pieces), initial=0)
    moved = tuple(replace(piece, start_frame=start) for piece, start in zip(longer.pieces, starts, strict=False))
    assert faults(assemble, replace(longer, pieces=moved)).pieces == (1,)
    other = replace(whole, format=replace(whole.format, fps_num=25))
    assert faults(assemble, other).pieces == (0, 1, 2)


def test_nothing_is_left_in_the_scratch_folder(assemble: Assemble, pieces: list[PieceStitched], tmp_path: Path) -> None:
    assert isinstance(assemble(assembly(pieces)), VideoAssembled)
    assert list((tmp_path / "scratch").iterdir()) == []
