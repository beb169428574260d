"""What goes wrong, and when: a pure function of a seed. The same seed gives the same schedule on every machine."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """A kind of fault. What each does to the line is in `inject.py`."""

    KILL = "kill -9 of a worker"
    KILL_CHILD = "kill -9 of an engine process"
    PAUSE = "SIGSTOP beyond the session"
    BROKER = "kill -9 of the broker"
    CLICKHOUSE = "kill -9 of ClickHouse"
    DISK_FULL = "the object store's disk is full"
    STORE_ERRORS = "errors of the object store"
    STORE_SLOW = "slow reads of the object store"
    CLOCK = "a clock steps"
    REPEATS = "records twice and out of order"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault. `target` is a role, or empty: all; `pick` in [0, 1) chooses among its processes, or how bad it is."""

    at_s: float
    kind: Kind
    target: str = ""
    pick: float = 0.0
    lasts_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What there is to break: workers per role, and how long a session of Kafka is."""

    workers: Mapping[str, int]
    session_s: float
    clickhouse: bool
    store: frozenset[Kind]
    """What can be done to the object store."""
    clock: bool


_APART_S: Mapping[Kind, float] = {
    Kind.KILL: 5.0,
    Kind.KILL_CHILD: 5.0,
    Kind.BROKER: 20.0,
    Kind.CLICKHOUSE: 7.0,
    Kind.DISK_FULL: 12.0,
    Kind.STORE_ERRORS: 12.0,
    Kind.STORE_SLOW: 5.0,
    Kind.CLOCK: 3.0,
    Kind.REPEATS: 3.0,
}
"""Until the next fault begins, after this one has ended: what it takes to recover, so that each has a time of its own."""
_JITTER_S = 1.5
_LASTS_S: Mapping[Kind, tuple[float, float]] = {
    Kind.DISK_FULL: (3.0, 8.0),
    Kind.STORE_ERRORS: (3.0, 8.0),
    Kind.STORE_SLOW: (4.0, 8.0),
    Kind.CLOCK: (4.0, 10.0),
}
_PAUSE_S = 5.0
"""Beyond the session."""
_TIMES: Mapping[Kind, int] = {Kind.KILL: 2, Kind.KILL_CHILD: 2, Kind.BROKER: 2, Kind.CLOCK: 2, Kind.REPEATS: 3}
"""How often the full form has each of them; the others once."""
_PAUSES = 2
"""In all: they take the longest."""


def full(seed: int, line: Line) -> tuple[Fault, ...]:
    """Every fault that can happen to the line, in a random order; of the pauses two."""
    possible = list(_possible(line))
    pauses = [fault for fault in possible if fault[0] is Kind.PAUSE]
    chosen = random.Random(f"{seed}/pauses").sample(pauses, min(_PAUSES, len(pauses)))
    others = [fault for fault in possible if fault[0] is not Kind.PAUSE for _ in range(_TIMES.get(fault[0], 1))]
    return _timed(seed, chosen + others, line)


def small(seed: int, line: Line, most: int) -> tuple[Fault, ...]:
    """As many of them, chosen at random, of as many kinds as that allows."""
    chance = random.Random(seed)
    faults = list(_possible(line))
    chance.shuffle(faults)
    first = {kind: (kind, target) for kind, target in reversed(faults)}
    chosen = [*first.values(), *(fault for fault in faults if fault not in first.values())]
    return _timed(seed, chosen[:most], line)


def end_s(schedule: tuple[Fault, ...]) -> float:
    """When the last fault has ended and had its time."""
    return max(fault.at_s + fault.lasts_s + _APART_S.get(fault.kind, _PAUSE_S) for fault in schedule)


def _possible(line: Line) -> Iterator[tuple[Kind, str]]:
    for role, count in line.workers.items():
        yield Kind.KILL, role
        if role == "generate":
            yield Kind.KILL_CHILD, role
        if count > 1:
            yield Kind.PAUSE, role
    yield Kind.BROKER, ""
    yield Kind.REPEATS, ""
    yield from ((kind, "") for kind in sorted(line.store))
    if line.clickhouse:
        yield Kind.CLICKHOUSE, ""
    if line.clock:
        yield Kind.CLOCK, ""


def _timed(seed: int, faults: list[tuple[Kind, str]], line: Line) -> tuple[Fault, ...]:
    chance = random.Random(f"{seed}/order")
    chance.shuffle(faults)
    at_s, schedule = 2.0, list[Fault]()
    for kind, target in faults:
        at_s += chance.uniform(0, _JITTER_S)
        lasts_s = line.session_s + _PAUSE_S if kind is Kind.PAUSE else chance.uniform(*_LASTS_S.get(kind, (0.0, 0.0)))
        schedule.append(Fault(at_s=at_s, kind=kind, target=target, pick=chance.random(), lasts_s=lasts_s))
        at_s += lasts_s + _APART_S.get(kind, _PAUSE_S)
    return tuple(schedule)
