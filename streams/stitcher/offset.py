"""Temporal offset of a new segment against the one before it: which of its frames shows what the overlap shows."""

from dataclasses import dataclass

from streams.stitcher.limits import Limits
from streams.stitcher.proxy import Luma
from streams.stitcher.shift import shift_between


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """The new segment is to be shown `frames` later. `margin_db`: the best one is better than every other by that much."""

    frames: int
    margin_db: float


def temporal_offset(previous: Luma, new: Luma, previous_offset: int, limits: Limits) -> Offset | None:
    """The offset, or None if the best one is beyond the limit.

    `previous` is the overlap as the segment before has it (uncorrected), `new` what the new segment starts with.
    One offset beyond the limit is tried too: if that is the best, the truth is out there.

    Offsets are compared with the shift of each undone. Where a camera pans, every offset can be undone by a shift: then
    they are compared as they are. Without a margin (nothing moves) the offset is 0.
    """
    reach = limits.offset_frames + 1
    still: dict[int, float] = {}
    undone: dict[int, float] = {}
    for frames in range(-reach, reach + 1):
        mine, theirs = same_instants(len(previous), len(new), frames - previous_offset)
        a, b = previous[mine], new[theirs]
        if len(a) < min(limits.offset_pairs, len(previous)):
            continue
        shift = shift_between(a, b)
        still[frames] = shift.still_db
        small = shift.largest_px <= limits.shift_share * max(a.shape[1:])
        undone[frames] = shift.moved_db if small else shift.still_db
    margins: list[float] = []
    for scores in (undone, still):
        best, margin = _best(scores)
        if margin >= limits.offset_margin_db:
            return Offset(frames=best, margin_db=margin) if abs(best) <= limits.offset_frames else None
        margins.append(margin)
    return Offset(frames=0, margin_db=max(margins))


def same_instants(before: int, after: int, delay: int) -> tuple[slice, slice]:
    """Which of `before` and `after` frames show the same instants if the second ones are shown `delay` later.

    With a delay of 0 both start at the same instant. As many of both; there may be none.
    """
    start, first = max(0, delay), max(0, -delay)
    count = max(0, min(before - start, after - first))
    return slice(start, start + count), slice(first, first + count)


def _best(scores: dict[int, float]) -> tuple[int, float]:
    """The best offset and its margin over the second best; a lone one has none."""
    if len(scores) < 2:
        return 0, 0.0
    first, second = sorted(scores.values(), reverse=True)[:2]
    return max(scores, key=lambda frames: scores[frames]), first - second
