"""Quality, as ClickHouse is asked."""

from infra.deploy.grafana.panel import Panel

_FROM, _TO, _STEP_S = "$__fromTime", "$__toTime", "$__interval_s"
"""Macros of Grafana's ClickHouse source: two expressions of type DateTime, and how far apart points are."""


def _sql(select: str, table: str, time_us: str, rest: str) -> tuple[tuple[str, str], ...]:
    # On the column itself, not on a function of it: its index leaves out what is older.
    bounds = (f"toUnixTimestamp64Micro(toDateTime64({macro}, 6))" for macro in (_FROM, _TO))
    where = f"WHERE {time_us} BETWEEN {' AND '.join(bounds)}"
    return ((f"SELECT {select} FROM {table} {where} {rest}", ""),)  # noqa: S608 (texts of this file)


def bounded(sql: str, since: str, until: str, step_s: int) -> str:
    """A query of a dashboard as Grafana asks it for this range: two expressions of type DateTime."""
    return sql.replace(_FROM, since).replace(_TO, until).replace(_STEP_S, str(step_s))


def _over(time_us: str) -> str:
    """Points as far apart as the picture can show, and at least a minute: a year of minutes would be half a million."""
    return f"toStartOfInterval(fromUnixTimestamp64Micro({time_us}), INTERVAL {_STEP_S} SECOND) AS time"


_ENCODED = _over("encoded_us")
QUALITY = (
    Panel(
        title="VMAF",
        queries=_sql(
            f"{_ENCODED}, quantile(0.05)(vmaf) AS p5, quantile(0.5)(vmaf) AS p50",
            "frames",
            "encoded_us",
            "GROUP BY time ORDER BY time",
        ),
    ),
    Panel(
        title="PSNR-Y",
        unit="dB",
        queries=_sql(
            f"{_ENCODED}, quantile(0.05)(psnr_y) AS p5, quantile(0.5)(psnr_y) AS p50",
            "frames",
            "encoded_us",
            "GROUP BY time ORDER BY time",
        ),
    ),
    Panel(
        title="Frames checked per minute",
        queries=_sql(
            f"{_ENCODED}, count() * 60 / {_STEP_S} AS frames", "frames", "encoded_us", "GROUP BY time ORDER BY time"
        ),
    ),
    Panel(
        title="Seams",
        queries=_sql(
            f"{_over('measured_us')}, min(score) AS worst, avg(score) AS mean",
            "seams",
            "measured_us",
            "GROUP BY time ORDER BY time",
        ),
    ),
    Panel(
        title="Worst frames",
        kind="table",
        queries=_sql(
            "job_id, frame, vmaf, psnr_y, black, frozen, flash", "frames", "encoded_us", "ORDER BY vmaf LIMIT 20"
        ),
    ),
    Panel(
        title="Engines",
        kind="table",
        queries=_sql(
            "engine, engine_version, count() AS segments, sum(frames) AS made, round(made / (sum(finished_us - started_us) / 1e6), 1) AS fps",
            "segments",
            "finished_us",
            "GROUP BY engine, engine_version",
        ),
    ),
    Panel(
        title="Jobs",
        kind="table",
        queries=_sql(
            "job_id, tenant, stage, title, frames, attempts", "jobs", "changed_us", "ORDER BY changed_us DESC LIMIT 50"
        ),
    ),
    Panel(
        title="Bit rate",
        unit="bps",
        queries=_sql(
            f"{_ENCODED}, sum(packet_bytes) * 8 * 1e6 / (max(pts_us) - min(pts_us) + 1) AS rate",
            "frames",
            "encoded_us",
            "GROUP BY time ORDER BY time",
        ),
    ),
)
