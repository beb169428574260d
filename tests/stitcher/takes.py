"""Builders: stored segments, requests for their pieces, and a take stitched from end to end without a bus."""

from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

from infra.objects import Objects, job_key
from schemas.codec import sealed
from schemas.records import (
    AssemblyRequested,
    Blob,
    Correction,
    Encode,
    PieceRef,
    PieceRequested,
    PieceStitched,
    Rendition,
    SeamKind,
    SeamRejected,
    VideoFormat,
)
from streams.stitcher.worker import Stitch
from tests.stitcher.clips import OVERLAP, Frames

FPS = (24, 1)
ENCODE = Encode()
PLAIN = Correction()


def store(objects: Objects, frames: Frames, name: str = "0-1") -> Blob:
    """A segment as an engine leaves it: frame n was generated at 1000 + n and decoded at 2000 + n."""
    stamps = np.arange(len(frames), dtype=np.int64)
    tensors = {"frames": frames, "generated_us": 1000 + stamps, "decoded_us": 2000 + stamps}
    return objects.put_tensors(job_key("job", "segments", f"{name}.safetensors"), tensors, main="frames")


@dataclass(frozen=True, slots=True, kw_only=True)
class Take:
    """Stored segments of one shot, all overlapping by the same number of frames."""

    segments: tuple[Blob, ...]
    overlap: int = OVERLAP
    fps: tuple[int, int] = FPS
    seam: SeamKind = SeamKind.CONTINUOUS
    encode: Encode = ENCODE
    renditions: tuple[Rendition, ...] = ()

    @property
    def size(self) -> VideoFormat:
        _, height, width, _ = self.segments[0].shape
        return VideoFormat(width=width, height=height, fps_num=self.fps[0], fps_den=self.fps[1])

    def request(self, piece: int, previous: Correction = PLAIN) -> PieceRequested:
        """For that piece; `previous` is what the one before was corrected by."""
        last = piece == len(self.segments) - 1
        tail = 0 if last else self.overlap
        start = sum(blob.shape[0] - self.overlap for blob in self.segments[:piece])
        return sealed(
            PieceRequested(
                job_id="job",
                piece=piece,
                attempt=1,
                request_hash="",
                format=self.size,
                start_frame=start,
                frames=self.segments[piece].shape[0] - tail,
                head_overlap=self.overlap if piece else 0,
                tail_overlap=tail,
                seam=self.seam if piece else SeamKind.FIRST,
                segment_frames=self.segments[piece],
                previous_frames=self.segments[piece - 1] if piece else None,
                previous_correction=previous,
                encode=self.encode,
                requested_us=1,
                renditions=self.renditions,
            )
        )


def take(objects: Objects, *segments: Frames, **changes: object) -> Take:
    """The segments stored, in order."""
    blobs = tuple(store(objects, frames, f"{index}-1") for index, frames in enumerate(segments))
    return replace(Take(segments=blobs), **changes)  # pyright: ignore[reportArgumentType] (a builder's changes)


def stitcher(objects: Objects, scratch: Path) -> Stitch:
    """With a clock that goes on by 1 us at every look."""
    clock = count(1)
    return Stitch(objects, scratch, "stitch-0", lambda: next(clock))


def stitch(take: Take, work: Stitch) -> list[PieceStitched]:
    """Every piece of the take, in order. Raises: AssertionError at a rejected seam."""
    pieces: list[PieceStitched] = []
    for index in range(len(take.segments)):
        answer = work(take.request(index, pieces[-1].correction if pieces else PLAIN))
        assert isinstance(answer, PieceStitched), answer
        pieces.append(answer)
    return pieces


def rejected(answer: PieceStitched | SeamRejected) -> SeamRejected:
    assert isinstance(answer, SeamRejected), answer.seam
    return answer


def assembly(pieces: list[PieceStitched]) -> AssemblyRequested:
    """A request to join them."""
    return sealed(
        AssemblyRequested(
            job_id="job",
            attempt=1,
            request_hash="",
            format=pieces[0].format,
            frames=sum(piece.frames for piece in pieces),
            pieces=tuple(
                PieceRef(
                    piece=p.piece,
                    start_frame=p.start_frame,
                    frames=p.frames,
                    video=p.video,
                    decoder_config=p.decoder_config,
                    renditions=p.renditions,
                )
                for p in pieces
            ),
            requested_us=1,
        )
    )


def decoded(objects: Objects, blob: Blob, folder: Path) -> NDArray[np.uint8]:
    """Every picture of a stored video: [T, H * 3 / 2, W] uint8 (I420)."""
    with av.open(str(objects.get_file(blob, folder))) as container:
        return np.stack([frame.to_ndarray(format="yuv420p") for frame in container.decode(video=0)])
