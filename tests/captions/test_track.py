"""Subtitles in a finished file, or beside it."""

from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from infra.assets.catalogue import Catalogue
from infra.assets.media import read_media
from infra.objects import Objects
from qc_consumers.check import Bench
from qc_consumers.videos import check_video
from schemas.codec import sealed
from schemas.records import AssetRef, Caption, Captions, Sound, VideoAssembled
from streams.assembler import Assemble
from streams.captions.files import lines_of, webvtt
from streams.fetching import StoredAssets
from tests.assets.files import SUBRIP
from tests.captions.reading import subrip
from tests.qc.conftest import bench as _bench
from tests.sound.builders import chords, file_asset, sound_asset
from tests.stitcher.clips import shot
from tests.stitcher.takes import assembly, stitch, stitcher, take

bench = _bench
LINES = (
    Caption(start_us=250_000, end_us=1_000_000, text="Hällo <b>& co"),
    Caption(start_us=1_500_000, end_us=2_000_000, text="Two\nlines"),
)
VTT = """WEBVTT

00:00:00.250 --> 00:00:01.000
Hällo &lt;b&gt;&amp; co

00:00:01.500 --> 00:00:02.000
Two
lines
"""


@pytest.fixture
def objects(bench: Bench) -> Objects:
    return bench.objects


def assembled(objects: Objects, folder: Path, captions: Captions, *sounds: Sound) -> VideoAssembled:
    """A small video of 2.5 s."""
    pieces = stitch(take(objects, shot(0, 60, width=128, height=72)), stitcher(objects, folder / "stitch"))
    request = sealed(replace(assembly(pieces), captions=captions, sounds=sounds))
    clock = count(1)
    event = Assemble(objects, folder / "scratch", "assemble-0", lambda: next(clock))(request)
    assert isinstance(event, VideoAssembled)
    return event


def test_a_track_of_subtitles_lies_beside_picture_and_sound_and_passes_the_gates(
    objects: Objects, bench: Bench, tmp_path: Path
) -> None:
    bed = sound_asset(objects, Catalogue(), tmp_path, "bed", chords(2.5))
    event = assembled(objects, tmp_path, Captions(shown="track", lines=LINES), Sound(start_us=0, gain_db=0, asset=bed))
    assert [track.kind for track in event.tracks] == ["video", "audio", "subtitles"]
    assert event.subtitles is None
    said = subrip(objects.get_file(event.video, tmp_path))
    assert "00:00:00,250 --> 00:00:01,000\nHällo" in said
    assert "00:00:01,500 --> 00:00:02,000\nTwo\nlines" in said
    assert [f.gate for f in check_video(event, bench).measured.findings if f.gate in ("tracks", "av_sync")] == []


def test_a_file_of_subtitles_is_webvtt_that_others_read(objects: Objects, tmp_path: Path) -> None:
    event = assembled(objects, tmp_path, Captions(shown="file", lines=LINES))
    assert event.subtitles
    assert event.subtitles.media_type == "text/vtt"
    assert [track.kind for track in event.tracks] == ["video"]
    path = objects.get_file(event.subtitles, tmp_path)
    assert path.read_text() == VTT
    assert read_media(path).duration_us == 2_000_000


def test_what_is_written_is_read_again(objects: Objects, tmp_path: Path) -> None:
    path = tmp_path / "film.vtt"
    path.write_text(webvtt(LINES))
    asset = file_asset(objects, Catalogue(), path, "film")
    assert lines_of(Captions(shown="file", asset=asset), StoredAssets(objects), tmp_path) == LINES


def subtitles(objects: Objects, folder: Path, text: str) -> AssetRef:
    path = folder / "film.srt"
    path.write_text(text)
    return file_asset(objects, Catalogue(), path, "film")


def test_a_file_that_is_longer_than_the_video_is_cut_and_overlaps_come_one_after_the_other(
    objects: Objects, tmp_path: Path
) -> None:
    late = "3\n00:00:09,000 --> 00:00:10,000\nToo late\n"
    early = "0\n00:00:00,500 --> 00:00:01,800\n<i>Hey</i>\n\n"
    asset = subtitles(objects, tmp_path, early + SUBRIP.replace("00:00:02,500", "00:00:02,700") + "\n" + late)
    event = assembled(objects, tmp_path, Captions(shown="file", asset=asset))
    assert event.subtitles
    text = objects.get_bytes(event.subtitles).decode()
    assert text.splitlines()[2:] == [
        "00:00:00.500 --> 00:00:01.000",
        "Hey",
        "",
        "00:00:01.000 --> 00:00:02.500",
        "Hello",
    ]
