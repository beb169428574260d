"""Files of subtitles: SubRip and WebVTT in, WebVTT out."""

import html
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import av

from infra.assets.media import FORMATS
from schemas.records import Caption, Captions
from streams.fetching import AssetFiles

WEBVTT = "text/vtt"
_MARKUP = re.compile(r"<[^<>]*>|\{\\[^{}]*\}")
_MS_US = 1000


def lines_of(captions: Captions, assets: AssetFiles, folder: Path) -> tuple[Caption, ...]:
    """In the order of time, none before the end of the one in front of it. Raises: BlobError if the file is lost."""
    if captions.asset is None:
        return captions.lines
    path = assets.path_of(captions.asset, folder)
    return tuple(_parted(sorted(_read(path, captions.asset.content.media_type), key=lambda line: line.start_us)))


def webvtt(lines: Iterable[Caption]) -> str:
    """The text of a WebVTT file. What could be markup or the end of a cue is none."""
    cues = (f"{_time(line.start_us)} --> {_time(line.end_us)}\n{_escaped(line.text)}\n" for line in lines)
    return "\n".join(["WEBVTT\n", *cues])


def _read(path: Path, media_type: str) -> Iterator[Caption]:
    with av.open(str(path), "r", format=FORMATS[media_type]) as container:
        for packet in container.demux(container.streams.subtitles[0]):
            if packet.pts is None or not packet.duration:
                continue
            text = _MARKUP.sub("", bytes(packet).decode(errors="replace"))
            text = html.unescape(text) if media_type == WEBVTT else text
            if text.strip():
                start_us = packet.pts * _MS_US
                yield Caption(start_us=start_us, end_us=start_us + packet.duration * _MS_US, text=text.strip())


def _parted(lines: list[Caption]) -> Iterator[Caption]:
    """Those that overlap, one after the other: a track shows one at a time."""
    for line, after in zip(lines, [*lines[1:], None], strict=True):
        end_us = min(line.end_us, after.start_us) if after else line.end_us
        if end_us > line.start_us:
            yield Caption(start_us=line.start_us, end_us=end_us, text=line.text)


def _time(time_us: int) -> str:
    seconds, ms = divmod(round(time_us / 1000), 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{ms:03}"


def _escaped(text: str) -> str:
    lines = (line for line in text.splitlines() if line.strip())
    return html.escape("\n".join(lines), quote=False)
