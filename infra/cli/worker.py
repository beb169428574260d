"""`longtake worker ROLE`: one process of the line. Every role's module has `run(settings: Settings, slot: int) -> None`.

`run` gets settings with every address filled in, works until SIGTERM or SIGINT and then returns; an error it raises ends
the process, and the supervisor starts it again. `slot` is the worker's stable number among those of its role: group
instance and transactional ids are made of it.
"""

from collections.abc import Callable
from enum import StrEnum
from importlib import import_module

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
    INSIGHTS = "insights"


MODULES = {
    Role.DIRECTOR: "streams.director",
    Role.GENERATE: "gpu_consumers.generate",
    Role.STITCH: "streams.stitcher.worker",
    Role.ASSEMBLE: "streams.assembler",
    Role.CHECK_PIECES: "qc_consumers.pieces",
    Role.CHECK_VIDEOS: "qc_consumers.videos",
    Role.INSIGHTS: "streams.insights.worker",
}
"""Imported when the role is started: a director loads no engine, the command line loads neither."""


def entry(role: Role) -> Run:
    """The `run` of a role's module."""
    run: Run = import_module(MODULES[role]).run
    return run
