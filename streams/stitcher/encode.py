"""Pictures to files: the piece, once, so that it joins with its neighbours by copying, its lossless reference, its renditions."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import cast

import av
from av.video.reformatter import Interpolation, VideoReformatter
from av.video.stream import VideoStream

from schemas.errors import BadInputError
from schemas.records import Encode, VideoFormat
from streams.encoding.coding import Coding
from streams.encoding.priority import ordinary_threads
from streams.mp4 import clock_of
from streams.stitcher.picture import Frame

_BT709 = 1
"""Primaries, transfer and matrix in ISO/IEC 23091-2 alike."""
_LIMITED = 1
"""`AVCOL_RANGE_MPEG`."""
_PRESETS = ("ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower", "veryslow")
_MAX_CRF = 51
REFERENCE = {"preset": "ultrafast", "qp": "0"}
"""x264 without loss: decodes ten times as fast as FFV1."""


def h264(options: Mapping[str, str]) -> Coding:
    """Of the piece and its reference."""
    return Coding(encoder="libx264", pixel_format="yuv420p", options=options, tag="avc1")


def piece_options(encode: Encode) -> dict[str, str]:
    """One string for all pieces of a job. With it the decoder configuration is the same whatever is seen and whatever the CRF.

    Raises: BadInputError if the encoder would not take it.
    """
    if encode.codec != "h264":
        raise BadInputError(field="encode.codec", rule="unknown_codec", message=f"{encode.codec!r}; there is h264")
    if encode.preset not in _PRESETS:
        raise BadInputError(
            field="encode.preset", rule="unknown_preset", message=f"{encode.preset!r}; there are {_PRESETS}"
        )
    if not 0 <= encode.crf <= _MAX_CRF or encode.gop_frames < 1:
        raise BadInputError(field="encode", rule="range", message="crf is 0 to 51, gop_frames at least 1")
    gop = encode.gop_frames
    return {
        "preset": encode.preset,
        "crf": str(encode.crf),
        "x264-params": f"keyint={gop}:min-keyint={gop}:scenecut=0:open-gop=0:bframes=2:stitchable=1",
    }


class Encoder(AbstractContextManager["Encoder"]):
    """One MP4 file. One thread: the bytes do not depend on the number of cores.

    Pictures of another size are resampled (Lanczos), 8 bits become 10 where the coding wants it.
    """

    def __init__(self, path: Path, size: VideoFormat, coding: Coding, now_us: Callable[[], int]) -> None:
        self._clock = clock_of(size)
        self._now_us = now_us
        self._written = 0
        self._encoded_us: dict[int, int] = {}
        self._resampler = VideoReformatter()
        mux = {"video_track_timescale": str(self._clock.timescale)}
        self._container = av.open(str(path), "w", format="mp4", options=mux)
        rate = Fraction(size.fps_num, size.fps_den)
        stream = self._container.add_stream(coding.encoder, rate=rate, options=dict(coding.options))
        self._stream = cast(VideoStream, stream)
        self._shape = (size.width, size.height, coding.pixel_format)
        _describe(self._stream, size, self._clock.tick_s, coding)

    def write(self, picture: Frame) -> None:
        """The next picture, [H * 3 / 2, W] uint8 (I420)."""
        if not self._written:
            with ordinary_threads():
                self._container.start_encoding()
        frame = av.VideoFrame.from_ndarray(picture, format="yuv420p")
        if (frame.width, frame.height, frame.format.name) != self._shape:
            frame = self._resampler.reformat(frame, *self._shape, interpolation=Interpolation.LANCZOS)
        frame.pts, frame.time_base = self._written * self._clock.step, self._clock.tick_s
        self._written += 1
        self._mux(frame)

    def finish(self) -> tuple[int, ...]:
        """Close the file. When each picture came out of the encoder, in microseconds, in the order of display."""
        self._mux(None)
        self._container.close()
        return tuple(self._encoded_us[n] for n in range(self._written))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._container.close()

    def _mux(self, frame: av.VideoFrame | None) -> None:
        for packet in self._stream.encode(frame):
            self._encoded_us[(packet.pts or 0) // self._clock.step] = self._now_us()
            self._container.mux(packet)


def _describe(stream: VideoStream, size: VideoFormat, tick_s: Fraction, coding: Coding) -> None:
    context = stream.codec_context
    context.width, context.height, context.pix_fmt = size.width, size.height, coding.pixel_format
    context.codec_tag = coding.tag
    context.sample_aspect_ratio = Fraction(1, 1)
    context.color_range = _LIMITED
    context.color_primaries = context.color_trc = context.colorspace = _BT709
    context.time_base = tick_s
    context.thread_count = 1
