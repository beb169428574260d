"""What is live is what was checked, in order, for good; and it plays from the start at any time."""

import re
import shutil
from collections.abc import Iterable
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path

import pytest

from infra.objects import Objects
from schemas.codec import sealed
from schemas.records import Blob, PieceStitched, RenditionPiece, Verdict
from streams.assembler import Assemble
from streams.live.fragments import boxes
from streams.live.publisher import Publish
from tests.live.stage import FOLDER, Stage, checked, ffmpeg, finished
from tests.stitcher.takes import assembly

REDONE_US = 1_000_000


@pytest.fixture(scope="module")
def stitched(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage(tmp_path_factory.mktemp("stage"))


@pytest.fixture
def stage(stitched: Stage) -> Stage:
    stitched.clear()
    return stitched


def hashes(path: Path | str) -> list[tuple[int, str]]:
    """PTS (in ticks) and sha256 of every frame that ffmpeg shows."""
    text = ffmpeg("-i", str(path), "-fps_mode", "passthrough", "-f", "framehash", "-hash", "sha256", "-")
    rows = [line.split(",") for line in text.splitlines() if not line.startswith("#")]
    return [(int(row[2]), row[5].strip()) for row in rows]


def now(stage: Stage, folder: Path) -> list[tuple[int, str]]:
    """What a player sees that asks now and stops where the playlist does."""
    shutil.copytree(stage.folder / "objects" / FOLDER, folder)
    for playlist in folder.glob("*.m3u8"):
        if "#EXTINF" in (text := playlist.read_text()) and "#EXT-X-ENDLIST" not in text:
            playlist.write_text(text + "#EXT-X-ENDLIST\n")
    return hashes(folder / "master.m3u8")


def assembled(stage: Stage) -> list[tuple[int, str]]:
    clock = count(1)
    video = Assemble(stage.objects, stage.folder / "assemble", "assemble-0", lambda: next(clock))
    event = video(assembly(stage.pieces))
    return hashes(stage.objects.get_file(event.video, stage.folder))  # pyright: ignore[reportAttributeAccessIssue]


def segments(text: str) -> list[str]:
    return re.findall(r"^main-.*m4s$", text, re.MULTILINE)


def ticks(media: bytes) -> int:
    """The decode time of a fragment."""
    (box,) = [box for box in boxes(media) if box.kind == b"tfdt"]
    return int.from_bytes(media[box.body + 4 : box.end])


def test_at_any_time_it_plays_from_the_start_and_shows_the_frames_of_the_finished_video(
    stage: Stage, tmp_path: Path
) -> None:
    publish, whole = stage.publisher(), assembled(stage)
    for piece, frames in zip(stage.pieces, (16, 46, 86), strict=True):
        publish(checked(piece))
        seen = now(stage, tmp_path / f"then-{piece.piece}")
        assert [digest for _, digest in seen] == [digest for _, digest in whole[:frames]]
        # ffmpeg takes a stream with negative composition offsets for one that begins a frame late; browsers do not.
        assert [pts - seen[0][0] for pts, _ in seen] == list(range(frames))
    assert [ticks(stage.files()[name]) for name in segments(stage.read("main.m3u8"))] == [0, 16_000, 46_000]


def test_the_playlist_grows_at_its_end_and_ends_as_vod(stage: Stage) -> None:
    publish = stage.publisher()
    texts: list[str] = []
    for piece in stage.pieces:
        publish(checked(piece))
        texts.append(stage.read("main.m3u8"))
    assert all(after.startswith(before) for before, after in pairwise(texts))
    assert re.findall(r"#EXTINF:(.*),", texts[-1]) == ["0.666667", "1.250000", "1.666667"]
    assert "#EXT-X-PLAYLIST-TYPE:EVENT" in texts[-1]
    assert "ENDLIST" not in texts[-1]
    publish(finished(stage.pieces))
    assert "#EXT-X-PLAYLIST-TYPE:VOD" in (end := stage.read("main.m3u8"))
    assert end.endswith("#EXT-X-ENDLIST\n")
    assert segments(end) == segments(texts[-1])
    master = stage.read("master.m3u8")
    assert 'CODECS="avc1.' in master
    assert "RESOLUTION=256x144,FRAME-RATE=24.000\nmain.m3u8\n" in master


def test_the_end_may_be_known_before_the_last_verdict(stage: Stage) -> None:
    publish = stage.publisher()
    publish(finished(stage.pieces))
    for piece in stage.pieces[:2]:
        publish(checked(piece))
    assert "ENDLIST" not in stage.read("main.m3u8")
    publish(checked(stage.pieces[2]))
    assert stage.read("main.m3u8").endswith("#EXT-X-ENDLIST\n")


def test_pieces_wait_for_those_before_them_and_only_those_that_passed_are_live(stage: Stage) -> None:
    publish, (first, second, third) = stage.publisher(), stage.pieces
    publish(checked(third))
    publish(checked(first, Verdict.REENCODE))
    assert stage.files() == {}
    publish(checked(first))
    assert len(segments(stage.read("main.m3u8"))) == 1
    publish(checked(second, Verdict.QUARANTINE))
    assert len(segments(stage.read("main.m3u8"))) == 1
    publish(checked(second))
    assert len(segments(stage.read("main.m3u8"))) == 3


def again(stage: Stage, piece: int) -> PieceStitched:
    """Another attempt at it, with other bytes: of more quality."""
    request = stage.take.request(piece, stage.pieces[piece - 1].correction if piece else stage.pieces[0].correction)
    better = sealed(replace(request, attempt=2, encode=replace(request.encode, crf=request.encode.crf - 8)))
    answer = stage.work(better)
    assert isinstance(answer, PieceStitched)
    answer = replace(answer, engine="animatic", finished_us=2 * REDONE_US)
    stage.keep(answer)
    return answer


def test_a_piece_that_is_made_again_changes_nothing_that_is_live(stage: Stage) -> None:
    publish = stage.publisher()
    publish(checked(stage.pieces[0]))
    publish(checked(stage.pieces[1]))
    before = stage.files()
    publish(checked(stage.pieces[0], Verdict.REGENERATE, checked_us=REDONE_US))
    publish(checked(again(stage, 0)))
    assert stage.files() == before


@pytest.mark.parametrize("early", [True, False])
def test_what_continues_from_a_segment_that_is_made_again_is_not_published(stage: Stage, early: bool) -> None:
    publish, (first, second, third) = stage.publisher(), stage.pieces
    publish(checked(first))
    if early:
        publish(checked(third))
    publish(checked(second, Verdict.REGENERATE, checked_us=REDONE_US))
    if not early:
        publish(checked(third))
    publish(checked(again(stage, 1)))
    assert len(segments(stage.read("main.m3u8"))) == 2
    publish(checked(again(stage, 2)))
    media = stage.files()[segments(stage.read("main.m3u8"))[2]]
    assert len(media) > stage.objects.get_file(third.video, stage.folder).stat().st_size


class DeathError(Exception):
    """Of the process."""


class Mortal(Objects):
    """A store whose user dies at the n-th change of it."""

    def __init__(self, url: str, changes: int) -> None:
        super().__init__(url)
        self.left = changes

    def _change(self) -> None:
        if not self.left:
            raise DeathError
        self.left -= 1

    def put_bytes(self, key: str, data: bytes, media_type: str) -> Blob:
        self._change()
        return super().put_bytes(key, data, media_type)

    def put_new(self, key: str, data: bytes) -> bool:
        self._change()
        return super().put_new(key, data)

    def delete(self, keys: Iterable[str]) -> None:
        self._change()
        super().delete(keys)


def test_a_death_between_any_two_steps_is_made_good_when_the_record_comes_again(stage: Stage) -> None:
    events = [*(checked(piece) for piece in stage.pieces), finished(stage.pieces)]
    for event in events:
        stage.publisher()(event)
    whole = stage.files()
    deaths = 0
    for steps in count():
        stage.clear()
        publish = Publish(Mortal(stage.objects.url, steps), stage.folder / "publish")
        left = list(events)
        try:
            while left:
                publish(left[0])
                left.pop(0)
            break
        except DeathError:
            deaths += 1
        for event in left:
            stage.publisher()(event)
        assert stage.files() == whole, steps
    assert deaths >= 15
    assert not [stored for stored in stage.objects.listed(FOLDER) if "/wait-" in stored.key]


def test_a_piece_that_would_not_play_behind_the_others_waits_for_another_attempt(stage: Stage) -> None:
    publish = stage.publisher()
    publish(checked(stage.pieces[0]))
    odd = replace(stage.pieces[1], decoder_config="xxh3:other", request_hash="odd")
    stage.keep(odd)
    publish(checked(odd))
    assert len(segments(stage.read("main.m3u8"))) == 1
    publish(checked(replace(stage.pieces[1], attempt=2)))
    assert len(segments(stage.read("main.m3u8"))) == 2


def test_a_lost_or_damaged_piece_is_not_published(stage: Stage) -> None:
    publish, first = stage.publisher(), stage.pieces[0]
    path = stage.objects.get_file(first.video, stage.folder)
    whole = path.read_bytes()
    for left in (whole[:-1] + b"\0\0", None):
        path.write_bytes(left) if left else path.unlink()
        publish(checked(first))
        assert stage.files() == {}
    path.write_bytes(whole)


def test_renditions_are_rungs_of_the_master_playlist(stage: Stage) -> None:
    copies = [
        RenditionPiece(
            name="copy", codec="h264", width=256, height=144, video=piece.video, decoder_config=piece.decoder_config
        )
        for piece in stage.pieces
    ]
    for piece, copy in zip(stage.pieces, copies, strict=True):
        stage.keep(replace(piece, renditions=(copy,)))
        stage.publisher()(checked(piece))
    master = stage.read("master.m3u8")
    assert re.findall(r"^[^#].*$", master, re.MULTILINE) == ["main.m3u8", "r-copy.m3u8"]
    assert stage.read("r-copy.m3u8") == stage.read("main.m3u8").replace("main", "r-copy")
