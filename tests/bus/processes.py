"""The same line in processes of their own, which have accidents in the middle of a transaction."""

import contextlib
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from typing import Any

from confluent_kafka import KafkaException, Producer

from infra.bus import clients
from infra.bus.clients import Member
from infra.bus.process import run_process, stop_on_signals
from infra.bus.table import run_table
from infra.bus.work import ThreadWork
from infra.bus.worker import run_worker
from infra.settings import Settings
from tests.bus.line import TABLE, WORKER, Counter, reply

STEPS = ("before_begin", "begun", "produced", "flushed", "offsets_sent", "committing", "committed")

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.bus.processes"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Accident:
    """What happens to a process once, at a step of a transaction."""

    step: str
    signal: int = signal.SIGKILL
    transaction: int = 1


@contextmanager
def worker_process(settings: Settings, accident: Accident | None = None) -> Any:
    with in_process(_serve_worker, settings, accident) as process:
        yield process


@contextmanager
def table_process(settings: Settings, accident: Accident | None = None, decider: type[Counter] = Counter) -> Any:
    with in_process(_serve_table, settings, decider, accident) as process:
        yield process


@contextmanager
def in_process(target: Callable[..., None], *args: Any) -> Generator[BaseProcess]:
    """A function in a process of its own, killed at the end."""
    process = _context.Process(target=target, args=args, daemon=True)
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def _serve_worker(settings: Settings, accident: Accident | None) -> None:
    _prepare(accident)
    work = ThreadWork(reply, settings.slots)
    run_process(lambda: run_worker(settings, WORKER, work, stop_on_signals()))


def _serve_table(settings: Settings, decider: type[Counter], accident: Accident | None) -> None:
    _prepare(accident)
    run_process(lambda: run_table(settings, TABLE, decider(), stop_on_signals()))


def _prepare(accident: Accident | None) -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(levelname)s %(name)s %(message)s")
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    original = clients.transactional_producer
    if accident:

        def fatal_producer(settings: Settings, member: Member) -> Producer:
            return FatalProducer(original(settings, member), accident)

        clients.transactional_producer = fatal_producer


def _end_with(parent: int) -> None:
    """A killed test run leaves no process behind."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


class FatalProducer:
    """A producer whose process has an accident in the middle of a transaction."""

    def __init__(self, producer: Producer, accident: Accident) -> None:
        self._producer = producer
        self._accident = accident
        self._transaction = 0
        self._happened = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)

    def begin_transaction(self) -> None:
        self._transaction += 1
        self._at("before_begin")
        self._producer.begin_transaction()
        self._at("begun")

    def produce(self, *args: Any, **kwargs: Any) -> None:
        self._producer.produce(*args, **kwargs)
        self._at("produced")

    def flush(self, *args: Any) -> None:
        self._producer.flush(*args)
        self._at("flushed")

    def send_offsets_to_transaction(self, *args: Any) -> None:
        self._producer.send_offsets_to_transaction(*args)
        self._at("offsets_sent")

    def commit_transaction(self, *args: Any) -> None:
        if self._accident.step == "committing":
            with contextlib.suppress(KafkaException):  # it is under way, and mostly not there in no time
                self._producer.commit_transaction(0)
            self._at("committing")
        self._producer.commit_transaction(*args)
        self._at("committed")

    def _at(self, step: str) -> None:
        """Transactions that only say what is being worked at produce nothing: the accident waits for its step."""
        if step == self._accident.step and self._transaction >= self._accident.transaction and not self._happened:
            self._happened = True
            os.kill(os.getpid(), self._accident.signal)
