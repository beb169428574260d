"""Packets of a video file without decoding it: time stamps, sizes, IDR pictures, tags. About 18,000 packets a second."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
from av.container import InputContainer
from av.error import FFmpegError
from av.video.stream import VideoStream

_VCL = {"h264": range(1, 6), "hevc": range(32)}
_IDR = {"h264": {5}, "hevc": {19, 20}}


class UnreadableError(Exception):
    """The file is no video that the demuxer can open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    """One coded frame. Times are ticks of the stream's time base."""

    pts: int
    dts: int
    size_bytes: int
    keyframe: bool
    """What the container says."""
    idr: bool
    """What the bitstream says: a decoder can start here and nothing after it refers to anything before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PacketScan:
    """The video track of a file, packets in decoding order."""

    codec: str
    width: int
    height: int
    pixel_format: str
    color: tuple[int, int, int, int]
    """Primaries, transfer, matrix (ITU-T H.273) and range (1: limited) as tagged."""
    square_pixels: bool
    time_base: Fraction
    packets: tuple[Packet, ...]
    broken: int
    """Packets whose NAL units do not fill them exactly."""

    def presented(self) -> list[Packet]:
        """The packets in the order in which they are shown."""
        return sorted(self.packets, key=lambda packet: packet.pts)

    def step_errors_s(self, fps: Fraction) -> list[Fraction]:
        """How far each step from one shown frame to the next is off, exactly."""
        return [abs((b.pts - a.pts) * self.time_base - 1 / fps) for a, b in pairwise(self.presented())]

    def gops(self) -> list[tuple[int, int]]:
        """First shown frame and length of each run that begins with an IDR picture."""
        shown = self.presented()
        starts = [frame for frame, packet in enumerate(shown) if packet.idr]
        return [(first, after - first) for first, after in pairwise([*starts, len(shown)])]


def scan_packets(path: Path) -> PacketScan:
    """Read every packet of the video track. Raises: UnreadableError."""
    try:
        with av.open(str(path)) as container:
            if not container.streams.video:
                raise UnreadableError(f"{path.name}: no video track")
            return _scan(container, container.streams.video[0])
    except (FFmpegError, ValueError) as error:
        raise UnreadableError(f"{path.name}: {error}") from error


def _scan(container: InputContainer, stream: VideoStream) -> PacketScan:
    context = stream.codec_context
    length_bytes = _length_bytes(context.name, context.extradata or b"")
    packets: list[Packet] = []
    broken = 0
    for packet in container.demux(stream):
        if packet.size == 0:
            continue
        units = list(_nal_types(bytes(packet), context.name, length_bytes)) if length_bytes else []
        broken += None in units
        coded = [unit for unit in units if unit in _VCL.get(context.name, ())]
        packets.append(
            Packet(
                pts=packet.pts or 0,
                dts=packet.dts or 0,
                size_bytes=packet.size,
                keyframe=packet.is_keyframe,
                idr=all(unit in _IDR[context.name] for unit in coded) if coded else packet.is_keyframe,
            )
        )
    aspect = stream.sample_aspect_ratio
    return PacketScan(
        codec=context.name,
        width=context.width,
        height=context.height,
        pixel_format=context.pix_fmt or "",
        color=(
            int(context.color_primaries),
            int(context.color_trc),
            int(context.colorspace),
            int(context.color_range),
        ),
        square_pixels=aspect is None or aspect in (0, 1),
        time_base=stream.time_base or Fraction(1),
        packets=tuple(packets),
        broken=broken,
    )


def _length_bytes(codec: str, config: bytes) -> int:
    """Size of the length before each NAL unit, from avcC (ISO 14496-15, 5.3.3.1) or hvcC (8.3.3.1); 0: none."""
    if codec == "h264" and len(config) > 4 and config[0] == 1:
        return (config[4] & 3) + 1
    if codec == "hevc" and len(config) > 21 and config[0] == 1:
        return (config[21] & 3) + 1
    return 0


def _nal_types(data: bytes, codec: str, length_bytes: int) -> Iterator[int | None]:
    """The type of each NAL unit; None where the lengths run past the packet."""
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + length_bytes], "big")
        at += length_bytes
        if size == 0 or at + size > len(data):
            yield None
            return
        yield data[at] & 0x1F if codec == "h264" else (data[at] >> 1) & 0x3F
        at += size
