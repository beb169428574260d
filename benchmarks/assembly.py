"""Joining ten pieces by copying, against ffmpeg cross-fading and encoding the same frames again. CPU time, not wall time."""

import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import av
import ffmpeg
import imageio_ffmpeg

from infra.objects import Objects
from schemas.records import Blob, Correction, Encode, PieceStitched, VideoFormat
from streams.assembler import Assemble
from streams.stitcher.encode import Encoder, h264, piece_options
from streams.stitcher.picture import render, rounded
from tests.stitcher.clips import OVERLAP, Frames, segment
from tests.stitcher.takes import Take, assembly, stitch, stitcher, store

_PIECES = 10
_FRAMES = 64
"""Of a segment, with both overlaps."""
_SIZE = VideoFormat(width=640, height=360, fps_num=24, fps_den=1)
_ENCODE = Encode()
_ROUNDS = 3
_TIMEOUT_S = 300.0


def measure() -> dict[str, float]:
    """CPU seconds of both, and how many times as much the re-encoding takes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        objects = Objects((folder / "objects").as_uri())
        blobs: list[Blob] = []
        files: list[Path] = []
        for index in range(_PIECES):
            frames = segment(index, _FRAMES)
            blobs.append(store(objects, frames, str(index)))
            files.append(_encoded(frames, folder / f"{index}.mp4"))
        pieces = stitch(Take(segments=tuple(blobs), encode=_ENCODE), stitcher(objects, folder / "scratch"))
        assemble = Assemble(objects, folder / "scratch", "benchmark", lambda: time.time_ns() // 1000)
        ours_s = min(_cpu_s(lambda: assemble(assembly(pieces)), resource.RUSAGE_SELF) for _ in range(_ROUNDS))
        theirs_s = min(_cpu_s(lambda: _crossfade(files, folder), resource.RUSAGE_CHILDREN) for _ in range(_ROUNDS))
        _check_frames(folder / "crossfaded.mp4", pieces)
    return {"assembly_cpu_s": ours_s, "xfade_cpu_s": theirs_s, "assembly_cpu_ratio": theirs_s / ours_s}


def _encoded(frames: Frames, path: Path) -> Path:
    """A segment as a video with the same parameters as a piece: what the cross-fade starts from."""
    with Encoder(path, _SIZE, h264(piece_options(_ENCODE)), lambda: 0) as encoder:
        for frame in frames:
            encoder.write(rounded(render(frame, Correction())))
        encoder.finish()
    return path


def _crossfade(files: Sequence[Path], folder: Path) -> None:
    """One ffmpeg, one thread, the same encoder parameters."""

    def faded(before: Any, after: tuple[int, Path]) -> Any:
        index, path = after
        offset_s = index * (_FRAMES - OVERLAP) / _SIZE.fps_num
        duration_s = OVERLAP / _SIZE.fps_num
        return ffmpeg.filter([before, _input(path)], "xfade", duration=duration_s, offset=offset_s)

    joined = reduce(faded, enumerate(files[1:], 1), _input(files[0]))
    options = {**piece_options(_ENCODE), "c:v": "libx264", "threads": 1, "filter_complex_threads": 1}
    graph = ffmpeg.output(joined, str(folder / "crossfaded.mp4"), **options).overwrite_output()
    command = graph.global_args("-nostdin", "-v", "error").compile(cmd=imageio_ffmpeg.get_ffmpeg_exe())
    subprocess.run(command, check=True, timeout=_TIMEOUT_S)


def _input(path: Path) -> Any:
    return ffmpeg.input(str(path), threads=1).video


def _cpu_s(work: Callable[[], object], who: int) -> float:
    before = resource.getrusage(who)
    work()
    after = resource.getrusage(who)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _check_frames(path: Path, pieces: Sequence[PieceStitched]) -> None:
    """Both made the same number of frames, or the comparison is none."""
    with av.open(str(path)) as container:
        frames = sum(1 for _ in container.decode(video=0))
    assert frames == sum(piece.frames for piece in pieces), frames
