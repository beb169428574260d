"""The boxes of an MP4 file (ISO 14496-12), without the media data: brand, order, clocks."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

_CONTAINERS = {b"moov", b"trak", b"mdia", b"edts"}
_TO_SAMPLES = {*_CONTAINERS, b"minf", b"stbl"}
_SOUND = "soun"
_VIDEO_ENTRY_BYTES = 78
"""Of a visual sample entry before its boxes: ISO 14496-12, 12.1.3."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """One track as its header describes it."""

    handler: str
    """`vide`, `soun`, ..."""
    timescale: int
    """Ticks a second."""
    duration_us: int
    """Of what is heard or seen: an encoder's delay, which an edit list of sound takes back, is not in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """What the boxes say. A file that is no MP4 has no brand and no tracks."""

    brand: str
    faststart: bool
    """The index lies before the media data: playing can start before all of it is there."""
    tracks: tuple[Track, ...]


def scan_container(path: Path) -> Container:
    """Read the box headers of `path`. A file that ends too early gives what was there."""
    brand, order, handlers, clocks, delays = "", list[bytes](), list[str](), list[tuple[int, int]](), dict[int, int]()
    with path.open("rb") as file:
        for kind, size in _boxes(file, path.stat().st_size, _CONTAINERS):
            order.append(kind)
            match kind:
                case b"ftyp":
                    brand = file.read(4).decode("latin-1").strip()
                case b"elst":  # it stands before the mdhd of its track
                    delays[len(clocks)] = _delay(file.read(size))
                case b"mdhd":
                    clocks.append(_clock(file.read(size)))
                case b"hdlr" if len(handlers) < len(clocks):
                    handlers.append(file.read(12)[8:12].decode("latin-1"))
                case _:
                    pass
    tracks = [
        _track(handler, timescale, ticks, delays.get(index, 0))
        for index, (handler, (timescale, ticks)) in enumerate(zip(handlers, clocks, strict=False))
    ]
    faststart = b"moov" in order and b"mdat" in order and order.index(b"moov") < order.index(b"mdat")
    return Container(brand=brand, faststart=faststart, tracks=tuple(tracks))


def sample_entry_boxes(path: Path) -> frozenset[str]:
    """Names of the boxes in the first sample entry of the first track: `avcC`, `colr`, `mdcv`, ... None if it is no MP4."""
    with path.open("rb") as file:
        for kind, size in _boxes(file, path.stat().st_size, _TO_SAMPLES):
            if kind == b"stsd":
                begin = file.tell() + 8 + 8 + _VIDEO_ENTRY_BYTES
                entry = int.from_bytes(file.read(12)[8:], "big")
                end = min(begin - 8 - _VIDEO_ENTRY_BYTES + entry, begin + size)
                return frozenset(name.decode("latin-1") for name, _ in _boxes(file, end, set(), begin))
    return frozenset()


def _boxes(file: BinaryIO, end: int, containers: set[bytes], at: int = 0) -> Iterator[tuple[bytes, int]]:
    """Kind and payload size of each box, depth first; the file is at the payload. Leaves are skipped after each step."""
    while at + 8 <= end:
        file.seek(at)
        size, kind = struct.unpack(">I4s", file.read(8))
        header = 8
        if size == 1:
            size, header = struct.unpack(">Q", file.read(8))[0], 16
        if size == 0:
            size = end - at
        if size < header:
            return
        yield kind, min(size, end - at) - header
        at += header if kind in containers else size


def _track(handler: str, timescale: int, ticks: int, delay: int) -> Track:
    heard = ticks - delay if handler == _SOUND else ticks
    return Track(
        handler=handler, timescale=timescale, duration_us=round(heard * 1_000_000 / timescale) if timescale else 0
    )


def _delay(elst: bytes) -> int:
    """Ticks of the media that the first edit with media in it leaves out."""
    layout = ">QqI" if elst[:1] == b"\1" else ">IiI"
    size = struct.calcsize(layout)
    edits = (struct.unpack_from(layout, elst, at)[1] for at in range(8, len(elst) - size + 1, size))
    return next((media_time for media_time in edits if media_time > 0), 0)


def _clock(mdhd: bytes) -> tuple[int, int]:
    """Timescale and duration of a media header, version 0 or 1."""
    layout, at = (">IQ", 20) if mdhd[:1] == b"\1" else (">II", 12)
    if len(mdhd) < at + struct.calcsize(layout):
        return 0, 0
    timescale, ticks = struct.unpack_from(layout, mdhd, at)
    return timescale, ticks
