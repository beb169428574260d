"""What makes pieces join by copying: one clock, one decoder configuration, an IDR in front, every frame there.

The clock: frame n is at `n * step` ticks of 1 / timescale s, exactly n * fps_den / fps_num seconds.
"""

import uuid
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import xxhash
from av.error import FFmpegError

from infra.objects import job_key
from schemas.records import VideoFormat
from streams.encoding.bitstream import begins_here, codec_string, is_config

MP4 = "video/mp4"
_UNSEEN: Any = [{"skip_frame": "all", "threads": "1"}]
"""Opening a file decodes its first pictures to learn what its header says as well: most of the time of an examination."""
_DECODERS = {"libdav1d": "av1"}
"""Some demuxed streams are named after the decoder that PyAV takes for them."""


class CodedVideoError(Exception):
    """A file that is not a whole piece."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Ticks of a track. Frame rates are scaled up by 1000, as players expect; those over 1001 have it in the numerator."""

    timescale: int
    step: int

    @property
    def tick_s(self) -> Fraction:
        """Seconds."""
        return Fraction(1, self.timescale)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodedVideo:
    """A video file as its packets show it."""

    codec: str
    """`h264`, `hevc` or `av1`."""
    width: int
    height: int
    frames: int
    config: bytes
    """The avcC, hvcC or av1C."""
    idr_frames: tuple[int, ...]
    """Positions of IDRs in the order of display."""
    delay_frames: int
    """How far decoding runs ahead of display."""

    @property
    def codec_string(self) -> str:
        """As in RFC 6381."""
        return codec_string(self.codec, self.config)

    @property
    def config_digest(self) -> str:
        """`xxh3:...` of the decoder configuration: equal for all pieces of a video."""
        return f"xxh3:{xxhash.xxh3_128_hexdigest(self.config)}"


def clock_of(size: VideoFormat) -> Clock:
    """Of a track with that frame rate."""
    scale = 1000 if size.fps_num < 1000 else 1
    return Clock(timescale=size.fps_num * scale, step=size.fps_den * scale)


def try_key(job_id: str, kind: str, name: str, suffix: str = ".mp4") -> str:
    """A new object key for a job's file. Two tries of one request never share a key: neither overwrites what the other has
    announced, and a sweep can tell by its age whether an object may still be announced.
    """
    return job_key(job_id, kind, f"{name}-{uuid.uuid4().hex[:8]}{suffix}")


def examine(path: Path, clock: Clock, codec: str = "h264") -> CodedVideo:
    """What is in an MP4 with one video track of that codec, from its packets alone.

    Raises: CodedVideoError unless its frames are at 0, 1, 2, ... steps of the clock and the first one is an IDR.
    """
    try:
        with av.open(str(path), "r", format="mp4", stream_options=_UNSEEN) as container:
            stream = container.streams.video[0]
            config = bytes(stream.codec_context.extradata or b"")
            found = stream.codec_context.name
            if _DECODERS.get(found, found) != codec or not is_config(codec, config):
                raise CodedVideoError(f"not {codec} in MP4: {found}")
            packets = [
                (packet.pts, bool(packet.is_keyframe) and begins_here(codec, config, bytes(packet)))
                for packet in container.demux(stream)
                if packet.size
            ]
            if codec == "hevc" and stream.codec_context.codec_tag != "hvc1":
                raise CodedVideoError(f"{stream.codec_context.codec_tag}, not hvc1: players of Apple do not take it")
            ticks, size = stream.time_base, (stream.codec_context.width, stream.codec_context.height)
    except (FFmpegError, IndexError) as error:
        raise CodedVideoError(f"cannot be read: {error}") from error
    if ticks != clock.tick_s:
        raise CodedVideoError(f"clock of {ticks} s, not {clock.tick_s}")
    if sorted(pts if pts is not None else -1 for pts, _ in packets) != [n * clock.step for n in range(len(packets))]:
        raise CodedVideoError("frames are not at equal steps from 0 on")
    order = [(pts or 0) // clock.step for pts, _ in packets]
    idr_frames = tuple(sorted(frame for frame, (_, idr) in zip(order, packets, strict=True) if idr))
    if order[:1] != [0] or idr_frames[:1] != (0,):
        raise CodedVideoError("does not begin with an IDR")
    delay = max(decoded - shown for decoded, shown in enumerate(order))
    return CodedVideo(
        codec=codec,
        width=size[0],
        height=size[1],
        frames=len(order),
        config=config,
        idr_frames=idr_frames,
        delay_frames=delay,
    )
