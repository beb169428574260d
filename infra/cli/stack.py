"""Commands on the stack as a whole: up, down, status, doctor, and its processes."""

from typing import Annotated

import typer

from infra.bus.process import run_process
from infra.cli import logs
from infra.cli.worker import Role, entry
from infra.settings import Settings


def worker(
    ctx: typer.Context,
    role: Role,
    slot: Annotated[int, typer.Option(min=0, help="Its number among the workers of this role.")] = 0,
) -> None:
    """Run one process of the line until SIGTERM. `longtake up` does this for all of them."""
    settings: Settings = ctx.obj
    logs.set_up()
    run_process(lambda: entry(role)(settings, slot))
