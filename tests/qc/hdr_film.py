"""HDR10 files as an encoder makes them, complete or with one thing wrong: real HEVC of 10 bits, and the boxes of its sample entry."""

import struct
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

_ENTRY_BYTES = 8 + 78
"""A visual sample entry before its boxes: ISO 14496-12, 12.1.3."""
_PARENTS = (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsd", b"hvc1")
FRAMES, GOP = 12, 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Hdr:
    """What the encoder is told. Luminance in 0.0001 cd/m2, light levels in cd/m2; empty: nothing is said."""

    primaries: str = "bt2020"
    transfer: str = "smpte2084"
    matrix: str = "bt2020nc"
    color_range: str = "limited"
    bits: int = 10
    display: str = "G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(10000000,1)"
    light: str = "1000,400"
    boxes: tuple[str, ...] = ("mdcv", "clli")
    headers_again: bool = True
    """The messages stand before every IDR picture, or only in the decoder configuration."""


def hdr_film(path: Path, hdr: Hdr) -> Path:
    """A short film with a slow gradient."""
    coded = path.with_suffix(".coded.mp4")
    with av.open(str(coded), "w", format="mp4") as container:
        stream = container.add_stream(
            "libx265", rate=24, options={"x265-params": _parameters(hdr), "preset": "ultrafast"}
        )
        stream.width, stream.height = 64, 64
        stream.pix_fmt = "yuv420p10le" if hdr.bits == 10 else "yuv420p"
        stream.codec_tag = "hvc1"
        stream.time_base = stream.codec_context.time_base = Fraction(1, 24)
        context = stream.codec_context
        for name, value in _tags(hdr).items():
            setattr(context, name, value)
        for number in range(FRAMES):
            luma = np.add.outer(np.arange(64), np.arange(64)) + 4 * number
            picture = np.repeat(luma[..., None], 3, axis=2).astype(np.uint8)
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24").reformat(format=stream.pix_fmt)
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    path.write_bytes(with_boxes(coded.read_bytes(), [b for name, b in _BOXES.items() if name in hdr.boxes]))
    return path


def with_boxes(data: bytes, boxes: list[bytes]) -> bytes:
    """The file with more boxes in its first video sample entry; its index lies behind the media data, so that nothing there moves."""
    added = b"".join(boxes)
    at, end, grown = 0, len(data), bytearray(data)
    for kind in _PARENTS:
        at, end = _find(data, kind, at, end)
        grown[at : at + 4] = struct.pack(">I", int.from_bytes(grown[at : at + 4], "big") + len(added))
        at += _ENTRY_BYTES if kind == b"hvc1" else 16 if kind == b"stsd" else 8
    assert data.index(b"mdat") < data.index(b"moov")
    grown[end:end] = added
    return bytes(grown)


def _find(data: bytes, kind: bytes, at: int, end: int) -> tuple[int, int]:
    while at + 8 <= end:
        size = int.from_bytes(data[at : at + 4], "big")
        if data[at + 4 : at + 8] == kind:
            return at, at + size
        at += size
    raise ValueError(f"no {kind!r} box")


def _parameters(hdr: Hdr) -> str:
    said = {
        "keyint": GOP,
        "min-keyint": GOP,
        "scenecut": 0,
        "open-gop": 0,
        "bframes": 0,
        "log-level": "none",
        "pools": "none",
        "frame-threads": 1,
        "repeat-headers": int(hdr.headers_again),
        "colorprim": hdr.primaries,
        "transfer": hdr.transfer,
        "colormatrix": hdr.matrix,
        "range": hdr.color_range,
        "master-display": hdr.display,
        "max-cll": hdr.light,
    }
    return ":".join(f"{name}={value}" for name, value in said.items() if value != "")


def _tags(hdr: Hdr) -> dict[str, int]:
    """As H.273 numbers them: what the muxer writes into `colr`."""
    numbers = {"bt709": 1, "bt2020": 9, "bt2020nc": 9, "smpte2084": 16, "arib-std-b67": 18}
    return {
        "color_primaries": numbers[hdr.primaries],
        "color_trc": numbers[hdr.transfer],
        "colorspace": numbers[hdr.matrix],
        "color_range": 1 if hdr.color_range == "limited" else 2,
    }


_BOXES = {
    "mdcv": struct.pack(">I4s10H", 32, b"mdcv", 13250, 34500, 7500, 3000, 34000, 16000, 15635, 16450, 0, 0)[:24]
    + struct.pack(">II", 10_000_000, 1),
    "clli": struct.pack(">I4sHH", 12, b"clli", 1000, 400),
}
