"""What is added is what it says it is, all of it: told by its bytes, not by its name."""

import subprocess
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from infra.assets import media
from infra.assets.media import MediaError, read_media
from tests.assets.files import SUBRIP, WEBVTT, card, tone

SOUNDS = {
    "a.flac": ("audio/flac", []),
    "a.mp3": ("audio/mpeg", []),
    "bare.mp3": ("audio/mpeg", ["-id3v2_version", "0", "-write_xing", "0"]),
    "a.ogg": ("audio/ogg", ["-c:a", "libopus"]),
    "a.m4a": ("audio/mp4", []),
}


def converted(source: Path, target: Path, *options: str) -> Path:
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-loglevel", "error", "-i", str(source), *options, str(target)]
    subprocess.run(command, check=True, timeout=30)
    return target


@pytest.mark.parametrize(("name", "kind", "options"), [(n, *said) for n, said in SOUNDS.items()])
def test_sound_is_decoded_to_its_end(name: str, kind: str, options: list[str], tmp_path: Path) -> None:
    found = read_media(converted(tone(tmp_path / "tone.wav", 2.0), tmp_path / name, *options))
    assert found.media_type == kind
    assert found.duration_us == pytest.approx(2_000_000, abs=120_000)


def test_the_name_of_a_file_says_nothing(tmp_path: Path) -> None:
    found = read_media(tone(tmp_path / "picture.png", 1.0))
    assert (found.media_type, found.duration_us) == ("audio/wav", 1_000_000)


@pytest.mark.parametrize(("name", "kind"), [("a.png", "image/png"), ("a.jpg", "image/jpeg"), ("a.webp", "image/webp")])
def test_a_picture_is_decoded(name: str, kind: str, tmp_path: Path) -> None:
    found = read_media(card(tmp_path / name))
    assert (found.media_type, found.width, found.height) == (kind, 64, 36)


@pytest.mark.parametrize(("text", "kind"), [(SUBRIP, "application/x-subrip"), (WEBVTT, "text/vtt")])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_subtitles_are_read_to_the_last(text: str, kind: str, mark: str, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(mark + text, encoding="utf-8")
    found = read_media(path)
    assert (found.media_type, found.duration_us) == (kind, 4_000_000)


def half(path: Path) -> Path:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return path


def noise_card(path: Path) -> Path:
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8)).save(path)
    return path


@pytest.mark.parametrize("name", ["a.wav", "a.flac", "a.m4a", "a.png", "a.jpg", "a.webp"])
def test_half_a_file_is_refused(name: str, tmp_path: Path) -> None:
    whole = tone(tmp_path / "tone.wav", 3.0)
    if name in SOUNDS:
        whole = converted(whole, tmp_path / name)
    elif name != "a.wav":
        whole = noise_card(tmp_path / name)
    with pytest.raises(MediaError, match=r"cut short|does not decode"):
        read_media(half(whole))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "none of"),
        (b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n", "none of"),
        (b"ffconcat version 1.0\nfile 'file:/etc/passwd'\n", "none of"),
        (b"RIFF\0\0\0\0WAVEfmt nothing", "does not decode"),
        (b"fLaC" + bytes(500), "does not decode"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "does not decode"),
        (b"WEBVTT\n\nnothing else\n", "0 lines"),
        (SUBRIP.replace("00:00:03,000", "half past three").encode(), "of 2 lines with times 1 are read"),
        (SUBRIP.replace("00:00:04,000", "00:00:02,000").encode(), "ends before"),
        (SUBRIP.replace("Hello", "\xe4").encode("latin-1"), "UTF-8"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(data: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "file.wav"
    path.write_bytes(data)
    with pytest.raises(MediaError, match=why):
        read_media(path)


def test_there_are_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MediaError, match="at most 8192"):
        read_media(card(tmp_path / "wide.png", 8193, 1))
    monkeypatch.setattr(media, "MAX_SOUND_S", 1.0)
    with pytest.raises(MediaError, match="longer than"):
        read_media(tone(tmp_path / "long.wav", 2.0))
    big = tmp_path / "big.srt"
    big.write_text(SUBRIP * 60_000)
    with pytest.raises(MediaError, match=r"at most 4\.2 as subtitles"):
        read_media(big)


HEADS = [
    b"RIFF\xff\x00\x00\x00WAVEfmt \x10\0\0\0",
    b"RIFF\xff\x00\x00\x00WEBPVP8 ",
    b"fLaC\0\0\0\x22",
    b"OggS\0\2",
    b"ID3\4\0\0",
    b"\xff\xfb\x90\x00",
    b"\0\0\0\x1cftypM4A ",
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    b"\xff\xd8\xff\xe0",
    b"WEBVTT\n\n00:01.000 --> ",
    b"1\n00:00:01,000 --> 00:00:02,000\n",
]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(HEADS), st.binary(max_size=300))
def test_any_bytes_are_an_asset_or_refused_by_name(tmp_path: Path, head: bytes, rest: bytes) -> None:
    path = tmp_path / "any"
    path.write_bytes(head + rest)
    try:
        assert read_media(path).media_type
    except MediaError as error:
        assert "any" in str(error)
