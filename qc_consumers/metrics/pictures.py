"""One decoding pass over a file: are the frames clean, how bright are they, what do the detectors say."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import av
import numpy as np
from av.error import FFmpegError
from av.video.frame import VideoFrame

from qc_consumers.detectors import Luma, Reel, Watcher

_DECODER = {"err_detect": "explode"}
"""The decoder reports what it would otherwise hide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """What came out of the decoder, one element per frame in the order of presentation."""

    luma: tuple[float, ...]
    """Mean, 0 to 255."""
    luma_diff: tuple[float | None, ...]
    """Mean absolute difference to the frame before; None for the first."""
    corrupt: tuple[int, ...] = ()
    """Frames with errors."""
    errors: tuple[str, ...] = ()
    """What the decoder refused, with the index of the frame it had reached."""


def watch(path: Path, watchers: Sequence[Watcher], *, step: int, threads: int) -> Pictures:
    """Decode all of `path` and show every frame to the watchers, each `step`-th pixel of each `step`-th row.

    An error of the decoder is evidence, not an exception: the pass goes on with the next packet.
    """
    reel = Reel()
    corrupt: list[int] = []
    errors: list[str] = []
    for frame in _frames(path, threads, errors, reel):
        picture = reel.next(_plane(frame, 0, step), np.stack([_plane(frame, plane, step) for plane in (1, 2)]))
        for watcher in watchers:
            watcher.process_frame(picture)
        if frame.is_corrupt:
            corrupt.append(picture.frame)
    return Pictures(
        luma=tuple(reel.levels.luma),
        luma_diff=tuple(reel.levels.luma_diff),
        corrupt=tuple(corrupt),
        errors=tuple(errors),
    )


def _frames(path: Path, threads: int, errors: list[str], reel: Reel) -> Iterator[VideoFrame]:
    with av.open(str(path), format="mp4") as container:
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
                errors.append(f"near frame {len(reel.levels.luma)}: {error.strerror}")


def _plane(frame: VideoFrame, index: int, step: int) -> Luma:
    """Y, U or V, sampled."""
    plane = frame.planes[index]
    buffer = cast("memoryview", plane)
    bits = frame.format.components[0].bits
    if bits == 8:
        rows = np.frombuffer(buffer, np.uint8).reshape(plane.height, plane.line_size)
        return np.ascontiguousarray(rows[::step, : plane.width : step])
    deep = np.frombuffer(buffer, np.uint16).reshape(plane.height, plane.line_size // 2)
    return (deep[::step, : plane.width : step] >> (bits - 8)).astype(np.uint8)
