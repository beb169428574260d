"""Everything that is measured of a file without comparing it: packets, decoding, detectors."""

from pathlib import Path

from qc_consumers.detectors import Span
from qc_consumers.detectors.black import Black
from qc_consumers.detectors.flash import Flash
from qc_consumers.detectors.still import CODED_LEVELS, LOSSLESS_LEVELS, Duplicate, Frozen
from qc_consumers.gates import Claim, Facts, Profile, Seen
from qc_consumers.metrics.packets import scan_packets
from qc_consumers.metrics.pictures import Pictures, watch

_HALF, _QUARTER = 2, 4
"""Detectors see each n-th pixel of each n-th row."""


def look_at_piece(piece: Path, reference: Path, claim: Claim, head: int, profile: Profile, threads: int) -> Facts:
    """Facts of the piece, with what the detectors see in its reference, where nothing is noise.

    The first `head` frames of the reference, and those beyond the piece, belong to its neighbours: with them a still or a
    repeated frame across the border is seen from both sides. Raises: UnreadableError.
    """
    scan = scan_packets(piece)
    frozen = Frozen(fps=float(claim.fps), shortest_s=profile.frozen_s, noise_levels=LOSSLESS_LEVELS)
    _, seen = _seen(reference, frozen, _HALF, threads)
    own = Seen(
        black=_own(seen.black, head, claim.frames),
        frozen=_own(seen.frozen, head, claim.frames),
        duplicate=_own(seen.duplicate, head, claim.frames),
        flash=_own(seen.flash, head, claim.frames),
    )
    return Facts(claim=claim, scan=scan, pictures=watch(piece, (), step=_HALF, threads=threads), seen=own)


def look_at_video(video: Path, claim: Claim, profile: Profile, threads: int) -> Facts:
    """Facts of a file that has no reference: a still has to last longer, because encoding moves pixels. Raises: UnreadableError."""
    scan = scan_packets(video)
    frozen = Frozen(fps=float(claim.fps), shortest_s=profile.still_s, noise_levels=CODED_LEVELS)
    pictures, seen = _seen(video, frozen, _QUARTER, threads)
    return Facts(claim=claim, scan=scan, pictures=pictures, seen=seen)


def _seen(path: Path, frozen: Frozen, step: int, threads: int) -> tuple[Pictures, Seen]:
    black, duplicate, flash = Black(), Duplicate(), Flash()
    pictures = watch(path, (black, frozen, duplicate, flash), step=step, threads=threads)
    seen = Seen(
        black=black.post_process(),
        frozen=frozen.post_process(),
        duplicate=duplicate.post_process(),
        flash=flash.post_process(),
    )
    return pictures, seen


def _own(spans: tuple[Span, ...], head: int, frames: int) -> tuple[Span, ...]:
    """The part of each span that is in the piece, counted from its first frame."""
    cut: list[Span] = []
    for span in spans:
        first, end = max(span.first - head, 0), min(span.first - head + span.frames, frames)
        if first < end:
            cut.append(Span(first=first, frames=end - first, value=span.value))
    return tuple(cut)
