"""One decoding pass over a file: are the frames clean, how bright are they, what do the detectors say."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import av
import numpy as np
from av.error import FFmpegError
from av.video.frame import PictureType, VideoFrame

from qc_consumers.detectors import Detector, Luma, Picture

_DECODER = {"err_detect": "explode"}
"""The decoder reports what it would otherwise hide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """What came out of the decoder, one element per frame in the order of presentation."""

    luma: tuple[float, ...]
    """Mean, 0 to 255."""
    luma_diff: tuple[float | None, ...]
    """Mean absolute difference to the frame before; None for the first."""
    picture_types: tuple[str, ...]
    """`I`, `P` or `B`."""
    corrupt: tuple[int, ...]
    """Frames with errors."""
    errors: tuple[str, ...]
    """What the decoder refused, with the index of the frame it had reached."""


def watch(path: Path, detectors: Sequence[Detector], *, step: int, threads: int) -> Pictures:
    """Decode all of `path` and show every frame to the detectors, each `step`-th pixel of each `step`-th row.

    An error of the decoder is evidence, not an exception: the pass goes on with the next packet.
    """
    luma: list[float] = []
    luma_diff: list[float | None] = []
    types: list[str] = []
    corrupt: list[int] = []
    errors: list[str] = []
    previous: Luma | None = None
    for frame in _frames(path, threads, errors, types):
        picture = _picture(len(types), frame, previous, step)
        for detector in detectors:
            detector.process_frame(picture)
        if frame.is_corrupt:
            corrupt.append(picture.frame)
        luma.append(picture.mean)
        luma_diff.append(picture.diff)
        types.append(PictureType(frame.pict_type).name)
        previous = picture.luma
    return Pictures(
        luma=tuple(luma),
        luma_diff=tuple(luma_diff),
        picture_types=tuple(types),
        corrupt=tuple(corrupt),
        errors=tuple(errors),
    )


def _frames(path: Path, threads: int, errors: list[str], reached: list[str]) -> Iterator[VideoFrame]:
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        stream.codec_context.thread_count = threads
        stream.codec_context.options = _DECODER
        packets = container.demux(stream)
        while True:
            try:
                packet = next(packets, None)
                if packet is None:
                    return
                yield from packet.decode()
            except FFmpegError as error:
                errors.append(f"near frame {len(reached)}: {error.strerror}")


def _picture(index: int, frame: VideoFrame, previous: Luma | None, step: int) -> Picture:
    luma = _luma(frame, step)
    if previous is None or previous.shape != luma.shape:
        return Picture(frame=index, luma=luma, mean=float(luma.mean()), diff=None)
    change = np.maximum(luma, previous) - np.minimum(luma, previous)
    return Picture(frame=index, luma=luma, mean=float(luma.mean()), diff=float(change.mean()))


def _luma(frame: VideoFrame, step: int) -> Luma:
    plane = frame.planes[0]
    buffer = cast("memoryview", plane)
    bits = frame.format.components[0].bits
    if bits == 8:
        rows = np.frombuffer(buffer, np.uint8).reshape(plane.height, plane.line_size)
        return np.ascontiguousarray(rows[::step, : plane.width : step])
    deep = np.frombuffer(buffer, np.uint16).reshape(plane.height, plane.line_size // 2)
    return (deep[::step, : plane.width : step] >> (bits - 8)).astype(np.uint8)
