"""longtake.jobs.v1, segments.v1, pieces.v1, pieces.checked.v1, videos.finished.v1 -> metrics of the line, not of a process."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import TypeVar

from prometheus_client import Counter, Gauge, Histogram

from schemas.records import (
    JobChanged,
    PieceChecked,
    PieceStitched,
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
T = TypeVar("T")
_ENDED = frozenset({Stage.FINISHED, Stage.FAILED, Stage.CANCELLED})
_REMEMBERED = 10_000
UNKNOWN = "unknown"
"""The profile of what was judged by none of those that there are, or could not be examined at all."""
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
    "longtake_piece_psnr_y_decibels",
    "Mean PSNR-Y of a piece.",
    ("profile",),
    buckets=(20, 30, 34, 36, 38, 40, 42, 45, 50),
)
VMAF = Histogram(
    "longtake_piece_vmaf", "Mean VMAF of a piece.", ("profile",), buckets=(40, 60, 70, 78, 82, 86, 90, 94, 98, 100)
)
PIECES = Counter("longtake_pieces_checked_total", "Pieces that went through the gates.", ("verdict", "profile"))
VIDEOS = Counter("longtake_videos_checked_total", "Whole videos that went through the gates.", ("verdict", "profile"))
FINDINGS = Counter(
    "longtake_gate_findings_total", "What gates found, on pieces and videos.", ("gate", "verdict", "profile")
)
SEAMS = Counter("longtake_seams_total", "Seams stitched, or rejected.", ("kind", "outcome"))
SEAM_SCORE = Histogram("longtake_seam_score", "Of aligned seams: 1 is as good as none.", ("kind",), buckets=_UNIT)


class Line:
    """What has to be remembered between events: jobs that have not ended, when their last segment was there, and their profile."""

    def __init__(self, profiles: Iterable[str]) -> None:
        """`profiles`: the names that there are; whatever an event says, no other becomes a label."""
        self._profiles = frozenset(profiles)
        self._stages: dict[str, Stage] = {}
        self._segments: OrderedDict[str, int] = OrderedDict()
        self._judged: OrderedDict[str, str] = OrderedDict()
        """The profile of each job's pieces: a whole video's verdict does not name it."""

    def take(self, event: Event) -> None:
        """Count an event. Records of other kinds are none of its business."""
        match event:
            case JobChanged():
                self._changed(event)
            case SegmentGenerated():
                _remember(self._segments, event.job_id, max(event.finished_us, self._segments.get(event.job_id, 0)))
            case PieceStitched():
                SEAMS.labels(event.seam.kind.value, event.seam.blend).inc()
                SEAM_SCORE.labels(event.seam.kind.value).observe(event.seam.score)
            case SeamRejected():
                SEAMS.labels(event.seam.kind.value, "rejected").inc()
            case PieceChecked():
                self._checked(event)
            case VideoChecked():
                profile = self._judged.get(event.job_id, UNKNOWN)
                VIDEOS.labels(event.verdict.value, profile).inc()
                _found(event, profile)
            case VideoFinished():
                VIDEO_S.inc(event.duration_us / 1e6)
                self._judged.pop(event.job_id, None)
                last_us = self._segments.pop(event.job_id, None)
                if last_us is not None:
                    LAG_S.observe(max(0, event.finished_us - last_us) / 1e6)
            case _:
                pass

    def _checked(self, piece: PieceChecked) -> None:
        said = piece.population.partition("/")[0]
        profile = said if said in self._profiles else UNKNOWN
        if profile != UNKNOWN:
            _remember(self._judged, piece.job_id, profile)
        PIECES.labels(piece.verdict.value, profile).inc()
        if piece.scores.frames:
            PSNR.labels(profile).observe(piece.scores.psnr_y_mean)
            VMAF.labels(profile).observe(piece.scores.vmaf_mean)
        _found(piece, profile)

    def _changed(self, job: JobChanged) -> None:
        before = self._stages.pop(job.job_id, None)
        if before:
            JOBS.labels(before.value).dec()
        if job.stage in _ENDED:
            ENDED.labels(job.stage.value).inc()
            return
        self._stages[job.job_id] = job.stage
        JOBS.labels(job.stage.value).inc()


def _remember(known: OrderedDict[str, T], job_id: str, value: T) -> None:
    """As the newest of at most so many."""
    known[job_id] = value
    known.move_to_end(job_id)
    if len(known) > _REMEMBERED:
        known.popitem(last=False)


def _found(event: PieceChecked | VideoChecked, profile: str) -> None:
    for finding in event.findings:
        FINDINGS.labels(finding.gate, finding.verdict.value, profile).inc()
