"""`make bench`: every benchmark with its peer, a table, and `out/bench.json` (flat)."""

import argparse
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks import (
    animatic,
    assembly,
    assets,
    bus,
    causal_dit,
    console,
    costs,
    dashboards,
    director,
    embeddings,
    faults,
    flood,
    generate,
    ladder,
    line,
    minute,
    qc,
    recovery,
    scale,
    startup,
)
from infra.bus.topics import create_topics
from infra.local.services import filled
from infra.local.stack import down, up
from infra.settings import Settings

OUT = Path("out") / "bench.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a figure has to reach: at most or at least `limit`."""

    at_most: bool
    limit: float

    def __str__(self) -> str:
        return f"{'<=' if self.at_most else '>='} {self.limit:g}"

    def met_by(self, value: float) -> bool:
        """Whether the figure is good enough."""
        return value <= self.limit if self.at_most else value >= self.limit


def _at_most(limit: float) -> Target:
    return Target(at_most=True, limit=limit)


def _at_least(limit: float) -> Target:
    return Target(at_most=False, limit=limit)


TARGETS: Mapping[str, Target] = {
    "worker_hop_p50_ms": _at_most(10),
    "exactly_once_ms": _at_most(15),
    "director_hop_p50_ms": _at_most(12),
    "segment_cycle_p50_ms": _at_most(25),
    "director_events_per_s": _at_least(1000),
    "flood_kb_per_waiting_job": _at_most(4),
    "flood_fairness_ratio": _at_least(0.8),
    "assembly_cpu_ratio": _at_least(20),
    "ladder_cpu_ratio": _at_most(1.05),
    "ladder_assembly_share": _at_most(0.02),
    "qc_ratio": _at_least(1),
    "qc_per_core_ratio": _at_least(1),
    "rows_ratio": _at_least(0.8),
    "engine_busy_share": _at_least(0.9),
    "animatic_fps_per_core": _at_least(60),
    "fault_success_rate": _at_least(0.999),
    "dit_forward_ratio": _at_least(1),
    "streaming_decode_ratio": _at_least(0.95),
    "streaming_decode_memory_ratio": _at_most(1.05),
    "embedding_hit_rate": _at_least(0.897),
    "embedding_time_ratio": _at_most(18 / 42),
    "asset_hit_rate": _at_least(0.987),
    "asset_moved_ratio": _at_most(1.1),
    "startup_load_ratio": _at_least(1),
    "finish_lag_ratio": _at_most(1.5),
    "scale_efficiency_2": _at_least(0.9),
    "scale_efficiency_4": _at_least(0.9),
    "scale_simulation_error": _at_most(0.1),
    "watching_cpu_share": _at_most(0.02),
    "dashboard_worst_ms": _at_most(1000),
    "console_first_paint_ms": _at_most(1000),
    "console_update_p95_ms": _at_most(1000),
    "rss_growth_ratio": _at_most(1.1),
}


def main() -> None:
    """Run the named benchmarks, or all."""
    benchmarks: dict[str, Callable[[], dict[str, float]]] = {
        "bus": lambda: _with_services(bus.measure),
        "director": lambda: _with_services(director.measure),
        "flood": lambda: _with_services(flood.measure),
        "recovery": lambda: _with_services(recovery.measure),
        "qc": lambda: _with_services(qc.measure),
        "assembly": assembly.measure,
        "ladder": ladder.measure,
        "animatic": animatic.measure,
        "generate": generate.measure,
        "causal_dit": causal_dit.measure,
        "console": lambda: _with_services(console.measure),
        "costs": lambda: _with_services(costs.measure),
        "dashboards": lambda: _with_services(dashboards.measure),
        "embeddings": embeddings.measure,
        "assets": assets.measure,
        "startup": startup.measure,
        "faults": faults.measure,
        "line": line.measure,
        "scale": scale.measure,
        "minute": minute.measure,
    }
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("names", nargs="*", help=f"which of {', '.join(benchmarks)}; none: all")
    names = parser.parse_args().names or list(benchmarks)
    if unknown := set(names) - benchmarks.keys():
        parser.error(f"no benchmark {', '.join(sorted(unknown))}")
    results: dict[str, float] = {}
    for name in names:
        found = benchmarks[name]()
        results.update(found)
        for figure, value in found.items():
            _print(figure, value)
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(results, indent=1) + "\n")
    print(f"written to {OUT}")


def _with_services(measure: Callable[[Settings], dict[str, float]]) -> dict[str, float]:
    """With a broker and a ClickHouse of its own and no workers."""
    with tempfile.TemporaryDirectory(prefix="longtake-bench-") as folder:
        settings = Settings(kafka="", clickhouse="", objects="", state=Path(folder))
        services = up(settings, {})
        try:
            ready = filled(settings, services)
            create_topics(ready)
            return measure(ready)
        finally:
            down(settings)


def _print(figure: str, value: float) -> None:
    target = TARGETS.get(figure)
    verdict = "" if target is None else f"{target!s:>10}  {'ok' if target.met_by(value) else 'MISSED'}"
    print(f"{figure:28} {value:12.3f} {verdict}", flush=True)


if __name__ == "__main__":
    main()
