"""The whole generate worker on a real broker: killed in the middle, and told to stop."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

import psutil

from infra.bus.reader import Reader, event_of
from infra.bus.writer import publish
from infra.settings import Settings
from schemas.headers import trace_root
from schemas.records import SegmentGenerated
from tests.gpu_consumers.requests import segment_request

JOBS = 6
SEGMENTS = 3
KILL_AFTER = (1, 7)
"""Answers seen."""
QUIET_S = 60.0


@contextmanager
def worker(settings: Settings) -> Generator[subprocess.Popen[bytes], None, None]:
    """A generate worker in slot 0."""
    program = (
        "import logging; from gpu_consumers.generate import run; from infra.settings import Settings;"
        "logging.basicConfig(level='INFO'); run(Settings(), 0)"
    )
    addresses = {"LONGTAKE_KAFKA": settings.kafka, "LONGTAKE_OBJECTS": settings.objects}
    process = subprocess.Popen([sys.executable, "-c", program], env=os.environ | addresses)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_worker_killed_in_the_middle_loses_and_doubles_nothing(bus_settings: Settings) -> None:
    done: dict[str, list[SegmentGenerated]] = {f"job-{number}": [] for number in range(JOBS)}
    kills = list(KILL_AFTER)
    with Reader.from_beginning(bus_settings, [SegmentGenerated.topic]) as reader:
        for job in done:
            publish(bus_settings, [segment_request(job)], trace_root(job))
        answers = reader.for_seconds(QUIET_S)
        while any(len(events) < SEGMENTS for events in done.values()):
            with worker(bus_settings):
                for message in answers:
                    event = event_of(message)
                    assert isinstance(event, SegmentGenerated), event
                    events = done[event.job_id]
                    assert event.segment == len(events), "in order, and none twice"
                    events.append(event)
                    if len(events) < SEGMENTS:
                        publish(bus_settings, [segment_request(event.job_id, events)], trace_root(event.job_id))
                    count = sum(map(len, done.values()))
                    if count == JOBS * SEGMENTS or (kills and count >= kills[0]):
                        kills = kills[1:]
                        break
    assert not kills
    with Reader.from_beginning(bus_settings, [SegmentGenerated.topic]) as reader:
        seen = [event_of(message) for message in reader.to_end()]
    counts = Counter((e.job_id, e.segment) for e in seen if isinstance(e, SegmentGenerated))
    assert counts == {(job, segment): 1 for job in done for segment in range(SEGMENTS)}


def test_sigterm_ends_the_worker_and_its_engine_process(bus_settings: Settings) -> None:
    with worker(bus_settings) as process, Reader.from_beginning(bus_settings, [SegmentGenerated.topic]) as reader:
        publish(bus_settings, [segment_request()], trace_root("job-1"))
        assert next(reader.for_seconds(QUIET_S))
        (child,) = psutil.Process(process.pid).children()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert not child.is_running()
