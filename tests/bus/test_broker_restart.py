"""A broker that is killed under traffic and comes back."""

import contextlib
import itertools
import threading
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from multiprocessing.process import BaseProcess

from infra.bus import watchdog
from infra.bus.clients import admin
from infra.bus.errors import BusError
from infra.bus.progress import EndsQuery
from infra.bus.reader import event_of
from infra.local.kafka import LocalKafka
from infra.settings import Settings
from schemas.records import SegmentFailed
from schemas.topics import TOPICS
from tests.bus.line import ASKED, TABLE, WORKER, Question, all_read, answers, ask, eventually, messages, questions, rows
from tests.bus.processes import table_process, worker_process

JOBS = [f"job-{number}" for number in range(8)]
Start = Callable[[Settings], AbstractContextManager[BaseProcess]]


@contextmanager
def supervised(settings: Settings, start: Start) -> Generator[list[int | None]]:
    """A process that is started again at once when it ends. Gives the exit codes."""
    stop = threading.Event()
    codes: list[int | None] = []

    def supervise() -> None:
        while not stop.is_set():
            with start(settings) as process:
                while process.is_alive() and not stop.is_set():
                    process.join(0.1)
                codes.append(process.exitcode)

    thread = threading.Thread(target=supervise)
    thread.start()
    try:
        yield codes
    finally:
        stop.set()
        thread.join()


@contextmanager
def traffic(settings: Settings) -> Generator[None]:
    """Questions about every job, round after round, also while the broker is away."""
    stop = threading.Event()

    def send() -> None:
        for number in itertools.count():
            with contextlib.suppress(BusError):
                ask(settings, questions(JOBS, [number]))
            if stop.wait(0.05):
                return

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_a_broker_killed_under_traffic_loses_and_doubles_nothing(own_kafka: LocalKafka, own_settings: Settings) -> None:
    with supervised(own_settings, worker_process) as ends, supervised(own_settings, table_process) as table_ends:
        with traffic(own_settings):
            eventually(lambda: bool(rows(own_settings)) and bool(answers(own_settings)), "both are at work")
            own_kafka.kill()
            own_kafka.restart()
            before = len(answers(own_settings))
            eventually(lambda: len(answers(own_settings)) > before, "the worker goes on", 60)
        eventually(lambda: all_read(own_settings, WORKER), "the worker has read everything", 60)
        eventually(lambda: all_read(own_settings, TABLE), "the director has read everything", 60)
    assert watchdog.EXIT_CODE not in ends + table_ends
    asked = Counter(message.job_id for message in messages(own_settings, ASKED))
    assert sorted(answers(own_settings)) == sorted(asked_questions(own_settings))
    assert sorted(answers(own_settings, TABLE)) == sorted((job, n + 1) for job in asked for n in range(asked[job]))
    assert rows(own_settings) == asked
    assert not hanging(own_settings)


def asked_questions(settings: Settings) -> list[Question]:
    """What arrived, each as often as it did."""
    events = [event_of(message) for message in messages(settings, ASKED)]
    return [(event.job_id, event.segment) for event in events if isinstance(event, SegmentFailed)]


def hanging(settings: Settings) -> dict[tuple[str, int], int]:
    """Partitions that an open transaction holds up, when nobody writes."""
    client = admin(settings)
    places = [(topic.name, partition) for topic in TOPICS for partition in range(settings.partitions)]
    return EndsQuery(client, places).result().open()
