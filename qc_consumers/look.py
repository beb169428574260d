"""What the detectors see of a file, and how a file is looked at that cannot be compared."""

from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from pathlib import Path

from qc_consumers.detectors import Detector, Levels, Luma, Picture, Reel, Span
from qc_consumers.detectors.black import Black
from qc_consumers.detectors.flash import Flash, Flicker, Strobe
from qc_consumers.detectors.glitch import Glitch, Jump
from qc_consumers.detectors.impressions import Impression, Impressions, embedding, likeness
from qc_consumers.detectors.letterbox import Letterbox
from qc_consumers.detectors.still import CODED_LEVELS, LOSSLESS_LEVELS, Duplicate, Frozen
from qc_consumers.gates import Border, Claim, Facts, Seen
from qc_consumers.metrics.packets import PacketScan
from qc_consumers.metrics.pictures import Pictures, watch
from qc_consumers.metrics.quality import Pair, Quality, measure_quality
from qc_consumers.profile import Profile

_QUARTER = 4
"""Detectors see each n-th pixel of each n-th row: fewer than of a piece, whose frames they have seen before."""
_TIMEOUT_S = 60.0
_TIMEOUT_PER_FRAME_S = 2.0
"""Scoring a 4K frame takes about half a second on one core."""
_CHUNKS_PER_SECOND = 2
_STROBE_SHARE = 0.75
"""Of a flash: strobes are more, and weaker."""


class Eyes:
    """All detectors, on one file."""

    def __init__(
        self, profile: Profile, fps: Fraction, impressions: Impressions, still: Mapping[str, Detector]
    ) -> None:
        flash = profile.limit("flash")
        self.jump = Jump(profile.limit("jump"))
        self._impressions = impressions
        self._detectors: dict[str, Detector] = {
            **still,
            "black": Black(profile.limit("black")),
            "flash": Flash(flash),
            "strobe": Strobe(fps=float(fps), per_second=profile.limit("strobe"), levels=_STROBE_SHARE * flash),
            "flicker": Flicker(profile.limit("flicker")),
            "letterbox": Letterbox(profile.limit("letterbox")),
            "glitch": Glitch(profile.limit("glitch")),
            "jump": self.jump,
        }

    def process_frame(self, picture: Picture) -> None:
        """Look at the next frame."""
        for detector in self._detectors.values():
            detector.process_frame(picture)
        self._impressions.process_frame(picture)

    def seen(self) -> Seen:
        """What they found in the whole file."""
        return Seen(**{name: detector.post_process() for name, detector in self._detectors.items()})

    def impressions(self) -> tuple[Impression, ...]:
        """What is left of the pictures."""
        return self._impressions.post_process()


def compare(
    pair: Pair, scan: PacketScan, claim: Claim, folder: Path, profile: Profile, threads: int
) -> tuple[Facts, Quality]:
    """Scores and facts of a piece in one pass. The detectors look at its reference, where nothing is noise.

    The frames of the reference before and behind the piece belong to its neighbours: with them a still or a repeated frame
    across the border is seen from both sides. Raises: QualityError.
    """
    frozen = Frozen(fps=float(claim.fps), shortest_s=profile.limit("frozen"), noise_levels=LOSSLESS_LEVELS)
    exact = {"frozen": frozen, "duplicate": Duplicate(profile.limit("duplicate"))}
    eyes = Eyes(profile, claim.fps, _impressions(claim, pair.head), exact)
    originals, coded = Reel(), Levels()
    context: list[Picture] = []

    def show(reference: Luma, piece: Luma, chroma: Luma) -> None:
        picture = originals.next(reference, chroma)
        eyes.process_frame(picture)
        coded.next(piece)
        if picture.frame < pair.head:
            context.append(picture)

    timeout_s = _TIMEOUT_S + _TIMEOUT_PER_FRAME_S * pair.frames
    quality = measure_quality(pair, folder, show, threads=threads, timeout_s=timeout_s)
    own = slice(pair.head, pair.head + pair.frames)
    impressions = eyes.impressions()
    facts = Facts(
        claim=claim,
        scan=scan,
        pictures=Pictures(luma=tuple(coded.luma[own]), luma_diff=tuple(coded.luma_diff[own])),
        seen=_own(eyes.seen(), pair),
        impressions=impressions,
        border=_border(context[-1], impressions[0], eyes.jump) if context and impressions else None,
    )
    return facts, quality


def look(path: Path, scan: PacketScan, claim: Claim, profile: Profile, threads: int) -> Facts:
    """Facts of a file without a reference. A still has to last longer here, because encoding moves pixels; and it repeats slow
    frames, so that repeats say nothing."""
    still = Frozen(fps=float(claim.fps), shortest_s=profile.limit("still"), noise_levels=CODED_LEVELS)
    eyes = Eyes(profile, claim.fps, _impressions(claim, 0), {"still": still})
    pictures = watch(path, (eyes,), step=_QUARTER, threads=threads)
    return Facts(claim=claim, scan=scan, pictures=pictures, seen=eyes.seen(), impressions=eyes.impressions())


def _impressions(claim: Claim, skipped: int) -> Impressions:
    per_chunk = max(1, round(claim.fps / _CHUNKS_PER_SECOND))
    return Impressions(start_frame=claim.start_frame, skipped=skipped, frames=claim.frames, per_chunk=per_chunk)


def _border(before: Picture, first: Impression, jump: Jump) -> Border:
    alike = likeness(embedding(before.small, before.chroma), first.embedding)
    return Border(flow_error_ratio=jump.ratio_at(before.frame + 1, 1), likeness=alike)


def _own(seen: Seen, pair: Pair) -> Seen:
    """What is in the piece, counted from its first frame."""
    return Seen(**{field.name: _cut(getattr(seen, field.name), pair) for field in fields(Seen)})


def _cut(spans: tuple[Span, ...], pair: Pair) -> tuple[Span, ...]:
    cut: list[Span] = []
    for span in spans:
        first, end = max(span.first - pair.head, 0), min(span.first - pair.head + span.frames, pair.frames)
        if first < end:
            cut.append(Span(first=first, frames=end - first, value=span.value))
    return tuple(cut)
