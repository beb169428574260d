"""`python -m benchmarks.scaling`: the tables of docs/scaling.md, from what `python -m benchmarks scale minute` left in `out/`."""

from dataclasses import replace

from benchmarks.scaling.figures import MINUTE, SCALED, Minute, Scaled, read
from benchmarks.scaling.replay import check, print_loads
from benchmarks.scaling.sizes import (
    FPS,
    HEADLINE,
    PARTITIONS_PER_GPU,
    SEGMENT_FRAMES,
    TARGET_FPS,
    Prices,
    cost_per_minute,
    fps_for,
    sizes,
    videos_per_day,
    worker_cpu_s,
)
from benchmarks.simulation.line import Shape, Times
from benchmarks.simulation.role import dealt
from benchmarks.simulation.runs import Failures, steady

_SEGMENTS = 6
"""Of a simulated job: 12 s of video. How long jobs are does not change how busy engines are."""
_GPU_SECONDS = 100_000
"""Simulated for each figure, of all GPUs together."""
_BEGUN_S = 60.0
_GPUS = (10, 100, 1000)
_STORE_S = 1.0
"""Assumed: latents and 48 frames at 720p, 133 MB, checked, hashed and put."""
_RESTART_S = 2.15
"""Median of the kills of `make chaos SEED=1` on two cores: from kill -9 to the next committed record, without weights to load."""


def main() -> None:
    """Print them all. Raises: UnlikeError if the simulation does not say what was measured."""
    scaled, minute = read(SCALED, Scaled), read(MINUTE, Minute)
    print("\n## Measured and simulated\n")
    print_loads(scaled)
    check(scaled)
    times = _gpu_times(scaled, minute)
    print(f"\nSimulated below: {times}")
    _print_minute(minute)
    _print_partitions(times)
    _print_jobs(times)
    _print_failures(times)
    _print_sizes(minute)
    _print_speed()
    _print_cost(minute)


def _gpu_times(scaled: Scaled, minute: Minute) -> Times:
    """An engine of the target's speed, pieces of its segments at 720p on one core, everything else as measured."""
    hd, cpu_s = minute.times, minute.costs.cpu_s
    frame_share = SEGMENT_FRAMES / (60 * FPS)
    return replace(
        scaled.times,
        engine_s=SEGMENT_FRAMES / TARGET_FPS,
        store_s=_STORE_S,
        stitch_s=cpu_s["stitch"] * frame_share,
        check_s=cpu_s["check-pieces"] * frame_share,
        assemble_s=hd.assemble_s,
        video_check_s=hd.video_check_s,
    )


def _shape(gpus: int, *, each: int = PARTITIONS_PER_GPU, slots: int = 4, jobs_in_flight: int = 16) -> Shape:
    """As many stitchers, checkers and assemblers as GPUs: enough not to be waited for."""
    owners = dealt(gpus * each, gpus)
    return Shape(owners=owners, others=owners, slots=slots, jobs_in_flight=jobs_in_flight)


def _busy(shape: Shape, times: Times, jobs: int) -> float:
    counted_s = _GPU_SECONDS / shape.gpus
    return steady(shape, times, jobs=jobs, segments=_SEGMENTS, seconds=(_BEGUN_S, counted_s)).busy_share


def _print_minute(minute: Minute) -> None:
    costs = minute.costs
    print("\n## A minute of video at 1280x720, measured\n")
    for name, values, scale in (
        ("processor, s", costs.cpu_s, 1.0),
        ("records", costs.records, 1.0),
        ("topics, kB", costs.topic_bytes, 1e-3),
        ("rows", costs.rows, 1.0),
        ("tables on disk, kB", costs.table_bytes, 1e-3),
        ("objects, MB", costs.object_bytes, 1e-6),
    ):
        parts = sorted(values.items(), key=lambda item: -item[1])
        listed = ", ".join(f"{key} {scale * value:,.1f}" for key, value in parts)
        print(f"| {name} | {scale * sum(values.values()):,.1f} | {listed} |")
    print(f"| of workers beside engines | {worker_cpu_s(minute):.1f} | |")
    print(", ".join(f"{name} {value:,.0f}" for name, value in minute.capacity.items()))


def _print_partitions(times: Times) -> None:
    """With a hundred jobs for each GPU, what it waits for is its own partitions and slots; with eight, chance has a part in it."""
    print("\n## Engines busy, by partitions of a GPU, slots and jobs for each GPU; simulated, 10 GPUs\n")
    print("| partitions of a GPU | 1 slot, 100 jobs | 2 slots, 100 jobs | 4 slots, 100 jobs | 4 slots, 8 jobs |")
    print("|---|---|---|---|---|")
    for each in (1, 2, 4, 8):
        shapes = [(_shape(10, each=each, slots=slots), jobs) for slots, jobs in ((1, 100), (2, 100), (4, 100), (4, 8))]
        print(f"| {each} | " + " | ".join(f"{_busy(shape, times, 10 * jobs):.3f}" for shape, jobs in shapes) + " |")


def _print_jobs(times: Times) -> None:
    print("\n## Engines busy, by jobs in the line for each GPU; simulated (N / (N + M - 1))\n")
    print("| jobs for each GPU | " + " | ".join(f"{gpus:,} GPUs" for gpus in _GPUS) + " |")
    print("|---" * (1 + len(_GPUS)) + "|")
    for each in (1, 2, 4, 8, 19, 40):
        cells = [
            f"{_busy(_shape(gpus, jobs_in_flight=2), times, gpus * each):.3f} ({gpus * each / (gpus * each + gpus - 1):.3f})"
            for gpus in _GPUS
        ]
        print(f"| {each} | " + " | ".join(cells) + " |")


def _print_failures(times: Times) -> None:
    """Struck far more often than any cluster is, so that there is something to count; a rarer failure costs as much each time."""
    shape, jobs, seconds = _shape(40), 4000, (_BEGUN_S, _GPU_SECONDS / 40)
    calm = steady(shape, times, jobs=jobs, segments=_SEGMENTS, seconds=seconds)
    print("\n## What failures cost; simulated, 40 GPUs with 100 jobs for each\n")
    print(
        "| what | simulated | engines busy | GPU-seconds lost each time | share lost at one a day | at one in 30 days |"
    )
    print("|---|---|---|---|---|---|")
    print(f"| nothing | | {calm.busy_share:.4f} | | | |")
    for name, hit, failures in (
        ("a worker is killed and has nothing to load", 1, Failures(kill_every_s=300.0, restart_s=_RESTART_S)),
        ("a worker is killed and loads for 60 s", 1, Failures(kill_every_s=3000.0, restart_s=_RESTART_S + 60)),
        ("a server of 8 is lost for 10 minutes", 8, Failures(node_every_s=3000.0, node_gpus=8, repair_s=600.0)),
    ):
        found = steady(shape, times, jobs=jobs, segments=_SEGMENTS, seconds=seconds, failures=failures)
        events = found.kills + found.node_losses
        lost_s = (calm.busy_share - found.busy_share) * _GPU_SECONDS / events
        daily = lost_s / hit / 86_400
        print(
            f"| {name} | {events} times in {_GPU_SECONDS / 3600:.0f} GPU-hours | {found.busy_share:.4f} | {lost_s:.1f} | "
            f"{100 * daily:.4f} % | {100 * daily / 30:.4f} % |"
        )


def _print_sizes(minute: Minute) -> None:
    print(f"\n## For so many GPUs at {TARGET_FPS:g} frames/s, computed from what was measured\n")
    print("| | " + " | ".join(f"{gpus:,} GPUs" for gpus in _GPUS) + " |")
    print("|---" * (1 + len(_GPUS)) + "|")
    found = [sizes(gpus, minute) for gpus in _GPUS]
    for name, values in (
        ("minutes of video a minute", [f"{60 * s.minutes_per_s:,.0f}" for s in found]),
        ("partitions", [f"{s.partitions:,}" for s in found]),
        ("jobs in the line for 95 % busy", [f"{s.jobs:,}" for s in found]),
        ("records/s", [f"{s.records_per_s:,.0f}" for s in found]),
        ("MB/s on the bus, once", [f"{s.bus_bytes_per_s / 1e6:.2f}" for s in found]),
        ("transactions/s, at most", [f"{s.transactions_per_s:,.0f}" for s in found]),
        ("replicas of partitions, of all topics", [f"{s.partition_replicas:,}" for s in found]),
        ("brokers like the one here, half full, at most 4,000 replicas each", [f"{s.brokers:,}" for s in found]),
        ("directors", [f"{s.directors:,}" for s in found]),
        ("rows/s", [f"{s.rows_per_s:,.0f}" for s in found]),
        ("ClickHouse shards like the one here, half full, an insert for each piece", [f"{s.shards:,}" for s in found]),
        ("the same, an insert for fifty pieces", [f"{s.shards_in_batches:,}" for s in found]),
        ("cores of workers beside engines, half full", [f"{s.cores:,.0f}" for s in found]),
        ("objects written, GB/s", [f"{s.put_bytes_per_s / 1e9:.2f}" for s in found]),
        ("objects read, GB/s", [f"{s.got_bytes_per_s / 1e9:.2f}" for s in found]),
        ("kept of a day: latents and videos, TB", [f"{s.kept_bytes_per_day / 1e12:.2f}" for s in found]),
    ):
        print(f"| {name} | " + " | ".join(values) + " |")


def _print_speed() -> None:
    print("\n## Two-minute videos a day, computed\n")
    print("| frames/s of a GPU | videos a day of a busy GPU | of a server of 8 |")
    print("|---|---|---|")
    for fps in (fps_for(HEADLINE, 1), 1.0, 8.0, 16.0, TARGET_FPS):
        print(f"| {fps:.2f} | {videos_per_day(fps):.0f} | {8 * videos_per_day(fps):.0f} |")


def _print_cost(minute: Minute) -> None:
    core_s = sum(value for role, value in minute.costs.cpu_s.items() if role != "generate")
    print("\n## A minute of video, by the price of a GPU-hour (an input), at 95 % busy\n")
    print(f"GPU-hours: {FPS * 60 / 3600:.2f} / fps / busy. Core-hours: {core_s / 3600:.4f} / 0.5.\n")
    prices = (1.0, 2.0, 4.0)
    print("| frames/s | " + " | ".join(f"{price:g} a GPU-hour" for price in prices) + " |")
    print("|---" * (1 + len(prices)) + "|")
    for fps in (8.0, 16.0, TARGET_FPS):
        found = [cost_per_minute(minute, Prices(gpu_hour=price, core_hour=0.0), fps=fps, busy=0.95) for price in prices]
        print(f"| {fps:g} | " + " | ".join(f"{value:.4f}" for value in found) + " |")


if __name__ == "__main__":
    main()
