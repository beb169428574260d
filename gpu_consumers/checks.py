"""Is what the engine made a segment at all? Checked before anything is announced; how good it is, is for QC to say.

Axes: latents [T, C, h, w]; frames [T, H, W, 3] uint8 RGB. Only what cannot be meant fails: dark, slow and still scenes pass.
"""

import numpy as np

from gpu_consumers.engines.engine import EngineError, Frames, Latents
from schemas.records import FailureKind, PlannedShot, SegmentRequested

_BLACK_LEVEL = 16
"""Video black of BT.709. A night has lights, and a caption is white."""
_BLACK_AREA = 0.999
_GRID = 2
"""Every second pixel in each direction is looked at."""
_STILL_AREA = 0.98
"""A timecode or caption that runs on over a frozen picture takes less than the rest."""
_STILL_CAMERAS = frozenset({"static", "wide shot", "medium shot", "close-up", "aerial"})
_STILL_ACTIONS = frozenset({"stand", "sit", "sleep"})
"""Terms of the prompt vocabulary."""


def check_latents(latents: Latents) -> None:
    """Raises: EngineError (NAN) for values that are not finite. Integer latents (bit patterns) pass."""
    if np.issubdtype(latents.dtype, np.inexact):
        bad = latents.size - int(np.count_nonzero(np.isfinite(latents)))
        if bad:
            raise EngineError(FailureKind.NAN, f"{bad} of {latents.size} latent values are not finite")


def check_chunk(frames: Frames, request: SegmentRequested) -> None:
    """Raises: EngineError (ENGINE) if the frames are not pictures of the request's format."""
    size = (request.format.height, request.format.width, 3)
    if frames.dtype != np.uint8 or frames.ndim != 4 or frames.shape[1:] != size:
        raise EngineError(FailureKind.ENGINE, f"frames are {frames.dtype} {frames.shape}, not uint8 (T, *{size})")


def check_count(made: int, request: SegmentRequested) -> None:
    """Raises: EngineError (WRONG_FRAME_COUNT)."""
    if made != request.frames:
        raise EngineError(FailureKind.WRONG_FRAME_COUNT, f"{made} frames instead of {request.frames}")


def check_pictures(frames: Frames, request: SegmentRequested) -> None:
    """Raises: EngineError (BLACK, FROZEN) if the whole segment is black, or still although motion was asked for."""
    seen = frames[:, ::_GRID, ::_GRID]
    if all(_is_black(frame) for frame in seen):
        raise EngineError(FailureKind.BLACK, f"all {len(frames)} frames are black")
    limit = _still_limit(request)
    if len(frames) > 1 and limit and all(_still_area(seen[0], frame) >= limit for frame in seen[1:]):
        raise EngineError(FailureKind.FROZEN, f"all {len(frames)} frames are the same, but motion was asked for")


def _is_black(frame: Frames) -> bool:
    return bool(np.mean(frame.max(axis=-1) <= _BLACK_LEVEL) >= _BLACK_AREA)


def _still_area(first: Frames, frame: Frames) -> float:
    """The share of pixels that are exactly those of the first frame. Not of the one before: slow motion adds up."""
    return float(np.mean(np.all(first == frame, axis=-1)))


def _still_limit(request: SegmentRequested) -> float | None:
    """The share of still pixels from which on the segment is frozen. None: nobody asked for motion, as far as the text was understood."""
    seen = [shot.instruction for shot in request.shots if _shows(request, shot)]
    if seen and all(_terms(shown.camera) - _STILL_CAMERAS for shown in seen):
        return _STILL_AREA
    if seen and all(_terms(shown.action) - _STILL_ACTIONS for shown in seen):
        return 1.0  # what acts may be small
    return None


def _shows(request: SegmentRequested, shot: PlannedShot) -> bool:
    end = request.start_frame + request.frames
    return shot.start_frame < end and request.start_frame < shot.start_frame + shot.frames


def _terms(field: str) -> set[str]:
    return {term.strip() for term in field.split(",")} - {""}
