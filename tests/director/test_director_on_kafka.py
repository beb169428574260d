"""The director on a real broker, killed, joined and cut off under traffic: nothing lost, nothing doubled, the table right."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import pytest

from infra.bus.reader import Reader, event_of
from infra.bus.writer import Writer
from infra.local.kafka import LocalKafka
from infra.settings import Settings
from schemas import records as r
from schemas.headers import trace_id, trace_root
from schemas.topics import Event, key_of
from streams.decider import JobDecider
from streams.director import instruct_shots
from streams.jobs import Rules, changed
from tests.director.builders import Line, prompt, timeless
from tests.director.processes import Group, directors, instant_workers

KILLS = 10
IN_FLIGHT = 12
"""Jobs under way at any time: there is always something for the director to do."""
CHANGES = 40
"""Records of jobs.v1, from several jobs: progress that a director makes between two kills."""
DEADLINE_S = 60.0
_SAID = tuple(
    event.topic for event in (r.SegmentRequested, r.PieceRequested, r.AssemblyRequested, r.VideoFinished, r.JobChanged)
)


@dataclass
class Traffic:
    """Producer and subscriber: submits a new job whenever one is done, and counts what the director says."""

    reader: Reader
    writer: Writer
    submitted: list[str] = field(default_factory=list)
    finished: set[str] = field(default_factory=set)
    changes: int = 0
    names: Iterator[str] = field(default_factory=lambda: (f"job-{i}" for i in count()))

    def until(self, true: Callable[[], bool], what: str) -> None:
        """Keep jobs coming until something is true."""
        self._go_on(true, what, IN_FLIGHT)

    def progress(self) -> None:
        """Keep jobs coming until the director has said something about them many times."""
        goal = self.changes + CHANGES
        self.until(lambda: self.changes >= goal, f"{CHANGES} more changes of jobs")

    def drain(self) -> None:
        """Until every submitted job is done."""
        self._go_on(lambda: len(self.finished) == len(self.submitted), "all jobs finished", 0)

    def _go_on(self, true: Callable[[], bool], what: str, in_flight: int) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not true():
            assert time.monotonic() < deadline, f"not in {DEADLINE_S:.0f} s: {what}"
            while len(self.submitted) - len(self.finished) < in_flight:
                self._submit(next(self.names))
            message = self.reader.poll(0.1)
            if message and message.topic == r.JobChanged.topic:
                self.changes += 1
            elif message:
                self.finished.add(message.job_id)

    def _submit(self, job_id: str) -> None:
        self.writer.publish([prompt(job_id=job_id)], trace_root(job_id))
        self.submitted.append(job_id)


@pytest.fixture
def settings(own_settings: Settings) -> Settings:
    return own_settings.model_copy(update={"session_timeout_ms": 6000, "watchdog_s": 10.0})


@pytest.mark.timeout(400)
def test_kills_members_and_a_broker_restart_lose_and_double_nothing(own_kafka: LocalKafka, settings: Settings) -> None:
    with (
        Reader.from_beginning(settings, [r.JobChanged.topic, r.VideoFinished.topic]) as reader,
        Writer(settings) as writer,
        instant_workers(settings),
        directors(settings) as line,
    ):
        traffic, group = Traffic(reader, writer), Group(settings)
        for _ in range(KILLS):
            traffic.progress()
            line.kill(0)
        traffic.progress()
        line.start(1)
        traffic.until(lambda: group.has(2), "a second director holds partitions")
        traffic.progress()
        line.kill(1)
        traffic.progress()
        line.stop(1)
        traffic.until(lambda: group.has(1), "the first director holds all partitions")
        traffic.progress()
        own_kafka.kill()
        own_kafka.restart()
        traffic.progress()
        traffic.drain()
    check(settings, traffic)


def check(settings: Settings, traffic: Traffic) -> None:
    """Everything on the bus is what one undisturbed director would have said, once."""
    rows: dict[str, r.JobState] = {}
    said: dict[str, list[Event]] = defaultdict(list)
    with Reader.from_beginning(settings, [r.JobState.topic, *_SAID]) as reader:
        for event in map(event_of, reader.to_end()):
            if isinstance(event, r.JobState):
                rows[event.job_id] = event
            else:
                said[key_of(event)].append(event)
    assert sorted(rows) == sorted(traffic.submitted)
    for job_id in traffic.submitted:
        alone = Line(decider=JobDecider(rules=Rules(), instruct=instruct_shots))
        alone.run(prompt(job_id=job_id))
        assert Counter(map(_name, said[job_id])) == Counter(map(_name, alone.said))
        row = rows[job_id]
        assert trace_id(row.traceparent) == trace_id(trace_root(job_id))
        assert _settled(row) == _settled(alone.job)
        told = [event for event in said[job_id] if isinstance(event, r.JobChanged)]
        assert told[-1] == changed(row)


def _name(event: Event) -> str:
    """What is asked for, or said, without times and what depends on them.

    A prompt may miss its parse deadline on a busy machine; what JobChanged says depends on the order of answers.
    """
    if isinstance(event, r.JobChanged):
        return "changed"
    if isinstance(event, r.SegmentRequested):
        event = replace(event, shots=(), request_hash="")
    return getattr(event, "request_hash", "") or str(timeless(event))


def _settled(row: r.JobState) -> dict[str, Any]:
    """The row without times and what depends on them."""
    assert row.plan
    return timeless(replace(row, traceparent="", plan=replace(row.plan, lint=())))
