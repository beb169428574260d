"""What a command needs before it can do anything: the addresses of the services."""

import contextlib
import socket

import typer

from infra.cli.errors import CliError, Exit
from infra.local.services import resolve
from infra.settings import Settings

_ANSWER_S = 3.0


def settings_of(ctx: typer.Context) -> Settings:
    """The settings `main()` built."""
    settings: Settings = ctx.obj
    return settings


def addressed(ctx: typer.Context, *names: str) -> Settings:
    """Settings with these addresses, from the running stack where they are empty. Raises: NotRunningError."""
    settings = settings_of(ctx)
    return settings if all(getattr(settings, name) for name in names) else resolve(settings)


def reach(ctx: typer.Context, *names: str) -> Settings:
    """Like `addressed`, for a person who does not want to wait for a broker. Raises: NotRunningError, CliError."""
    found = addressed(ctx, *names)
    if "kafka" in names and not any(_answers(server) for server in found.kafka.split(",")):
        raise CliError(Exit.NOT_RUNNING, f"no broker answers at {found.kafka}: 'longtake doctor' says more")
    return found


def _answers(server: str) -> bool:
    """Clients would try for minutes."""
    host, _, port = server.strip().rpartition("/")[2].rpartition(":")
    with contextlib.suppress(OSError, ValueError), socket.create_connection((host.strip("[]"), int(port)), _ANSWER_S):
        return True
    return False
