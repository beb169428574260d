"""Frames of a video file at a job's rate and size."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import av
import torch
from av.container import InputContainer
from av.error import FFmpegError
from av.video.frame import VideoFrame
from torch import Tensor

_FORMATS = {".mp4": "mov", ".mov": "mov", ".mkv": "matroska", ".webm": "matroska"}
"""Named, so that no file is taken for a playlist that leads to other files."""
_ASPECT = 0.02


class FootageError(Exception):
    """The file is no video that can be used; the message says why."""


def check_footage(path: Path, size: tuple[int, int]) -> None:
    """`size`: height and width. Raises: FootageError if it cannot be read or has another shape than the job."""
    if path.suffix not in _FORMATS:
        raise FootageError(f"{path.name}: a control video is one of {', '.join(_FORMATS)}")
    try:
        with av.open(path, format=_FORMATS[path.suffix]) as container:
            stream = container.streams.video[0]
            shape, rate = (stream.height, stream.width), stream.average_rate
    except (OSError, IndexError, FFmpegError) as error:
        raise FootageError(f"{path.name} cannot be read: {error}") from error
    if not rate:
        raise FootageError(f"{path.name} does not say its frame rate")
    if abs(shape[1] * size[0] / (shape[0] * size[1]) - 1) > _ASPECT:
        raise FootageError(
            f"{path.name} is {shape[1]}x{shape[0]}, the job {size[1]}x{size[0]}: give it in the job's shape"
        )


def footage(path: Path, size: tuple[int, int], rate: Fraction, start: int) -> Iterator[Tensor]:
    """[3, H, W] float32 in [-1, 1] for each frame of the job from `start` on: what the file shows at that time, grey behind its end."""
    frame = start
    for shown, until in _shown(path):
        picture: Tensor | None = None
        while Fraction(frame) / rate < until:
            picture = _picture(shown, size) if picture is None else picture
            yield picture
            frame += 1
    while True:
        yield torch.zeros(3, *size)


def _shown(path: Path) -> Iterator[tuple[VideoFrame, Fraction]]:
    """Frames with the second until which each is shown, from 0. Raises: FootageError."""
    try:
        with av.open(path, format=_FORMATS[path.suffix]) as container:
            yield from _frames(container)
    except FFmpegError as error:
        raise FootageError(f"{path.name} cannot be read: {error}") from error


def _frames(container: InputContainer) -> Iterator[tuple[VideoFrame, Fraction]]:
    stream = container.streams.video[0]
    base, rate = stream.time_base, stream.average_rate
    assert base is not None and rate is not None  # noqa: PT018, S101 (check_footage has seen to it)
    first, held = 0, None
    for frame in container.decode(stream):
        if held is None:
            first = frame.pts or 0
        else:
            yield held, ((frame.pts or 0) - first) * base
        held = frame
    if held is not None:
        yield held, ((held.pts or 0) - first) * base + 1 / rate


def _picture(frame: VideoFrame, size: tuple[int, int]) -> Tensor:
    rgb = frame.reformat(width=size[1], height=size[0], format="rgb24", interpolation="BICUBIC").to_ndarray()
    return torch.from_numpy(rgb).permute(2, 0, 1) / 127.5 - 1
