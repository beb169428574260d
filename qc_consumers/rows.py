"""Events and checks to rows of ClickHouse: pure. One insert per table and message, named so that a replay changes nothing."""

from collections.abc import Mapping

import msgspec
import numpy as np

from infra.inserts import Rows, Value
from qc_consumers.check import Check, Measured
from qc_consumers.frames import frame_columns
from qc_consumers.gates import worst
from qc_consumers.incoming import Origin
from schemas.records import (
    JobChanged,
    PieceStitched,
    PlayReported,
    Seam,
    SeamRejected,
    SegmentFailed,
    SegmentGenerated,
    Verdict,
    VideoAssembled,
    VideoFinished,
    VideoFormat,
)

Row = Mapping[str, Value]
_PIECE = ("job_id", "piece", "attempt")
_SEGMENT = ("job_id", "segment", "attempt", "outcome")
_COUNTS = ("attempts", "segments_generated", "pieces_stitched", "pieces_checked")
_JOB = ("job_id", "changed_us", "stage", *_COUNTS)
"""Several changes of one transaction have the same time."""


def job_rows(event: JobChanged, origin: Origin) -> Rows:
    """The state of a job."""
    names = ("job_id", "tenant", "content_hash", "stage", "reason", "title", "engine", "frames", "segments")
    row: Row = {
        **_fields(event, *names, *_COUNTS, "submitted_us", "changed_us", "arm"),
        **_format(event.format),
        "trace_id": origin.trace_id,
        "lint_codes": [lint.code for lint in event.lint],
        "lint_messages": [lint.message for lint in event.lint],
        "video_uri": event.video.uri if event.video else "",
    }
    return _one("job_log", row, origin, *_JOB)


def segment_rows(event: SegmentGenerated, origin: Origin) -> Rows:
    """A segment that was generated."""
    same = ("job_id", "segment", "attempt", "request_hash", "start_frame", "engine", "engine_version", "restored")
    times = ("started_us", "finished_us", "denoise_us", "decode_us", "store_us", "worker")
    row: Row = {
        **_fields(event, *same, *times),
        "trace_id": origin.trace_id,
        "outcome": "generated",
        "frames": event.frames.shape[0] if event.frames.shape else 0,
        "latents_uri": event.latents.uri,
        "latents_bytes": event.latents.size_bytes,
        "frames_uri": event.frames.uri,
        "frames_bytes": event.frames.size_bytes,
        "failure": "",
        "reason": "",
        "retryable": False,
    }
    return _one("segment_log", row, origin, *_SEGMENT)


def failure_rows(event: SegmentFailed, origin: Origin) -> Rows:
    """A segment that was tried and did not come out."""
    same = ("job_id", "segment", "attempt", "request_hash", "engine", "engine_version", "reason", "retryable", "worker")
    row: Row = {
        **_fields(event, *same),
        "trace_id": origin.trace_id,
        "outcome": "failed",
        "start_frame": -1,
        "failure": event.kind,
        "finished_us": event.failed_us,
    }
    return _one("segment_log", row, origin, *_SEGMENT)


def rejection_rows(event: SeamRejected, origin: Origin) -> tuple[Rows, ...]:
    """A piece whose seam was rejected, and the seam."""
    piece: Row = {
        **_fields(event, "job_id", "piece", "attempt", "request_hash", "reason"),
        "trace_id": origin.trace_id,
        "outcome": "rejected",
        "verdict": Verdict.REGENERATE,
        "start_frame": -1,
        "stitched_us": event.rejected_us,
        "stitcher": event.worker,
    }
    seam: Row = {
        **_seam(event.seam),
        **_fields(event, "job_id", "piece", "attempt", "reason"),
        "trace_id": origin.trace_id,
        "frame": -1,
        "accepted": False,
        "measured_us": event.rejected_us,
    }
    return _one("piece_log", piece, origin, *_PIECE), _one("seam_log", seam, origin, *_PIECE)


def piece_rows(event: PieceStitched, check: Check, origin: Origin) -> tuple[Rows, ...]:
    """A checked piece, its seam and its frames, in this order: the row of the piece supersedes those of older attempts."""
    piece: Row = {
        **_fields(event, "job_id", "piece", "attempt", "request_hash", "start_frame", "frames", "started_us"),
        **_format(event.format),
        **_blob(event.video.uri, event.video.digest, event.video.size_bytes),
        **_scores(check.measured),
        **_findings(check),
        "trace_id": origin.trace_id,
        "population": check.measured.population,
        "outcome": "checked",
        "codec": event.encode.codec,
        "crf": event.encode.crf,
        "preset": event.encode.preset,
        "decoder_config": event.decoder_config,
        "stitched_us": event.finished_us,
        "stitcher": event.worker,
    }
    seam: Row = {
        **_seam(event.seam),
        **_border(check.measured),
        **_fields(event, "job_id", "piece", "attempt"),
        "trace_id": origin.trace_id,
        "frame": event.start_frame,
        "accepted": True,
        "measured_us": event.finished_us,
    }
    columns = frame_columns(event, check, origin.trace_id)
    frames = Rows(table="frame_log", key=_PIECE, since_us=origin.since_us, columns=columns)
    return _one("piece_log", piece, origin, *_PIECE), _one("seam_log", seam, origin, *_PIECE), frames


def video_rows(event: VideoAssembled, check: Check, origin: Origin) -> Rows:
    """A checked video."""
    facts, container = check.measured.facts, check.measured.container
    pictures = facts.pictures if facts else None
    clocks = [track.timescale for track in container.tracks if track.handler == "vide"] if container else []
    row: Row = {
        **_fields(event, "job_id", "attempt", "request_hash", "frames", "duration_us", "started_us"),
        **_format(event.format),
        **_blob(event.video.uri, event.video.digest, event.video.size_bytes),
        **_findings(check),
        "trace_id": origin.trace_id,
        "pieces": len(event.piece_starts),
        "brand": container.brand if container else "",
        "faststart": container.faststart if container else False,
        "timescale": clocks[0] if clocks else 0,
        "tracks": [track.codec for track in event.tracks],
        "decoded_frames": len(pictures.luma) if pictures else 0,
        "corrupt_frames": len(pictures.corrupt) if pictures else 0,
        "longest_gop_frames": max((frames for _, frames in facts.scan.gops()), default=0) if facts else 0,
        "worst_step_error_us": float(max(facts.scan.step_errors_s(facts.claim.fps), default=0) * 1_000_000)
        if facts
        else 0.0,
        "assembled_us": event.finished_us,
        "assembler": event.worker,
    }
    return _one("video_log", row, origin, "job_id", "attempt")


def finish_rows(event: VideoFinished, origin: Origin) -> Rows:
    """A video that was announced."""
    same = ("job_id", "tenant", "content_hash", "verdict", "engine", "engine_version", "attempts")
    scores = ("psnr_y_mean", "psnr_y_min", "ssim_mean", "vmaf_mean", "vmaf_min", "vmaf_model")
    row: Row = {
        **_fields(event, *same, "submitted_us", "finished_us"),
        **_fields(event.scores, *scores),
        "trace_id": origin.trace_id,
        "warnings": sorted({finding.gate for finding in event.warnings}),
        "seam_score_min": min((seam.score for seam in event.seams), default=1.0),
    }
    return _one("finish_log", row, origin, "job_id")


def play_rows(event: PlayReported, origin: Origin) -> Rows:
    """How a video played, so far."""
    counts = ("first_frame_ms", "played_ms", "stalls", "stalled_ms", "decode_errors", "dropped_frames")
    row = _fields(event, "job_id", "play", *counts, "player", "reported_us")
    return _one("qoe_log", row, origin, "job_id", "play", "reported_us")


def _one(table: str, row: Row, origin: Origin, *key: str) -> Rows:
    columns = {name: [value] for name, value in row.items()}
    return Rows(table=table, key=key, since_us=origin.since_us, columns=columns)


def _fields(record: object, *names: str) -> Row:
    return {name: getattr(record, name) for name in names}


def _format(video: VideoFormat) -> Row:
    return {"width": video.width, "height": video.height, "fps": video.fps_num / video.fps_den}


def _blob(uri: str, digest: str, size_bytes: int) -> Row:
    return {"video_uri": uri, "video_digest": digest, "video_bytes": size_bytes}


def _seam(seam: Seam) -> Row:
    row: Row = msgspec.to_builtins(seam)
    return row


def _border(measured: Measured) -> Row:
    border = measured.facts.border if measured.facts else None
    return {"flow_error_ratio": border.flow_error_ratio, "likeness": border.likeness} if border else {}


def _scores(measured: Measured) -> Row:
    row: dict[str, Value] = msgspec.to_builtins(measured.scores)
    del row["frames"]
    if measured.quality is None:
        return {name: value for name, value in row.items() if isinstance(value, str)}
    p5, p50, p95 = np.percentile(measured.quality.vmaf, (5, 50, 95)).tolist()
    return {**row, "vmaf_p5": p5, "vmaf_p50": p50, "vmaf_p95": p95}


def _findings(check: Check) -> Row:
    findings = check.measured.findings
    return {
        "verdict": worst(findings),
        "finding_gates": [finding.gate for finding in findings],
        "finding_verdicts": [finding.verdict for finding in findings],
        "finding_frames": [finding.frame for finding in findings],
        "finding_values": [finding.value for finding in findings],
        "finding_limits": [finding.limit for finding in findings],
        "finding_details": [finding.detail for finding in findings],
        "checked_us": check.checked_us,
        "check_us": check.took_us,
        "checker": check.checker,
    }
