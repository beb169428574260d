"""Files of sound to samples, as they are decoded: memory does not grow with their length."""

from collections.abc import Generator
from pathlib import Path

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.error import FFmpegError

from infra.assets.media import FORMATS
from streams.sound import RATE, Samples, SoundError


def decoded(path: Path, media_type: str) -> Generator[Samples]:
    """All of the file, in blocks of its own size, resampled where it has another rate. Raises: SoundError."""
    try:
        with av.open(str(path), "r", format=FORMATS[media_type]) as container:
            stream = container.streams.audio[0]
            resampler = av.AudioResampler(format="flt", layout="stereo", rate=RATE)
            for frame in container.decode(stream):
                assert isinstance(frame, AudioFrame)  # noqa: S101
                yield from map(_samples, resampler.resample(frame))
            yield from map(_samples, resampler.resample(None))
    except (FFmpegError, IndexError, KeyError) as error:
        raise SoundError(f"{path.name} does not decode as {media_type}: {error}") from error


def looped(path: Path, media_type: str) -> Generator[Samples]:
    """The file over and over. Raises: SoundError."""
    while True:
        heard = 0
        for block in decoded(path, media_type):
            heard += len(block)
            yield block
        if not heard:
            raise SoundError(f"{path.name} has no sound in it")


def _samples(frame: AudioFrame) -> Samples:
    return frame.to_ndarray().reshape(-1, 2).astype(np.float32, copy=False)
