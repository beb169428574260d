"""What the director costs: a hop, a cycle with a worker, and how fast it works off a backlog. The workers here answer at once."""

import multiprocessing
import statistics
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from itertools import pairwise

from confluent_kafka import Producer

from infra.bus import clients
from infra.bus.clients import Member
from infra.bus.message import Message
from infra.bus.outputs import Cause, outputs_of
from infra.bus.process import run_process, stop_on_signals
from infra.bus.reader import Reader, event_of
from infra.bus.requests import event_in
from infra.bus.work import ThreadWork
from infra.bus.worker import run_worker
from infra.bus.writer import Writer
from infra.settings import Settings
from schemas.headers import trace_root
from schemas.records import AssemblyRequested, JobChanged, PieceRequested, PromptSubmitted, SegmentRequested
from schemas.topics import Event
from streams import director
from tests.director.builders import answers, generated, prompt

_LONG_S = 120.0
"""Of the job whose segments are timed: its row grows to 90 segments."""
_BACKLOG_JOBS = 300
_BACKLOG_S = 12.0
_ANSWER_S = 60.0
_WARM_UP = 10
_ALL_AT_ONCE = {"jobs_in_flight": 1000, "tenant_jobs_in_flight": 1000}
"""Nobody waits: the backlog is one of events."""


def measure(settings: Settings) -> dict[str, float]:
    """Hop and cycle in ms, over the segments of a two-minute job; events/s over all events of 300 jobs of 12 s, in rounds.

    A hop: from before an answer is sent to when a subscriber has the committed next request. A cycle: from a request to
    the next, through a worker. A round of the backlog: every job has answers waiting, committed all at once.
    """
    with _process(_direct, settings):
        events_per_s = _backlog(settings)
        hops_ms = _hops(settings)
        with _process(_generate, settings):
            cycles_ms = _cycles(settings)
    return {
        "director_hop_p50_ms": statistics.median(hops_ms),
        "director_hop_p99_ms": statistics.quantiles(hops_ms, n=100)[98],
        "segment_cycle_p50_ms": statistics.median(cycles_ms),
        "director_events_per_s": events_per_s,
    }


def _hops(settings: Settings) -> list[float]:
    """Each piece is stitched before the next segment is timed: the director lets segments run ahead a little only."""
    times_ms: list[float] = []
    seen: list[Event] = []
    event: Event = prompt(job_id="hops", duration_s=_LONG_S)
    topics = [SegmentRequested.topic, PieceRequested.topic, JobChanged.topic]
    with Reader.from_now(settings, topics) as reader, Writer(settings) as writer:
        while True:
            start = time.perf_counter()
            writer.publish([event], trace_root("hops"))
            request = _event(reader, seen, lambda e: isinstance(e, SegmentRequested))
            times_ms.append((time.perf_counter() - start) * 1e3)
            assert isinstance(request, SegmentRequested)
            if not request.tail_overlap:
                return times_ms[_WARM_UP:]
            if request.segment:
                piece = _event(reader, seen, lambda e: isinstance(e, PieceRequested))
                writer.publish(answers(piece)[:1], trace_root("hops"))
                count = request.segment
                _event(reader, seen, lambda e, n=count: isinstance(e, JobChanged) and e.pieces_stitched == n)
            event = generated(request)


def _cycles(settings: Settings) -> list[float]:
    times: list[float] = []
    topics = [SegmentRequested.topic, PieceRequested.topic]
    with Reader.from_now(settings, topics) as reader, Writer(settings) as writer:
        writer.publish([prompt(job_id="cycles", duration_s=_LONG_S)], trace_root("cycles"))
        while True:
            request = event_of(_next(reader))
            if not isinstance(request, SegmentRequested):
                writer.publish(answers(request)[:1], trace_root("cycles"))
                continue
            times.append(time.perf_counter())
            if not request.tail_overlap:
                return [(after - before) * 1e3 for before, after in pairwise(times)][_WARM_UP:]


def _event(reader: Reader, seen: list[Event], wanted: Callable[[Event], bool]) -> Event:
    """The first event that is wanted; others that come before it are kept in `seen`."""
    while True:
        for event in seen:
            if wanted(event):
                seen.remove(event)
                return event
        seen.append(event_of(_next(reader)))


def _backlog(settings: Settings) -> float:
    topics = [JobChanged.topic, SegmentRequested.topic, PieceRequested.topic, AssemblyRequested.topic]
    waiting: list[Event] = [prompt(job_id=f"job-{i}", duration_s=_BACKLOG_S) for i in range(_BACKLOG_JOBS)]
    producer = clients.transactional_producer(settings, Member(role="benchmark-backlog", topics=()))
    producer.init_transactions()
    events, seconds = 0, 0.0
    with Reader.from_beginning(settings, topics) as reader:
        while waiting:
            _commit(producer, waiting)
            start = time.perf_counter()
            starts = sum(isinstance(event, PromptSubmitted) for event in waiting)
            requests = _said(reader, len(waiting) + starts)
            seconds += time.perf_counter() - start
            events += len(waiting)
            waiting = [answer for event in (*waiting, *map(event_of, requests)) for answer in answers(event)]
    return events / seconds


def _said(reader: Reader, changes: int) -> list[Message]:
    """The director's requests up to its last JobChanged: it says one for every event of the round, and one for every job that starts."""
    requests: list[Message] = []
    while changes:
        message = _next(reader)
        if message.topic == JobChanged.topic:
            changes -= 1
        else:
            requests.append(message)
    return requests


def _commit(producer: Producer, events: Sequence[Event]) -> None:
    """All of them become visible to the director at the same moment."""
    now_us = time.time_ns() // 1000
    outputs = [
        output
        for event in events
        for output in outputs_of([event], Cause(id="", traceparent=trace_root(""), source="", time_us=now_us))
    ]
    producer.begin_transaction()
    for output in outputs:
        producer.produce(output.topic, output.value, output.key, headers=list(output.headers))
    producer.commit_transaction()


def _next(reader: Reader) -> Message:
    deadline = time.monotonic() + _ANSWER_S
    while time.monotonic() < deadline:
        if message := reader.poll(0.1):
            return message
    raise TimeoutError(f"the director said nothing for {_ANSWER_S:.0f} s")


@contextmanager
def _process(target: Callable[[Settings], None], settings: Settings) -> Generator[None]:
    process = multiprocessing.get_context("spawn").Process(target=target, args=(settings,), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def _direct(settings: Settings) -> None:
    run_process(lambda: director.run(settings.model_copy(update=_ALL_AT_ONCE), 0))


def _generate(settings: Settings) -> None:
    work = ThreadWork(lambda message: [generated(event_in(message, SegmentRequested))], settings.slots)
    member = Member(role="generate", topics=(SegmentRequested.topic,))
    run_process(lambda: run_worker(settings, member, work, stop_on_signals()))
