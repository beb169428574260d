"""What can only be seen along a take: pictures that do not move, that change their colour, that drift, that snap back.

A *take* is a chain of pieces without a planned cut. Its impressions come from the checks of its pieces, so that nothing is
decoded again. A camera that moves on changes everything: what is said of drift holds only where the picture is still the same.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec
import numpy as np
from numpy.typing import NDArray

from qc_consumers.detectors.impressions import Impression, correlation, likeness, mean_embedding
from qc_consumers.profile import Evidence, Profile
from schemas.records import PieceStitched, SeamKind

STILL_S = 2.0
"""A picture may rest for this long."""
DRIFT_PIECES = 10
_SAME = 0.9
"""Correlation of two grids that show the same."""
_SAME_PLACE = 0.6
"""After ten pieces."""
_STEADY = 0.7
"""Share of the variance that a straight line explains, or it is no drift."""
_SINK = 2
"""Impressions a windowed model attends to for ever: its first second."""
_DARK = 28.0
"""Luma: below it colour is noise."""
_DRIFTS = {"colour": 8.0, "contrast": 0.35, "sharpness": 0.45}
"""Limits: per cent of brightness; shares."""


class Seen(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What the check of a piece has seen of it."""

    begins_take: bool
    impressions: tuple[Impression, ...]


def seen_of(event: PieceStitched, impressions: tuple[Impression, ...]) -> Seen:
    """Kept for the check of the whole video, but for what looks as it does by design."""
    edges = event.designed_frames
    runs = list(zip(edges[::2], edges[1::2], strict=False))
    seen = (each for each in impressions if not any(a < each.first + each.frames and each.first < b for a, b in runs))
    return Seen(begins_take=event.seam.kind is not SeamKind.CONTINUOUS, impressions=tuple(seen))


def take_evidence(pieces: Sequence[Seen], fps: float, profile: Profile) -> Iterator[Evidence]:
    """What the gates have to know of all takes of a video."""
    for take in _takes(pieces):
        impressions = [each for piece in take for each in piece.impressions]
        yield from _motion_floor(impressions, fps, profile)
        yield from _colour_shift(impressions)
        yield from _collapse(impressions)
        yield from _drift(take)


def _takes(pieces: Sequence[Seen]) -> list[list[Seen]]:
    takes: list[list[Seen]] = []
    for piece in pieces:
        if piece.begins_take or not takes:
            takes.append([])
        takes[-1].append(piece)
    return takes


def _motion_floor(impressions: Sequence[Impression], fps: float, profile: Profile) -> Iterator[Evidence]:
    limit, run, most = profile.limit("motion_floor"), list[Impression](), 0.0
    for before, after in pairwise([*impressions, None]):
        moved = _moved(before, after) if before and after else limit
        if before and after and moved < limit:
            run, most = [*(run or [before]), after], max(most, moved)
            continue
        if sum(each.frames for each in run) >= STILL_S * fps:
            yield Evidence(gate="motion_floor", frame=run[0].first, value=most, detail=f"for {len(run)} half seconds")
        run, most = [], 0.0


def _moved(before: Impression, after: Impression) -> float:
    """How far the liveliest cell went, in levels."""
    return float(np.abs(np.subtract(before.grid, after.grid)).max()) if len(before.grid) == len(after.grid) else 255.0


def _colour_shift(impressions: Sequence[Impression]) -> Iterator[Evidence]:
    """The same picture in other colours, from one half second to the next, and it stays so."""
    for at in range(1, len(impressions)):
        before, after = impressions[at - 1], impressions[at]
        later = impressions[min(at + 1, len(impressions) - 1)]
        earlier = impressions[max(at - 2, 0)]
        if min(before.luma, after.luma) < _DARK or correlation(before.grid, after.grid) < _SAME:
            continue
        shift = _colour(after) - _colour(before)
        kept = _colour(later) - _colour(earlier)
        value = float(min(np.abs(shift).max(), np.abs(kept).max()))
        yield Evidence(gate="colour_shift", frame=after.first, value=value, detail="per cent, from one half second on")


def _colour(impression: Impression) -> NDArray[np.float64]:
    """Per cent of brightness: a fade keeps it."""
    return 100 * (np.array([impression.u, impression.v]) - 128) / _brightness(impression)


def _brightness(impression: Impression) -> float:
    """Above black, and never nothing."""
    return max(impression.luma - 16, 0.0) + 8


def _collapse(impressions: Sequence[Impression]) -> Iterator[Evidence]:
    """As `gpu_consumers.collapse`, in pictures: nearer to the first than to what was shown just before."""
    sink = impressions[:_SINK]
    for at in range(2 * _SINK, len(impressions)):
        now, then = impressions[at], impressions[at - 1]
        to_sink = max(correlation(now.grid, first.grid) for first in sink)
        rise = to_sink - max(correlation(then.grid, first.grid) for first in sink)
        if to_sink > correlation(now.grid, then.grid):
            yield Evidence(gate="collapse", frame=now.first, value=rise, detail="snapped back to the first pictures")


def _drift(take: Sequence[Seen]) -> Iterator[Evidence]:
    for at in range(len(take) - DRIFT_PIECES + 1):
        window = [each for piece in take[at : at + DRIFT_PIECES] for each in piece.impressions]
        first, last = take[at].impressions, take[at + DRIFT_PIECES - 1].impressions
        if not first or not last:
            continue
        alike = likeness(mean_embedding(first), mean_embedding(last))
        yield Evidence(gate="subject_drift", frame=last[0].first, value=alike, detail="likeness after ten pieces")
        if correlation(first[0].grid, last[-1].grid) < _SAME_PLACE:
            continue
        for what, change in _changes(window):
            yield Evidence(
                gate="drift", frame=last[0].first, value=abs(change) / _DRIFTS[what], detail=f"{what} by {change:.2f}"
            )


def _changes(window: Sequence[Impression]) -> Iterator[tuple[str, float]]:
    """How far each measure goes along a straight line, where there is one."""
    lit = [each for each in window if each.luma >= _DARK]
    if len(lit) < DRIFT_PIECES:
        return
    colour = np.array([_colour(each) for each in lit])
    measures = [
        ("colour", colour[:, 0]),
        ("colour", colour[:, 1]),
        ("contrast", np.log([max(each.contrast, 1.0) / _brightness(each) for each in lit])),
        ("sharpness", np.log([max(each.sharpness, 0.1) / _brightness(each) for each in lit])),
    ]
    for what, values in measures:
        time = np.linspace(-0.5, 0.5, len(values))
        slope = float((values @ time) / (time @ time))
        variance = float(values.var())
        if variance and slope**2 * float(time.var()) >= _STEADY * variance:
            yield what, slope
