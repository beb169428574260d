"""What ClickHouse knows of a job, for its page: as the line's reader, so that a page can do no harm."""

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError, OperationalError

from infra.clickhouse import connect_reader
from infra.settings import Settings

READ_ONLY = {"readonly": 2}
"""As `longtake sql`: reads, and settings of the query's own."""
Row = dict[str, Any]

_SEGMENTS = """
SELECT segment, attempt, outcome, start_frame, frames, engine, engine_version, worker, restored, failure, reason,
    (finished_us - started_us) / 1e6 AS took_s, denoise_us / 1e6 AS denoise_s, decode_us / 1e6 AS decode_s,
    store_us / 1e6 AS store_s, latents_bytes, frames_bytes
FROM segments WHERE job_id = {job:String} ORDER BY segment"""
_PIECES = """
SELECT piece, attempt, outcome, verdict, reason, start_frame, frames, video_uri, video_bytes, psnr_y_mean, vmaf_mean, vmaf_min,
    finding_gates, finding_details
FROM pieces WHERE job_id = {job:String} ORDER BY piece"""
_SEAMS = """
SELECT piece, attempt, frame, kind, accepted, reason, score, offset_frames, sqrt(shift_x_px * shift_x_px + shift_y_px * shift_y_px) AS shift_px,
    gain, psnr_before_db, psnr_after_db, blend
FROM seams WHERE job_id = {job:String} ORDER BY piece"""
_TRIES = """
SELECT * FROM
(
    SELECT 'segment' AS what, segment AS number, attempt, toString(failure) AS rule, reason, finished_us AS time_us
    FROM segment_log WHERE job_id = {job:String} AND outcome = 'failed'
    UNION ALL
    SELECT 'piece' AS what, piece AS number, attempt, toString(if(verdict = '', outcome, verdict)) AS rule,
        if(reason = '', arrayStringConcat(finding_details, '; '), reason) AS reason, greatest(checked_us, stitched_us) AS time_us
    FROM piece_log WHERE job_id = {job:String} AND (outcome != 'checked' OR verdict != 'pass')
)
ORDER BY time_us LIMIT 200"""
_ARMS = """
SELECT step, side, jobs, ended, finished, played, failed, warned, stalled, slow_start, decode_errors, vmaf_mean, psnr_y_mean,
    seam_score_min, again
FROM arms WHERE release = {release:String} ORDER BY step DESC, side"""
_FRAMES = """
SELECT frame, vmaf, psnr_y, packet_bytes * 8 / 1000 AS kbit
FROM frames WHERE job_id = {job:String} ORDER BY frame LIMIT 500000"""


class AwayError(Exception):
    """ClickHouse does not answer, or not to this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Rows by the names of their columns."""

    segments: Sequence[Row] = ()
    pieces: Sequence[Row] = ()
    seams: Sequence[Row] = ()
    tries: Sequence[Row] = ()
    """Attempts that did not come out."""
    problem: str = ""
    """Why there is nothing."""


class Warehouse:
    """Asks ClickHouse. Safe to share between threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._connected: Client | None = None

    def facts(self, job_id: str) -> Facts:
        """All there is of a job but its frames."""
        try:
            asked = (_SEGMENTS, _PIECES, _SEAMS, _TRIES)
            segments, pieces, seams, tries = (self._rows(query, {"job": job_id}) for query in asked)
        except AwayError as error:
            return Facts(problem=str(error))
        return Facts(segments=segments, pieces=pieces, seams=seams, tries=tries)

    def arms(self, release: str) -> list[Row]:
        """Both sides of a release, step by step. Raises: AwayError."""
        return self._rows(_ARMS, {"release": release})

    def frames(self, job_id: str) -> dict[str, list[Any]]:
        """Column by column: frame, vmaf, psnr_y, kbit. Raises: AwayError."""
        with _told():
            result = self.client().query(_FRAMES, {"job": job_id}, settings=READ_ONLY, column_oriented=True)
        columns: Sequence[Sequence[Any]] = result.result_columns
        return {name: list(column) for name, column in zip(result.column_names, columns, strict=False)}

    def client(self) -> Client:
        """Connected on first use. Raises: OperationalError, DatabaseError."""
        with self._lock:
            if self._connected is None:
                self._connected = connect_reader(self._settings)
            return self._connected

    def _rows(self, query: str, parameters: dict[str, str]) -> list[Row]:
        with _told():
            return list(self.client().query(query, parameters, settings=READ_ONLY).named_results())


@contextmanager
def _told() -> Generator[None]:
    try:
        yield
    except OperationalError as error:
        raise AwayError("ClickHouse is away") from error
    except DatabaseError as error:
        raise AwayError(f"ClickHouse: {' '.join(str(error).split())[:200]}") from error
