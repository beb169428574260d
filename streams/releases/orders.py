"""What a person may ask of releases: begin one, end one. Pure; the command line and the console ask it the same way."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from schemas.engines import ENGINES
from schemas.errors import BadInputError
from schemas.records import ReleaseChanged, ReleaseStage
from streams.releases.gate import ACTIVE, SHARES, planned_jobs
from streams.releases.options import changes

RANGES = {"share": (0.0001, 0.5), "base_rate": (0.0, 0.99), "effect": (0.001, 0.99)}
BASE_RATE, EFFECT = 0.05, 0.05
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


class OrderError(Exception):
    """It is right, but not now: why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A release that is to begin."""

    name: str
    engine: str = "animatic"
    """Jobs that ask for it are concerned."""
    change: tuple[str, ...]
    """`engine=NAME`, `options.NAME=VALUE`, `crf=NUMBER`, `preset=NAME`."""
    share: float = SHARES[0]
    """Of the jobs, to begin with."""
    base_rate: float = BASE_RATE
    """Of bad jobs, as is usual."""
    effect: float = EFFECT
    """The rise that is to be found."""


def begun(order: Order, known: Iterable[ReleaseChanged], now_us: int) -> ReleaseChanged:
    """The release as it begins. Raises: BadInputError, ValueError: correct the order; OrderError: there is another one."""
    if not _NAME.fullmatch(order.name):
        raise BadInputError(field="name", rule="format", message="it is 1 to 40 of a-z, 0-9 and '-'")
    if order.engine not in ENGINES:
        raise BadInputError(field="engine", rule="engine", message=f"it is one of {', '.join(sorted(ENGINES))}")
    for field, (least, most) in RANGES.items():
        if not least <= getattr(order, field) <= most:
            raise BadInputError(field=field, rule="range", message=f"it is {least:g} to {most:g}")
    new_engine, options, crf, preset = changes(order.engine, order.change)
    jobs = planned_jobs(order.base_rate, order.effect)
    for release in known:
        if release.name == order.name:
            raise OrderError(f"there was a release {order.name} before: its jobs would be mixed up with new ones")
        if release.stage in ACTIVE and release.engine == order.engine:
            raise OrderError(f"{release.name} is under way for {order.engine}: stop it first")
    return ReleaseChanged(
        name=order.name,
        engine=order.engine,
        new_engine=new_engine,
        engine_options=options,
        crf=crf,
        preset=preset,
        share=order.share,
        step=0,
        stage=ReleaseStage.RUNNING,
        reason="started",
        base_rate=order.base_rate,
        effect=order.effect,
        planned_jobs=jobs,
        clear_looks=0,
        looked_jobs=0,
        looks=(),
        started_us=now_us,
        changed_us=now_us,
    )


def stopped(release: ReleaseChanged, reason: str, now_us: int) -> ReleaseChanged:
    """The release at its end: new jobs are made as before. Raises: OrderError if it has ended."""
    if release.stage not in ACTIVE:
        raise OrderError(f"{release.name} is {release.stage.value}: nothing to do")
    return replace(release, stage=ReleaseStage.STOPPED, share=0.0, reason=reason, changed_us=now_us)


def said_changes(release: ReleaseChanged) -> str:
    """What it changes, as it was asked for."""
    said = {"engine": release.new_engine, "crf": f"{release.crf:g}" if release.crf else "", "preset": release.preset}
    said |= {f"options.{option}": value for option, value in release.engine_options.items()}
    return ", ".join(f"{key}={value}" for key, value in said.items() if value)
