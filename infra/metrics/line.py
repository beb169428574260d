"""longtake.jobs.v1, segments.v1, pieces.v1, pieces.checked.v1, videos.finished.v1 -> metrics of the line, not of a process."""

from collections import OrderedDict

from prometheus_client import Counter, Gauge, Histogram

from schemas.records import (
    JobChanged,
    PieceChecked,
    PieceStitched,
    Scores,
    SeamRejected,
    SegmentGenerated,
    Stage,
    VideoChecked,
    VideoFinished,
)
from schemas.topics import Event

SOURCES = tuple(
    dict.fromkeys(
        e.topic for e in (JobChanged, SegmentGenerated, PieceStitched, PieceChecked, VideoChecked, VideoFinished)
    )
)
_ENDED = frozenset({Stage.FINISHED, Stage.FAILED, Stage.CANCELLED})
_REMEMBERED = 10_000
_UNIT = (0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99, 1.0)

JOBS = Gauge("longtake_jobs", "Jobs that have not ended, by stage.", ("stage",))
ENDED = Counter("longtake_jobs_ended_total", "Jobs that ended.", ("stage",))
LAG_S = Histogram(
    "longtake_finish_lag_seconds",
    "From a job's last segment to its finished video.",
    buckets=(1, 2, 3, 5, 8, 13, 20, 30, 60, 120, 300),
)
VIDEO_S = Counter("longtake_video_seconds_total", "Seconds of finished video.")
PSNR = Histogram(
    "longtake_piece_psnr_y_decibels", "Mean PSNR-Y of a piece.", buckets=(20, 30, 34, 36, 38, 40, 42, 45, 50)
)
VMAF = Histogram("longtake_piece_vmaf", "Mean VMAF of a piece.", buckets=(40, 60, 70, 78, 82, 86, 90, 94, 98, 100))
PIECES = Counter("longtake_pieces_checked_total", "Pieces that went through the gates.", ("verdict",))
VIDEOS = Counter("longtake_videos_checked_total", "Whole videos that went through the gates.", ("verdict",))
FINDINGS = Counter("longtake_gate_findings_total", "What gates found, on pieces and videos.", ("gate", "verdict"))
SEAMS = Counter("longtake_seams_total", "Seams stitched, or rejected.", ("kind", "outcome"))
SEAM_SCORE = Histogram("longtake_seam_score", "Of aligned seams: 1 is as good as none.", ("kind",), buckets=_UNIT)


class Line:
    """What has to be remembered between events: jobs that have not ended, and when their last segment was there."""

    def __init__(self) -> None:
        self._stages: dict[str, Stage] = {}
        self._segments: OrderedDict[str, int] = OrderedDict()

    def take(self, event: Event) -> None:
        """Count an event. Records of other kinds are none of its business."""
        match event:
            case JobChanged():
                self._changed(event)
            case SegmentGenerated():
                self._segments[event.job_id] = max(event.finished_us, self._segments.pop(event.job_id, 0))
                if len(self._segments) > _REMEMBERED:
                    self._segments.popitem(last=False)
            case PieceStitched():
                SEAMS.labels(event.seam.kind.value, event.seam.blend).inc()
                SEAM_SCORE.labels(event.seam.kind.value).observe(event.seam.score)
            case SeamRejected():
                SEAMS.labels(event.seam.kind.value, "rejected").inc()
            case PieceChecked():
                PIECES.labels(event.verdict.value).inc()
                _scored(event.scores)
                _found(event)
            case VideoChecked():
                VIDEOS.labels(event.verdict.value).inc()
                _found(event)
            case VideoFinished():
                VIDEO_S.inc(event.duration_us / 1e6)
                last_us = self._segments.pop(event.job_id, None)
                if last_us is not None:
                    LAG_S.observe(max(0, event.finished_us - last_us) / 1e6)
            case _:
                pass

    def _changed(self, job: JobChanged) -> None:
        before = self._stages.pop(job.job_id, None)
        if before:
            JOBS.labels(before.value).dec()
        if job.stage in _ENDED:
            ENDED.labels(job.stage.value).inc()
            return
        self._stages[job.job_id] = job.stage
        JOBS.labels(job.stage.value).inc()


def _scored(scores: Scores) -> None:
    if scores.frames:
        PSNR.observe(scores.psnr_y_mean)
        VMAF.observe(scores.vmaf_mean)


def _found(event: PieceChecked | VideoChecked) -> None:
    for finding in event.findings:
        FINDINGS.labels(finding.gate, finding.verdict.value).inc()
