"""The stored frames of a segment, read as far as they are needed, and where they are on the timeline."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from infra.objects import BlobError, Objects
from schemas.records import Blob, Correction, VideoFormat
from streams.stitcher.picture import Frame, Picture, render


class SegmentLostError(Exception):
    """The stored frames are gone, damaged or not what they are said to be: their segments have to be generated again."""

    def __init__(self, reason: str, *blobs: Blob) -> None:
        super().__init__(reason)
        self.blobs = blobs


class Segment:
    """Frames [T, H, W, 3] uint8 RGB of one segment and when each was generated and decoded, in microseconds."""

    def __init__(self, tensors: Any) -> None:
        self._frames = tensors.get_slice("frames")
        self.shape: tuple[int, ...] = tuple(self._frames.get_shape())
        self.dtype: str = self._frames.get_dtype()
        self.generated_us: NDArray[np.int64] = tensors.get_tensor("generated_us")
        self.decoded_us: NDArray[np.int64] = tensors.get_tensor("decoded_us")

    def __len__(self) -> int:
        return self.shape[0]

    def read(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Frames [start, stop), cut to those that exist."""
        return self._frames[max(0, start) : max(0, min(stop, len(self)))]

    def each(self, start: int, stop: int) -> Iterator[Frame]:
        """The same, one after the other."""
        return (self._frames[i : i + 1][0] for i in range(max(0, start), min(stop, len(self))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A corrected segment near a seam. `origin` is its frame at position 0 if it is not delayed."""

    segment: Segment
    origin: int
    correction: Correction

    def index(self, j: int) -> int:
        """Its frame at position `j`; there may be none of that number."""
        return self.origin + j - self.correction.offset_frames

    def shows(self, j: int) -> bool:
        """Whether it has a frame for position `j`."""
        return 0 <= self.index(j) < len(self.segment)

    def picture(self, j: int) -> Picture:
        """The corrected picture at position `j`."""
        return render(self.segment.read(self.index(j), self.index(j) + 1)[0], self.correction)


def open_segment(objects: Objects, blob: Blob, field: str, size: VideoFormat, folder: Path) -> Segment:
    """The segment in `blob`; a copy may be made in `folder`, and must stay there as long as the segment is read.

    Raises: SegmentLostError naming `field` if the blob is missing, damaged or not frames of that size.
    """
    try:
        segment = Segment(safe_open(objects.get_file(blob, folder), framework="numpy"))
    except (BlobError, SafetensorError) as error:
        raise SegmentLostError(f"{field}: {error}", blob) from error
    found, expected = (segment.dtype, segment.shape[1:]), ("U8", (size.height, size.width, 3))
    if found != expected:
        raise SegmentLostError(f"{field}: frames are {found}, not {expected}", blob)
    if not len(segment) == len(segment.generated_us) == len(segment.decoded_us) > 0:
        raise SegmentLostError(f"{field}: not one time per frame", blob)
    return segment
