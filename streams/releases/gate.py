"""What is to become of a release, from counts of its jobs: hold, widen, accept, or roll back. Pure; `evidence.py` counts.

One gate says what makes a job bad. Each gate is tested at ALPHA / (number of gates), so that all together roll a release that is
as good as before back with a probability of at most ALPHA (Bonferroni), however often they are looked at.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from schemas.records import GateLook, ReleaseChanged, ReleaseStage
from streams.releases.sequential import detectable, level, limit, planned, score

GATES: Mapping[str, str] = {
    "failed": "ended",
    "warned": "finished",
    "stalled": "played",
    "slow_start": "played",
    "decode_errors": "played",
}
"""Gate -> the jobs that it is about. Viewers begin to leave after 2 s without a picture: Krishnan and Sitaraman, IMC 2012."""
MAIN = "failed"
"""Knows every job: the others never have compared more."""
ALPHA = 0.05
POWER = 0.9
SHARES = (0.01, 0.05, 0.2, 0.5)
LOOKS = 50
"""At most: one each time another 1/50 of the planned jobs has ended on the candidate's side."""
CLEAR_LOOKS = 3
"""In a row, before a release is widened."""
CLEAR = 0.5
"""Of the limit. Between it and the limit a release is neither widened nor rolled back: it does not swing with chance."""
ACTIVE = frozenset({ReleaseStage.RUNNING, ReleaseStage.WIDENED, ReleaseStage.ACCEPTED})
"""Stages in which a release changes jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Jobs of one side of a release at one step; the names are those of the columns of `arms`."""

    ended: int = 0
    finished: int = 0
    played: int = 0
    failed: int = 0
    warned: int = 0
    stalled: int = 0
    slow_start: int = 0
    decode_errors: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Both sides, while the share was the same."""

    candidate: Counts
    control: Counts


def alpha_of_gate() -> float:
    """What one gate may spend."""
    return ALPHA / len(GATES)


def planned_jobs(base_rate: float, effect: float) -> int:
    """Raises: ValueError if there is no such effect."""
    return planned(base_rate, effect, alpha_of_gate(), POWER)


def judged(release: ReleaseChanged, steps: Sequence[Step], now_us: int) -> ReleaseChanged | None:
    """The release after a look; None: it is not compared any more, or too few jobs have ended since the last look."""
    ended = sum(step.candidate.ended for step in steps)
    if release.stage not in (ReleaseStage.RUNNING, ReleaseStage.WIDENED):
        return None
    if ended < release.looked_jobs + max(1, release.planned_jobs // LOOKS):
        return None
    looks = tuple(look_at(gate, steps, release.planned_jobs) for gate in GATES)
    seen = replace(release, looks=looks, looked_jobs=ended, changed_us=now_us)
    worst = max(looks, key=lambda look: look.level)
    if worst.level >= worst.limit:
        return replace(seen, stage=ReleaseStage.ROLLED_BACK, share=0.0, reason=said(worst), clear_looks=0)
    if next(look for look in looks if look.gate == MAIN).progress >= 1:
        reason = f"no gate reached its limit in {ended} jobs; the nearest is {said(worst)}"
        return replace(_widened(seen, 1.0), stage=ReleaseStage.ACCEPTED, reason=reason)
    clear = seen.clear_looks + 1 if worst.level < CLEAR * worst.limit else 0
    wider = next((share for share in SHARES if share > seen.share), None)
    if clear < CLEAR_LOOKS or wider is None:
        return replace(seen, clear_looks=clear)
    reason = f"{clear} looks in a row were clear; the nearest to its limit is {said(worst)}"
    return replace(_widened(seen, wider), stage=ReleaseStage.WIDENED, reason=reason)


def look_at(gate: str, steps: Sequence[Step], planned_jobs: int) -> GateLook:
    """One gate over all steps so far."""
    of = GATES[gate]
    bad_c, n_c, bad_k, n_k = np.array(
        [
            [
                getattr(step.candidate, gate),
                getattr(step.candidate, of),
                getattr(step.control, gate),
                getattr(step.control, of),
            ]
            for step in steps
        ],
        np.float64,
    ).T
    found = score(bad_c, n_c, bad_k, n_k)
    control, effective = float(n_k.sum()), float(found.effective)
    base = float(bad_k.sum()) / control if control else 0.0
    return GateLook(
        gate=gate,
        candidate_bad=int(bad_c.sum()),
        candidate=int(n_c.sum()),
        control_bad=int(bad_k.sum()),
        control=int(control),
        difference=float(found.difference),
        z=float(found.z),
        progress=min(1.0, effective / planned_jobs),
        level=float(level(found, planned_jobs)),
        limit=limit(alpha_of_gate()),
        detectable=detectable(base, effective, alpha_of_gate(), POWER) if effective else 1.0,
    )


def said(look: GateLook) -> str:
    """For a person."""
    return f"{look.gate}: {look.candidate_bad} of {look.candidate} jobs against {look.control_bad} of {look.control}"


def _widened(release: ReleaseChanged, share: float) -> ReleaseChanged:
    return replace(release, share=share, step=release.step + 1, clear_looks=0)
