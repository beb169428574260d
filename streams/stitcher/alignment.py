"""How a segment has to be corrected so that its head shows what the corrected segment before it shows."""

from dataclasses import dataclass, replace
from math import ceil
from statistics import mean

import numpy as np
from numpy.typing import NDArray

from schemas.records import Correction, Seam
from streams.stitcher.colour import Colour, matching
from streams.stitcher.limits import Limits
from streams.stitcher.offset import same_instants, temporal_offset
from streams.stitcher.picture import LUMA, moved
from streams.stitcher.proxy import Luma, Proxies, unclipped
from streams.stitcher.shift import Shift, psnr_db, shift_between, spread

_NATIVE_PAIRS = 3
"""Frames in full size that the shift is measured on."""
_ALL = 0.999
"""Weight of clean pixels: rounding takes a little of 1."""


class SeamError(Exception):
    """The segment cannot be joined to the one before. `seam` is what was measured so far."""

    def __init__(self, reason: str, seam: Seam) -> None:
        super().__init__(reason)
        self.reason = reason
        self.seam = replace(seam, score=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Frames of two segments, uncorrected. `before` are those of the overlap, `after` what the new segment starts with."""

    before: NDArray[np.uint8]
    """[T, H, W, 3]."""
    after: NDArray[np.uint8]
    small_before: Proxies
    small_after: Proxies

    def same_instants(self, delay: int) -> "Overlap":
        """Only what both show if the new segment is shown `delay` later: as many frames of both."""
        mine, theirs = same_instants(len(self.before), len(self.after), delay)
        return Overlap(
            before=self.before[mine],
            after=self.after[theirs],
            small_before=self.small_before.part(mine),
            small_after=self.small_after.part(theirs),
        )


def align(overlap: Overlap, done: Correction, seam: Seam, limits: Limits) -> tuple[Correction, Seam]:
    """The correction of the new segment, and `seam` with what was measured.

    The correction is absolute: what was `done` to the segment before, plus what is measured between the uncorrected frames,
    so that no error of resampling or rounding adds up along a shot.
    Raises: SeamError if the offset, the shift or the colour is beyond the limits, or nothing makes the two alike.
    """
    offset = temporal_offset(overlap.small_before.luma, overlap.small_after.luma, done.offset_frames, limits)
    if offset is None:
        raise SeamError(f"temporal offset beyond {limits.offset_frames} frames", seam)
    seam = replace(seam, offset_frames=offset.frames, offset_margin_db=offset.margin_db)
    pairs = overlap.same_instants(offset.frames - done.offset_frames)
    shift = _shift(pairs, seam, limits)
    colour = _colour(pairs, shift, Colour(gain=done.gain, bias=done.bias))
    correction = Correction(
        gain=colour.gain,
        bias=colour.bias,
        shift_x_px=done.shift_x_px - shift.x_px,
        shift_y_px=done.shift_y_px - shift.y_px,
        offset_frames=offset.frames,
    )
    target, result = corrected_luma(pairs.small_before, done), corrected_luma(pairs.small_after, correction)
    seam = replace(
        seam,
        shift_x_px=0.0 - correction.shift_x_px,
        shift_y_px=0.0 - correction.shift_y_px,
        gain=mean(1 / gain for gain in colour.gain),
        psnr_before_db=_psnr(target, pairs.small_after.luma),
        psnr_after_db=_psnr(target, result),
    )
    error = float(np.square(target - result).mean())
    if error > max(limits.difference_share * float(target.var()), limits.difference_noise**2):
        raise SeamError(f"the overlaps show different things: {seam.psnr_after_db:.1f} dB", seam)
    _check(correction, seam, limits.shift_share * max(pairs.before.shape[1:3]), limits)
    return correction, seam


def corrected_luma(frames: Proxies, correction: Correction) -> Luma:
    """Luma [T, h, w] of the frames in the colours and the place that they are corrected to."""
    luma = Colour(gain=correction.gain, bias=correction.bias).luma(frames.rgb)
    x, y = correction.shift_x_px / frames.factor, correction.shift_y_px / frames.factor
    return np.stack([moved(frame, x, y) for frame in luma]) if x or y else luma


def _shift(pairs: Overlap, seam: Seam, limits: Limits) -> Shift:
    """In full size. A large one that explains little is noise: the contents differ."""
    some = spread(len(pairs.before), _NATIVE_PAIRS)
    shift = shift_between(*(np.stack([frames[i] @ LUMA for i in some]) for frames in (pairs.before, pairs.after)))
    if shift.largest_px <= limits.shift_share * max(pairs.before.shape[1:3]):
        return shift
    if shift.moved_db - shift.still_db >= limits.offset_margin_db:
        raise SeamError(f"shift of {shift.largest_px:.1f} px", seam)
    return replace(shift, x_px=0.0, y_px=0.0)


def _colour(pairs: Overlap, shift: Shift, done: Colour) -> Colour:
    """Measured where both show the same part of the picture; `done` if that is nearer to it (the contents differ)."""
    factor = pairs.small_before.factor
    x, y = -shift.x_px / factor, -shift.y_px / factor
    edge = ceil(max(abs(x), abs(y)))
    inner = (slice(None), slice(edge, -edge or None), slice(edge, -edge or None))
    before = pairs.small_before.rgb[inner]
    after = _moved(pairs.small_after.rgb, x, y)[inner]
    # a moved value is clean if all that it is made of is
    clean = _moved(unclipped(pairs.after, factor).astype(np.float32), x, y)[inner] > _ALL
    clean &= unclipped(pairs.before, factor)[inner]
    found, target = matching(before, done, after, clean), done.luma(before)
    return found if _psnr(target, found.luma(after)) >= _psnr(target, done.luma(after)) else done


def _moved(frames: NDArray[np.float32], x_px: float, y_px: float) -> NDArray[np.float32]:
    """Frames [T, h, w, 3]."""
    if not x_px and not y_px:
        return frames
    channels = [np.stack([moved(plane, x_px, y_px) for plane in frames[..., c]]) for c in range(3)]
    return np.stack(channels, axis=-1)


def _psnr(a: Luma, b: Luma) -> float:
    return psnr_db(float(np.square(a - b).mean()))


def _check(correction: Correction, seam: Seam, shift_px: float, limits: Limits) -> None:
    shift = max(abs(correction.shift_x_px), abs(correction.shift_y_px))
    if shift > shift_px:
        raise SeamError(f"shift of {shift:.1f} px from the first segment of the shot", seam)
    for gain, bias in zip(correction.gain, correction.bias, strict=True):
        if not 1 / limits.gain <= gain <= limits.gain or abs(128 * (gain - 1) + bias) > limits.level:
            raise SeamError(f"colour: gain {gain:.3f}, bias {bias:.1f} from the first segment of the shot", seam)
