"""The line and the fleet, as Prometheus is asked."""

from infra.deploy.grafana.panel import Panel


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
