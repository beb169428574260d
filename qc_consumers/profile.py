"""Thresholds: one TOML file per profile, read and checked once at the start of a worker.

A profile says of every gate what is allowed and what is done about the rest. `standard.toml` applies to every video; the
others say to which, and only what is different there.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import msgspec

from schemas.records import Finding, Verdict
from schemas.scores import MAIN

STANDARD = "standard"
BUILT_IN = Path(__file__).parent / "profiles"


class ProfileError(Exception):
    """A profile that says something wrong: correct the file."""


class Action(StrEnum):
    """What is done about a video that is beyond a limit."""

    WARN = "warn"
    REENCODE = "reencode"
    REGENERATE = "regenerate"
    QUARANTINE = "quarantine"


VERDICTS = {
    Action.WARN: Verdict.PASS,
    Action.REENCODE: Verdict.REENCODE,
    Action.REGENERATE: Verdict.REGENERATE,
    Action.QUARANTINE: Verdict.QUARANTINE,
}


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one gate allows: at most or at least a limit, and from where on it warns."""

    action: Action
    at_most: float | None = None
    at_least: float | None = None
    warn: float | None = None

    def __post_init__(self) -> None:
        if (self.at_most is None) == (self.at_least is None):
            raise ValueError("a gate has either at_most or at_least")
        if self.warn is not None and self.beyond(self.warn, self.limit):
            raise ValueError("warn lies beyond the limit")

    @property
    def limit(self) -> float:
        """The one there is."""
        return self.at_most if self.at_most is not None else self.at_least or 0.0

    def beyond(self, value: float, limit: float) -> bool:
        """Whether the value is on the wrong side of the limit."""
        return value > limit if self.at_most is not None else value < limit


class Departure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far below what is usual a score may be."""

    below: Annotated[float, msgspec.Meta(gt=0)]
    """Standard deviations, estimated from the MAD."""
    spread: Annotated[float, msgspec.Meta(gt=0)]
    """What counts as one standard deviation at the least: pieces that are all alike must not make the gate narrow."""
    action: Action


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    gates: dict[str, Rule] = {}
    baselines: dict[str, Departure] = {}
    targets: dict[str, float] = {}
    applies: Mapping[Annotated[str, msgspec.Meta(pattern="^transfer$")], int] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A measured fact that a gate may have an opinion on."""

    gate: str
    frame: int
    """On the job's timeline; -1: the whole."""
    value: float
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The rules of one kind of video."""

    name: str
    rules: Mapping[str, Rule]
    targets: Mapping[str, float]
    baselines: Mapping[str, Departure]
    """By the main score they are of."""
    transfer: int | None = None
    """Transfer characteristics (ITU-T H.273) of the videos it applies to; None: all."""

    def limit(self, gate: str) -> float:
        """What this gate allows."""
        return self.rules[gate].limit

    def judged(self, evidence: Iterable[Evidence]) -> Iterator[Finding]:
        """A finding for each fact that is beyond its gate's limit, or near enough to warn."""
        for fact in evidence:
            rule = self.rules[fact.gate]
            if rule.beyond(fact.value, rule.limit):
                yield _finding(fact, VERDICTS[rule.action], rule.limit)
            elif rule.warn is not None and rule.beyond(fact.value, rule.warn):
                yield _finding(fact, Verdict.PASS, rule.warn)


def load_profiles(folder: Path = BUILT_IN) -> tuple[Profile, ...]:
    """All profiles of a folder, the standard one last. Raises: ProfileError."""
    standard = _read(folder / f"{STANDARD}.toml")
    known = _read(BUILT_IN / f"{STANDARD}.toml")
    if missing := known.gates.keys() - standard.gates.keys() or known.targets.keys() - standard.targets.keys():
        raise ProfileError(f"{folder / STANDARD}.toml says nothing of {', '.join(sorted(missing))}")
    profiles: list[Profile] = []
    for path in sorted(folder.glob("*.toml")):
        file = _read(path)
        if unknown := file.gates.keys() - known.gates.keys() or file.targets.keys() - known.targets.keys():
            raise ProfileError(f"{path}: there is no gate {', '.join(sorted(unknown))}")
        if unknown := file.baselines.keys() - set(MAIN):
            raise ProfileError(f"{path}: there are no baselines of {', '.join(sorted(unknown))}")
        if bool(file.applies) == (path.stem == STANDARD):
            raise ProfileError(f"{path}: every profile but {STANDARD} says in [applies] to which videos it applies")
        profiles.append(
            Profile(
                name=path.stem,
                rules={**standard.gates, **file.gates},
                targets={**standard.targets, **file.targets},
                baselines={**standard.baselines, **file.baselines},
                transfer=file.applies.get("transfer"),
            )
        )
    return tuple(sorted(profiles, key=lambda profile: profile.name == STANDARD))


def profile_for(profiles: Iterable[Profile], transfer: int) -> Profile:
    """The first profile that applies to a video of this transfer characteristic. Raises: LookupError without a standard one."""
    return next(profile for profile in profiles if profile.transfer in (None, transfer))


def _read(path: Path) -> _File:
    try:
        return msgspec.convert(tomllib.loads(path.read_text()), _File)
    except (OSError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ProfileError(f"{path}: {error}") from error


def _finding(fact: Evidence, verdict: Verdict, limit: float) -> Finding:
    return Finding(gate=fact.gate, verdict=verdict, frame=fact.frame, value=fact.value, limit=limit, detail=fact.detail)


def seconds_us(frame: int, fps: Fraction) -> int:
    """When a frame is shown, in microseconds; -1 for the whole."""
    return round(frame / fps * 1_000_000) if frame >= 0 else -1
