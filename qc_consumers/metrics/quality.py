"""VMAF, PSNR and SSIM of every frame of a piece, in one pass of ffmpeg.

Frames are paired by index, never by time stamp, so counts must be equal before. The motion part of VMAF looks at the
reference only: with one frame of the reference beyond each end the scores are those of the whole video, to the last bit.
The encoded piece is padded there with copies of its own end frames, and the scores of the padding are dropped.

The same pass gives the luma of both at half size, for the detectors: decoding costs a third of it, and is done once.
"""

import json
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

import ffmpeg
import imageio_ffmpeg
import numpy as np

from qc_consumers.detectors import Luma

VMAF_MODEL = "vmaf_v0.6.1"
PSNR_CAP_DB = 100.0
Show: TypeAlias = Callable[[Luma, Luma, Luma], None]
"""Takes the luma of a frame at half size, of the reference and of the piece, and U and V of the reference [2, H / 2, W / 4], in
order, the padding included."""
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

    @property
    def all_frames(self) -> int:
        """Of the reference."""
        return self.head + self.frames + self.tail


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """One score per frame of the piece. PSNR in dB on luma, at most 100."""

    psnr_y: tuple[float, ...]
    ssim: tuple[float, ...]
    vmaf: tuple[float, ...]
    vmaf_model: str
    libvmaf_version: str


def measure_quality(pair: Pair, folder: Path, show: Show, *, threads: int, timeout_s: float) -> Quality:
    """Score every frame; `show` gets to see them meanwhile. `folder` is for the logs of ffmpeg. Raises: QualityError."""
    _run(scoring_command(pair, threads), pair, folder, show, timeout_s)
    log: dict[str, Any] = json.loads((folder / "vmaf.json").read_text())
    ssim = [_ssim_y(line) for line in (folder / "ssim.log").read_text().splitlines()]
    metrics: list[dict[str, float]] = [frame["metrics"] for frame in log["frames"]]
    if len(metrics) != pair.all_frames or len(ssim) != len(metrics):
        raise QualityError(f"{len(metrics)} frames scored of {pair.all_frames}")
    own = slice(pair.head, pair.head + pair.frames)
    return Quality(
        psnr_y=tuple(min(frame["psnr_y"], PSNR_CAP_DB) for frame in metrics[own]),
        ssim=tuple(ssim[own]),
        vmaf=tuple(frame["vmaf"] for frame in metrics[own]),
        vmaf_model=VMAF_MODEL,
        libvmaf_version=str(log["version"]),
    )


def scoring_command(pair: Pair, threads: int) -> list[str]:
    """ffmpeg's arguments. Only numbers and fixed words get into the graph: paths are arguments of their own.

    Raises: QualityError if both files are one.
    """
    if pair.piece == pair.reference:
        raise QualityError("a piece is its own reference: it cannot be scored against itself")
    piece = _indexed(pair.piece, pair)
    if pair.head or pair.tail:
        piece = piece.filter("tpad", start=pair.head, stop=pair.tail, start_mode="clone", stop_mode="clone")
        piece = piece.filter("setpts", "N")
    pieces = piece.filter_multi_output("split", 2)
    references = _indexed(pair.reference, pair).filter_multi_output("split", 2)
    vmaf = ffmpeg.filter(
        [pieces[0], references[0]],
        "libvmaf",
        model=f"version={VMAF_MODEL}",
        feature=f"name=psnr:enable_chroma=false:min_sse={_least_error(pair):.9g}",
        log_fmt="json",
        log_path="vmaf.json",
        n_threads=threads,
        **_SYNC,
    )
    planes = references[1].filter_multi_output("extractplanes", "y+u+v")
    luma = [planes[0].filter_multi_output("split", 2)]
    luma.append(pieces[1].filter("extractplanes", "y").filter_multi_output("split", 2))
    ssim = ffmpeg.filter([luma[1][0], luma[0][0]], "ssim", stats_file="ssim.log", **_SYNC)
    half = [stream[1].filter("scale", pair.width // 2, pair.height // 2, flags="neighbor") for stream in luma]
    half += [planes[n].filter("scale", pair.width // 4, pair.height // 2, flags="neighbor") for n in (1, 2)]
    together = ffmpeg.filter(half, "hstack", inputs=len(half))
    shown = ffmpeg.output(together, "pipe:1", f="rawvideo", pix_fmt="gray", fps_mode="passthrough")
    scored = [ffmpeg.output(stream, "null", f="null", fps_mode="passthrough") for stream in (ssim, vmaf)]
    flags = ("-nostdin", "-nostats", "-xerror", "-v", "error", "-filter_complex_threads", str(threads))
    return ffmpeg.merge_outputs(shown, *scored).global_args(*flags).compile(cmd=_executable())


def _indexed(path: Path, pair: Pair) -> Any:
    """The frames of an MP4, frame n at n: whatever the file says about time. Each file has a decoder thread: scoring takes longer.

    It is read as nothing else: a playlist or a script in its place would name other files and hosts.
    """
    tick = f"{pair.fps.denominator}/{pair.fps.numerator}"
    return (
        ffmpeg.input(str(path.absolute()), f="mp4", protocol_whitelist="file", threads=1)
        .video.filter("settb", tick)
        .filter("setpts", "N")
    )


def _least_error(pair: Pair) -> float:
    """Squared error of a frame at PSNR_CAP_DB: libvmaf caps at 60 dB without it."""
    return 255**2 / 10 ** (PSNR_CAP_DB / 10) * pair.width * pair.height


def _ssim_y(line: str) -> float:
    """From `n:1 Y:0.991946 U:0.986338 ...`."""
    return float(line.partition("Y:")[2].partition(" ")[0])


def _run(command: list[str], pair: Pair, folder: Path, show: Show, timeout_s: float) -> None:
    with (folder / "stderr.log").open("wb+") as errors:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)
        late = threading.Timer(timeout_s, process.kill)
        late.start()
        try:
            shown = _show(cast("BinaryIO", process.stdout), pair, show)
            code = process.wait()
        finally:
            timed_out = not late.is_alive()
            late.cancel()
            process.kill()
            process.wait()
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip()[-300:]
    if timed_out:
        raise QualityError(f"not done after {timeout_s:.0f} s")
    if code:
        raise QualityError(f"ffmpeg ended with {code}: {said}")
    if shown != pair.all_frames:
        raise QualityError(f"{shown} frames decoded of {pair.all_frames}")


def _show(stream: BinaryIO, pair: Pair, show: Show) -> int:
    width, height, quarter = pair.width // 2, pair.height // 2, pair.width // 4
    size, shown = (2 * width + 2 * quarter) * height, 0
    while len(data := stream.read(size)) == size:
        row = np.frombuffer(data, np.uint8).reshape(height, -1)
        chroma = row[:, 2 * width :].reshape(height, 2, quarter).transpose(1, 0, 2)
        show(np.ascontiguousarray(row[:, :width]), np.ascontiguousarray(row[:, width : 2 * width]), chroma)
        shown += 1
    return shown


@cache
def _executable() -> str:
    return imageio_ffmpeg.get_ffmpeg_exe()
