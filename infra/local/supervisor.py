"""The process that runs a local stack: Kafka, ClickHouse, the workers and the console, each started again when it ends.

`python -m infra.local.supervisor ROLE=COUNT...` is what `longtake up` leaves behind. Whatever ends it, SIGKILL too, ends
all that it started: the kernel kills its children, the guardian their descendants.
"""

import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType

from clickhouse_connect.driver.exceptions import DatabaseError

from infra.bus.access import PLAIN
from infra.bus.errors import TopicsError
from infra.bus.topics import create_topics
from infra.clickhouse import migrate
from infra.clickhouse_users import READER
from infra.local.clickhouse import DATABASE, LocalClickHouse
from infra.local.guardian import Guardian
from infra.local.kafka import LocalKafka
from infra.local.packages import PackageError, kafka_jars, libchdb
from infra.local.pidfile import AlreadyRunningError, PidFile
from infra.local.ports import free_port, port_is_free
from infra.local.process import Process, ServiceError
from infra.local.services import Services, environment, remove_services, write_services
from infra.local.supervised import Supervised, bound_logs
from infra.redact import Redacting
from infra.settings import Settings

WORKERS: Mapping[str, int] = dict.fromkeys(
    (
        "director",
        "generate",
        "stitch",
        "assemble",
        "check-pieces",
        "check-videos",
        "publish",
        "insights",
        "sweep",
        "exporter",
    ),
    1,
)
"""What a stack has if nothing else is asked for."""
ROLES = (*WORKERS, "alerts", "tracer")

CONSOLE = "console"
"""Its name among the processes. No worker: the line decides nothing by it and does without it."""
ALREADY_RUNNING = 3
"""Exit code of the supervisor of a stack that runs already."""

_TURN_S = 0.1
_WORKERS_STOP_S = 10.0
_SERVICE_STOP_S = 20.0
_LOGS_EVERY_S = 5.0

log = logging.getLogger("infra.local.supervisor")

Commands = Mapping[str, Sequence[str]]
"""Name of a process that works with the services -> its command line."""


def usual_workers(settings: Settings) -> Mapping[str, int]:
    """What a stack has if nothing else is asked for; `alerts` where there are webhooks, `tracer` where traces go somewhere."""
    wanted = {"alerts": settings.webhooks.get_secret_value(), "tracer": settings.trace_endpoint}
    return {**WORKERS, **{role: 1 for role, address in wanted.items() if address}}


def worker_commands(counts: Mapping[str, int]) -> Commands:
    """One command per role and slot: `generate-1` is the second worker that generates."""
    worker = [sys.executable, "-m", "infra.cli.worker"]
    return {
        f"{role}-{slot}": [*worker, role, "--slot", str(slot)]
        for role, count in counts.items()
        for slot in range(count)
    }


def console_command() -> Commands:
    """The one console; it listens where the settings say."""
    return {CONSOLE: [sys.executable, "-m", "infra.cli.main", "console"]}


def run(settings: Settings, commands: Commands) -> None:
    """Run the stack until SIGTERM or SIGINT, in the main thread. `services.json` is there once everything is up.

    Raises: AlreadyRunningError; PackageError, ServiceError, TopicsError or DatabaseError if it cannot be started.
    """
    settings.state.mkdir(parents=True, exist_ok=True, mode=0o700)
    pid_file = PidFile(settings.state)
    remove_services(settings.state)
    stack = Stack(settings, Guardian(pid_file.descriptor))
    try:
        _on_signals(_end)
        stack.start(commands)
        stack.watch()
    except _Ended:
        log.info("ending the stack")
    finally:
        _on_signals(signal.SIG_IGN)
        remove_services(settings.state)
        stack.stop()
        pid_file.release()


class Stack:
    """Owns the processes of the stack. What the settings have an address for is not started."""

    def __init__(self, settings: Settings, guardian: Guardian) -> None:
        self._settings = settings
        self._guardian = guardian
        self._services: list[Supervised] = []
        self._workers: list[Supervised] = []
        self._console = ""

    def start(self, commands: Commands) -> None:
        """Start the services and wait for them, make topics and tables, start the workers."""
        kafka = None if self._settings.kafka else self._start_kafka()
        clickhouse = None if self._settings.clickhouse else self._start_clickhouse()
        objects = self._settings.objects or (self._settings.state / "objects").absolute().as_uri()
        found: dict[str, object] = {"objects": objects}
        if kafka:
            kafka.ready()
            found |= {"kafka": kafka.bootstrap, **PLAIN}
        if clickhouse:
            clickhouse.ready()
            found |= {"clickhouse": clickhouse.url(DATABASE), "clickhouse_password": clickhouse.password}
            found["clickhouse_reader_password"] = clickhouse.password_of(READER)
        self._settings = self._settings.model_copy(update=found)
        create_topics(self._settings)
        migrate(self._settings)
        if CONSOLE in commands:
            self._console = f"http://{self._settings.door_host}:{self._settings.door_port}"
        for name, command in commands.items():
            self._workers.append(self._started(name, self._starter(name, command)))
        self._write()
        log.info("ready: kafka %s, clickhouse %s", self._settings.kafka, self._settings.clickhouse)

    def watch(self) -> None:
        """Start again what ends, for ever."""
        next_logs_s = time.monotonic()
        while True:
            now_s = time.monotonic()
            changed = [process.turn(now_s) for process in (*self._services, *self._workers)]
            if any(changed):
                self._write()
            if now_s >= next_logs_s:
                bound_logs(self._logs)
                next_logs_s = now_s + _LOGS_EVERY_S
            time.sleep(_TURN_S)

    def stop(self) -> None:
        """End the workers, then ClickHouse, then Kafka."""
        for worker in self._workers:
            worker.terminate()
        deadline_s = time.monotonic() + _WORKERS_STOP_S
        for worker in self._workers:
            worker.stop(max(0.0, deadline_s - time.monotonic()))
        for service in reversed(self._services):
            service.stop(_SERVICE_STOP_S)
        self._guardian.close()

    def services(self) -> Services:
        """The addresses and processes, as they are now."""
        return Services(
            pid=os.getpid(),
            kafka=self._settings.kafka,
            clickhouse=self._settings.clickhouse,
            clickhouse_password=self._settings.clickhouse_password.get_secret_value(),
            clickhouse_reader_password=self._settings.clickhouse_reader_password.get_secret_value(),
            objects=self._settings.objects,
            console=self._console,
            processes=tuple(process.status() for process in (*self._services, *self._workers)),
        )

    def _start_kafka(self) -> LocalKafka:
        jars, state = kafka_jars(self._settings), self._settings.state
        kafka = LocalKafka(jars=jars, folder=state / "kafka", log=self._logs / "kafka.log")
        self._services.append(self._started("kafka", kafka.start))
        return kafka

    def _start_clickhouse(self) -> LocalClickHouse:
        library, state = libchdb(self._settings), self._settings.state
        clickhouse = LocalClickHouse(library=library, folder=state / "clickhouse", log=self._logs / "clickhouse.log")
        self._services.append(self._started("clickhouse", clickhouse.start))
        return clickhouse

    def _starter(self, name: str, command: Sequence[str]) -> Callable[[], Process]:
        file, folder = self._logs / f"{name}.log", self._settings.state

        def start() -> Process:
            port = 0 if name == CONSOLE else free_port()
            variables = environment(self._settings.model_copy(update={"metrics_port": port}))
            return Process(command, log=file, cwd=folder, env=variables, metrics_port=port)

        return start

    def _started(self, name: str, start: Callable[[], Process]) -> Supervised:
        supervised = Supervised(name, start, self._guardian)
        supervised.start(time.monotonic())
        return supervised

    def _write(self) -> None:
        write_services(self._settings.state, self.services())

    @property
    def _logs(self) -> Path:
        return self._settings.state / "logs"


class _Ended(BaseException):
    """A signal to end, wherever the supervisor was."""


def _on_signals(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    numbers = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as nohup left it
        numbers.append(signal.SIGHUP)
    for number in numbers:
        signal.signal(number, handler)


def _end(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise _Ended


def main() -> int:
    """Run the stack of the `LONGTAKE_*` variables with the workers of the arguments. Returns the exit code."""
    handler = logging.StreamHandler()
    handler.setFormatter(Redacting("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    counts = {role: int(count) for role, count in (argument.split("=") for argument in sys.argv[1:])}
    try:
        settings = Settings()
        if not port_is_free(settings.door_port):  # another stack's, or the system's
            settings = settings.model_copy(update={"door_port": free_port()})
        run(settings, {**worker_commands(counts), **console_command()})
    except AlreadyRunningError as error:
        log.warning("%s", error)
        return ALREADY_RUNNING
    except (PackageError, ServiceError, TopicsError, DatabaseError, ValueError) as error:
        log.error("%s", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
