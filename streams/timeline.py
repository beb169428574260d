"""Where shots, segments and pieces lie on the timeline: frame arithmetic, nothing else.

A *run* is a chain of shots joined by continuous transitions: one take for the engine. Frames are indices [first, end).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from schemas.engines import EngineLimits
from schemas.records import SeamKind, SegmentPlan, Transition

DISSOLVE_FRAMES = 12
"""Half a second at 24 fps: longer dissolves read as an effect."""

_OVERLAPPING = {Transition.DISSOLVE: SeamKind.DISSOLVE, Transition.WIPE: SeamKind.WIPE}
"""Both shots are generated where one becomes the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Frames that are cut into near-equal segments. The segments overlap the spans around it by `head` and `tail`."""

    start: int
    end: int
    head: int
    tail: int
    seam: SeamKind
    """How its first segment meets the one before."""


def shot_starts(seconds: Sequence[Fraction], fps: Fraction) -> tuple[int, ...]:
    """First frame of each shot, and the end: the nearest frame to the sum of the shots before, a half counts up."""
    starts, elapsed = [0], Fraction(0)
    for length in seconds:
        elapsed += length
        starts.append(int(elapsed * fps + Fraction(1, 2)))
    return tuple(starts)


def cut(starts: Sequence[int], transitions: Sequence[Transition], limits: EngineLimits) -> tuple[SegmentPlan, ...]:
    """The segments of a timeline. `starts` are those of the shots and the end; `transitions[k]` is how shot k begins.

    Their pieces, [start_frame, next start_frame), tile the timeline; none is longer than the engine generates in one go.
    """
    spans = [span for run in _runs(starts, transitions, limits) for span in _spans(run, starts, transitions, limits)]
    return tuple(segment for span in spans for segment in _segments(span, limits))


def _runs(starts: Sequence[int], transitions: Sequence[Transition], limits: EngineLimits) -> Iterator[Span]:
    firsts = [k for k, transition in enumerate(transitions) if k == 0 or transition is not Transition.CONTINUOUS]
    heads = [_dissolve(starts, k, limits) if k and transitions[k] in _OVERLAPPING else 0 for k in firsts]
    ends = [starts[k] for k in firsts[1:]] + [starts[-1]]
    for k, end, head, tail in zip(firsts, ends, heads, [*heads[1:], 0], strict=True):
        seam = _OVERLAPPING[transitions[k]] if head else SeamKind.CUT
        yield Span(start=starts[k], end=end, head=head, tail=tail, seam=seam if k else SeamKind.FIRST)


def _dissolve(starts: Sequence[int], k: int, limits: EngineLimits) -> int:
    """Frames that shots k - 1 and k share. At most half of either, and half of what a segment adds."""
    shorter = min(starts[k] - starts[k - 1], starts[k + 1] - starts[k])
    return min(DISSOLVE_FRAMES, shorter // 2, (limits.max_segment_frames - limits.overlap_frames) // 2)


def _spans(run: Span, starts: Sequence[int], transitions: Sequence[Transition], limits: EngineLimits) -> Iterator[Span]:
    """The run, parted an overlap before each continuous shot: the overlap shows the old shot on both sides, and can be aligned.

    A change that would leave a part shorter than half of what a segment adds falls inside a segment instead.
    """
    overlap = limits.overlap_frames
    shortest = max((limits.max_segment_frames - overlap) // 2, overlap, 1)
    borders = [run.start]
    for start, transition in zip(starts, transitions, strict=False):
        border = run.start + _block_end(start - overlap - run.start, limits)
        if transition is Transition.CONTINUOUS and border - borders[-1] >= shortest and run.end - border >= shortest:
            borders.append(border)
    borders.append(run.end)
    for begin, end in pairwise(borders):
        yield Span(
            start=begin,
            end=end,
            head=run.head if begin == run.start else overlap,
            tail=run.tail if end == run.end else overlap,
            seam=run.seam if begin == run.start else SeamKind.CONTINUOUS,
        )


def _block_end(frames: int, limits: EngineLimits) -> int:
    """The last end of a block within this many frames of a take, or of the first block if that is longer."""
    first, block = limits.first_block_frames, limits.block_frames
    return max(frames - first, 0) // block * block + first


def _blocks(frames: int, block: int) -> int:
    return -(-frames // block)


def _segments(span: Span, limits: EngineLimits) -> Iterator[SegmentPlan]:
    """As few segments as the limit allows, with lengths that differ by one block at most."""
    overlap, block = limits.overlap_frames, limits.block_frames
    new = (limits.max_segment_frames - overlap) // block
    generated = span.end - span.start + span.tail
    begun = block - limits.first_block_frames if span.seam is not SeamKind.CONTINUOUS else 0
    count = max(1, -(-_blocks(generated - overlap + begun, block) // new))
    total = _blocks(generated + (count - 1) * overlap + begun, block)
    start = span.start
    for index in range(count):
        last = index == count - 1
        frames = (total * (index + 1) // count - total * index // count) * block - (0 if index else begun)
        frames = span.end + span.tail - start if last else frames
        yield SegmentPlan(
            start_frame=start,
            frames=frames,
            head_overlap=overlap if index else span.head,
            tail_overlap=span.tail if last else overlap,
            seam=SeamKind.CONTINUOUS if index else span.seam,
        )
        start += frames - overlap
