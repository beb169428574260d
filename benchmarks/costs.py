"""What being watched costs: a worker with metrics and tracing against the same worker without, in turns.

On: the meters count, all is scraped once a round (a Prometheus does it every 5 s), and the exporter and the tracer, which tells an
OTLP receiver, are at work on the same cores. Off: the meters are replaced by ones that do nothing, nobody scrapes, and neither is there.
Both read what was there before them when they start: on a machine that is busy otherwise that falls into a round, and counts against them.

`loop`: the handler only answers, and there is no exporter and no tracer: what the meters cost a worker that does nothing else.
`watched`: each record is about 20 ms of work, a twentieth of what a stage of the line has with its own.
"""

import hashlib
import itertools
import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from threading import Thread
from types import ModuleType

import httpx
import psutil

from benchmarks.bus import answered
from infra.bus.clients import Member
from infra.bus.message import Message
from infra.bus.process import run_process, stop_on_signals
from infra.bus.reader import Reader
from infra.bus.work import ThreadWork
from infra.bus.worker import run_worker
from infra.bus.writer import Writer
from infra.local.ports import free_port
from infra.local.process import Process
from infra.local.services import environment
from infra.metrics import meters
from infra.settings import Settings
from schemas.headers import trace_root
from schemas.records import CancelRequested, PromptRefused
from tests.bus.line import eventually

_MEMBER = Member(role="benchmark-costs", topics=(CancelRequested.topic,))
_PAIRS = 6
_WATCHERS = ("exporter", "tracer")
_SETTLE_S = 3.0
_ROUND = {"loop": 500, "work": 200}
"""Records."""
_ITERATIONS = 25_000
"""Of SHA-256: about 20 ms, without the interpreter's lock."""
_ANSWER_S = 60.0
_METERS = ("IN_FLIGHT", "CONSUMED", "PRODUCED", "HANDLER_S", "COMMIT_S", "ABORTED", "DEAD_LETTERS", "STUCK", "ASSIGNED")


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A backlog worked off. `cpu_ms` is per record, of the worker and of those who watch it."""

    records_per_s: float
    cpu_ms: float


class Nothing:
    """A meter that does nothing, in all its forms."""

    def labels(self, *_: str) -> "Nothing":
        return self

    def inc(self, *_: float) -> None: ...

    set = observe = inc


def measure(settings: Settings) -> dict[str, float]:
    """Records/s with and without; the ratio of neighbouring rounds, median and quartiles; the same of CPU time, of the worker and of all."""
    with ExitStack() as stack:
        worker = stack.enter_context(_worker(settings))
        reader = stack.enter_context(Reader.from_now(settings, [PromptRefused.topic]))
        writer = stack.enter_context(Writer(settings, "longtake.benchmark"))
        bench = Bench(worker, writer, reader)
        watched = settings.model_copy(update={"trace_endpoint": stack.enter_context(_receiver())})
        loop, work = _pairs(lambda on: bench.round("loop", on=on)), _pairs(lambda on: _working(bench, watched, on=on))
    ratios = [pair[True].records_per_s / pair[False].records_per_s for pair in work]
    low, _, high = statistics.quantiles(ratios, n=4)
    return {
        "loop_records_per_s": statistics.median(pair[False].records_per_s for pair in loop),
        "loop_throughput_ratio": statistics.median(p[True].records_per_s / p[False].records_per_s for p in loop),
        "loop_cpu_ratio": statistics.median(pair[True].cpu_ms / pair[False].cpu_ms for pair in loop),
        "unwatched_records_per_s": statistics.median(pair[False].records_per_s for pair in work),
        "watched_throughput_ratio": statistics.median(ratios),
        "watched_throughput_ratio_q1": low,
        "watched_throughput_ratio_q3": high,
        "watched_cpu_ratio": statistics.median(pair[True].cpu_ms / pair[False].cpu_ms for pair in work),
    }


def _pairs(measured: Callable[[bool], Round]) -> list[dict[bool, Round]]:
    """Rounds with and without, next to each other, the order changing. The first of both is forgotten."""
    orders = ((True, False) if number % 2 else (False, True) for number in range(_PAIRS + 1))
    return [{on: measured(on) for on in order} for order in orders][1:]


def _working(bench: "Bench", settings: Settings, *, on: bool) -> Round:
    with ExitStack() as stack:
        watchers = [stack.enter_context(_other(settings, role)) for role in _WATCHERS if on]
        time.sleep(_SETTLE_S)
        return bench.round("work", on=on, watchers=watchers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """The worker's process, its metrics, and how it is told to count or not."""

    process: psutil.Process
    port: int
    tell: Connection


class Bench:
    """Works off one backlog after another, watched or not."""

    def __init__(self, worker: Watched, writer: Writer, reader: Reader) -> None:
        self._worker = worker
        self._writer = writer
        self._reader = reader
        self._numbers = itertools.count()

    def round(self, kind: str, *, on: bool, watchers: Sequence[Process] = ()) -> Round:
        """Work off a backlog."""
        self._worker.tell.send(on)
        self._worker.tell.recv()
        count, number = _ROUND[kind], next(self._numbers)
        events = [CancelRequested(job_id=f"{kind}-{number}-{record}") for record in range(count)]
        counted = (self._worker.process, *(psutil.Process(process.pid) for process in watchers))
        before_s, started_s = sum(map(_cpu_s, counted)), time.perf_counter()
        scrape = Thread(target=self._scrape, args=(watchers,))
        if on:
            scrape.start()
        self._writer.publish(events, trace_root("costs"))
        found = sum(1 for _ in itertools.islice(self._reader.for_seconds(_ANSWER_S), count))
        took_s = time.perf_counter() - started_s
        if on:
            scrape.join()
        assert found == count
        return Round(records_per_s=count / took_s, cpu_ms=1e3 * (sum(map(_cpu_s, counted)) - before_s) / count)

    def _scrape(self, watchers: Sequence[Process]) -> None:
        for port in (self._worker.port, *(process.metrics_port for process in watchers)):
            httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=10)


def _handled(message: Message) -> Sequence[PromptRefused]:
    if message.job_id.startswith("work"):
        hashlib.pbkdf2_hmac("sha256", message.key or b"", b"", _ITERATIONS)
    return answered(message)


@contextmanager
def _worker(settings: Settings) -> Generator[Watched]:
    port = free_port()
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(
        target=_serve, args=(settings.model_copy(update={"metrics_port": port}), theirs), daemon=True
    )
    process.start()
    try:
        assert process.pid
        eventually(lambda: _answers(port, "/readyz"), "the worker")
        yield Watched(process=psutil.Process(process.pid), port=port, tell=ours)
    finally:
        process.terminate()
        process.join(20)


def _serve(settings: Settings, told: Connection) -> None:
    counting = {name: getattr(meters, name) for name in _METERS}

    def obey() -> None:
        while True:
            on = told.recv()
            _count(meters, counting if on else dict.fromkeys(_METERS, Nothing()))
            told.send(on)

    Thread(target=obey, daemon=True).start()
    work = ThreadWork(_handled, settings.slots)
    run_process(lambda: run_worker(settings, _MEMBER, work, stop_on_signals()))


def _count(module: ModuleType, by: dict[str, object]) -> None:
    for name, meter in by.items():
        setattr(module, name, meter)


@contextmanager
def _other(settings: Settings, role: str) -> Generator[Process]:
    port = free_port()
    settings = settings.model_copy(update={"metrics_port": port})
    command = [sys.executable, "-m", "infra.cli.worker", role]
    log = settings.state / "logs" / f"{role}.log"
    process = Process(command, log=log, cwd=settings.state, env=environment(settings), metrics_port=port)
    try:
        eventually(lambda: _answers(port, "/healthz"), role)
        yield process
    finally:
        process.kill()


class _Taken(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name in the library)
        """Not a line for each."""


@contextmanager
def _receiver() -> Generator[str]:
    """The address of one that takes spans and forgets them: what a collector does with them is not ours."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Taken)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _answers(port: int, path: str) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}{path}", timeout=5).is_success
    except httpx.TransportError:
        return False


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system
