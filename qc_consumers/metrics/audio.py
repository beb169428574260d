"""What is measured of a sound track: loudness and true peak (EBU R 128, ITU-R BS.1770) by ffmpeg, silence and clipping by sample."""

import subprocess
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import ffmpeg
import imageio_ffmpeg
import numpy as np
from av.error import FFmpegError
from numpy.typing import NDArray

_RATE = 48_000
_BLOCK = _RATE // 50
"""Samples of 20 ms."""
_SILENT = 10 ** (-60 / 20)
"""Peak of a silent block: 60 dB below full scale."""
_FULL_SCALE = 0.999
_CLIPPED_RUN = 3
"""Samples in a row at full scale: music touches it once, a clipped wave stays."""
_GATED = -70.0
"""LUFS: absolute gate of BS.1770. Nothing was louder."""
_TIMEOUT_S = 60.0
_LOG = "loudness.log"


class AudioError(Exception):
    """The track does not decode to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audio:
    """A sound track, measured."""

    start_s: float
    """Against the first frame of the picture."""
    seconds: float
    loudness_lufs: float | None
    """Integrated; None: nothing is louder than the gate."""
    true_peak_dbtp: float
    silences: tuple[tuple[float, float], ...]
    """Start and length in seconds of each that is longer than asked for."""
    clipped_share: float


def measure_audio(path: Path, folder: Path, *, silence_s: float) -> Audio:
    """Decode and measure the first sound track of an MP4. `folder` is for the log of ffmpeg. Raises: AudioError."""
    start_s = _start_s(path)
    samples = _decoded(path, folder)
    log = (folder / _LOG).read_text()
    loudness, peak = _values(log, "lavfi.r128.I")[-1:], max(_values(log, "lavfi.r128.true_peak"), default=0.0)
    return Audio(
        start_s=start_s,
        seconds=len(samples) / _RATE,
        loudness_lufs=loudness[0] if loudness and loudness[0] > _GATED else None,
        true_peak_dbtp=20 * float(np.log10(max(peak, 1e-6))),
        silences=tuple(_silences(samples, silence_s)),
        clipped_share=_clipped_share(samples),
    )


def _start_s(path: Path) -> float:
    try:
        with av.open(str(path), format="mp4") as container:
            starts = [
                Fraction(stream.start_time or 0) * (stream.time_base or Fraction(1))
                for stream in (container.streams.audio[0], container.streams.video[0])
            ]
    except (FFmpegError, IndexError) as error:
        raise AudioError(f"no sound and picture: {error}") from error
    return float(starts[0] - starts[1])


def _decoded(path: Path, folder: Path) -> NDArray[np.float32]:
    """[T, 2] samples; what ebur128 says of them is in the log."""
    audio = ffmpeg.input(str(path.absolute()), f="mp4", protocol_whitelist="file").audio
    both = audio.filter("aresample", _RATE).filter("aformat", channel_layouts="stereo").filter_multi_output("asplit", 2)
    measured = both[0].filter("ebur128", metadata=1, peak="true").filter("ametadata", mode="print", file=_LOG)
    raw = ffmpeg.output(both[1], "pipe:1", f="f32le", ac=2)
    nothing = ffmpeg.output(measured, "null", f="null")
    flags = ("-nostdin", "-nostats", "-hide_banner", "-xerror", "-v", "error")
    command = ffmpeg.merge_outputs(raw, nothing).global_args(*flags).compile(cmd=imageio_ffmpeg.get_ffmpeg_exe())
    try:
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=_TIMEOUT_S)
    except subprocess.CalledProcessError as error:
        raise AudioError(error.stderr.decode(errors="replace").strip()[-300:]) from error
    except subprocess.TimeoutExpired as error:
        raise AudioError(f"not decoded after {_TIMEOUT_S:.0f} s") from error
    return np.frombuffer(done.stdout, np.float32).reshape(-1, 2)


def _values(log: str, name: str) -> list[float]:
    """All values of this key, in order."""
    pairs = (line.partition("=") for line in log.splitlines())
    return [float(value) for key, _, value in pairs if key == name]


def _silences(samples: NDArray[np.float32], shortest_s: float) -> list[tuple[float, float]]:
    blocks = len(samples) // _BLOCK
    peaks = np.abs(samples[: blocks * _BLOCK]).reshape(blocks, -1).max(axis=1, initial=0)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], peaks < _SILENT, [0]])))
    runs = [(int(first) * _BLOCK / _RATE, int(end - first) * _BLOCK / _RATE) for first, end in edges.reshape(-1, 2)]
    return [(first, seconds) for first, seconds in runs if seconds > shortest_s]


def _clipped_share(samples: NDArray[np.float32]) -> float:
    """Of the samples, in runs of at least three of one channel at full scale."""
    if not len(samples):
        return 0.0
    clipped = 0
    for channel in samples.T:
        edges = np.flatnonzero(np.diff(np.concatenate([[0], np.abs(channel) >= _FULL_SCALE, [0]])))
        lengths = edges[1::2] - edges[::2]
        clipped += int(lengths[lengths >= _CLIPPED_RUN].sum())
    return clipped / samples.size
