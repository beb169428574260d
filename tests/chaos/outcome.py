"""What came of a run: what was lost or doubled, and how long the line took to recover."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.schedule import Fault, Kind
from tests.chaos.watch import Recovery

KILLED = frozenset({Kind.KILL, Kind.KILL_CHILD})
"""What the one figure of a run, `recovery_p95_s`, is of."""
LIMITS_S = {Kind.KILL: 5.0, Kind.KILL_CHILD: 5.0, Kind.PAUSE: 23.0, Kind.BROKER: 10.0}
"""p95, by kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One run. All counts of what is wrong have to be 0."""

    seed: int
    schedule: tuple[Fault, ...]
    recoveries: tuple[Recovery, ...]
    unrecovered: tuple[Recovery, ...]
    injected: int
    wall_s: float
    records: int
    """Jobs, or records of the bus."""
    lost: int
    doubled: int
    wrong: dict[str, int] = field(default_factory=dict)
    """What else is not as it should be, by name."""
    facts: dict[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    """Each of them, for a person."""

    @property
    def recovered(self) -> int:
        """Faults after which everything that was affected went on."""
        return self.injected - len({id(recovery.fault) for recovery in self.unrecovered})

    @property
    def clean(self) -> bool:
        """Nothing lost, nothing doubled, nothing wrong."""
        return not (self.lost or self.doubled or any(self.wrong.values()) or self.unrecovered)


def times_s(outcomes: Sequence[Outcome], kinds: frozenset[Kind]) -> list[float]:
    """How long recoveries took, of faults that had an effect."""
    recoveries = [recovery for outcome in outcomes for recovery in outcome.recoveries]
    timed = [x for x in recoveries if not x.idle and not x.disturbed and x.fault.kind in kinds]
    return sorted(x.took_s for x in timed if x.took_s is not None)


def percentile(values: Sequence[float], percent: int) -> float | None:
    """Nearest rank; None of nothing."""
    return sorted(values)[max(0, -(-len(values) * percent // 100) - 1)] if values else None


def too_slow(outcomes: Sequence[Outcome]) -> list[str]:
    """Kinds whose p95 is beyond its limit."""
    return [
        f"{kind}: p95 {p95:.1f} s, limit {limit_s:.0f} s"
        for kind, limit_s in LIMITS_S.items()
        if (p95 := percentile(times_s(outcomes, frozenset({kind})), 95)) is not None and p95 > limit_s
    ]


def summary(seed: int, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """`out/chaos.json`. `recovery_p50_s` and `recovery_p95_s` are of killed processes; the others are in `by_kind`."""
    killed = times_s(outcomes, KILLED)
    return {
        "seed": seed,
        "lost": sum(outcome.lost for outcome in outcomes),
        "doubled": sum(outcome.doubled for outcome in outcomes),
        "faults": sum(outcome.injected for outcome in outcomes),
        "recovered": sum(outcome.recovered for outcome in outcomes),
        "recovery_p50_s": _rounded(percentile(killed, 50)),
        "recovery_p95_s": _rounded(percentile(killed, 95)),
        "by_kind": {kind.name.lower(): _by_kind(kind, outcomes) for kind in Kind if _faults(kind, outcomes)},
        "wrong": {name: count for outcome in outcomes for name, count in outcome.wrong.items()},
        "facts": {name: count for outcome in outcomes for name, count in outcome.facts.items()},
        "recoveries": [
            {
                "kind": x.fault.kind.name.lower(),
                "of": x.name,
                "at_s": round(x.fault.at_s, 1),
                "took_s": _rounded(x.took_s),
            }
            for outcome in outcomes
            for x in outcome.recoveries
            if not x.idle and not x.disturbed
        ],
        "wall_s": [round(outcome.wall_s, 1) for outcome in outcomes],
        "problems": [problem for outcome in outcomes for problem in outcome.problems][:100],
    }


def table(outcomes: Sequence[Outcome]) -> str:
    """For a person: every kind of fault, how often, and how long until the line went on."""
    lines = [f"{'fault':36} {'injected':>8} {'recovered':>9} {'measured':>8} {'p50 s':>7} {'p95 s':>7} {'worst s':>7}"]
    for kind in Kind:
        row = _by_kind(kind, outcomes)
        if row["faults"]:
            times = [_text(row[name]) for name in ("p50_s", "p95_s", "worst_s")]
            counts = f"{row['faults']:8} {row['recovered']:9} {row['measured']:8}"
            lines.append(f"{kind:36} {counts} " + " ".join(f"{time:>7}" for time in times))
    return "\n".join(lines)


def _by_kind(kind: Kind, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    times = times_s(outcomes, frozenset({kind}))
    faults = _faults(kind, outcomes)
    stuck = len({id(x.fault) for outcome in outcomes for x in outcome.unrecovered if x.fault.kind is kind})
    return {
        "faults": faults,
        "recovered": faults - stuck,
        "measured": len(times),
        "p50_s": _rounded(percentile(times, 50)),
        "p95_s": _rounded(percentile(times, 95)),
        "worst_s": _rounded(times[-1] if times else None),
    }


def _faults(kind: Kind, outcomes: Sequence[Outcome]) -> int:
    return sum(fault.kind is kind for outcome in outcomes for fault in outcome.schedule[: outcome.injected])


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
