"""What a hop over the bus costs: an event in, a worker that only answers, an event out; and how fast a backlog is worked off."""

import itertools
import statistics
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

from infra.bus.clients import Member
from infra.bus.message import Message
from infra.bus.reader import Reader
from infra.bus.requests import event_in
from infra.bus.work import ThreadWork
from infra.bus.worker import run_worker
from infra.bus.writer import Writer
from infra.settings import Settings
from schemas.headers import trace_root
from schemas.records import CancelRequested, PromptRefused

_WARM_UP = 50
_HOPS = 300
_BACKLOG = 500
_ANSWER_S = 30.0


def measure(settings: Settings) -> dict[str, float]:
    """A hop in ms: from before an event is sent to when a subscriber has the committed answer, one record a transaction.

    The backlog: records of many jobs that are all there at once.
    """
    with (
        _worker(settings),
        Reader.from_now(settings, [PromptRefused.topic]) as reader,
        Writer(settings, "longtake.benchmark") as writer,
    ):
        times_ms = [_hop(writer, reader, f"job-{i}") for i in range(_WARM_UP + _HOPS)][_WARM_UP:]
        records_per_s = _backlog(writer, reader)
    return {
        "worker_hop_p50_ms": statistics.median(times_ms),
        "worker_hop_p99_ms": statistics.quantiles(times_ms, n=100)[98],
        "worker_records_per_s": records_per_s,
    }


def _hop(writer: Writer, reader: Reader, job_id: str) -> float:
    start = time.perf_counter()
    writer.publish([CancelRequested(job_id=job_id)], trace_root(job_id))
    message = None
    while message is None or message.job_id != job_id:
        message = reader.poll(0.1)
        if time.perf_counter() - start > _ANSWER_S:
            raise TimeoutError(f"no answer about {job_id} in {_ANSWER_S:.0f} s")
    return (time.perf_counter() - start) * 1e3


def _backlog(writer: Writer, reader: Reader) -> float:
    events = [CancelRequested(job_id=f"backlog-{i}") for i in range(_BACKLOG)]
    start = time.perf_counter()
    writer.publish(events, trace_root("backlog"))
    answers = list(itertools.islice(reader.for_seconds(_ANSWER_S), _BACKLOG))
    if len(answers) < _BACKLOG:
        raise TimeoutError(f"{len(answers)} of {_BACKLOG} answers in {_ANSWER_S:.0f} s")
    return _BACKLOG / (time.perf_counter() - start)


@contextmanager
def _worker(settings: Settings) -> Generator[None]:
    stop = threading.Event()
    member = Member(role="benchmark", topics=(CancelRequested.topic,))
    work = ThreadWork(_answer, settings.slots)
    thread = threading.Thread(target=run_worker, args=(settings, member, work, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _answer(message: Message) -> tuple[PromptRefused]:
    job_id = event_in(message, CancelRequested).job_id
    return (PromptRefused(job_id=job_id, field="text", rule="benchmark", message="", content_hash="", refused_us=0),)
