"""What the detectors see of a file, and how a file is looked at that cannot be compared."""

from pathlib import Path

from qc_consumers.detectors import Luma, Picture, Reel, Span
from qc_consumers.detectors.black import Black
from qc_consumers.detectors.flash import Flash
from qc_consumers.detectors.still import CODED_LEVELS, LOSSLESS_LEVELS, Duplicate, Frozen
from qc_consumers.gates import Claim, Facts, Profile, Seen
from qc_consumers.metrics.packets import PacketScan
from qc_consumers.metrics.pictures import Pictures, watch
from qc_consumers.metrics.quality import Pair, Quality, measure_quality

_QUARTER = 4
"""Detectors see each n-th pixel of each n-th row: fewer than of a piece, whose frames they have seen before."""
_TIMEOUT_S = 60.0
_TIMEOUT_PER_FRAME_S = 2.0
"""Scoring a 4K frame takes about half a second on one core."""


class Eyes:
    """All detectors, on one file."""

    def __init__(self, frozen: Frozen) -> None:
        self._black, self._frozen, self._duplicate, self._flash = Black(), frozen, Duplicate(), Flash()

    def process_frame(self, picture: Picture) -> None:
        """Look at the next frame."""
        for detector in (self._black, self._frozen, self._duplicate, self._flash):
            detector.process_frame(picture)

    def seen(self) -> Seen:
        """What they found in the whole file."""
        return Seen(
            black=self._black.post_process(),
            frozen=self._frozen.post_process(),
            duplicate=self._duplicate.post_process(),
            flash=self._flash.post_process(),
        )


def compare(
    pair: Pair, scan: PacketScan, claim: Claim, folder: Path, profile: Profile, threads: int
) -> tuple[Facts, Quality]:
    """Scores and facts of a piece in one pass. The detectors look at its reference, where nothing is noise.

    The frames of the reference before and behind the piece belong to its neighbours: with them a still or a repeated frame
    across the border is seen from both sides. Raises: QualityError.
    """
    eyes = Eyes(Frozen(fps=float(claim.fps), shortest_s=profile.frozen_s, noise_levels=LOSSLESS_LEVELS))
    originals, pictures = Reel(), Reel()

    def show(reference: Luma, piece: Luma) -> None:
        eyes.process_frame(originals.next(reference))
        pictures.next(piece)

    timeout_s = _TIMEOUT_S + _TIMEOUT_PER_FRAME_S * pair.frames
    quality = measure_quality(pair, folder, show, threads=threads, timeout_s=timeout_s)
    own = slice(pair.head, pair.head + pair.frames)
    facts = Facts(
        claim=claim,
        scan=scan,
        pictures=Pictures(luma=tuple(pictures.luma[own]), luma_diff=tuple(pictures.luma_diff[own])),
        seen=_own(eyes.seen(), pair),
    )
    return facts, quality


def look(path: Path, scan: PacketScan, claim: Claim, profile: Profile, threads: int) -> Facts:
    """Facts of a file without a reference. A still has to last longer here, because encoding moves pixels."""
    eyes = Eyes(Frozen(fps=float(claim.fps), shortest_s=profile.still_s, noise_levels=CODED_LEVELS))
    pictures = watch(path, (eyes,), step=_QUARTER, threads=threads)
    return Facts(claim=claim, scan=scan, pictures=pictures, seen=eyes.seen())


def _own(seen: Seen, pair: Pair) -> Seen:
    """What is in the piece, counted from its first frame."""
    return Seen(
        black=_cut(seen.black, pair),
        frozen=_cut(seen.frozen, pair),
        duplicate=_cut(seen.duplicate, pair),
        flash=_cut(seen.flash, pair),
    )


def _cut(spans: tuple[Span, ...], pair: Pair) -> tuple[Span, ...]:
    cut: list[Span] = []
    for span in spans:
        first, end = max(span.first - pair.head, 0), min(span.first - pair.head + span.frames, pair.frames)
        if first < end:
            cut.append(Span(first=first, frames=end - first, value=span.value))
    return tuple(cut)
