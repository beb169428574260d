"""What a minute of video at 720p costs the line on this machine, and what its broker and ClickHouse take in."""

import os
import tempfile
from pathlib import Path

from benchmarks.scaling import costs, services
from benchmarks.scaling.figures import MINUTE, Minute, write
from benchmarks.scaling.run import line, run, times_of

_PARTITIONS = 8


def measure() -> dict[str, float]:
    """`minute_cpu_s` and `minute_*_bytes`: of a minute of video, all together. `broker_*`, `clickhouse_*`: of the services alone."""
    with (
        tempfile.TemporaryDirectory(prefix="longtake-bench-") as name,
        line(Path(name), generate=1, partitions=_PARTITIONS) as (settings, started),
    ):
        run(settings, [costs.job("warm-up", 4)])
        job, spent = costs.measure(settings, started)
        capacity = services.measure(settings, "costs")
    found = Minute(times=times_of(job), costs=spent, capacity=capacity, cores=os.cpu_count() or 1)
    write(MINUTE, found)
    return {
        "minute_cpu_s": sum(spent.cpu_s.values()),
        "minute_topic_bytes": sum(spent.topic_bytes.values()),
        "minute_table_bytes": sum(spent.table_bytes.values()),
        "minute_object_bytes": sum(spent.object_bytes.values()),
        **capacity,
    }
