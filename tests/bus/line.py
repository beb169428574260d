"""A line in small for tests on the real broker: questions, and a worker and a director that answer, in threads."""

import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition, murmur2

from infra.bus import clients
from infra.bus.clients import Member
from infra.bus.decision import Decision
from infra.bus.membership import Membership
from infra.bus.message import Message
from infra.bus.progress import ProgressWatch
from infra.bus.reader import Reader, event_of
from infra.bus.requests import event_in
from infra.bus.table import run_table
from infra.bus.watchdog import Watchdog
from infra.bus.work import Handler, ThreadWork
from infra.bus.worker import run_worker
from infra.bus.writer import Writer
from infra.settings import Settings
from schemas.errors import BadInputError
from schemas.headers import trace_root, traceparent_of
from schemas.records import AssemblyState, FailureKind, JobState, PromptRefused, SegmentFailed, Stage

ASKED = SegmentFailed.topic
ANSWERED = PromptRefused.topic
WORKER = Member(role="test-worker", topics=(ASKED,))
TABLE = Member(role="test-table", topics=(ASKED,))
SESSION_MS = 6000
"""The shortest that a broker allows."""
Question = tuple[str, int]
"""Job and number."""


def question(job_id: str, number: int, **fields: Any) -> SegmentFailed:
    defaults: dict[str, Any] = {
        "job_id": job_id,
        "segment": number,
        "attempt": 1,
        "request_hash": "",
        "kind": FailureKind.CRASHED,
        "reason": "",
        "retryable": True,
        "engine": "animatic",
        "engine_version": "1",
        "failed_us": 0,
        "worker": "",
    }
    return SegmentFailed(**(defaults | fields))


def answer(job_id: str, number: int, message: str = "", by: Member = WORKER) -> PromptRefused:
    return PromptRefused(job_id=job_id, field=str(number), rule=by.role, message=message, content_hash="", refused_us=0)


def reply(message: Message) -> list[PromptRefused]:
    """The handler of the worker: one answer to a question."""
    asked = event_in(message, SegmentFailed)
    return [answer(asked.job_id, asked.segment)]


def row(job_id: str, **fields: Any) -> JobState:
    defaults: dict[str, Any] = {
        "job_id": job_id,
        "tenant": "",
        "content_hash": "",
        "traceparent": trace_root(job_id),
        "stage": Stage.GENERATING,
        "reason": "",
        "plan": None,
        "segments": (),
        "pieces": (),
        "assembly": AssemblyState(),
        "engine_version": "",
        "reworks": 0,
        "attempts": 0,
        "submitted_us": 0,
        "changed_us": 0,
        "rescanned_us": 0,
    }
    return JobState(**(defaults | fields))


class NoQueue:
    """Nobody waits."""

    def saw(self, before: JobState | None, after: JobState) -> None:
        pass

    def full(self, job: JobState) -> None:
        pass

    def next(self) -> None:
        pass


class Counter:
    """The decider of the table: counts the questions of a job and answers with the count."""

    def decide(self, message: Message, state: JobState | None, now_us: int) -> Decision:
        before = state or row(message.job_id, traceparent=traceparent_of(message.headers, otherwise=message.job_id))
        after = replace(before, attempts=before.attempts + 1)
        return Decision(state=after, events=(answer(message.job_id, after.attempts, by=TABLE),))

    def scan(self, states: Iterable[JobState], now_us: int) -> list[Decision]:
        return []

    def queue(self) -> NoQueue:
        return NoQueue()

    def start(self, state: JobState, now_us: int) -> Decision:
        raise AssertionError("nobody waits")

    def refuse(self, message: Message, state: JobState, error: BadInputError, now_us: int) -> Decision:
        raise AssertionError("there is always room")


# --- asking and looking ------------------------------------------------------------------------------------------------


def ask(settings: Settings, questions: Iterable[Question]) -> None:
    with Writer(settings) as writer:
        for job_id, number in questions:
            writer.publish([question(job_id, number)], trace_root(job_id))


def questions(jobs: Sequence[str], numbers: Iterable[int]) -> list[Question]:
    return [(job, number) for number in numbers for job in jobs]


def jobs_by_partition(settings: Settings) -> list[str]:
    """One job for each partition, in order."""
    found: dict[int, str] = {}
    for number in range(1000):
        found.setdefault(murmur2(f"job-{number}".encode(), settings.partitions), f"job-{number}")
    return [found[partition] for partition in range(settings.partitions)]


def messages(settings: Settings, topic: str) -> list[Message]:
    """All committed records of a topic."""
    with Reader.from_beginning(settings, [topic]) as reader:
        return list(reader.to_end())


def answers(settings: Settings, by: Member = WORKER) -> list[Question]:
    """All committed answers of a group, each as often as it is there; in order within a job."""
    events = [event_of(message) for message in messages(settings, ANSWERED)]
    refusals = [event for event in events if isinstance(event, PromptRefused) and event.rule == by.role]
    return [(event.job_id, int(event.field)) for event in refusals]


def rows(settings: Settings) -> dict[str, int]:
    """The table as a reader of its topic sees it: the count of each job."""
    events = [event_of(message) for message in messages(settings, JobState.topic)]
    return {event.job_id: event.attempts for event in events if isinstance(event, JobState)}


def all_read(settings: Settings, member: Member) -> bool:
    """Whether the group has committed every question there is."""
    consumer = Consumer({"bootstrap.servers": settings.kafka, "group.id": member.group})
    try:
        places = [TopicPartition(ASKED, partition) for partition in range(settings.partitions)]
        committed = {p.partition: max(0, p.offset) for p in consumer.committed(places, 10)}
        ends = {p.partition: consumer.get_watermark_offsets(p, 10)[1] for p in places}
    except KafkaException:
        return False
    finally:
        consumer.close()
    return committed == ends


def eventually(true: Callable[[], bool], what: str, timeout_s: float = 40.0) -> None:
    """Wait for a condition. Fails with `what` that did not happen."""
    deadline = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < deadline, f"not in {timeout_s:.0f} s: {what}"
        time.sleep(0.05)


# --- in threads --------------------------------------------------------------------------------------------------------


@contextmanager
def in_thread(run: Callable[[threading.Event], None]) -> Generator[threading.Thread]:
    """A loop in a thread, stopped at the end; what it raised is raised."""
    stop = threading.Event()
    raised: list[BaseException] = []

    def body() -> None:
        try:
            run(stop)
        except BaseException as error:  # noqa: BLE001 (handed to the test's thread)
            raised.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    try:
        yield thread
    finally:
        stop.set()
        thread.join()
        if raised:
            raise raised[0]


def worker(settings: Settings, handler: Handler = reply, member: Member = WORKER) -> Any:
    return in_thread(lambda stop: run_worker(settings, member, ThreadWork(handler, 8), stop))


def table(settings: Settings, decider: Any = None, member: Member = TABLE) -> Any:
    return in_thread(lambda stop: run_table(settings, member, decider or Counter(), stop))


@contextmanager
def membership(settings: Settings) -> Generator[tuple[Membership, ProgressWatch]]:
    """A member that looks for trouble after 2 s."""
    watch = ProgressWatch(settings, limit_s=2.0)
    with Watchdog(WORKER.name, settings.watchdog_s) as dog:
        member = Membership(clients.worker_consumer(settings, WORKER), watch, dog)
        member.join([ASKED], lambda _: None)
        yield member, watch
        member.close()
