"""`longtake door`: the line by HTTP, for programs."""

from typing import Annotated

import typer

from infra.cli import logs
from infra.cli.errors import CliError, Exit
from infra.cli.output import say
from infra.cli.reach import reach
from infra.web.access import AccessError
from infra.web.app import serve


def door(
    ctx: typer.Context,
    host: Annotated[str | None, typer.Option(help="Beyond loopback an operator's password is needed.")] = None,
    port: Annotated[int | None, typer.Option(help="0 to 65535.")] = None,
) -> None:
    """Serve jobs by HTTP until SIGTERM: submit, look, follow, cancel, retry, download. /docs describes it."""
    given = {"door_host": host, "door_port": port}
    update = {name: value for name, value in given.items() if value is not None}
    settings = reach(ctx, "kafka", "objects").model_copy(update=update)
    logs.set_up()
    say(f"http://{settings.door_host}:{settings.door_port}/docs")
    try:
        serve(settings)
    except AccessError as error:
        raise CliError(Exit.USAGE, str(error)) from error
