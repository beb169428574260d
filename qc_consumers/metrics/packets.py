"""Packets of a video file without decoding it: time stamps, sizes, IDR pictures, tags. About 18,000 packets a second."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import xxhash
from av.container import InputContainer
from av.error import FFmpegError
from av.video.stream import VideoStream

from qc_consumers.metrics.container import sample_entry_boxes
from qc_consumers.metrics.nal import length_bytes, read_access_unit
from qc_consumers.metrics.sei import Light, Mastering, config_units, hdr_messages, packet_units
from streams.encoding.bitstream import begins_here, is_config


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
    kind: str
    """`I`, `P` or `B`, of the first slice; empty if the codec is neither H.264 nor HEVC."""
    digest: bytes
    """XXH3-128 of the coded bytes."""
    mastering: Mastering | None = None
    light: Light | None = None
    """What an IDR picture of HEVC says of HDR10."""


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
    config: bytes
    """Decoder configuration: avcC or hvcC."""
    packets: tuple[Packet, ...]
    broken: int
    """Packets whose NAL units do not fill them exactly."""
    config_mastering: Mastering | None = None
    config_light: Light | None = None
    """What the decoder configuration says of HDR10."""
    color_boxes: frozenset[str] = frozenset()
    """Of the sample entry: `colr`, `mdcv`, `clli`, ..."""

    @property
    def transfer(self) -> int:
        """Transfer characteristics, ITU-T H.273."""
        return self.color[1]

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
        with av.open(str(path), format="mp4") as container:
            if not container.streams.video:
                raise UnreadableError(f"{path.name}: no video track")
            return _scan(container, container.streams.video[0], sample_entry_boxes(path))
    except (FFmpegError, ValueError) as error:
        raise UnreadableError(f"{path.name}: {error}") from error


def _scan(container: InputContainer, stream: VideoStream, boxes: frozenset[str]) -> PacketScan:
    context = stream.codec_context
    config = context.extradata or b""
    size_bytes = length_bytes(context.name, config)
    mastering, light = hdr_messages(config_units(config)) if context.name == "hevc" else (None, None)
    av1 = is_config("av1", config)
    packets: list[Packet] = []
    broken = 0
    for packet in container.demux(stream):
        if packet.size == 0:
            continue
        data = bytes(packet)
        unit = read_access_unit(data, context.name, size_bytes) if size_bytes else None
        broken += unit is not None and unit.broken
        hdr = (
            hdr_messages(packet_units(data, size_bytes))
            if unit and unit.idr and context.name == "hevc"
            else (None, None)
        )
        packets.append(
            Packet(
                pts=packet.pts or 0,
                dts=packet.dts or 0,
                size_bytes=packet.size,
                keyframe=packet.is_keyframe,
                idr=unit.idr if unit else packet.is_keyframe and (not av1 or begins_here("av1", config, data)),
                kind=unit.kind if unit else "",
                digest=xxhash.xxh3_128_digest(data),
                mastering=hdr[0],
                light=hdr[1],
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
        config=config,
        packets=tuple(packets),
        broken=broken,
        config_mastering=mastering,
        config_light=light,
        color_boxes=boxes,
    )
