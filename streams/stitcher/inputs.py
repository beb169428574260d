"""What a request for a piece points at, checked as far as no later step would survive it being wrong."""

from dataclasses import dataclass
from pathlib import Path

from infra.objects import Objects, job_key
from schemas.errors import BadInputError
from schemas.records import PieceRequested, SeamKind
from streams.stitcher.segment import Placed, Segment, SegmentLostError, open_segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The new segment, and the one before it in its place before the seam."""

    new: Segment
    previous: Placed | None


def open_inputs(request: PieceRequested, objects: Objects, folder: Path) -> Inputs:
    """The segments of `request`; copies may be made in `folder`. Raises: SegmentLostError, BadInputError."""
    _check(request)
    previous = _previous(request, objects, folder)
    new = open_segment(objects, request.segment_frames, "segment_frames", request.format, folder)
    own = request.frames - sum(card.frames for card in request.cards)
    if len(new) != own + request.tail_overlap:
        expected = f"{own} + {request.tail_overlap}"
        raise SegmentLostError(f"segment_frames: {len(new)} frames, not {expected}", request.segment_frames)
    return Inputs(new=new, previous=previous)


def _previous(request: PieceRequested, objects: Objects, folder: Path) -> Placed | None:
    """Looked at first: if both are lost, the segment before has to be generated first."""
    if request.previous_frames is None:
        return None
    before = open_segment(objects, request.previous_frames, "previous_frames", request.format, folder)
    if len(before) < request.head_overlap:
        raise SegmentLostError(f"previous_frames: {len(before)} are less than the overlap", request.previous_frames)
    origin = len(before) - request.head_overlap
    return Placed(segment=before, origin=origin, correction=request.previous_correction)


def _check(request: PieceRequested) -> None:
    try:
        job_key(request.job_id, "pieces", "0")
    except ValueError as error:
        raise BadInputError(field="job_id", rule="format", message=str(error)) from error
    size = request.format
    if min(size.width, size.height) < 2 or size.width % 2 or size.height % 2:
        raise BadInputError(field="format", rule="even", message=f"{size.width} x {size.height}")
    if min(size.fps_num, size.fps_den) < 1:
        raise BadInputError(field="format", rule="range", message=f"{size.fps_num}/{size.fps_den} frames per second")
    if not 0 <= request.head_overlap <= request.frames or request.frames < 1 or request.tail_overlap < 0:
        raise BadInputError(field="head_overlap", rule="range", message="overlaps and frames do not fit together")
    end = request.start_frame + request.frames
    places = [(card.start_frame, card.start_frame + card.frames) for card in request.cards]
    if any(card.frames < 1 for card in request.cards) or any(
        start != request.start_frame and stop != end for start, stop in places
    ):
        raise BadInputError(field="cards", rule="range", message="a card is neither before nor behind the segment")
    begins = request.seam in (SeamKind.FIRST, SeamKind.CUT)
    if begins and request.head_overlap:
        raise BadInputError(field="head_overlap", rule="range", message=f"a {request.seam} seam has no overlap")
    if not begins and request.previous_frames is None:
        raise BadInputError(field="previous_frames", rule="required", message=f"a {request.seam} seam has two sides")
