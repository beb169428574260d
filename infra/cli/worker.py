"""`longtake worker ROLE`: one process of the line. Every role's module has `run(settings: Settings, slot: int) -> None`.

`run` gets settings with every address filled in, works until SIGTERM or SIGINT and then returns; an error it raises ends
the process, and the supervisor starts it again. `slot` is the worker's stable number among those of its role: group
instance and transactional ids are made of it.

`python -m infra.cli.worker ROLE` is the same without the rest of the command line: 45 MB and 0.4 s less for each process.
"""

from collections.abc import Callable
from enum import StrEnum
from importlib import import_module
from typing import Annotated

import typer

from infra import logs
from infra.bus.process import run_process
from infra.cli.reach import addressed
from infra.settings import Settings

Run = Callable[[Settings, int], None]


class Role(StrEnum):
    """The kinds of worker, by their names on the command line."""

    DIRECTOR = "director"
    GENERATE = "generate"
    STITCH = "stitch"
    ASSEMBLE = "assemble"
    CHECK_PIECES = "check-pieces"
    CHECK_VIDEOS = "check-videos"
    PUBLISH = "publish"
    INSIGHTS = "insights"
    SWEEP = "sweep"
    EXPORTER = "exporter"
    ALERTS = "alerts"
    TRACER = "tracer"


MODULES = {
    Role.DIRECTOR: "streams.director",
    Role.GENERATE: "gpu_consumers.generate",
    Role.STITCH: "streams.stitcher.worker",
    Role.ASSEMBLE: "streams.assembler",
    Role.CHECK_PIECES: "qc_consumers.pieces",
    Role.CHECK_VIDEOS: "qc_consumers.videos",
    Role.PUBLISH: "streams.live.publisher",
    Role.INSIGHTS: "streams.insights.worker",
    Role.SWEEP: "infra.storage.worker",
    Role.EXPORTER: "infra.metrics.exporter",
    Role.ALERTS: "infra.alerts.worker",
    Role.TRACER: "infra.traces.tracer",
}
"""Imported when the role is started: a director loads no engine, the command line loads neither."""

NEEDS = {
    Role.DIRECTOR: ("kafka",),
    Role.GENERATE: ("kafka", "objects"),
    Role.STITCH: ("kafka", "objects"),
    Role.ASSEMBLE: ("kafka", "objects"),
    Role.CHECK_PIECES: ("kafka", "objects", "clickhouse"),
    Role.CHECK_VIDEOS: ("kafka", "objects", "clickhouse"),
    Role.PUBLISH: ("kafka", "objects"),
    Role.INSIGHTS: ("kafka",),
    Role.SWEEP: ("kafka", "objects"),
    Role.EXPORTER: ("kafka", "objects", "clickhouse"),
    Role.ALERTS: ("kafka",),
    Role.TRACER: ("kafka",),
}
"""The addresses each role works with."""


def entry(role: Role) -> Run:
    """The `run` of a role's module."""
    run: Run = import_module(MODULES[role]).run
    return run


def worker(
    ctx: typer.Context,
    role: Role,
    slot: Annotated[int, typer.Option(min=0, help="Its number among the workers of this role.")] = 0,
) -> None:
    """Run one process of the line until SIGTERM. 'longtake up' does this for all of them."""
    settings = addressed(ctx, *NEEDS[role])
    logs.set_up(settings.logs, role.value)
    run_process(lambda: entry(role)(settings, slot))


def main() -> None:
    """What the supervisor starts."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(worker)
    app(obj=Settings())


if __name__ == "__main__":
    main()
