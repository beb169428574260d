"""What being watched costs, as a share of the processor time of the line.

`meters`: a worker whose handler only answers, with its meters and with ones that do nothing, in turns: what they cost a record.
`line`: one job of the whole local line, with the exporter, the tracer (which tells an OTLP receiver) and a scrape of every process
each 5 s. The machine is busy while it runs, so a share of its processor time is that share of its throughput.
"""

import itertools
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event, Thread
from types import ModuleType

import httpx
import psutil
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.bus import answered
from benchmarks.line import lag_s
from infra.bus.clients import Member
from infra.bus.process import run_process, stop_on_signals
from infra.bus.reader import Reader
from infra.bus.work import ThreadWork
from infra.bus.worker import run_worker
from infra.bus.writer import Writer
from infra.local.ports import free_port
from infra.local.services import Services, filled
from infra.local.stack import down, up
from infra.local.supervisor import WORKERS
from infra.metrics import meters
from infra.settings import Settings
from schemas.headers import trace_root
from schemas.records import CancelRequested, PromptRefused
from tests.bus.line import eventually

_MEMBER = Member(role="benchmark-costs", topics=(CancelRequested.topic,))
_PAIRS = 8
_RECORDS = 500
"""Of a round."""
_ANSWER_S = 60.0
_VIDEO_S = 48
_SCRAPE_EVERY_S = 5.0
_SCRAPES = 20
_METERS = ("IN_FLIGHT", "CONSUMED", "PRODUCED", "HANDLER_S", "COMMIT_S", "ABORTED", "DEAD_LETTERS", "STUCK", "ASSIGNED")
_WATCHERS = ("exporter", "tracer")


class Nothing:
    """A meter that does nothing, in all its forms."""

    def labels(self, *_: str) -> "Nothing":
        return self

    def inc(self, *_: float) -> None: ...

    set = observe = inc


def measure(settings: Settings) -> dict[str, float]:
    """`watching_cpu_share`: of the processor time of a job's work, what meters, scrapes, exporter and tracer take; and each of them."""
    meters_ms = _meters_ms(settings)
    with (
        tempfile.TemporaryDirectory(prefix="longtake-bench-") as folder,
        _watched_line(Path(folder)) as (line, services),
    ):
        lag_s(line, "warm-up", 4)
        started, before = time.monotonic(), _Spent.now(services)
        with _scraped(services):
            lag_s(line, "watched", _VIDEO_S)
        spent, took_s = _Spent.now(services).since(before), time.monotonic() - started
        scrape_ms = _scrape_ms(services)
    shares = {
        "meters_cpu_share": 1e-3 * meters_ms * spent.records / spent.work_s,
        "scrapes_cpu_share": 1e-3 * scrape_ms * (took_s / _SCRAPE_EVERY_S) * len(_ports(services)) / spent.work_s,
        "watchers_cpu_share": spent.watchers_s / spent.work_s,
    }
    return {
        "meters_ms_per_record": meters_ms,
        "scrape_ms": scrape_ms,
        "watched_records": spent.records,
        "watched_busy_share": (spent.work_s + spent.watchers_s) / (took_s * (psutil.cpu_count() or 1)),
        **shares,
        "watching_cpu_share": sum(shares.values()),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spent:
    """Processor time of the line without and of what watches it, and the records that were consumed meanwhile."""

    work_s: float
    watchers_s: float
    records: float

    @staticmethod
    def now(services: Services) -> "_Spent":
        watchers_s = sum(_tree_s(process.pid) for process in services.processes if process.name.startswith(_WATCHERS))
        return _Spent(
            work_s=_tree_s(services.pid) - watchers_s, watchers_s=watchers_s, records=_consumed(_ports(services))
        )

    def since(self, before: "_Spent") -> "_Spent":
        return _Spent(
            work_s=self.work_s - before.work_s,
            watchers_s=self.watchers_s - before.watchers_s,
            records=self.records - before.records,
        )


def _tree_s(pid: int) -> float:
    """User and system time of a process, its descendants, and those of theirs that have ended."""
    root = psutil.Process(pid)
    return sum(sum(process.cpu_times()[:4]) for process in (root, *root.children(recursive=True)))


def _ports(services: Services) -> list[int]:
    return [process.metrics_port for process in services.processes if process.metrics_port]


def _scrape(port: int) -> str:
    return httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=10).text


def _consumed(ports: Iterable[int]) -> float:
    return sum(
        sample.value
        for port in ports
        for family in text_string_to_metric_families(_scrape(port))
        for sample in family.samples
        if sample.name == "longtake_records_consumed_total"
    )


def _scrape_ms(services: Services) -> float:
    """Processor time of one scrape of one process; what the idle line does meanwhile counts too."""
    ports, before_s = _ports(services), _tree_s(services.pid)
    for port in ports * _SCRAPES:
        _scrape(port)
    return 1e3 * (_tree_s(services.pid) - before_s) / (len(ports) * _SCRAPES)


@contextmanager
def _watched_line(folder: Path) -> Generator[tuple[Settings, Services]]:
    with _receiver() as endpoint:
        settings = Settings(kafka="", clickhouse="", objects="", state=folder / "state", trace_endpoint=endpoint)
        services = up(settings, {**WORKERS, "tracer": 1})
        try:
            yield filled(settings, services), services
        finally:
            down(settings)


@contextmanager
def _scraped(services: Services) -> Generator[None]:
    """A Prometheus, as far as what it asks for goes."""
    over = Event()

    def scrape() -> None:
        while not over.wait(_SCRAPE_EVERY_S):
            for port in _ports(services):
                _scrape(port)

    thread = Thread(target=scrape)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _meters_ms(settings: Settings) -> float:
    """Processor time a record that the meters of a worker cost: the median of pairs of rounds next to each other, their order changing."""
    with ExitStack() as stack:
        worker = stack.enter_context(_worker(settings))
        reader = stack.enter_context(Reader.from_now(settings, [PromptRefused.topic]))
        writer = stack.enter_context(Writer(settings, "longtake.benchmark"))
        bench = Bench(worker, writer, reader)
        orders = ((True, False) if number % 2 else (False, True) for number in range(_PAIRS + 1))
        pairs = [{on: bench.cpu_ms(on=on) for on in order} for order in orders][1:]
    return statistics.median(pair[True] - pair[False] for pair in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """The worker's process, and how it is told to count or not."""

    pid: int
    tell: Connection


class Bench:
    """Works off one backlog after another, with the meters or without."""

    def __init__(self, worker: Watched, writer: Writer, reader: Reader) -> None:
        self._worker = worker
        self._writer = writer
        self._reader = reader
        self._numbers = itertools.count()

    def cpu_ms(self, *, on: bool) -> float:
        """Of a record, while a backlog is worked off."""
        self._worker.tell.send(on)
        self._worker.tell.recv()
        number = next(self._numbers)
        before_s = _tree_s(self._worker.pid)
        self._writer.publish(
            [CancelRequested(job_id=f"{number}-{record}") for record in range(_RECORDS)], trace_root("costs")
        )
        found = sum(1 for _ in itertools.islice(self._reader.for_seconds(_ANSWER_S), _RECORDS))
        assert found == _RECORDS
        return 1e3 * (_tree_s(self._worker.pid) - before_s) / _RECORDS


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
        yield Watched(pid=process.pid, tell=ours)
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
    work = ThreadWork(answered, settings.slots)
    run_process(lambda: run_worker(settings, _MEMBER, work, stop_on_signals()))


def _count(module: ModuleType, by: dict[str, object]) -> None:
    for name, meter in by.items():
        setattr(module, name, meter)


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
