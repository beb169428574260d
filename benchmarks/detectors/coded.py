"""Faults of encoders, clocks, joints and stores: in pieces, and in assembled videos."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from numpy.random import Generator

from benchmarks.detectors.case import Case, Result
from benchmarks.detectors.pieces import PICTURE_GATES
from benchmarks.detectors.sources import PIECE_FRAMES, clip, graded
from qc_consumers.check import Bench
from qc_consumers.pieces import check_piece
from qc_consumers.videos import check_video
from schemas.records import Encode
from streams.stitcher.encode import piece_options
from tests.qc.clips import Frames, assembled, encoded, ffmpeg, remuxed, stitched, stored

VIDEO_GATES = frozenset(
    {"brand", "faststart", "tracks", "timescale", "start", "duration", "piece_start", "frame_count", "pts_step"}
    | {"decode", "black", "still", "glitch", "letterbox", "jump", "strobe", "flicker", "gop", "idr", "tags"}
)
_STEP = 1000
"""Ticks from frame to frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Good:
    """A piece or video before it is spoilt."""

    frames: Frames
    path: Path
    rng: Generator


Spoil = Callable[[Good, Path], Path]


def frame_count(good: Good, target: Path) -> Path:
    """A frame is missing, or there twice."""
    at = int(good.rng.integers(4, PIECE_FRAMES - 4))
    order = (
        [*range(at), *range(at + 1, PIECE_FRAMES)]
        if good.rng.integers(2)
        else [*range(at + 1), *range(at, PIECE_FRAMES)]
    )
    return encoded(target, good.frames[order])


def pts_step(good: Good, target: Path) -> Path:
    """One frame is shown 0.6 to 20 ms late."""
    at, late = _STEP * int(good.rng.integers(4, PIECE_FRAMES - 4)), int(good.rng.integers(15, 480))
    return remuxed(good.path, target, lambda pts: pts + late if pts == at else pts)


def psnr_y(good: Good, target: Path) -> Path:
    """Darker by 5 to 9 per cent: VMAF does not see it."""
    return encoded(target, graded(good.frames, float(good.rng.uniform(0.91, 0.95)), 0.0))


def vmaf(good: Good, target: Path) -> Path:
    """Encoded far too coarsely."""
    return encoded(target, good.frames, options=piece_options(Encode(crf=float(good.rng.uniform(40, 48)))))


def idr(good: Good, target: Path) -> Path:
    """Open GOPs: keyframes at which no decoder can begin."""
    return encoded(target, good.frames, options=_coding("keyint=12:min-keyint=12:scenecut=0:open-gop=1:bframes=2"))


def tags(good: Good, target: Path) -> Path:
    """The colours are not named, or the range is wrong."""
    words = ["color_primaries=unknown:color_trc=unknown:colorspace=unknown", "range=pc", "color_trc=unknown"]
    wrong = f"setparams={words[int(good.rng.integers(len(words)))]}"
    ffmpeg("-i", good.path, "-vf", wrong, "-c:v", "libx264", "-crf", "12", "-g", "24", "-bf", "2", target)
    return target


def decode(good: Good, target: Path) -> Path:
    """Two hundred bytes of the media data are others."""
    data = bytearray(good.path.read_bytes())
    begin = data.index(b"mdat") + 4
    end = begin - 8 + int.from_bytes(data[begin - 8 : begin - 4])
    at = int(good.rng.integers(begin + (end - begin) // 4, end - 400))
    data[at : at + 200] = good.rng.bytes(200)
    target.write_bytes(data)
    return target


def bitrate_peak(good: Good, target: Path) -> Path:
    """One GOP at QP 1 among others at CRF 26."""
    at = 12 * int(good.rng.integers(0, 4))
    return encoded(
        target,
        good.frames,
        options=_coding(f"keyint=12:min-keyint=12:scenecut=0:bframes=2:zones={at},{at + 11},q=1", crf=26),
    )


def _coding(parameters: str, crf: int = 14) -> dict[str, str]:
    return {"crf": str(crf), "preset": "veryfast", "x264-params": parameters}


def faststart(good: Good, target: Path) -> Path:
    """The index behind the media data."""
    return _copied(good.path, target)


def timescale(good: Good, target: Path) -> Path:
    """A clock of milliseconds."""
    return _copied(good.path, target, "-video_track_timescale", "1000", "-movflags", "+faststart")


def brand(good: Good, target: Path) -> Path:
    """QuickTime."""
    return _copied(good.path, target, "-movflags", "+faststart", "-f", "mov")


def start(good: Good, target: Path) -> Path:
    """Everything 0.02 to 0.5 s late."""
    late = round(float(good.rng.uniform(0.02, 0.5)), 3)
    ffmpeg("-itsoffset", str(late), "-i", good.path, "-c", "copy", "-movflags", "+faststart", target)
    return target


def duration(good: Good, target: Path) -> Path:
    """The end is missing."""
    return _copied(
        good.path, target, "-frames:v", str(int(good.rng.integers(30, PIECE_FRAMES - 2))), "-movflags", "+faststart"
    )


def tracks(good: Good, target: Path) -> Path:
    """A sound track that nobody announced."""
    tone = ("-f", "lavfi", "-i", "sine=440:d=2:r=48000", "-c:a", "aac")
    ffmpeg("-i", good.path, *tone, "-c:v", "copy", "-video_track_timescale", "24000", "-movflags", "+faststart", target)
    return target


def _copied(source: Path, target: Path, *options: str) -> Path:
    scale = () if "-video_track_timescale" in options else ("-video_track_timescale", "24000")
    ffmpeg("-i", source, "-c", "copy", *scale, *options, target)
    return target


def spoilt_piece(spoil: Spoil, rng: Generator, bench: Bench) -> Result:
    """What the check says of a piece whose file was spoilt."""
    with tempfile.TemporaryDirectory() as name:
        folder, frames = Path(name), clip(rng).frames
        event = stitched(bench.objects, folder, frames, encode=Encode(crf=14.0))
        bad = spoil(Good(frames=frames, path=bench.objects.get_file(event.video, folder), rng=rng), folder / "bad.mp4")
        measured = check_piece(replace(event, video=stored(bench.objects, "bad.mp4", bad)), bench).measured
    return Result(findings=measured.findings, looked=PICTURE_GATES)


def checked_video(spoil: Spoil | None, rng: Generator, bench: Bench) -> Result:
    """What the check says of an assembled video, that is decoded from end to end as its pieces are not known."""
    with tempfile.TemporaryDirectory() as name:
        folder, found = Path(name), clip(rng)
        joined = encoded(folder / "joined.mp4", found.frames, options=piece_options(Encode(crf=14.0)))
        good = _copied(joined, folder / "good.mp4", "-movflags", "+faststart")
        path = spoil(Good(frames=found.frames, path=good, rng=rng), folder / "video.mp4") if spoil else good
        measured = check_video(assembled(bench.objects, path, PIECE_FRAMES, piece_starts=(0, 24)), bench).measured
    return Result(findings=measured.findings, looked=VIDEO_GATES)


def joined_off_beat(rng: Generator, bench: Bench) -> Result:
    """A piece that begins where there is no IDR picture."""
    first = int(rng.choice([7, 13, 30]))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = encoded(folder / "joined.mp4", clip(rng).frames, options=piece_options(Encode(crf=14.0)))
        good = _copied(path, folder / "good.mp4", "-movflags", "+faststart")
        measured = check_video(assembled(bench.objects, good, PIECE_FRAMES, piece_starts=(0, first)), bench).measured
    return Result(findings=measured.findings, frame=first, looked=VIDEO_GATES)


def gop(rng: Generator, bench: Bench) -> Result:
    """GOPs of 2.1 to 2.5 s."""
    frames = clip(rng, 60).frames
    coding = _coding(f"keyint={int(rng.integers(51, 60))}:min-keyint=50:scenecut=0")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        event = stitched(bench.objects, folder, frames)
        bad = stored(bench.objects, "bad.mp4", encoded(folder / "bad.mp4", frames, options=coding))
        measured = check_piece(replace(event, video=bad), bench).measured
    return Result(findings=measured.findings, looked=PICTURE_GATES)


def cases() -> list[Case]:
    """All of them."""
    in_pieces: Sequence[Spoil] = (frame_count, pts_step, psnr_y, vmaf, idr, tags, decode, bitrate_peak)
    in_videos: Sequence[Spoil] = (faststart, timescale, brand, start, duration, tracks)
    return [
        *(Case(name=f.__name__, gate=f.__name__, make=partial(spoilt_piece, f), clips=8) for f in in_pieces),
        *(Case(name=f.__name__, gate=f.__name__, make=partial(checked_video, f), clips=5) for f in in_videos),
        Case(name="gop", gate="gop", make=gop, clips=5),
        Case(name="piece_start", gate="piece_start", make=joined_off_beat, clips=5),
        Case(name="video", gate="", make=partial(checked_video, None), clips=40),
    ]
