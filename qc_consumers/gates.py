"""What is allowed and what is to be done about the rest: pure functions from measured facts to findings.

Verdicts: encode again what the encoder or the clock got wrong, generate again what the pictures got wrong, quarantine
what does not decode. A finding whose verdict is PASS is a warning. Means (and the worst second of VMAF) decide; first
percentiles and minima warn only, because one hard frame is no reason to encode a piece again.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from qc_consumers.detectors import Span
from qc_consumers.detectors.black import BLACK_SHARE
from qc_consumers.detectors.flash import FLASH_LEVELS
from qc_consumers.detectors.still import DUPLICATE_LEVELS
from qc_consumers.metrics.packets import PacketScan
from qc_consumers.metrics.pictures import Pictures
from qc_consumers.metrics.quality import Pair
from schemas.records import Finding, Scores, Verdict, VideoFormat

_SEVERITY = list(Verdict)
_MOST_PER_GATE = 16
_UNSPECIFIED = 2
"""ITU-T H.273."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The fixed thresholds. Source: the product's requirements (Q1)."""

    psnr_y_db: float = 38.0
    vmaf: float = 82.0
    """Of model vmaf_v0.6.1: thresholds do not carry over to other models."""
    step_tolerance_s: float = 0.0005
    gop_s: float = 2.0
    frozen_s: float = 0.12
    """Three frames, in the lossless reference of a piece."""
    still_s: float = 0.5
    """In a video, where only coded pictures are left to look at."""
    consecutive_frames: int = 1000
    """So many in a row have to decode without an error, or all if there are fewer."""
    sync_s: float = 0.042
    sync_warning_s: float = 0.021


PROFILE = Profile()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the detectors found, in frames of the file."""

    black: tuple[Span, ...] = ()
    frozen: tuple[Span, ...] = ()
    duplicate: tuple[Span, ...] = ()
    flash: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a file is said to be: frames [start_frame, start_frame + frames) of a video in `format`."""

    start_frame: int
    frames: int
    format: VideoFormat

    @property
    def fps(self) -> Fraction:
        """Frames per second, exact."""
        return Fraction(self.format.fps_num, self.format.fps_den)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What was measured of it."""

    claim: Claim
    scan: PacketScan
    pictures: Pictures | None
    """None: not decoded, because all of it was decoded before, in its pieces."""
    seen: Seen


def worst(findings: Iterable[Finding]) -> Verdict:
    """The verdict on the whole: that of the worst finding."""
    return max((finding.verdict for finding in findings), key=_SEVERITY.index, default=Verdict.PASS)


def judge_file(facts: Facts, profile: Profile, frozen_s: float) -> tuple[Finding, ...]:
    """Everything that can be said of a file without comparing it. `frozen_s`: the shortest still that was looked for."""
    return (
        *judge_decoding(facts, profile),
        *_frame_count(facts),
        *_timing(facts, profile),
        *_gop(facts, profile),
        *_tags(facts),
        *_pictures(facts, frozen_s),
    )


def judge_scores(scores: Scores, profile: Profile) -> tuple[Finding, ...]:
    """The quality gates on the scores of a piece."""
    decide, warn = Verdict.REENCODE, Verdict.PASS
    rules = (
        ("psnr_y", decide, scores.psnr_y_mean, profile.psnr_y_db, "mean"),
        ("psnr_y_p1", warn, scores.psnr_y_p1, profile.psnr_y_db, "first percentile"),
        ("psnr_y_min", warn, scores.psnr_y_min, profile.psnr_y_db, "worst frame"),
        ("vmaf", decide, scores.vmaf_mean, profile.vmaf, "mean"),
        ("vmaf_worst_second", decide, scores.vmaf_worst_second, profile.vmaf, "mean of the worst second"),
        ("vmaf_p1", warn, scores.vmaf_p1, profile.vmaf, "first percentile"),
        ("vmaf_min", warn, scores.vmaf_min, profile.vmaf, "worst frame"),
    )
    return tuple(
        Finding(gate=gate, verdict=verdict, frame=-1, value=value, limit=limit, detail=detail)
        for gate, verdict, value, limit, detail in rules
        if value < limit
    )


def judge_reference(pair: Pair, reference: PacketScan) -> tuple[Finding, ...]:
    """The reference has to be as large and as long as announced: otherwise it is stitched again."""
    frames, size = pair.all_frames, (pair.width, pair.height)
    if len(reference.packets) == frames and (reference.width, reference.height) == size:
        return ()
    detail = f"{reference.width}x{reference.height}, announced {pair.width}x{pair.height}"
    return (_finding("reference", Verdict.REENCODE, -1, len(reference.packets), frames, detail),)


def judge_decoding(facts: Facts, profile: Profile) -> Iterator[Finding]:
    """Quarantine what has errors in it, with the longest clean run as evidence."""
    if facts.scan.broken:
        yield _finding("decode", Verdict.QUARANTINE, -1, facts.scan.broken, 0, "packets with broken NAL units")
    pictures = facts.pictures
    if pictures is None or not (pictures.corrupt or pictures.errors):
        return
    for frame in pictures.corrupt[:_MOST_PER_GATE]:
        yield _finding("decode", Verdict.QUARANTINE, facts.claim.start_frame + frame, 1, 0, "the frame is corrupt")
    for error in pictures.errors[:_MOST_PER_GATE]:
        yield _finding("decode", Verdict.QUARANTINE, -1, 1, 0, error)
    run, needed = _longest_clean_run(pictures), min(profile.consecutive_frames, facts.claim.frames)
    if run < needed:
        yield _finding("clean_run", Verdict.QUARANTINE, -1, run, needed, "consecutive frames without an error")


def _frame_count(facts: Facts) -> Iterator[Finding]:
    packets = len(facts.scan.packets)
    decoded = len(facts.pictures.luma) if facts.pictures else facts.claim.frames
    if packets != facts.claim.frames:
        yield _finding("frame_count", Verdict.REENCODE, -1, packets, facts.claim.frames, "packets")
    if decoded != facts.claim.frames:
        yield _finding("frame_count", Verdict.REENCODE, -1, decoded, facts.claim.frames, "decoded frames")


def _timing(facts: Facts, profile: Profile) -> Iterator[Finding]:
    wrong = [(frame, error) for frame, error in enumerate(facts.scan.step_errors_s(facts.claim.fps), 1) if error]
    tolerance, detail = profile.step_tolerance_s, f"{len(wrong)} steps are not {1 / facts.claim.fps} s"
    for frame, error in sorted(wrong, key=lambda pair: -pair[1])[:_MOST_PER_GATE]:
        verdict = Verdict.REENCODE if error > tolerance else Verdict.PASS
        yield _finding("pts_step", verdict, facts.claim.start_frame + frame, float(error), tolerance, detail)


def _gop(facts: Facts, profile: Profile) -> Iterator[Finding]:
    shown, gops = facts.scan.presented(), facts.scan.gops()
    if not gops or gops[0][0] != 0:
        yield _finding("idr", Verdict.REENCODE, facts.claim.start_frame, 0, 1, "does not begin with an IDR picture")
    open_gops = [frame for frame, packet in enumerate(shown) if packet.keyframe and not packet.idr]
    for frame in open_gops[:_MOST_PER_GATE]:
        yield _finding("idr", Verdict.REENCODE, facts.claim.start_frame + frame, 0, 1, "keyframe without IDR: open GOP")
    for first, frames in gops:
        seconds = float(frames / facts.claim.fps)
        if seconds > profile.gop_s and frames > 1:
            yield _finding(
                "gop", Verdict.REENCODE, facts.claim.start_frame + first, seconds, profile.gop_s, "seconds long"
            )


def _tags(facts: Facts) -> Iterator[Finding]:
    scan, size = facts.scan, (facts.claim.format.width, facts.claim.format.height)
    primaries, transfer, matrix, color_range = scan.color
    if (scan.width, scan.height) != size:
        yield _finding("tags", Verdict.REENCODE, -1, scan.width, size[0], f"{scan.width}x{scan.height}")
    if not scan.square_pixels:
        yield _finding("tags", Verdict.REENCODE, -1, 0, 1, "pixels are not square")
    if _UNSPECIFIED in (primaries, transfer, matrix) or color_range != 1:
        detail = f"colour primaries, transfer, matrix, range are {scan.color}"
        yield _finding("tags", Verdict.REENCODE, -1, 0, 1, detail)


def _pictures(facts: Facts, frozen_s: float) -> Iterator[Finding]:
    seen = facts.seen
    yield from _spans(facts, "black", Verdict.REGENERATE, seen.black, BLACK_SHARE, "black frames")
    yield from _spans(facts, "frozen", Verdict.REGENERATE, seen.frozen, frozen_s, "frames without motion")
    still = {frame for span in seen.frozen for frame in range(span.first, span.first + span.frames)}
    repeated = [span for span in seen.duplicate if span.first not in still]
    yield from _spans(facts, "duplicate", Verdict.PASS, repeated, DUPLICATE_LEVELS, "frames that repeat the one before")
    yield from _spans(facts, "flash", Verdict.PASS, seen.flash, FLASH_LEVELS, "frames that flash")


def _spans(
    facts: Facts, gate: str, verdict: Verdict, spans: Sequence[Span], limit: float, detail: str
) -> Iterator[Finding]:
    for span in _joined(spans)[:_MOST_PER_GATE]:
        yield _finding(
            gate, verdict, facts.claim.start_frame + span.first, span.value, limit, f"{detail}: {span.frames}"
        )


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


def _finding(gate: str, verdict: Verdict, frame: int, value: float, limit: float, detail: str) -> Finding:
    return Finding(gate=gate, verdict=verdict, frame=frame, value=value, limit=limit, detail=detail)
