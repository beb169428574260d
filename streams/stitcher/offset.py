"""Temporal offset of a new segment against the one before it: which of its frames shows what the overlap shows."""

from dataclasses import dataclass, replace

from streams.stitcher.limits import Limits
from streams.stitcher.proxy import Luma
from streams.stitcher.shift import Shift, shift_between, spread

_PAIRS = 4
"""Of frames are compared for each offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """The new segment is to be shown `frames` later. `margin_db`: the best one is better than every other by that much."""

    frames: int
    margin_db: float


def temporal_offset(previous: Luma, new: Luma, previous_offset: int, limits: Limits) -> Offset | None:
    """The offset, or None if the best one is beyond the limit.

    `previous` is the overlap as the segment before has it (uncorrected), `new` what the new segment starts with.
    One offset beyond the limit is tried too: if that is the best, the truth is out there.

    Offsets are compared with the shift of each undone; where a camera pans every offset can be undone by a shift, so then
    as they are; where all but a detail stands still, by what changes. Without a margin in any of these the offset is 0.
    """
    reach = limits.offset_frames + 1
    shifts: dict[int, Shift] = {}
    for frames in range(-reach, reach + 1):
        mine, theirs = same_instants(len(previous), len(new), frames - previous_offset)
        if mine.stop - mine.start >= min(limits.offset_pairs, len(previous)):
            some = spread(mine.stop - mine.start, _PAIRS)
            shifts[frames] = shift_between(previous[mine][some], new[theirs][some])
    small = limits.shift_share * max(previous.shape[1:])
    undone = {k: s.moved_db if s.largest_px <= small else s.still_db for k, s in shifts.items()}
    still = {k: s.still_db for k, s in shifts.items()}
    change = {k: s.change_db for k, s in shifts.items() if s.largest_px <= small}
    best = [_best(scores) for scores in (undone, still, change)]
    for offset in best:
        if offset.margin_db >= limits.offset_margin_db:
            return offset if abs(offset.frames) <= limits.offset_frames else None
    return replace(best[0], frames=0)


def same_instants(before: int, after: int, delay: int) -> tuple[slice, slice]:
    """Which of `before` and `after` frames show the same instants if the second ones are shown `delay` later.

    With a delay of 0 both start at the same instant. As many of both; there may be none.
    """
    start, first = max(0, delay), max(0, -delay)
    count = max(0, min(before - start, after - first))
    return slice(start, start + count), slice(first, first + count)


def _best(scores: dict[int, float]) -> Offset:
    """The best offset and its margin over the second best; a lone one has none."""
    if len(scores) < 2:
        return Offset(frames=0, margin_db=0.0)
    first, second = sorted(scores.values(), reverse=True)[:2]
    return Offset(frames=max(scores, key=lambda frames: scores[frames]), margin_db=first - second)
