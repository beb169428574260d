"""What ClickHouse knows about a finished job: its frames, its rows counted, where the time went."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clickhouse_connect.driver.client import Client

Row = Sequence[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameScores:
    """Per frame of the video, in order; all lists have the same length. A score that was not measured is NaN."""

    frame: tuple[int, ...]
    piece: tuple[int, ...]
    vmaf: tuple[float, ...]
    psnr_y: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """The quality of a job's frames, computed by ClickHouse from their rows."""

    frame_rows: int
    distinct_frame_rows: int
    psnr_y_mean: float
    psnr_y_min: float
    vmaf_mean: float
    vmaf_min: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One kind of work: from when to when each of its parts took, in seconds after the submission."""

    name: str
    spans_s: tuple[tuple[float, float], ...]

    @property
    def work_s(self) -> float:
        """All parts together; those that ran side by side count each."""
        return sum(end - begin for begin, end in self.spans_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Where the time of a job went. The steps overlap: pieces are stitched and checked while segments are generated."""

    steps: tuple[Step, ...]
    engine_busy_share: float
    """Of the time from the first segment's begin to the last one's end, the part in which the engine worked."""
    wall_s: float
    """From the submission to the announcement."""


def frame_scores(client: Client, job_id: str) -> FrameScores:
    """Of the newest attempt at every piece."""
    query = """
        SELECT frame, piece, ifNull(vmaf, nan), ifNull(psnr_y, nan) FROM frames
        WHERE job_id = {job:String} ORDER BY frame"""
    rows: Sequence[Row] = client.query(query, {"job": job_id}).result_rows
    frame, piece, vmaf, psnr_y = zip(*rows, strict=True) if rows else ((), (), (), ())
    return FrameScores(frame=frame, piece=piece, vmaf=vmaf, psnr_y=psnr_y)


def quality(client: Client, job_id: str) -> Quality:
    """One row for the whole job."""
    query = """
        SELECT count(), uniqExact(frame), avg(psnr_y), min(psnr_y), avg(vmaf), min(vmaf)
        FROM frames WHERE job_id = {job:String}"""
    row: Row = client.query(query, {"job": job_id}).result_rows[0]
    return Quality(
        frame_rows=row[0],
        distinct_frame_rows=row[1],
        psnr_y_mean=row[2],
        psnr_y_min=row[3],
        vmaf_mean=row[4],
        vmaf_min=row[5],
    )


def timing(client: Client, job_id: str) -> Timing:
    """From the rows of the job's segments, pieces and video; the job has to be finished."""
    segments = _rows(
        client, "SELECT started_us, started_us + denoise_us + decode_us, finished_us FROM segments", job_id
    )
    pieces = _rows(client, "SELECT started_us, stitched_us, checked_us - check_us, checked_us FROM pieces", job_id)
    video = _rows(
        client,
        "SELECT started_us, assembled_us, checked_us - check_us, checked_us, submitted_us, finished_us FROM videos",
        job_id,
    )[0]
    zero = video[4]
    steps = (
        _step("generate", [(s[0], s[1]) for s in segments], zero),
        _step("stitch", [(p[0], p[1]) for p in pieces], zero),
        _step("check pieces", [(p[2], p[3]) for p in pieces], zero),
        _step("assemble", [(video[0], video[1])], zero),
        _step("check video", [(video[2], video[3])], zero),
    )
    span_us = max(s[2] for s in segments) - min(s[0] for s in segments)
    busy_us = covered_us([(s[0], s[1]) for s in segments])
    return Timing(steps=steps, engine_busy_share=busy_us / max(span_us, 1), wall_s=(video[5] - zero) / 1e6)


def covered_us(spans: Sequence[tuple[int, int]]) -> int:
    """Time that at least one of the spans covers."""
    covered, reached = 0, 0
    for begin, end in sorted(spans):
        covered += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return covered


def _step(name: str, spans_us: Sequence[tuple[int, int]], zero_us: int) -> Step:
    spans = sorted((begin - zero_us, end - zero_us) for begin, end in spans_us)
    return Step(name=name, spans_s=tuple((begin / 1e6, end / 1e6) for begin, end in spans))


def _rows(client: Client, select: str, job_id: str) -> Sequence[Row]:
    return client.query(f"{select} WHERE job_id = {{job:String}}", {"job": job_id}).result_rows
