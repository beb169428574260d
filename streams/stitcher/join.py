"""What is done where a segment meets the one before it: measure, correct, then fade or cut, or send it back."""

from dataclasses import dataclass, replace

from schemas.records import Correction, Seam, SeamKind
from streams.stitcher.alignment import Overlap, SeamError, align, corrected_luma
from streams.stitcher.blend import NOTHING, Blend, fade, fade_or_cut, fade_weights, wipe
from streams.stitcher.limits import Limits
from streams.stitcher.proxy import Proxies, proxies
from streams.stitcher.seam import Series, Visibility, visibility
from streams.stitcher.segment import Placed, Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """The new segment in its place, the pictures of the overlap, and how well they meet."""

    new: Placed
    seam: Seam
    blend: Blend = NOTHING


def begin(new: Segment, kind: SeamKind) -> Join:
    """A shot that begins by itself: there is nothing to align or to blend."""
    return Join(new=Placed(segment=new, origin=0, correction=Correction()), seam=Seam(kind=kind, overlap_frames=0))


def become(previous: Placed, new: Segment, kind: SeamKind, overlap: int) -> Join:
    """A shot that is dissolved or wiped in over the one before it; nothing is aligned, as they show different things."""
    placed = Placed(segment=new, origin=0, correction=Correction())
    weights = fade_weights(previous, placed, overlap)
    blend = (wipe if kind is SeamKind.WIPE else fade)(previous, placed, weights)
    return Join(new=placed, seam=Seam(kind=kind, overlap_frames=overlap, blend=blend.kind), blend=blend)


def continue_shot(previous: Placed, new: Segment, overlap: int, tail: int, limits: Limits) -> Join:
    """The same shot goes on. Without an overlap only the seam is checked, and the colour is carried on.

    The last `tail` frames of the new segment are its overlap with the next.
    Raises: SeamError if the segments cannot be aligned, or the seam would be seen.
    """
    if not previous.shows(min(overlap, 1) - 1):
        raise SeamError(
            "the segment before ends before the seam", Seam(kind=SeamKind.CONTINUOUS, overlap_frames=overlap)
        )
    near, reach = limits.neighbourhood_frames, 2 * limits.offset_frames + 1
    before = proxies(previous.segment.each(previous.origin - near, len(previous.segment)))
    after = proxies(new.each(0, overlap + max(near, reach)))
    seam = Seam(kind=SeamKind.CONTINUOUS, overlap_frames=overlap)
    correction, blend = replace(previous.correction, offset_frames=0), NOTHING
    if overlap:
        both = Overlap(
            before=previous.segment.read(previous.origin, len(previous.segment)),
            after=new.read(0, overlap + reach),
            small_before=before.part(slice(-overlap, None)),
            small_after=after.part(slice(overlap + reach)),
        )
        correction, seam = align(both, previous.correction, seam, limits)
    placed = Placed(segment=new, origin=0, correction=correction)
    _check_frames(placed, tail, seam, limits)
    if overlap:
        blend = fade_or_cut(previous, placed, fade_weights(previous, placed, overlap), limits)
        seam = replace(seam, blend=blend.kind, sharpness_ratio=blend.sharpness_ratio)
    seen = visibility(
        _series(before, previous, overlap - len(before)), _series(after, placed, 0), blend.weights, limits
    )
    seam = replace(seam, luma_jump_ratio=seen.luma_jump_ratio, warp_error_ratio=seen.warp_error_ratio)
    _check_seam(seen, seam, limits)
    return Join(new=placed, seam=replace(seam, score=_score(seam, limits)), blend=blend)


def _series(frames: Proxies, placed: Placed, start: int) -> Series:
    luma = corrected_luma(frames, placed.correction)
    return Series(start=start + placed.correction.offset_frames, luma=luma)


def _check_frames(placed: Placed, tail: int, seam: Seam, limits: Limits) -> None:
    """A segment that runs late ends early: its piece must still have all frames, and the next seam something to align."""
    missing = max(0, -placed.correction.offset_frames)
    if missing > max(0, tail - limits.offset_pairs):
        raise SeamError(f"{missing} frames missing at the end, as the segment runs late", seam)


def _check_seam(seen: Visibility, seam: Seam, limits: Limits) -> None:
    if seen.duplicate:
        raise SeamError("a frame is repeated at the seam", seam)
    if seen.luma_jump_ratio > limits.luma_jump_ratio:
        raise SeamError(f"luma jumps {seen.luma_jump_ratio:.1f} times as much as around the seam", seam)
    if seen.warp_error_ratio > limits.warp_error_ratio:
        raise SeamError(f"warping error {seen.warp_error_ratio:.2f} times that around the seam", seam)


def _score(seam: Seam, limits: Limits) -> float:
    """The worst of the measures, each from 1 (as around the seam) to 0 (at its limit)."""
    room = [
        (limits.luma_jump_ratio - seam.luma_jump_ratio) / (limits.luma_jump_ratio - 1),
        (limits.warp_error_ratio - seam.warp_error_ratio) / (limits.warp_error_ratio - 1),
    ]
    if seam.blend == "fade":
        room.append((seam.sharpness_ratio - limits.sharpness_ratio) / (1 - limits.sharpness_ratio))
    return max(0.0, min(1.0, *room))
