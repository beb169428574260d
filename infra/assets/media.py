"""What a file is, by reading all of it: an asset that cannot be used is found when it is added, not when a job needs it.

The format is told from its first bytes and libav is held to it, so that no file is read as a playlist or a script that names
others.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import av
from av.audio.frame import AudioFrame
from av.error import FFmpegError
from PIL import Image

from infra.assets.catalogue import MEDIA_TYPES, AssetKind

MAX_BYTES = {AssetKind.SOUND: 512 << 20, AssetKind.PICTURE: 64 << 20, AssetKind.SUBTITLES: 4 << 20}
MAX_SOUND_S = 7200.0
MAX_SIDE = 8192
MAX_CHANNELS = 8
_SUBRIP = re.compile(rb"(?:\xef\xbb\xbf)?\s*\d+[ \t]*\r?\n\d{1,3}:\d\d:\d\d[,.]\d{1,3}[ \t]*-->")
_HEAD_BYTES = 512
FORMATS = {
    "audio/wav": "wav",
    "audio/flac": "flac",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/mp4": "mp4",
    "text/vtt": "webvtt",
    "application/x-subrip": "srt",
}
"""libav's names."""
_UNTOLD = 0xFFFFFFFF
"""The length in a WAV that was written to a pipe."""
_CUT_SHORT = 0.98
"""Of the length that the header says. Encoders' delays make some difference; a lost half is more."""


class MediaError(Exception):
    """The file is nothing that an asset can be; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """What was found. As in AssetRef."""

    media_type: str
    duration_us: int = 0
    width: int = 0
    height: int = 0


def read_media(path: Path) -> Media:
    """Decode the whole file. Raises: MediaError; OSError."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    media_type = _sniffed(head)
    if media_type is None:
        raise MediaError(f"{path.name} is none of {', '.join(MEDIA_TYPES)}")
    kind, size_bytes = MEDIA_TYPES[media_type], path.stat().st_size
    if size_bytes > MAX_BYTES[kind]:
        raise MediaError(
            f"{path.name} has {size_bytes / 1e6:.1f} MB, at most {MAX_BYTES[kind] / 1e6:.1f} as {kind.value}"
        )
    if media_type == "audio/wav" and size_bytes < int.from_bytes(head[4:8], "little") + 8 < _UNTOLD:
        raise MediaError(f"{path.name} is cut short: {size_bytes} bytes")  # libav goes by what is there
    match kind:
        case AssetKind.SOUND:
            return Media(media_type=media_type, duration_us=_sound_us(path, media_type))
        case AssetKind.SUBTITLES:
            return Media(media_type=media_type, duration_us=_subtitles_us(path, media_type))
        case AssetKind.PICTURE:
            width, height = _picture_size(path)
            return Media(media_type=media_type, width=width, height=height)


def _sniffed(head: bytes) -> str | None:
    match head:
        case _ if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
            return "audio/wav"
        case _ if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
            return "image/webp"
        case _ if head[:4] == b"fLaC":
            return "audio/flac"
        case _ if head[:4] == b"OggS":
            return "audio/ogg"
        case _ if head[:3] == b"ID3" or (head[:1] == b"\xff" and len(head) > 1 and head[1] & 0xE6 == 0xE2):
            return "audio/mpeg"  # the mask: an MPEG frame of layer III
        case _ if head[4:8] == b"ftyp":
            return "audio/mp4"
        case _ if head[:8] == b"\x89PNG\r\n\x1a\n":
            return "image/png"
        case _ if head[:3] == b"\xff\xd8\xff":
            return "image/jpeg"
        case _ if head.removeprefix(b"\xef\xbb\xbf")[:6] == b"WEBVTT":
            return "text/vtt"
        case _ if _SUBRIP.match(head):
            return "application/x-subrip"
        case _:
            return None


def _sound_us(path: Path, media_type: str) -> int:
    """Length of what was decoded. Raises: MediaError."""
    seconds = 0.0
    try:
        with av.open(str(path), "r", format=FORMATS[media_type]) as container:
            if len(container.streams.audio) != 1:
                raise MediaError(f"{path.name} has {len(container.streams.audio)} tracks of sound, not 1")
            stream = container.streams.audio[0]
            if stream.codec_context.channels > MAX_CHANNELS:
                raise MediaError(f"{path.name} has {stream.codec_context.channels} channels, at most {MAX_CHANNELS}")
            said_s = (container.duration or 0) / 1e6
            for frame in container.decode(stream):
                assert isinstance(frame, AudioFrame)  # noqa: S101
                seconds += frame.samples / frame.sample_rate
                if seconds > MAX_SOUND_S:
                    raise MediaError(f"{path.name} is longer than {MAX_SOUND_S:g} s")
    except (FFmpegError, ValueError) as error:
        raise MediaError(f"{path.name} does not decode as {media_type}: {error}") from error
    if not seconds:
        raise MediaError(f"{path.name} has no sound in it")
    if seconds < _CUT_SHORT * said_s:
        raise MediaError(f"{path.name} is cut short: {seconds:.1f} s of {said_s:.1f}")
    return round(seconds * 1e6)


def _picture_size(path: Path) -> tuple[int, int]:
    """Raises: MediaError."""
    try:
        with Image.open(path, formats=("PNG", "JPEG", "WEBP")) as image:
            if max(image.size) > MAX_SIDE:
                raise MediaError(f"{path.name} is {image.width}x{image.height}, at most {MAX_SIDE} on each side")
            image.load()
            return image.size
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise MediaError(f"{path.name} does not decode as a picture: {error}") from error


def _subtitles_us(path: Path, media_type: str) -> int:
    """To the end of the last. Every time code in the file must be that of a subtitle. Raises: MediaError."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        with av.open(str(path), "r", format=FORMATS[media_type]) as container:
            packets = [p for p in container.demux(container.streams.subtitles[0]) if p.pts is not None]
    except (FFmpegError, UnicodeDecodeError, IndexError) as error:
        raise MediaError(f"{path.name} is not read as {media_type} in UTF-8: {error}") from error
    times = [(packet.pts or 0, packet.duration or 0) for packet in packets]
    lines = sum("-->" in line for line in text.splitlines())
    if not times or len(times) != lines:
        raise MediaError(
            f"{path.name}: of {lines} lines with times {len(times)} are read: each is HH:MM:SS,mmm --> HH:MM:SS,mmm"
        )
    if any(start < 0 or length <= 0 for start, length in times):
        raise MediaError(f"{path.name}: a subtitle ends before it begins")
    return max(start + length for start, length in times) * 1000
