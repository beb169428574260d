"""The rows of a piece's frames."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction

from infra.inserts import Value
from qc_consumers.check import Check
from qc_consumers.detectors import Span
from schemas.records import PieceStitched


def frame_columns(event: PieceStitched, check: Check, trace_id: str) -> Mapping[str, Sequence[Value]]:
    """One row per frame that the piece has of those it announces; none if it could not be read."""
    facts, quality = check.measured.facts, check.measured.quality
    if facts is None or facts.pictures is None:
        return {}
    scan, pictures, seen = facts.scan, facts.pictures, facts.seen
    shown = scan.presented()[: event.frames]
    day = datetime.fromtimestamp(event.finished_us / 1e6, UTC).date()
    count, start = len(shown), Fraction(event.start_frame) / facts.claim.fps
    faded = event.seam.overlap_frames if event.seam.blend == "fade" else 0

    def times(ticks: Sequence[int]) -> list[int]:
        return [round((start + (at - shown[0].pts) * scan.time_base) * 1_000_000) for at in ticks]

    def flags(spans: tuple[Span, ...]) -> list[bool]:
        hit = {frame for span in spans for frame in range(span.first, span.first + span.frames)}
        return [frame in hit for frame in range(count)]

    return {
        "job_id": [event.job_id] * count,
        "piece": [event.piece] * count,
        "frame": list(range(event.start_frame, event.start_frame + count)),
        "attempt": [event.attempt] * count,
        "segment": [event.piece] * count,
        "blended": [frame < faded for frame in range(count)],
        "pts_us": times([packet.pts for packet in shown]),
        "dts_us": times([packet.dts for packet in shown]),
        "generated_us": event.generated_us[:count],
        "decoded_us": event.decoded_us[:count],
        "encoded_us": event.encoded_us[:count],
        "checked_us": [check.checked_us] * count,
        "psnr_y": _padded(quality.psnr_y if quality else (), count, None),
        "ssim": _padded(quality.ssim if quality else (), count, None),
        "vmaf": _padded(quality.vmaf if quality else (), count, None),
        "luma": _padded(pictures.luma, count, None),
        "luma_diff": _padded(pictures.luma_diff, count, None),
        "packet_bytes": [packet.size_bytes for packet in shown],
        "keyframe": [packet.idr for packet in shown],
        "picture_type": [packet.kind for packet in shown],
        "black": flags(seen.black),
        "frozen": flags(seen.frozen + seen.still),
        "duplicate": flags(seen.duplicate),
        "flash": flags(seen.flash),
        "trace_id": [trace_id] * count,
        "day": [day] * count,
    }


def _padded(values: Sequence[Value], count: int, missing: Value) -> list[Value]:
    return [*values[:count], *[missing] * (count - len(values))]
