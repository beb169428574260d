"""The derived streams on a real broker: the numbers after kills, aborted transactions and a rebuild."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from infra.bus.clients import Member, admin, lone_consumer, plain_producer, transactional_producer
from infra.local.services import environment
from infra.settings import Settings
from qc_consumers.baselines import following
from schemas.codec import decode, encode
from schemas.records import EngineBaseline, JobProgress, LineThroughput, Stage
from schemas.topics import Event, key_of
from streams.insights.generations import Generations
from streams.insights.quality import MINIMUM
from streams.insights.worker import run
from tests.insights.events import changed, checked, failed, generated
from tests.insights.test_quality import POPULATION, noisy, piece, said

_DEADLINE_S = 60.0
JOBS = 12


def job_events(job: str) -> list[Event]:
    """Three segments, one of them at the second try: 120 frames in 3 s of engine time."""
    return [
        changed(job, frames=104),
        generated(job, 0, start_frame=0, finished_s=2),
        failed(job, 1, attempt=1),
        changed(job, frames=104, segments_generated=1, changed_s=3),
        generated(job, 1, attempt=2, start_frame=32, finished_s=4),
        checked(job, 0, checked_s=5),
        generated(job, 2, start_frame=64, finished_s=6),
        changed(job, frames=104, segments_generated=3, changed_s=7),
        checked(job, 1, checked_s=8),
        checked(job, 2, frames=40, checked_s=9),
        changed(job, frames=104, segments_generated=3, stage=Stage.FINISHED, changed_s=10),
    ]


def publish(settings: Settings, events: Sequence[Event]) -> None:
    producer = plain_producer(settings, "test")
    for event in events:
        producer.produce(type(event).topic, encode(event), key_of(event).encode())
        producer.poll(0)
    assert producer.flush(30) == 0


def publish_and_abort(settings: Settings, events: Sequence[Event]) -> None:
    producer = transactional_producer(settings, Member(role="test", topics=()))
    producer.init_transactions()
    producer.begin_transaction()
    for event in events:
        producer.produce(type(event).topic, encode(event), key_of(event).encode())
    producer.flush()
    producer.abort_transaction()


def longtake(settings: Settings, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "infra.cli.main", *arguments], env=os.environ | environment(settings)
    )


@contextmanager
def insights(settings: Settings) -> Iterator[subprocess.Popen[bytes]]:
    """The worker as its own process, killed at the end."""
    process = longtake(settings, "worker", "insights")
    try:
        yield process
    finally:
        process.kill()
        process.wait()


class Derived:
    """The last event of every key on the derived topics."""

    def __init__(self, settings: Settings) -> None:
        self.last: dict[str, Event] = {}
        self._consumer = lone_consumer(settings, "test")
        self._consumer.subscribe([JobProgress.topic, EngineBaseline.topic])

    def wait_until(self, true: Callable[["Derived"], bool]) -> None:
        deadline = time.monotonic() + _DEADLINE_S
        while not true(self):
            if time.monotonic() > deadline:
                raise TimeoutError(f"still: {self.last}")
            record = self._consumer.poll(0.2)
            if record is not None and not record.error():
                event = decode(record.value() or b"")
                self.last[key_of(event)] = event

    def baseline(self) -> tuple[int, int, int, int]:
        event = self.last.get("engine/animatic/1")
        return (
            (event.segments, event.failures, event.frames, event.busy_us)
            if isinstance(event, EngineBaseline)
            else (0, 0, 0, 0)
        )

    def finished(self) -> int:
        return sum(isinstance(e, JobProgress) and e.stage is Stage.FINISHED for e in self.last.values())

    def videos(self) -> int:
        return sum(e.videos for e in self.last.values() if isinstance(e, LineThroughput))

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture
def derived(bus_settings: Settings) -> Iterator[Derived]:
    reader = Derived(bus_settings)
    yield reader
    reader.close()


def all_right(jobs: int) -> Callable[[Derived], bool]:
    expected = (3 * jobs, jobs, 120 * jobs, 3_000_000 * jobs)
    return lambda d: d.baseline() == expected and d.finished() == jobs and d.videos() == jobs


def test_numbers_are_right_and_aborted_or_unreadable_records_do_not_count(
    bus_settings: Settings, derived: Derived
) -> None:
    publish_and_abort(bus_settings, [generated("film-0", 7, version="aborted"), changed("ghost")])
    producer = plain_producer(bus_settings, "test")
    producer.produce("longtake.segments.v1", b"no Avro", b"film-0")
    producer.flush()
    with insights(bus_settings) as worker:
        publish(bus_settings, [e for n in range(JOBS) for e in job_events(f"film-{n}")])
        derived.wait_until(all_right(JOBS))
        last = derived.last["film-0"]
        assert isinstance(last, JobProgress)
        assert (last.frames, last.frames_generated, last.frames_checked, last.remaining_s) == (104, 104, 104, 0.0)
        assert not {"ghost", "engine/animatic/aborted"} & set(derived.last)
        worker.terminate()
        assert worker.wait(20) == 0


def test_numbers_are_right_after_kills_in_the_middle_and_after_a_rebuild(
    bus_settings: Settings, derived: Derived
) -> None:
    for kill in range(3):
        with insights(bus_settings):
            publish(bus_settings, [e for n in range(4) for e in job_events(f"film-{kill}-{n}")])
            derived.wait_until(lambda d, seen=4 * kill + 1: d.finished() >= seen)
    with insights(bus_settings) as old:
        derived.wait_until(all_right(JOBS))
        derived.last.clear()
        rebuild = longtake(bus_settings, "insights", "rebuild", "--wait", "60")
        assert old.wait(30) == 0
    with insights(bus_settings):
        derived.wait_until(all_right(JOBS))
        assert rebuild.wait(60) == 0
    assert Generations(bus_settings).newest() == 2
    assert "longtake.insights.1-facts-changelog" not in admin(bus_settings).list_topics(timeout=10).topics


def test_a_second_worker_is_not_started(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="slot 0"):
        run(Settings(kafka="127.0.0.1:1", state=tmp_path), 1)


def test_what_is_usual_reaches_the_workers_that_judge_by_it(bus_settings: Settings) -> None:
    events = noisy(MINIMUM + 10)
    publish_and_abort(bus_settings, [piece(999, 0.0)])
    publish(bus_settings, events)
    wanted = said(events)
    with insights(bus_settings), following(bus_settings) as baselines:
        deadline = time.monotonic() + _DEADLINE_S
        while baselines.of(POPULATION) != wanted:
            assert time.monotonic() < deadline, baselines.of(POPULATION)
            time.sleep(0.05)
