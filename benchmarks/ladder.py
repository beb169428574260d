"""A ladder of three renditions beside the pieces, against three full encodes of the video by ffmpeg. CPU time, one thread each.

Ours begins with the pictures that the stitcher has in hand, resamples and encodes them piece by piece; ffmpeg's begins with the
delivered video, which each of its encodes decodes once more. Assembly of the renditions is on top of that of the video.
"""

import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import av
import ffmpeg
import imageio_ffmpeg

from infra.objects import Objects
from schemas.records import Rendition, VideoAssembled, VideoFormat
from streams.assembler import Assemble
from streams.encoding.coding import coding_of
from streams.encoding.presets import presets
from streams.encoding.renditions import planned_renditions
from streams.stitcher.ladder import Ladder
from streams.stitcher.picture import Frame
from tests.stitcher.clips import segment
from tests.stitcher.takes import Take, assembly, decoded, stitch, stitcher, take

_PIECES = 3
_FRAMES = 56
"""Of a segment, with both overlaps."""
_SIZE = VideoFormat(width=1280, height=720, fps_num=24, fps_den=1)
_NAMES = ("web-720p", "web-540p", "web-360p")
_ROUNDS = 3
_TIMEOUT_S = 300.0


def measure() -> dict[str, float]:
    """CPU seconds of both, ours over theirs, and what assembly adds to ours."""
    renditions = planned_renditions(_NAMES, _SIZE, 24, presets())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        objects = Objects((folder / "objects").as_uri())
        parts = [segment(index, _FRAMES, width=_SIZE.width, height=_SIZE.height) for index in range(_PIECES)]
        whole = take(objects, *parts, renditions=renditions)
        pieces = stitch(whole, stitcher(objects, folder / "scratch"))
        assemble = Assemble(objects, folder / "scratch", "benchmark", lambda: time.time_ns() // 1000)
        video = assemble(assembly(pieces))
        assert isinstance(video, VideoAssembled), video.reason
        main = objects.get_file(video.video, folder)
        ladders = [
            lambda i=i, p=p: _ladder(whole, i, decoded(objects, p.video, folder), folder) for i, p in enumerate(pieces)
        ]
        ours_s = sum(min(ladder() for _ in range(_ROUNDS)) for ladder in ladders)
        plain = [replace(piece, renditions=()) for piece in pieces]
        with_s, without_s = (
            min(_cpu_s(lambda p=p: assemble(assembly(p)), resource.RUSAGE_SELF) for _ in range(_ROUNDS))
            for p in (pieces, plain)
        )
        theirs_s = sum(
            min(_cpu_s(lambda r=r: _encode(main, r, folder), resource.RUSAGE_CHILDREN) for _ in range(_ROUNDS))
            for r in renditions
        )
        _check_frames(folder / "encoded.mp4", sum(piece.frames for piece in pieces))
    return {
        "ladder_cpu_s": ours_s,
        "full_encodes_cpu_s": theirs_s,
        "ladder_cpu_ratio": ours_s / theirs_s,
        "ladder_assembly_share": (with_s - without_s) / ours_s,
    }


def _ladder(whole: Take, piece: int, pictures: Iterable[Frame], folder: Path) -> float:
    """CPU seconds of the renditions of a piece; its pictures are there."""

    def climb() -> None:
        with Ladder(whole.request(piece), folder, lambda: 0) as ladder:
            for picture in pictures:
                ladder.write(picture)
            ladder.finish()

    return _cpu_s(climb, resource.RUSAGE_SELF)


def _encode(main: Path, rendition: Rendition, folder: Path) -> None:
    """One ffmpeg, one thread, the same encoder parameters and the same filter."""
    coding = coding_of(rendition)
    scaled = ffmpeg.input(str(main), threads=1).video
    if (rendition.width, rendition.height) != (_SIZE.width, _SIZE.height):
        scaled = scaled.filter("scale", rendition.width, rendition.height, flags="lanczos")
    options = {**coding.options, "c:v": coding.encoder, "pix_fmt": coding.pixel_format, "threads": 1}
    graph = ffmpeg.output(scaled, str(folder / "encoded.mp4"), filter_threads=1, **options).overwrite_output()
    command = graph.global_args("-nostdin", "-v", "error").compile(cmd=imageio_ffmpeg.get_ffmpeg_exe())
    subprocess.run(command, check=True, timeout=_TIMEOUT_S)


def _cpu_s(work: Callable[[], object], who: int) -> float:
    before = resource.getrusage(who)
    work()
    after = resource.getrusage(who)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _check_frames(path: Path, frames: int) -> None:
    """Both made the same number of frames, or the comparison is none."""
    with av.open(str(path)) as container:
        assert sum(1 for _ in container.decode(video=0)) == frames
