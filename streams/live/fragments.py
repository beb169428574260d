"""A piece as a fragment of an fMP4 stream (ISO/IEC 14496-12, 8.8; CMAF, ISO/IEC 23000-19): its packets are copied.

Frame n of the video is decoded as the n-th and shown at n steps of the clock: composition offsets may be negative (trun version 1,
`cmf2`), so there is no edit list, and every fragment continues the one before without a gap.
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import av
import xxhash

from streams.encoding.bitstream import codec_string
from streams.mp4 import Clock, CodedVideo

_FLAGS = "empty_moov+default_base_moof+frag_custom+negative_cts_offsets+skip_trailer"
_CONTAINERS = frozenset({b"moof", b"traf"})
_DECODERS = {"libdav1d": "av1"}


class FragmentError(Exception):
    """The muxer wrote something else than one fragment with a 64-bit decode time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """The header that all fragments of a stream share, and the fragment."""

    init: bytes
    media: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What an init segment says."""

    config_digest: str
    codec_string: str
    width: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """Where a box is: `begin` is its first byte, `body` the first behind its header."""

    kind: bytes
    begin: int
    body: int
    end: int


def fragment(path: Path, coded: CodedVideo, clock: Clock, *, number: int, start_frame: int) -> Fragment:
    """The piece of that file as the `number`-th fragment (from 0), shown from `start_frame` on. Raises: FragmentError."""
    data = bytearray(_muxed(path, coded, clock))
    found = list(boxes(data))
    moofs = [box for box in found if box.kind == b"moof"]
    decode_times = [box for box in found if box.kind == b"tfdt"]
    sequence = next((box for box in found if box.kind == b"mfhd"), None)
    if len(moofs) != 1 or len(decode_times) != 1 or sequence is None or data[decode_times[0].body] != 1:
        raise FragmentError(f"{path.name}: {len(moofs)} fragments, {len(decode_times)} decode times")
    at = decode_times[0].body + 4
    data[at : at + 8] = (start_frame * clock.step).to_bytes(8)
    at = sequence.body + 4
    data[at : at + 4] = (number + 1).to_bytes(4)
    return Fragment(init=bytes(data[: moofs[0].begin]), media=bytes(data[moofs[0].begin :]))


def header(init: bytes) -> Header:
    """What an init segment declares."""
    with av.open(io.BytesIO(init), format="mp4") as container:
        context = container.streams.video[0].codec_context
        config = bytes(context.extradata or b"")
        codec = _DECODERS.get(context.name, context.name)
        return Header(
            config_digest=f"xxh3:{xxhash.xxh3_128_hexdigest(config)}",
            codec_string=codec_string(codec, config),
            width=context.width,
            height=context.height,
        )


def boxes(data: bytes | bytearray, begin: int = 0, end: int | None = None) -> Iterator[Box]:
    """The boxes in order, those inside `moof` and `traf` behind the box that they are in."""
    end = len(data) if end is None else end
    while begin + 8 <= end:
        size, body = int.from_bytes(data[begin : begin + 4]), begin + 8
        if size == 1:
            size, body = int.from_bytes(data[body : body + 8]), begin + 16
        if size < body - begin or begin + size > end:
            raise FragmentError(f"a box of {size} bytes at {begin} of {end}")
        box = Box(kind=bytes(data[begin + 4 : begin + 8]), begin=begin, body=body, end=begin + size)
        yield box
        if box.kind in _CONTAINERS:
            yield from boxes(data, box.body, box.end)
        begin += size


def _muxed(path: Path, coded: CodedVideo, clock: Clock) -> bytes:
    """Header and one fragment that begins at 0. The muxer wants packets decoded before they are shown; the flag takes that back."""
    written = io.BytesIO()
    options = {"movflags": _FLAGS, "video_track_timescale": str(clock.timescale)}
    with av.open(str(path), format="mp4") as source, av.open(written, "w", format="mp4", options=options) as output:
        stream = source.streams.video[0]
        # PyAV names HEVC hev1, and has no encoder of the name of AV1's decoder.
        copied = output.add_stream_from_template(stream, opaque=coded.codec == "av1")
        copied.codec_context.codec_tag = stream.codec_context.codec_tag
        decoded = 0
        for packet in source.demux(stream):
            if not packet.size:
                continue
            packet.dts = (decoded - coded.delay_frames) * clock.step
            packet.duration = clock.step
            packet.stream = copied
            output.mux(packet)
            decoded += 1
    return written.getvalue()
