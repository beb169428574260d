"""What a hop over the bus costs: an event in, a worker that only answers, an event out; and how fast a backlog is worked off.

The peer is the same loop without exactly-once: the same consumer and worker, records produced and flushed, then offsets
committed by the consumer, in no transaction.
"""

import itertools
import statistics
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from infra.bus import clients
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

    The backlog: records of many jobs that are all there at once. `exactly_once_ms` is what a hop costs more than at least once.
    """
    hop_ms, p99_ms, records_per_s = _measured(settings, "benchmark")
    with _at_least_once():
        plain_ms, _, plain_records_per_s = _measured(settings, "benchmark-plain")
    return {
        "worker_hop_p50_ms": hop_ms,
        "worker_hop_p99_ms": p99_ms,
        "worker_records_per_s": records_per_s,
        "at_least_once_hop_p50_ms": plain_ms,
        "at_least_once_records_per_s": plain_records_per_s,
        "exactly_once_ms": hop_ms - plain_ms,
        "exactly_once_hop_ratio": hop_ms / plain_ms,
        "exactly_once_record_ms": 1e3 / records_per_s - 1e3 / plain_records_per_s,
    }


def _measured(settings: Settings, role: str) -> tuple[float, float, float]:
    """p50 and p99 of a hop in ms, records/s of a backlog."""
    with (
        _worker(settings, role),
        Reader.from_now(settings, [PromptRefused.topic]) as reader,
        Writer(settings, "longtake.benchmark") as writer,
    ):
        times_ms = [_hop(writer, reader, f"{role}-{i}") for i in range(_WARM_UP + _HOPS)][_WARM_UP:]
        records_per_s = _backlog(writer, reader)
    return statistics.median(times_ms), statistics.quantiles(times_ms, n=100)[98], records_per_s


class _PlainProducer:
    """A producer whose transactions are none: what is produced is there at once, offsets are committed by the consumer."""

    def __init__(self, producer: Producer, consumers: Sequence[Consumer]) -> None:
        self._producer = producer
        self._consumers = consumers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)

    def init_transactions(self, *_: float) -> None:
        """There are none."""

    begin_transaction = commit_transaction = init_transactions

    def send_offsets_to_transaction(self, offsets: list[TopicPartition], *_: object) -> None:
        self._consumers[-1].commit(offsets=offsets, asynchronous=False)


@contextmanager
def _at_least_once() -> Generator[None]:
    """Workers of this process are at least once."""
    consumers: list[Consumer] = []
    transactional_producer, worker_consumer = clients.transactional_producer, clients.worker_consumer

    def producer(settings: Settings, member: Member) -> _PlainProducer:
        return _PlainProducer(clients.plain_producer(settings, member.name), consumers)

    def consumer(settings: Settings, member: Member) -> Consumer:
        consumers.append(worker_consumer(settings, member))
        return consumers[-1]

    clients.transactional_producer = producer  # pyright: ignore[reportAttributeAccessIssue]
    clients.worker_consumer = consumer
    try:
        yield
    finally:
        clients.transactional_producer, clients.worker_consumer = transactional_producer, worker_consumer


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
def _worker(settings: Settings, role: str) -> Generator[None]:
    stop = threading.Event()
    member = Member(role=role, topics=(CancelRequested.topic,))
    work = ThreadWork(answered, settings.slots)
    thread = threading.Thread(target=run_worker, args=(settings, member, work, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def answered(message: Message) -> tuple[PromptRefused]:
    """The least that a worker can do."""
    job_id = event_in(message, CancelRequested).job_id
    return (PromptRefused(job_id=job_id, field="text", rule="benchmark", message="", content_hash="", refused_us=0),)
