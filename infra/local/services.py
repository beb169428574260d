"""What the running local stack consists of, as a file that other shells read."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from pydantic import SecretStr

from infra.bus.access import PLAIN
from infra.local.pidfile import running_pid
from infra.settings import Settings

_ADDRESSES = ("kafka", "clickhouse", "objects")


class NotRunningError(Exception):
    """No stack runs in this state folder and an address is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStatus:
    """`pid` 0: it is between two lives. `exit_code` is that of its last life, negative for a signal."""

    name: str
    pid: int
    restarts: int
    exit_code: int | None
    metrics_port: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The running stack: its supervisor, its addresses, its processes."""

    pid: int
    kafka: str
    clickhouse: str
    clickhouse_password: str = field(repr=False)
    clickhouse_reader_password: str = field(default="", repr=False)
    objects: str
    console: str = ""
    """Its address."""
    processes: tuple[ProcessStatus, ...]


def write_services(state: Path, services: Services) -> None:
    """Replace the file; readable by its owner only, because it holds the password of ClickHouse.

    Beside it `metrics.json` names the processes' metrics to a Prometheus (its `file_sd_configs`).
    """
    targets = [
        {"targets": [f"127.0.0.1:{p.metrics_port}"], "labels": {"role": p.name.rpartition("-")[0], "process": p.name}}
        for p in services.processes
        if p.metrics_port
    ]
    _replace(state / "metrics.json", msgspec.json.format(msgspec.json.encode(targets)))
    _replace(_path(state), msgspec.json.format(msgspec.json.encode(services)))


def remove_services(state: Path) -> None:
    """Say that the stack is not ready."""
    _path(state).unlink(missing_ok=True)


def read_services(state: Path) -> Services | None:
    """The stack of this state folder, or None if none is running and ready."""
    pid = running_pid(state)
    if pid is None:
        return None
    try:
        services = msgspec.json.decode(_path(state).read_bytes(), type=Services)
    except FileNotFoundError:
        return None
    return services if services.pid == pid else None


def resolve(settings: Settings) -> Settings:
    """`settings` with every empty address filled in from the running stack. Raises: NotRunningError."""
    missing = [name for name in _ADDRESSES if not getattr(settings, name)]
    if not missing:
        return settings
    services = read_services(settings.state)
    if services is None:
        names = ", ".join(f"LONGTAKE_{name.upper()}" for name in missing)
        raise NotRunningError(f"no stack is running in {settings.state}: start one with 'longtake up', or set {names}")
    return filled(settings, services)


def filled(settings: Settings, services: Services) -> Settings:
    """`settings` with every empty address replaced by that of `services`."""
    found = {name: getattr(services, name) for name in _ADDRESSES if not getattr(settings, name)}
    if "clickhouse" in found:
        found["clickhouse_password"] = SecretStr(services.clickhouse_password)
        found["clickhouse_reader_password"] = SecretStr(services.clickhouse_reader_password)
    if "kafka" in found:
        found |= PLAIN
    return settings.model_copy(update=found)


def environment(settings: Settings) -> dict[str, str]:
    """This process's environment, with `settings` as the `LONGTAKE_*` variables and our packages importable.

    Paths are absolute in it: the processes of the stack have the state folder as their working directory.
    """
    values = {name: value for name, value in settings if value is not None}
    root = str(Path(__file__).parents[2])
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("LONGTAKE_")},
        **{f"LONGTAKE_{name.upper()}": _text(value) for name, value in values.items()},
        "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")])),
        "PYTHONUNBUFFERED": "1",
    }


def _text(value: object) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, Path):
        return str(value.absolute())
    return json.dumps(value) if isinstance(value, dict) else str(value)


def _replace(path: Path, content: bytes) -> None:
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    part.touch(mode=0o600)
    part.write_bytes(content)
    part.replace(path)


def _path(state: Path) -> Path:
    return state / "services.json"
