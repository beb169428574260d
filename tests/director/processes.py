"""A director as its supervisor runs it, and workers that answer at once, on a real broker."""

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess

from confluent_kafka.admin import AdminClient

from infra.bus.process import run_process
from infra.bus.reader import Reader, event_of
from infra.bus.writer import Writer
from infra.settings import Settings
from schemas import records as r
from schemas.headers import trace_root
from streams import director
from tests.director.builders import answers

GROUP = "longtake.director"
_WORK = (
    r.SegmentRequested.topic,
    r.PieceRequested.topic,
    r.PieceStitched.topic,
    r.AssemblyRequested.topic,
    r.VideoAssembled.topic,
)
_context = multiprocessing.get_context("forkserver")


class Directors:
    """One process per slot, started again whenever it ends."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._processes: dict[int, BaseProcess] = {}
        self._wanted: set[int] = set()
        self._lock = threading.Lock()

    def start(self, slot: int) -> None:
        with self._lock:
            self._wanted.add(slot)
            self._start(slot)

    def kill(self, slot: int) -> None:
        """kill -9: its restart is the supervisor's."""
        with self._lock:
            self._processes[slot].kill()

    def stop(self, slot: int) -> None:
        """SIGTERM: for good."""
        with self._lock:
            self._wanted.discard(slot)
            process = self._processes.pop(slot)
        process.terminate()
        process.join(20)
        process.kill()

    def supervise(self, until: threading.Event) -> None:
        """Start what has ended; at the end, end all."""
        while not until.wait(0.05):
            with self._lock:
                for slot in self._wanted:
                    if not self._processes[slot].is_alive():
                        self._start(slot)
        for slot in list(self._wanted):
            self.stop(slot)

    def _start(self, slot: int) -> None:
        process = _context.Process(target=_direct, args=(self._settings, slot), daemon=True)
        process.start()
        self._processes[slot] = process


def _direct(settings: Settings, slot: int) -> None:
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    run_process(lambda: director.run(settings, slot))


def _end_with(parent: int) -> None:
    """A killed test run leaves no process behind."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


@contextmanager
def directors(settings: Settings) -> Generator[Directors]:
    found = Directors(settings)
    found.start(0)
    with _in_thread(found.supervise):
        yield found


@contextmanager
def instant_workers(settings: Settings) -> Generator[None]:
    """Every request on the bus is answered, once, as if all workers were one and none ever failed."""

    def work(until: threading.Event) -> None:
        with Reader.from_beginning(settings, _WORK) as reader, Writer(settings, "test.workers") as writer:
            while not until.is_set():
                message = reader.poll(0.1)
                if message:
                    writer.publish(answers(event_of(message)), trace_root(message.job_id))

    with _in_thread(work):
        yield


class Group:
    """Looks at the directors' group, no more than twice a second."""

    def __init__(self, settings: Settings) -> None:
        self._admin = AdminClient({"bootstrap.servers": settings.kafka})
        self._next = 0.0

    def has(self, members: int) -> bool:
        """Whether that many members hold partitions now."""
        if time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + 0.5
        described = self._admin.describe_consumer_groups([GROUP], request_timeout=20)[GROUP].result()
        return sum(bool(member.assignment.topic_partitions) for member in described.members) == members


@contextmanager
def _in_thread(run: Callable[[threading.Event], None]) -> Generator[None]:
    """Run until the end of the context; what it raised is raised."""
    until = threading.Event()
    raised: list[BaseException] = []

    def body() -> None:
        try:
            run(until)
        except BaseException as error:  # noqa: BLE001 - handed to the test's thread
            raised.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    try:
        yield
    finally:
        until.set()
        thread.join()
    if raised:
        raise raised[0]
