"""VMAF, PSNR and SSIM of every frame of a piece, in one pass of ffmpeg.

Frames are paired by index, never by time stamp, so counts must be equal before. The motion part of VMAF looks at the
reference only: with one frame of the reference beyond each end the scores are those of the whole video, to the last bit.
The encoded piece is padded there with copies of its own end frames, and the scores of the padding are dropped.
"""

import json
import subprocess
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import ffmpeg
import imageio_ffmpeg

VMAF_MODEL = "vmaf_v0.6.1"
PSNR_CAP_DB = 100.0
_SYNC = {"shortest": 1, "repeatlast": 0}


class QualityError(Exception):
    """ffmpeg could not read one of the files to its end, or did not finish in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A piece and its lossless reference, of the same size and rate: `head` + `frames` + `tail` frames of reference."""

    piece: Path
    reference: Path
    width: int
    height: int
    fps: Fraction
    frames: int
    head: int
    tail: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """One score per frame of the piece. PSNR in dB on luma, at most 100."""

    psnr_y: tuple[float, ...]
    ssim: tuple[float, ...]
    vmaf: tuple[float, ...]
    vmaf_model: str
    libvmaf_version: str


def measure_quality(pair: Pair, folder: Path, *, threads: int, timeout_s: float) -> Quality:
    """Score every frame; `folder` is for the logs of ffmpeg. Raises: QualityError."""
    _run(_command(pair, threads), folder, timeout_s)
    log: dict[str, Any] = json.loads((folder / "vmaf.json").read_text())
    ssim = [_ssim_y(line) for line in (folder / "ssim.log").read_text().splitlines()]
    metrics: list[dict[str, float]] = [frame["metrics"] for frame in log["frames"]]
    if len(metrics) != pair.head + pair.frames + pair.tail or len(ssim) != len(metrics):
        raise QualityError(f"{len(metrics)} frames scored, {pair.head} + {pair.frames} + {pair.tail} expected")
    own = slice(pair.head, pair.head + pair.frames)
    return Quality(
        psnr_y=tuple(min(frame["psnr_y"], PSNR_CAP_DB) for frame in metrics[own]),
        ssim=tuple(ssim[own]),
        vmaf=tuple(frame["vmaf"] for frame in metrics[own]),
        vmaf_model=VMAF_MODEL,
        libvmaf_version=str(log["version"]),
    )


def _command(pair: Pair, threads: int) -> list[str]:
    tick = f"{pair.fps.denominator}/{pair.fps.numerator}"
    piece = ffmpeg.input(str(pair.piece), threads=threads).video.filter("settb", tick).filter("setpts", "N")
    if pair.head or pair.tail:
        piece = piece.filter("tpad", start=pair.head, stop=pair.tail, start_mode="clone", stop_mode="clone")
        piece = piece.filter("setpts", "N")
    reference = ffmpeg.input(str(pair.reference), threads=threads).video.filter("settb", tick).filter("setpts", "N")
    references = reference.filter_multi_output("split")
    scored = ffmpeg.filter([piece, references[0]], "ssim", stats_file="ssim.log", **_SYNC)
    scored = ffmpeg.filter(
        [scored, references[1]],
        "libvmaf",
        model=f"version={VMAF_MODEL}",
        feature=f"name=psnr:min_sse={_least_error(pair):.9g}",
        log_fmt="json",
        log_path="vmaf.json",
        n_threads=threads,
        **_SYNC,
    )
    flags = ("-nostdin", "-nostats", "-xerror", "-v", "error", "-filter_complex_threads", str(threads))
    return ffmpeg.output(scored, "-", f="null").global_args(*flags).compile(cmd=_executable())


def _least_error(pair: Pair) -> float:
    """Squared error of a frame at PSNR_CAP_DB: libvmaf caps at 60 dB without it."""
    return 255**2 / 10 ** (PSNR_CAP_DB / 10) * pair.width * pair.height


def _ssim_y(line: str) -> float:
    """From `n:1 Y:0.991946 U:0.986338 ...`."""
    return float(line.partition("Y:")[2].partition(" ")[0])


def _run(command: list[str], folder: Path, timeout_s: float) -> None:
    try:
        done = subprocess.run(command, cwd=folder, timeout=timeout_s, capture_output=True, text=True, check=False)
    except subprocess.TimeoutExpired as error:
        raise QualityError(f"not done after {timeout_s:.0f} s") from error
    if done.returncode:
        raise QualityError(f"ffmpeg ended with {done.returncode}: {done.stderr.strip()[-300:]}")


@cache
def _executable() -> str:
    return imageio_ffmpeg.get_ffmpeg_exe()
