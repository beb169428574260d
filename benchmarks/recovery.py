"""What a director's restart costs with 10,000 jobs in its table, all in the middle of a film, against a restart with an empty one."""

import multiprocessing
import time
from dataclasses import replace
from typing import cast

import psutil

from infra.bus import clients
from infra.bus.process import run_process
from infra.bus.reader import Reader, event_of
from infra.bus.writer import Writer
from infra.settings import Settings
from schemas.codec import encode
from schemas.headers import trace_root
from schemas.records import JobChanged, JobState, SegmentRequested
from streams import director
from tests.director.builders import Line, prompt

_JOBS = 10_000
_FILM_S = 12.0
_ANSWER_S = 120.0


def measure(settings: Settings) -> dict[str, float]:
    """From the start of the process to its first decision, in s; its resident memory then, in MB; both with and without the table."""
    empty_s, empty_mb = _restarted(settings, "before")
    table_mb = _fill(settings)
    full_s, full_mb = _restarted(settings, "after")
    return {
        "director_start_s": empty_s,
        "director_restart_10000_jobs_s": full_s,
        "director_mb": empty_mb,
        "director_10000_jobs_mb": full_mb,
        "director_table_mb": table_mb,
        "director_memory_per_row_byte": (full_mb - empty_mb) / table_mb,
    }


def _fill(settings: Settings) -> float:
    """Write the rows; their size in MB."""
    line = Line()
    line.until(SegmentRequested, prompt(duration_s=_FILM_S), index=5)
    producer = clients.plain_producer(settings, "longtake.benchmark")
    size = 0
    now_us = time.time_ns() // 1000  # or the first scan would ask again for all of it
    for number in range(_JOBS):
        job_id = f"kept-{number}"
        row = encode(replace(line.job, job_id=job_id, changed_us=now_us))
        size += len(row)
        producer.produce(JobState.topic, row, job_id.encode())
        producer.poll(0)
    if producer.flush(_ANSWER_S):
        raise TimeoutError("the broker did not take the rows")
    return size / 1e6


def _restarted(settings: Settings, job_id: str) -> tuple[float, float]:
    with Writer(settings) as writer, Reader.from_now(settings, [JobChanged.topic]) as reader:
        writer.publish([prompt(job_id=job_id)], trace_root(job_id))
        started_s = time.perf_counter()
        process = multiprocessing.get_context("spawn").Process(target=_direct, args=(settings,), daemon=True)
        process.start()
        try:
            while not ((message := reader.poll(0.1)) and cast(JobChanged, event_of(message)).job_id == job_id):
                if time.perf_counter() - started_s > _ANSWER_S:
                    raise TimeoutError(f"the director said nothing for {_ANSWER_S:.0f} s")
            took_s = time.perf_counter() - started_s
            return took_s, psutil.Process(process.pid).memory_info().rss / 1e6
        finally:
            process.terminate()
            process.join()


def _direct(settings: Settings) -> None:
    run_process(lambda: director.run(settings, 0))
