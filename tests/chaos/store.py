"""The object store of a run, and what can go wrong with it: a folder on a small disk, or a server that speaks S3."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.disk import can_mount, small_disk
from tests.chaos.s3 import s3_server
from tests.chaos.schedule import Kind

_MEGABYTES = 1500
_ERRORS = (0.3, 0.9)
"""Of all requests, from mildly to badly."""
_SLOW_S = (0.3, 1.5)

Wrong = Callable[[float], None]
"""Begins a fault; the argument in [0, 1) says how bad it is."""
Right = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """`url` and environment for the line; for each kind of fault how it begins and ends."""

    url: str
    faults: Mapping[Kind, tuple[Wrong, Right]]
    environment: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def chaotic_store(folder: Path, seed: int) -> Iterator[Store]:
    """By seed: a folder on a disk of its own where one can be mounted, or a server. Both can be full; a server has more faults."""
    if seed % 2 == 0 and can_mount():
        with small_disk(folder, _MEGABYTES) as disk:
            yield Store(url=folder.as_uri(), faults={Kind.DISK_FULL: (lambda _: disk.fill(), disk.free)})
        return
    with s3_server(folder, seed) as server, _exported(server.environment()):

        def fail(pick: float) -> None:
            server.error_share = _between(_ERRORS, pick)

        def slow(pick: float) -> None:
            server.slow_s = _between(_SLOW_S, pick)

        def fill(_: float) -> None:
            server.full = True

        def well() -> None:
            server.error_share, server.slow_s, server.full = 0.0, 0.0, False

        faults = {Kind.STORE_ERRORS: (fail, well), Kind.STORE_SLOW: (slow, well), Kind.DISK_FULL: (fill, well)}
        yield Store(url=server.url, faults=faults, environment=server.environment())


@contextmanager
def _exported(variables: Mapping[str, str]) -> Iterator[None]:
    """The check of the results reads the store from this process."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _between(ends: tuple[float, float], pick: float) -> float:
    return ends[0] + (ends[1] - ends[0]) * pick
