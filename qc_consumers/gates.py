"""What is to be said of a piece or a video, from measured facts: pure functions to evidence. The profile judges it.

Encode again what the encoder or the clock got wrong, generate again what the pictures got wrong, quarantine what does not
decode. A finding whose verdict is PASS is a warning. Means (and the worst second of VMAF) decide; first percentiles and
minima warn only, because one hard frame is no reason to encode a piece again.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from statistics import median

import numpy as np

from qc_consumers.detectors import Span
from qc_consumers.detectors.impressions import Impression
from qc_consumers.metrics.hdr import hdr_faults
from qc_consumers.metrics.packets import PacketScan
from qc_consumers.metrics.pictures import Pictures
from qc_consumers.metrics.quality import Pair, Quality
from qc_consumers.profile import Evidence, Profile
from schemas.records import Finding, Scores, Verdict, VideoFormat

_SEVERITY = list(Verdict)
_MOST_PER_GATE = 16
_UNSPECIFIED = 2
"""ITU-T H.273."""
_GOPS_AROUND = 5
_FEW_BYTES = 2000
"""A GOP of less is no peak, whatever is around it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the detectors found, in frames of the file."""

    black: tuple[Span, ...] = ()
    frozen: tuple[Span, ...] = ()
    """In the lossless reference."""
    still: tuple[Span, ...] = ()
    """In coded pictures."""
    duplicate: tuple[Span, ...] = ()
    flash: tuple[Span, ...] = ()
    strobe: tuple[Span, ...] = ()
    flicker: tuple[Span, ...] = ()
    letterbox: tuple[Span, ...] = ()
    glitch: tuple[Span, ...] = ()
    jump: tuple[Span, ...] = ()


_WORDS = {
    "black": "black frames",
    "frozen": "frames without motion",
    "still": "coded frames without motion",
    "duplicate": "frames that repeat the one before",
    "flash": "frames that flash",
    "strobe": "frames with too many flashes",
    "flicker": "frames whose brightness wavers",
    "letterbox": "bars change, frames",
    "glitch": "frames that do not belong",
    "jump": "frames that do not follow from the one before",
}
_AT_BORDERS = frozenset({"flash", "letterbox", "glitch", "jump"})
"""Gates that speak of the first frame that is different."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a file is said to be: frames [start_frame, start_frame + frames) of a video in `format`."""

    start_frame: int
    frames: int
    format: VideoFormat
    designed: tuple[int, ...] = ()
    """As `designed_frames` of the event: what looks as it does by design is no fault."""

    @property
    def fps(self) -> Fraction:
        """Frames per second, exact."""
        return Fraction(self.format.fps_num, self.format.fps_den)


@dataclass(frozen=True, slots=True, kw_only=True)
class Border:
    """What lies between a piece and the one before it, measured where both are seen."""

    flow_error_ratio: float
    """What motion does not explain at the seam, over what is usual behind it."""
    likeness: float
    """Of the embeddings on both sides: 1 for the same picture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What was measured of it."""

    claim: Claim
    scan: PacketScan
    pictures: Pictures | None
    """None: not decoded, because all of it was decoded before, in its pieces."""
    seen: Seen
    impressions: tuple[Impression, ...] = ()
    border: Border | None = None
    """None: a frame of the piece before was not there to see."""


def worst(findings: Iterable[Finding]) -> Verdict:
    """The verdict on the whole: that of the worst finding."""
    return max((finding.verdict for finding in findings), key=_SEVERITY.index, default=Verdict.PASS)


def file_evidence(facts: Facts, profile: Profile) -> Iterator[Evidence]:
    """Everything that can be said of a file without comparing it."""
    yield from decoding_evidence(facts)
    yield from _frame_count(facts)
    yield from _timing(facts)
    yield from _gops(facts)
    yield from _tags(facts)
    for fault in hdr_faults(facts.scan, profile.transfer):
        yield Evidence(gate=fault.gate, frame=_at(facts, fault.frame), value=1, detail=fault.detail)
    yield from _pictures(facts)


def score_evidence(scores: Scores, quality: Quality, claim: Claim) -> Iterator[Evidence]:
    """What the scores of a piece say."""
    yield _whole("psnr_y", scores.psnr_y_mean, "mean")
    yield _whole("psnr_y_p1", scores.psnr_y_p1, "first percentile")
    yield _worst_frame("psnr_y_min", quality.psnr_y, claim)
    yield _worst_second("psnr_y_worst_second", quality.psnr_y, claim)
    yield _whole("vmaf", scores.vmaf_mean, "mean")
    yield _whole("vmaf_p1", scores.vmaf_p1, "first percentile")
    yield _worst_frame("vmaf_min", quality.vmaf, claim)
    yield _worst_second("vmaf_worst_second", quality.vmaf, claim)


def reference_evidence(pair: Pair, reference: PacketScan) -> Iterator[Evidence]:
    """The reference has to be as large and as long as announced: otherwise it is stitched again."""
    frames, size = pair.all_frames, (pair.width, pair.height)
    if len(reference.packets) != frames or (reference.width, reference.height) != size:
        said = f"{len(reference.packets)} frames of {reference.width}x{reference.height}"
        yield _whole("reference", 1, f"{said}, announced {frames} of {pair.width}x{pair.height}")


def decoding_evidence(facts: Facts) -> Iterator[Evidence]:
    """Errors, with the longest clean run."""
    if facts.scan.broken:
        yield _whole("decode", facts.scan.broken, "packets with broken NAL units")
    pictures = facts.pictures
    if pictures is None or not (pictures.corrupt or pictures.errors):
        return
    for frame in pictures.corrupt[:_MOST_PER_GATE]:
        yield Evidence(gate="decode", frame=_at(facts, frame), value=1, detail="the frame is corrupt")
    for error in pictures.errors[:_MOST_PER_GATE]:
        yield _whole("decode", 1, error)
    run = _longest_clean_run(pictures)
    if run < facts.claim.frames:
        yield _whole("clean_run", run, "consecutive frames without an error")


def _worst_frame(gate: str, scores: Sequence[float], claim: Claim) -> Evidence:
    at = int(np.argmin(scores))
    return Evidence(gate=gate, frame=claim.start_frame + at, value=scores[at], detail="worst frame")


def _worst_second(gate: str, scores: Sequence[float], claim: Claim) -> Evidence:
    second = min(max(round(claim.fps), 1), len(scores))
    windows = np.convolve(scores, np.full(second, 1 / second), mode="valid")
    at = int(windows.argmin())
    return Evidence(
        gate=gate, frame=claim.start_frame + at, value=float(windows[at]), detail="mean of the worst second"
    )


def _frame_count(facts: Facts) -> Iterator[Evidence]:
    packets = len(facts.scan.packets)
    decoded = len(facts.pictures.luma) if facts.pictures else facts.claim.frames
    for count, what in ((packets, "packets"), (decoded, "decoded frames")):
        yield _whole("frame_count", abs(count - facts.claim.frames), f"{count} {what}, announced {facts.claim.frames}")


def _timing(facts: Facts) -> Iterator[Evidence]:
    wrong = [(frame, error) for frame, error in enumerate(facts.scan.step_errors_s(facts.claim.fps), 1) if error]
    detail = f"{len(wrong)} steps are not {1 / facts.claim.fps} s"
    for frame, error in sorted(wrong, key=lambda pair: -pair[1])[:_MOST_PER_GATE]:
        yield Evidence(gate="pts_step", frame=_at(facts, frame), value=float(error), detail=detail)


def _gops(facts: Facts) -> Iterator[Evidence]:
    shown, gops = facts.scan.presented(), facts.scan.gops()
    if not gops or gops[0][0] != 0:
        yield Evidence(gate="idr", frame=_at(facts, 0), value=1, detail="does not begin with an IDR picture")
    open_gops = [frame for frame, packet in enumerate(shown) if packet.keyframe and not packet.idr]
    for frame in open_gops[:_MOST_PER_GATE]:
        yield Evidence(gate="idr", frame=_at(facts, frame), value=1, detail="keyframe without IDR: open GOP")
    sizes = [sum(packet.size_bytes for packet in shown[first : first + frames]) / frames for first, frames in gops]
    for index, (first, frames) in enumerate(gops):
        if frames > 1:
            seconds = float(frames / facts.claim.fps)
            yield Evidence(gate="gop", frame=_at(facts, first), value=seconds, detail="seconds long")
        around = sizes[max(0, index - _GOPS_AROUND) : index] + sizes[index + 1 : index + 1 + _GOPS_AROUND]
        if around and sizes[index] > _FEW_BYTES:
            ratio = sizes[index] / max(median(around), 1)
            yield Evidence(gate="bitrate_peak", frame=_at(facts, first), value=ratio, detail="times the GOPs around it")


def _tags(facts: Facts) -> Iterator[Evidence]:
    scan, size = facts.scan, (facts.claim.format.width, facts.claim.format.height)
    primaries, transfer, matrix, color_range = scan.color
    if (scan.width, scan.height) != size:
        yield _whole("tags", 1, f"{scan.width}x{scan.height}, announced {size[0]}x{size[1]}")
    if not scan.square_pixels:
        yield _whole("tags", 1, "pixels are not square")
    if _UNSPECIFIED in (primaries, transfer, matrix) or color_range != 1:
        yield _whole("tags", 1, f"colour primaries, transfer, matrix, range are {scan.color}")


def _pictures(facts: Facts) -> Iterator[Evidence]:
    seen = facts.seen
    still = {frame for span in seen.frozen for frame in range(span.first, span.first + span.frames)}
    for gate, words in _WORDS.items():
        spans: tuple[Span, ...] = getattr(seen, gate)
        if gate == "duplicate":
            spans = tuple(span for span in spans if span.first not in still)
        meant = partial(_is_meant, facts.claim, late=int(gate in _AT_BORDERS))
        for span in _joined([span for span in spans if not meant(span)])[:_MOST_PER_GATE]:
            yield Evidence(
                gate=gate, frame=_at(facts, span.first), value=abs(span.value), detail=f"{words}: {span.frames}"
            )


def _is_meant(claim: Claim, span: Span, *, late: int) -> bool:
    """Whether it begins in a run of frames that look so by design, or `late` frames behind."""
    first, edges = claim.start_frame + span.first, claim.designed
    return any(begin <= first < end + late for begin, end in zip(edges[::2], edges[1::2], strict=False))


def _joined(spans: Sequence[Span]) -> list[Span]:
    """Neighbouring spans as one, with the value of the first."""
    joined: list[Span] = []
    for span in spans:
        last = joined[-1] if joined else None
        if last and last.first + last.frames == span.first:
            joined[-1] = Span(first=last.first, frames=last.frames + span.frames, value=last.value)
        else:
            joined.append(span)
    return joined


def _longest_clean_run(pictures: Pictures) -> int:
    edges = [-1, *pictures.corrupt, len(pictures.luma)]
    return max(after - before - 1 for before, after in pairwise(edges))


def _at(facts: Facts, frame: int) -> int:
    return facts.claim.start_frame + frame if frame >= 0 else -1


def _whole(gate: str, value: float, detail: str) -> Evidence:
    return Evidence(gate=gate, frame=-1, value=value, detail=detail)
