"""What a minute of video costs the line at 720p: processor time by process, bytes by topic, table and kind of object."""

import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import psutil

from benchmarks.scaling.run import Run, run
from infra.bus.reader import Reader
from infra.clickhouse import connect, database_of
from infra.local.services import Services
from infra.objects import Objects
from infra.settings import Settings
from infra.storage.retention import kind_of
from schemas.records import PromptSubmitted
from schemas.topics import TOPICS

SECONDS = 12
_IDLE_S = 8.0
_SETTLED_S = 4.0
_TEXT = "A lone lighthouse keeper walks along a stormy coast at dusk, slow pan right"


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Of a minute of video."""

    cpu_s: Mapping[str, float]
    """By role, and of `kafka` and `clickhouse`; what they use while nothing is to do is taken off."""
    records: Mapping[str, float]
    """By topic."""
    topic_bytes: Mapping[str, float]
    """Keys, values and headers."""
    rows: Mapping[str, float]
    """By table of ClickHouse."""
    table_bytes: Mapping[str, float]
    """On disk."""
    object_bytes: Mapping[str, float]
    """By kind, as written: nothing was swept."""


def job(job_id: str, seconds: float) -> PromptSubmitted:
    """An animatic at 720p."""
    return PromptSubmitted(job_id=job_id, text=_TEXT, duration_s=seconds, width=1280, height=720)


def measure(settings: Settings, services: Services) -> tuple[Run, Costs]:
    """A stack on which something has run already: a first job pays for imports."""
    time.sleep(_SETTLED_S)
    idle = _processor_s(services)
    time.sleep(_IDLE_S)
    begin = _processor_s(services)
    rows, table_bytes = _tables(settings)
    records, topic_bytes = _topics(settings)
    objects = _objects(settings)
    begun_s = time.monotonic()
    found = run(settings, [job("costs", SECONDS)])
    time.sleep(_SETTLED_S)  # rows of the last state, insights: what comes behind the finished video
    wall_s = time.monotonic() - begun_s
    used = _processor_s(services)
    cpu_s = {name: max(0.0, used[name] - begin[name] - (begin[name] - idle[name]) * wall_s / _IDLE_S) for name in used}
    rows_after, table_bytes_after = _tables(settings)
    records_after, topic_bytes_after = _topics(settings)
    return found, Costs(
        cpu_s=_per_minute(cpu_s),
        records=_per_minute(records_after - records),
        topic_bytes=_per_minute(topic_bytes_after - topic_bytes),
        rows=_per_minute(rows_after - rows),
        table_bytes=_per_minute(table_bytes_after - table_bytes),
        object_bytes=_per_minute(_objects(settings) - objects),
    )


def _per_minute(values: Mapping[str, float]) -> dict[str, float]:
    return {name: value * 60 / SECONDS for name, value in values.items() if value}


def _processor_s(services: Services) -> dict[str, float]:
    """So far, by role: of the process and all that it has waited for or still runs."""
    found: dict[str, float] = {}
    for status in services.processes:
        role = re.sub(r"-\d+$", "", status.name)
        process = psutil.Process(status.pid)
        for member in (process, *process.children(recursive=True)):
            times = member.cpu_times()
            used = times.user + times.system + times.children_user + times.children_system
            found[role] = found.get(role, 0.0) + used
    return found


def _topics(settings: Settings) -> tuple[Counter[str], Counter[str]]:
    records, size = Counter[str](), Counter[str]()
    with Reader.from_beginning(settings, [topic.name for topic in TOPICS]) as reader:
        for message in reader.to_end():
            name = message.topic.removeprefix("longtake.")
            headers = sum(len(key) + len(value or b"") for key, value in message.headers)
            records[name] += 1
            size[name] += len(message.key or b"") + len(message.value or b"") + headers
    return records, size


def _tables(settings: Settings) -> tuple[Counter[str], Counter[str]]:
    rows, size = Counter[str](), Counter[str]()
    query = "SELECT table, sum(rows), sum(bytes_on_disk) FROM system.parts WHERE active AND database = {name:String} GROUP BY table"
    for table, count, on_disk in connect(settings).query(query, {"name": database_of(settings)}).result_rows:
        rows[table], size[table] = count, on_disk
    return rows, size


def _objects(settings: Settings) -> Counter[str]:
    size = Counter[str]()
    for stored in Objects(settings.objects).listed():
        size[kind_of(stored.key).value] += stored.size_bytes
    return size
