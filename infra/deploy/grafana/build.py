"""`python -m infra.deploy.grafana.build` writes the dashboards: what is asked is listed here, the layout is the same everywhere."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DASHBOARDS = Path(__file__).parent / "dashboards"
_WIDTH, _HEIGHT, _COLUMNS = 8, 8, 3
_FROM, _TO, _STEP_S = "$__fromTime", "$__toTime", "$__interval_s"
"""Macros of Grafana's ClickHouse source: two expressions of type DateTime, and how far apart points are."""
_LEAST_STEP = "1m"


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One picture. `queries` are PromQL with a legend each, or SQL without one."""

    title: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    kind: str = "timeseries"
    about: str = ""


def _rate(metric: str, by: str = "", window: str = "$__rate_interval") -> str:
    return f"sum by ({by}) (rate({metric}[{window}]))" if by else f"sum(rate({metric}[{window}]))"


def _p95(metric: str, by: str = "") -> str:
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile(0.95, sum by ({labels}) (rate({metric}_bucket[$__rate_interval])))"


LINE = (
    Panel(title="Jobs that have not ended", queries=(("sum by (stage) (longtake_jobs)", "{{stage}}"),)),
    Panel(
        title="Jobs ended per minute", queries=((f"60 * {_rate('longtake_jobs_ended_total', 'stage')}", "{{stage}}"),)
    ),
    Panel(
        title="Video made",
        queries=((_rate("longtake_video_seconds_total"), "seconds of video per second"),),
        about="1 is as fast as it plays.",
    ),
    Panel(
        title="Lag",
        queries=(("sum by (group) (longtake_consumer_lag_records)", "{{group}}"),),
        about="Committed records whose outcome is not: what waits and what is in hand.",
    ),
    Panel(
        title="Finish lag",
        unit="s",
        queries=((_p95("longtake_finish_lag_seconds"), "p95"),),
        about="From a job's last segment to its finished video.",
    ),
    Panel(title="Handler, p95", unit="s", queries=((_p95("longtake_handler_seconds", "topic"), "{{topic}}"),)),
    Panel(title="Transaction, p95", unit="s", queries=((_p95("longtake_transaction_seconds", "role"), "{{role}}"),)),
    Panel(title="Records out", unit="ops", queries=((_rate("longtake_records_produced_total", "topic"), "{{topic}}"),)),
    Panel(
        title="Dead letters",
        queries=(
            ("sum(longtake_dead_letter_records)", "on the topic"),
            ("sum(longtake_dead_letters_total) or vector(0)", "put aside"),
        ),
    ),
    Panel(
        title="VMAF of pieces, lowest twentieth",
        queries=(
            (
                "histogram_quantile(0.05, sum by (le, profile) (rate(longtake_piece_vmaf_bucket[$__rate_interval])))",
                "{{profile}}",
            ),
        ),
    ),
    Panel(
        title="Found by gates, in an hour",
        queries=(
            (
                "sum by (gate, profile, verdict) (increase(longtake_gate_findings_total[1h])) or vector(0)",
                "{{gate}} {{profile}} {{verdict}}",
            ),
        ),
    ),
    Panel(
        title="Store",
        unit="bytes",
        queries=(("sum by (kind) (longtake_store_bytes)", "{{kind}}"),),
        about="As the last sweep left it.",
    ),
    Panel(title="Services", queries=(("longtake_service_up", "{{service}}"),)),
    Panel(title="Insert, p95", unit="s", queries=((_p95("longtake_insert_seconds", "table"), "{{table}}"),)),
    Panel(
        title="Disk of the store",
        unit="percentunit",
        queries=(("1 - longtake_disk_free_bytes / longtake_disk_bytes", "used"),),
    ),
)
FLEET = (
    Panel(title="Workers", queries=(('sum by (role) (up{role!=""})', "{{role}}"),)),
    Panel(title="Ready", queries=(("sum by (role) (longtake_ready)", "{{role}}"),)),
    Panel(
        title="Loop's last turn", unit="s", queries=(("max by (role) (longtake_loop_turn_age_seconds)", "{{role}}"),)
    ),
    Panel(title="In flight", queries=(("sum by (role) (longtake_records_in_flight)", "{{role}}"),)),
    Panel(
        title="Engine busy",
        unit="percentunit",
        queries=(
            (
                "sum(longtake_engine_busy_seconds) / sum(longtake_engine_waiting_seconds)",
                "share of the time in which requests waited",
            ),
        ),
    ),
    Panel(
        title="Frames per second",
        queries=(
            (
                "sum by (engine) (rate(longtake_frames_generated_total[$__rate_interval])) / ignoring(stage) group_right"
                " sum by (engine, stage) (rate(longtake_segment_stage_seconds_total[$__rate_interval]))",
                "{{engine}} {{stage}}",
            ),
        ),
        about="Of each stage while it works.",
    ),
    Panel(
        title="Segments per minute",
        queries=((f"60 * {_rate('longtake_segments_total', 'engine, outcome')}", "{{engine}} {{outcome}}"),),
    ),
    Panel(
        title="Engine's heartbeat",
        unit="s",
        queries=(("max by (role) (longtake_engine_heartbeat_age_seconds)", "{{role}}"),),
    ),
    Panel(
        title="Assets that were there when asked for",
        unit="percentunit",
        queries=(
            (
                'sum(increase(longtake_asset_reads_total{outcome="hit"}[1h]))'
                " / sum(increase(longtake_asset_reads_total[1h])) or vector(1)",
                "in an hour",
            ),
        ),
    ),
    Panel(
        title="Assets from the store",
        unit="Bps",
        queries=(
            ("sum by (why) (rate(longtake_asset_fetched_bytes_total[$__rate_interval])) or vector(0)", "{{why}}"),
        ),
        about="ahead: before it was asked for; need: work waited.",
    ),
    Panel(title="GPU busy", unit="percentunit", queries=(("longtake_gpu_utilization_ratio", "{{gpu}}"),)),
    Panel(
        title="GPU memory",
        unit="percentunit",
        queries=(("longtake_gpu_memory_used_bytes / longtake_gpu_memory_bytes", "{{gpu}}"),),
    ),
    Panel(title="GPU memory traffic", unit="percentunit", queries=(("longtake_gpu_memory_copy_ratio", "{{gpu}}"),)),
    Panel(
        title="Allocator fragmentation",
        unit="percentunit",
        queries=(("longtake_gpu_pool_fragmentation_ratio", "{{gpu}}"),),
        about="Above 70 % the pool is rebuilt between segments.",
    ),
    Panel(title="GPU temperature", unit="celsius", queries=(("longtake_gpu_temperature_celsius", "{{gpu}}"),)),
)


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
PAGES = {
    "line": ("Longtake: the line", "prometheus", LINE),
    "fleet": ("Longtake: the fleet", "prometheus", FLEET),
    "quality": ("Longtake: quality", "clickhouse", QUALITY),
}


def page(name: str) -> str:
    """A dashboard as Grafana's JSON."""
    title, source, panels = PAGES[name]
    return json.dumps(
        {
            "uid": f"longtake-{name}",
            "title": title,
            "tags": ["longtake"],
            "schemaVersion": 41,
            "editable": False,
            "refresh": "10s",
            "time": {"from": "now-1h", "to": "now"},
            "panels": [_panel(panel, source, index) for index, panel in enumerate(panels)],
        },
        indent=1,
    )


def _panel(panel: Panel, source: str, index: int) -> dict[str, Any]:
    row, column = divmod(index, _COLUMNS)
    kinds = {"prometheus": "prometheus", "clickhouse": "grafana-clickhouse-datasource"}
    return {
        "id": index + 1,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        **({"interval": _LEAST_STEP} if source == "clickhouse" else {}),
        "datasource": {"type": kinds[source], "uid": source},
        "gridPos": {"h": _HEIGHT, "w": _WIDTH, "x": column * _WIDTH, "y": row * _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "targets": [_target(query, source, panel.kind, chr(ord("A") + n)) for n, query in enumerate(panel.queries)],
    }


def _target(query: tuple[str, str], source: str, kind: str, letter: str) -> dict[str, Any]:
    text, legend = query
    if source == "prometheus":
        return {"refId": letter, "expr": text, "legendFormat": legend}
    return {
        "refId": letter,
        "rawSql": text,
        "queryType": kind,
        "editorType": "sql",
        "format": 1 if kind == "table" else 0,
    }


def main() -> None:
    """Write them all."""
    for name in PAGES:
        (DASHBOARDS / f"{name}.json").write_text(page(name) + "\n")


if __name__ == "__main__":
    main()
