"""`longtake door`: the line by HTTP, for programs; `longtake console`: and pages for people."""

from typing import Annotated

import typer

from infra import logs
from infra.cli.errors import CliError, Exit
from infra.cli.output import say
from infra.cli.reach import reach
from infra.settings import Settings
from infra.web.access import AccessError
from infra.web.app import Extend, serve
from infra.web.console.site import add_console

Host = Annotated[str | None, typer.Option(help="Beyond loopback an operator's password is needed.")]
Port = Annotated[int | None, typer.Option(min=0, max=65535)]


def door(ctx: typer.Context, host: Host = None, port: Port = None) -> None:
    """Serve jobs by HTTP until SIGTERM: submit, look, follow, cancel, retry, download. /docs describes it."""
    _open(_given(reach(ctx, "kafka", "objects"), host, port), "/docs", None)


def console(ctx: typer.Context, host: Host = None, port: Port = None) -> None:
    """Serve the pages for people, and the door, until SIGTERM. 'longtake up' does this too."""
    _open(_given(reach(ctx, "kafka", "objects", "clickhouse"), host, port), "/", add_console)


def _given(settings: Settings, host: str | None, port: int | None) -> Settings:
    given = {"door_host": host, "door_port": port}
    return settings.model_copy(update={name: value for name, value in given.items() if value is not None})


def _open(settings: Settings, path: str, extend: Extend | None) -> None:
    logs.set_up(settings.logs, "door")
    say(f"http://{settings.door_host}:{settings.door_port}{path}")
    try:
        serve(settings, extend)
    except AccessError as error:
        raise CliError(Exit.USAGE, str(error)) from error
