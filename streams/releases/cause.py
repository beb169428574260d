"""Why a release was rolled back: what its bad jobs have in common and others have not. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from schemas.records import ReleaseCause, Suspect
from streams.releases.sequential import score

MOST = 10
"""Suspects, and examples."""
Trait = tuple[str, str]
"""Kind and name: `("worker", "generate-1")`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A job of a release that has ended."""

    job_id: str
    bad: bool
    """On the candidate's side, and bad by the gate in question."""
    traits: frozenset[Trait]


def cause_of(release: str, gate: str, jobs: Sequence[Ended], now_us: int) -> ReleaseCause:
    """`jobs` are those of both sides, the newest first."""
    examples = tuple(job.job_id for job in jobs if job.bad)[:MOST]
    return ReleaseCause(name=release, gate=gate, suspects=suspects(jobs), examples=examples, found_us=now_us)


def suspects(jobs: Sequence[Ended]) -> tuple[Suspect, ...]:
    """Traits that are more frequent among bad jobs than among all others, by the two-proportion z; the most telling first."""
    bad = [job for job in jobs if job.bad]
    others = [job for job in jobs if not job.bad]
    found = [_suspect(trait, bad, others) for trait in {trait for job in bad for trait in job.traits}]
    return tuple(sorted((s for s in found if s.z > 0), key=lambda s: (-s.z, s.kind, s.name))[:MOST])


def _suspect(trait: Trait, bad: Sequence[Ended], others: Sequence[Ended]) -> Suspect:
    with_it = sum(trait in job.traits for job in bad)
    others_with_it = sum(trait in job.traits for job in others)
    return Suspect(
        kind=trait[0],
        name=trait[1],
        bad_seen=with_it,
        bad=len(bad),
        others_seen=others_with_it,
        others=len(others),
        z=float(score([with_it], [len(bad)], [others_with_it], [len(others)]).z),
    )
