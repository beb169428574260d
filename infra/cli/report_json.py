"""A report for programs: `longtake report JOB -o film.json`. docs/report.schema.json is its JSON Schema.

`python -m infra.cli.report_json` writes the schema. Fields are only ever added, or `version` counts up.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from clickhouse_connect.driver.client import Client

from infra.cli.measured import timing
from schemas.records import (
    Blob,
    Finding,
    JobChanged,
    Lint,
    Rework,
    Scores,
    Seam,
    Track,
    Verdict,
    VideoFinished,
    VideoFormat,
)

SCHEMA = Path(__file__).parents[2] / "docs" / "report.schema.json"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PIECE_SCORES = tuple(
    field.name for field in fields(Scores) if field.name not in ("frames", "vmaf_model", "libvmaf_version")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPart:
    """The job and its video. Times are RFC 3339, UTC."""

    job_id: str
    tenant: str
    title: str
    content_hash: str
    engine: str
    engine_version: str
    verdict: Verdict
    attempts: int
    """Requests of segments beyond the first of each."""
    submitted_at: datetime
    finished_at: datetime
    format: VideoFormat
    frames: int
    duration_us: int
    video: Blob
    tracks: tuple[Track, ...]
    remarks: tuple[Lint, ...]
    """On the prompt."""
    reworked: tuple[Rework, ...]
    """What gates had made again."""
    live: str
    """The master playlist of its HLS; empty: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPart:
    """A finding, and the attempt it is about. `piece` -1: the whole video."""

    piece: int
    attempt: int
    at_s: float
    """On the timeline; -1: the whole."""
    finding: Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class PiecePart:
    """The newest attempt at a piece. A score that was not measured is null."""

    piece: int
    attempt: int
    verdict: Verdict
    start_frame: int
    start_s: float
    frames: int
    population: str
    video_uri: str
    video_digest: str
    video_bytes: int
    scores: Mapping[str, float | None]
    stitching_at: datetime
    stitched_at: datetime
    checked_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SeamPart:
    """Where a piece meets the one before it."""

    piece: int
    frame: int
    at_s: float
    seam: Seam


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPart:
    """One kind of work; its parts may run side by side."""

    name: str
    work_s: float
    spans: tuple[tuple[datetime, datetime], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingPart:
    """Where the time went."""

    wall_s: float
    """From the submission to the announcement."""
    engine_busy_share: float
    finish_lag_s: float
    """From the end of the last segment to the announcement."""
    steps: tuple[StepPart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonReport:
    """All that is known of a finished job, but for single frames: those are in ClickHouse (docs/sql.md)."""

    version: int
    job: JobPart
    scores: Scores
    """Of all frames."""
    pieces: tuple[PiecePart, ...]
    findings: tuple[FoundPart, ...]
    """Of all attempts, those that were done again too."""
    seams: tuple[SeamPart, ...]
    timing: TimingPart


def json_report(video: VideoFinished, job: JobChanged | None, client: Client) -> JsonReport:
    """From what was announced and the rows of ClickHouse."""
    fps = video.format.fps_num / video.format.fps_den
    pieces = tuple(_piece(row, fps) for row in _rows(client, "SELECT * FROM pieces", "piece", video.job_id))
    starts = {piece.piece: piece.start_frame for piece in pieces}
    return JsonReport(
        version=1,
        job=_job(video, job),
        scores=video.scores,
        pieces=pieces,
        findings=tuple(_findings(client, video.job_id, fps)),
        seams=tuple(
            SeamPart(piece=number, frame=starts[number], at_s=starts[number] / fps, seam=seam)
            for number, seam in enumerate(video.seams)
            if number in starts
        ),
        timing=_timing(video, client),
    )


def page(report: JsonReport) -> bytes:
    """Indented JSON."""
    return msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n"


def schema() -> dict[str, Any]:
    """JSON Schema 2020-12 of the report."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Report of a longtake job"}
    return head | json.loads(msgspec.json.encode(msgspec.json.schema(JsonReport)))


def _job(video: VideoFinished, job: JobChanged | None) -> JobPart:
    same = ("job_id", "tenant", "content_hash", "engine", "engine_version", "verdict", "attempts")
    same = (*same, "format", "frames", "duration_us", "video", "tracks", "reworked", "live")
    return JobPart(
        **{name: getattr(video, name) for name in same},
        title=job.title if job else "",
        remarks=job.lint if job else (),
        submitted_at=_moment(video.submitted_us),
        finished_at=_moment(video.finished_us),
    )


def _piece(row: Mapping[str, Any], fps: float) -> PiecePart:
    same = ("piece", "attempt", "start_frame", "frames", "population", "video_uri", "video_digest", "video_bytes")
    return PiecePart(
        **{name: row[name] for name in same},
        verdict=Verdict(row["verdict"]),
        start_s=row["start_frame"] / fps,
        scores={name: row[name] for name in _PIECE_SCORES},
        stitching_at=_moment(row["started_us"]),
        stitched_at=_moment(row["stitched_us"]),
        checked_at=_moment(row["checked_us"]),
    )


def _findings(client: Client, job_id: str, fps: float) -> Sequence[FoundPart]:
    names = ("gate", "verdict", "frame", "value", "limit", "detail")
    columns = "finding_gates, finding_verdicts, finding_frames, finding_values, finding_limits, finding_details"
    found: list[FoundPart] = []
    for table, piece in (("piece_log", "toInt64(piece)"), ("video_log", "toInt64(-1)")):
        query = f"SELECT {piece} AS of_piece, attempt, arrayZip({columns}) AS all_of FROM {table}"  # noqa: S608 (constants)
        for row in _rows(client, query, "of_piece, attempt", job_id):
            for values in row["all_of"]:
                said: dict[str, Any] = dict(zip(names, values, strict=True))
                finding = msgspec.convert(said, Finding)
                at_s = finding.frame / fps if finding.frame >= 0 else -1.0
                found.append(FoundPart(piece=row["of_piece"], attempt=row["attempt"], at_s=at_s, finding=finding))
    return found


def _timing(video: VideoFinished, client: Client) -> TimingPart:
    known = timing(client, video.job_id)
    (last,) = _rows(client, "SELECT max(finished_us) AS us FROM segments", "us", video.job_id)
    zero = _moment(video.submitted_us)
    return TimingPart(
        wall_s=known.wall_s,
        engine_busy_share=known.engine_busy_share,
        finish_lag_s=(video.finished_us - last["us"]) / 1e6,
        steps=tuple(
            StepPart(
                name=step.name,
                work_s=step.work_s,
                spans=tuple((zero + timedelta(seconds=a), zero + timedelta(seconds=b)) for a, b in step.spans_s),
            )
            for step in known.steps
        ),
    )


def _rows(client: Client, select: str, order: str, job_id: str) -> Sequence[Mapping[str, Any]]:
    query = f"{select} WHERE job_id = {{job:String}} ORDER BY {order}"
    return list(client.query(query, {"job": job_id}).named_results())


def _moment(time_us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=time_us)


if __name__ == "__main__":
    SCHEMA.write_text(json.dumps(schema(), indent=1) + "\n")
