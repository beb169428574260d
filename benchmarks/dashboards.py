"""Every ClickHouse query of the dashboards on 10 million frames, over all of them: the longest range that anybody can choose.

The rows are made by ClickHouse from numbers: jobs of two minutes, one after another over 300 days, one piece in fifty made twice.
"""

import json
import re
import time
from collections.abc import Iterator

from clickhouse_connect.driver.client import Client

from infra.clickhouse import connect, migrate
from infra.deploy.grafana import build
from infra.deploy.grafana.clickhouse import bounded
from infra.settings import Settings

_FRAMES = 10_000_000
_JOB_FRAMES, _PIECE_FRAMES = 2880, 24
_DAYS = 300
_TIMES = 3
_POINTS = 600
"""That a picture shows."""
_SINCE = "toUnixTimestamp64Micro(now64(6)) - 86400000000 * {days}"
_AT = f"(SELECT {_SINCE.format(days=_DAYS)}) + toInt64(number) * intDiv(86400000000 * {_DAYS}, {{count}})"
_FRAME = f"""
INSERT INTO frame_log (job_id, piece, frame, attempt, segment, blended, pts_us, dts_us, generated_us, decoded_us, encoded_us, checked_us,
    psnr_y, ssim, vmaf, luma, luma_diff, packet_bytes, keyframe, picture_type, black, frozen, duplicate, flash, trace_id, day)
SELECT concat('job-', toString(intDiv(number, {_JOB_FRAMES}))) AS job_id,
    intDiv(number % {_JOB_FRAMES}, {_PIECE_FRAMES}) AS piece, number % {_JOB_FRAMES} AS frame,
    1 + (cityHash64(job_id, piece) % 50 = 0) AS attempt, piece AS segment, frame % {_PIECE_FRAMES} < 4 AS blended,
    frame * 1000000 / 24 AS pts_us, pts_us AS dts_us, {{at}} AS encoded, encoded - 400000 AS decoded_us, encoded AS encoded_us,
    encoded + 900000 AS checked_us,
    42 + (rand(1) % 600) / 100 AS psnr_y, 0.97 + (rand(2) % 300) / 10000 AS ssim, 88 + (rand(3) % 1100) / 100 AS vmaf,
    90 + rand(4) % 60 AS luma, (rand(5) % 400) / 100 AS luma_diff, 1000 + rand(6) % 30000 AS packet_bytes,
    frame % 24 = 0 AS keyframe, ['I', 'P', 'B'][1 + frame % 3] AS picture_type, 0, 0, rand(7) % 5000 = 0, 0,
    lower(hex(cityHash64(job_id))) AS trace_id, toDate(fromUnixTimestamp64Micro(encoded)) AS day
FROM numbers({{first}}, {{rows}})"""  # noqa: S608 (numbers of this file)
_PIECE = f"""
INSERT INTO piece_log (job_id, piece, attempt, outcome, verdict, start_frame, frames, width, height, fps, vmaf_mean, stitched_us, checked_us)
SELECT concat('job-', toString(intDiv(number, {_JOB_FRAMES // _PIECE_FRAMES}))) AS job_id,
    number % {_JOB_FRAMES // _PIECE_FRAMES} AS piece, made AS attempt, 'checked', 'pass', piece * {_PIECE_FRAMES}, {_PIECE_FRAMES},
    640, 360, 24, 93, {{at}} AS encoded, encoded + 900000
FROM numbers({{rows}}) ARRAY JOIN range(1, 2 + (cityHash64(job_id, piece) % 50 = 0)) AS made"""  # noqa: S608
_SEAM = """
INSERT INTO seam_log (job_id, piece, attempt, frame, kind, accepted, score, blend, measured_us)
SELECT job_id, piece, attempt, start_frame, 'continuous', 1, 0.9 + (rand() % 100) / 1000, 'fade', stitched_us FROM piece_log"""
_SEGMENT = """
INSERT INTO segment_log (job_id, segment, attempt, outcome, frames, engine, engine_version, started_us, finished_us)
SELECT job_id, piece, attempt, 'generated', 27, 'animatic', '1', stitched_us - 900000, stitched_us - 300000 FROM piece_log"""
_JOB = """
INSERT INTO job_log (job_id, tenant, stage, title, engine, width, height, fps, frames, segments, attempts, submitted_us, changed_us)
SELECT job_id, 'default', 'finished', 'A film', 'animatic', 640, 360, 24, sum(frames), count(), 0, min(stitched_us), max(checked_us)
FROM piece_log GROUP BY job_id"""


def measure(settings: Settings) -> dict[str, float]:
    """Of each query the median of three times in ms, and the worst of these."""
    migrate(settings)
    client = connect(settings)
    started_s = time.monotonic()
    fill(client, _FRAMES)
    rows = int(client.query("SELECT count() FROM frame_log").result_rows[0][0])
    took_s = time.monotonic() - started_s
    times = {f"dashboard_{_name(title)}_ms": _median_ms(client, sql) for title, sql in queries(_DAYS + 1)}
    return (
        {"dashboard_frame_rows": rows, "dashboard_fill_s": took_s} | times | {"dashboard_worst_ms": max(times.values())}
    )


def fill(client: Client, frames: int) -> None:
    """Rows of as many frames in every log that a dashboard reads."""
    month = {"max_partitions_per_insert_block": 100}
    batch = 1_000_000
    for first in range(0, frames, batch):
        rows = min(batch, frames - first)
        client.command(_FRAME.format(at=_AT.format(count=frames), first=first, rows=rows), settings=month)
    pieces = frames // _PIECE_FRAMES
    client.command(_PIECE.format(at=_AT.format(count=pieces), rows=pieces), settings=month)
    for statement in (_SEAM, _SEGMENT, _JOB):
        client.command(statement, settings=month)


def queries(days: int) -> Iterator[tuple[str, str]]:
    """Title and SQL of every panel that ClickHouse fills, for the last so many days."""
    for panel in json.loads((build.DASHBOARDS / "quality.json").read_text())["panels"]:
        for target in panel["targets"]:
            sql = bounded(target["rawSql"], f"now() - INTERVAL {days} DAY", "now()", days * 86400 // _POINTS)
            yield panel["title"], sql


def _name(title: str) -> str:
    return re.sub(r"\W+", "_", title.lower())


def _median_ms(client: Client, sql: str) -> float:
    def once() -> float:
        started_s = time.perf_counter()
        assert client.query(sql).result_rows, sql
        return 1e3 * (time.perf_counter() - started_s)

    return sorted(once() for _ in range(_TIMES))[_TIMES // 2]
