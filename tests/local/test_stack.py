import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from infra.local.pidfile import AlreadyRunningError, running_pid
from infra.local.ports import answers
from infra.local.process import ServiceError
from infra.local.services import NotRunningError, Services, environment, read_services, resolve
from infra.local.stack import down, up
from infra.settings import Settings

PARENT_AND_CHILD = ["/bin/sh", "-c", "sleep 1000 & wait"]


@pytest.fixture
def stack(line_settings: Settings) -> Iterator[Callable[[Sequence[str]], Services]]:
    """Starts a supervisor of one worker with the given command; Kafka and ClickHouse are those of the session."""
    started: list[subprocess.Popen[bytes]] = []

    def start(command: Sequence[str]) -> Services:
        line_settings.state.mkdir(exist_ok=True)
        supervisor = [sys.executable, "-m", "tests.local.stand_in", json.dumps({"worker-0": command})]
        started.append(subprocess.Popen(supervisor, env=environment(line_settings)))
        _until(lambda: read_services(line_settings.state) is not None)
        services = read_services(line_settings.state)
        assert services
        return services

    yield start
    for process in started:
        process.kill()
        process.wait()


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _family(services: Services) -> list[psutil.Process]:
    """The supervisor, its processes and their descendants, once a worker's child is there."""
    supervisor = psutil.Process(services.pid)
    _until(lambda: any(process.name() == "sleep" for process in supervisor.children(recursive=True)))
    return [supervisor, *supervisor.children(recursive=True)]


def _ended(processes: Sequence[psutil.Process]) -> bool:
    return not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in processes)


def test_a_killed_worker_is_started_again(stack: Callable[[Sequence[str]], Services], line_settings: Settings) -> None:
    services = stack(PARENT_AND_CHILD)
    (first,) = services.processes
    os.kill(first.pid, signal.SIGKILL)

    def again() -> bool:
        now = read_services(line_settings.state)
        return now is not None and now.processes[0].restarts == 1

    _until(again)
    now = read_services(line_settings.state)
    assert now
    assert now.processes[0].pid not in {0, first.pid}
    assert now.processes[0].exit_code == -signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name)
def test_whatever_ends_the_supervisor_ends_all_of_it(
    stack: Callable[[Sequence[str]], Services], line_settings: Settings, number: signal.Signals
) -> None:
    services = stack(PARENT_AND_CHILD)
    family = _family(services)
    os.kill(services.pid, number)
    _until(lambda: running_pid(line_settings.state) is None)
    _until(lambda: _ended(family))
    with pytest.raises(NotRunningError):
        down(line_settings)


def test_a_worker_may_finish_what_it_does_when_the_stack_ends(
    stack: Callable[[Sequence[str]], Services], line_settings: Settings, tmp_path: Path
) -> None:
    finished = tmp_path / "finished"
    script = (
        f"trap 'sleep 0.5; touch {shlex.quote(str(finished))}; exit' TERM; touch started; while :; do sleep 0.1; done"
    )
    stack(["/bin/sh", "-c", script])
    _until((line_settings.state / "started").exists)
    down(line_settings)
    assert finished.exists()


def test_a_worker_finds_the_stack_in_its_environment(
    stack: Callable[[Sequence[str]], Services], line_settings: Settings
) -> None:
    code = "from infra.settings import Settings; print(Settings().kafka, Settings().clickhouse); input()"
    stack([sys.executable, "-c", code])
    log = line_settings.state / "logs" / "worker-0.log"
    _until(lambda: f"{line_settings.kafka} {line_settings.clickhouse}" in log.read_text())


def test_a_relative_state_folder_is_the_same_for_every_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert environment(Settings(state=Path("state")))["LONGTAKE_STATE"] == str(tmp_path / "state")


def test_the_pid_file_of_a_killed_supervisor_is_no_obstacle(
    stack: Callable[[Sequence[str]], Services], line_settings: Settings
) -> None:
    line_settings.state.mkdir()
    (line_settings.state / "longtake.pid").write_text(
        f"{os.getpid():>10}\n"
    )  # a pid that lives, but not as a supervisor
    assert running_pid(line_settings.state) is None
    assert stack(PARENT_AND_CHILD).pid == running_pid(line_settings.state)


def test_up_says_why_it_cannot_start_and_leaves_nothing(line_settings: Settings) -> None:
    with pytest.raises(ServiceError, match="3 partitions"):
        up(line_settings.model_copy(update={"partitions": 3}), {})
    assert running_pid(line_settings.state) is None


@pytest.fixture(scope="module")
def real_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A stack with its own Kafka and ClickHouse, without workers; its end leaves nothing."""
    settings = Settings(kafka="", clickhouse="", objects="", state=tmp_path_factory.mktemp("stack"))
    supervisor = psutil.Process(up(settings, {}).pid)
    family = [supervisor, *supervisor.children(recursive=True)]
    yield settings
    family += supervisor.children(recursive=True)
    down(settings)
    _until(lambda: _ended(family))
    with pytest.raises(NotRunningError, match="longtake up"):
        resolve(settings)


def test_other_shells_find_the_running_stack(real_stack: Settings) -> None:
    services = read_services(real_stack.state)
    assert services
    found = resolve(real_stack)
    assert (found.kafka, found.clickhouse, found.objects) == (services.kafka, services.clickhouse, services.objects)
    assert found.clickhouse_password.get_secret_value() == services.clickhouse_password != ""
    assert resolve(real_stack.model_copy(update={"kafka": "elsewhere:9092"})).kafka == "elsewhere:9092"
    assert services.clickhouse_password not in repr(services)


def test_a_second_up_says_that_it_is_running(real_stack: Settings) -> None:
    with pytest.raises(AlreadyRunningError, match=str(running_pid(real_stack.state))):
        up(real_stack, {})


def test_nothing_is_open_to_other_machines_or_users(real_stack: Settings) -> None:
    services = read_services(real_stack.state)
    assert services
    family = psutil.Process(services.pid).children(recursive=True)
    listening = [c for p in family for c in p.net_connections("tcp") if c.status == psutil.CONN_LISTEN]
    assert {c.laddr.ip.removeprefix("::ffff:") for c in listening} == {"127.0.0.1"}
    assert (real_stack.state / "services.json").stat().st_mode & 0o077 == 0


def test_a_killed_broker_comes_back_with_the_same_address(real_stack: Settings) -> None:
    before = read_services(real_stack.state)
    assert before
    os.kill(before.processes[0].pid, signal.SIGKILL)
    _until(lambda: (now := read_services(real_stack.state)) is not None and now.processes[0].restarts == 1)
    now = read_services(real_stack.state)
    assert now
    assert now.kafka == before.kafka
    _until(lambda: answers(int(now.kafka.partition(":")[2])))
