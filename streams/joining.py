"""Pieces to one file: their packets copied, and tracks beside them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import merge
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, TypeAlias

import av
from av.container import OutputContainer
from av.packet import Packet
from av.video.stream import VideoStream

from streams.mp4 import Clock, CodedVideo

Packets: TypeAlias = "Iterator[Packet[Any]]"
Beside: TypeAlias = Callable[[OutputContainer], Packets]
"""Adds a track to a file at once, and gives its packets in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece on disk, examined, and its first frame in the video."""

    path: Path
    start_frame: int
    coded: CodedVideo


def join(parts: Sequence[Part], clock: Clock, path: Path, beside: Sequence[Beside] = ()) -> None:
    """Write the parts' packets as one MP4 with the index in front (faststart), and those of other tracks when they are due.

    Frame n is shown at exactly n steps. Decoding runs ahead by the longest delay of any part, as a constant offset: an edit
    list takes it back, so that the first frame is at 0.
    """
    options = {"movflags": "+faststart", "video_track_timescale": str(clock.timescale)}
    with av.open(str(path), "w", format="mp4", options=options) as output:
        pictures = _pictures(output, parts, clock)
        first = next(pictures)  # with its track, which is the first
        tracks = [chain([first], pictures), *(track(output) for track in beside)]
        for packet in merge(*tracks, key=_due):
            output.mux(packet)


def longest_gop(parts: Sequence[Part]) -> int:
    """Frames from one IDR to the next, or to the end, at most."""
    idr_frames = [part.start_frame + frame for part in parts for frame in part.coded.idr_frames]
    end = parts[-1].start_frame + parts[-1].coded.frames
    return max(after - before for before, after in pairwise([*idr_frames, end]))


def _pictures(output: OutputContainer, parts: Sequence[Part], clock: Clock) -> Packets:
    delay = max(part.coded.delay_frames for part in parts)
    stream: VideoStream | None = None
    decoded = 0
    for part in parts:
        with av.open(str(part.path), format="mp4") as container:
            source = container.streams.video[0]
            stream = stream or _copied(output, source, part.coded.codec)
            for packet in container.demux(source):
                if not packet.size:  # the last one, which flushes decoders
                    continue
                packet.pts = (packet.pts or 0) + part.start_frame * clock.step
                packet.dts = (decoded - delay) * clock.step
                packet.duration = clock.step
                packet.stream = stream
                yield packet
                decoded += 1


def _copied(output: OutputContainer, source: VideoStream, codec: str) -> VideoStream:
    """A track for the packets of `source`. PyAV names HEVC hev1, and has no encoder of the name of AV1's decoder."""
    stream = output.add_stream_from_template(source, opaque=codec == "av1")
    stream.codec_context.codec_tag = source.codec_context.codec_tag
    return stream


def _due(packet: "Packet[Any]") -> Fraction:
    """When it is to be decoded, in seconds."""
    return (packet.dts or 0) * Fraction(packet.time_base or 1)
