"""What is usual of the scores of pieces that compare with each other: rolling median and MAD, on a leash.

The first `REFERENCE` pieces of a population that passed their gates are its reference. The median that pieces are held
against is that of the last `RECENT` ones, but no farther from the reference's median than the reference's MAD: so the
baseline follows what is noise, and a line that gets worse slowly leaves its baseline behind instead of dragging it along.
The MAD is the reference's. A new engine version, size, codec or profile is another population, with a reference of its own.

A baseline is a function of the set of pieces, ordered by when they were checked: events that come twice or out of order
change nothing. The view `quality_baselines` in ClickHouse says the same of the same pieces (schemas/clickhouse).

Median and MAD: Hampel, "The influence curve and its role in robust estimation", 1974.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

from schemas.records import QualityBaseline, Usual
from schemas.scores import MAIN
from streams.insights.facts import JobFacts

MINIMUM = 50
"""Fewer pieces have no baseline: their MAD is an accident."""
REFERENCE = 200
RECENT = 200

Sample = tuple[int, str, int, int, tuple[float, ...]]
"""When it was checked, job, piece, attempt, and a value for each of `MAIN`."""


@dataclass(slots=True)
class Quality:
    """The pieces of all populations, each list in order. `replace` is the only change."""

    samples: dict[str, list[Sample]] = field(default_factory=dict[str, list[Sample]])

    def replace(self, old: JobFacts | None, new: JobFacts) -> list[QualityBaseline]:
        """Put `new` in the place of `old` and return the baselines that changed, those with enough pieces."""
        changed = self.put(old, new)
        known = (baseline_of(population, self.samples[population]) for population in sorted(changed))
        return [baseline for baseline in known if baseline]

    def put(self, old: JobFacts | None, new: JobFacts) -> set[str]:
        """The same, returning the populations that changed."""
        before, after = (_samples(old) if old else set[tuple[str, Sample]]()), _samples(new)
        for population, sample in before - after:
            known = self.samples[population]
            del known[bisect_left(known, sample)]
        for population, sample in after - before:
            insort(self.samples.setdefault(population, []), sample)
        return {population for population, _ in before ^ after}


def quality_of(rows: Iterable[JobFacts]) -> Quality:
    """The pieces of a whole table."""
    quality = Quality()
    for row in rows:
        quality.put(None, row)
    return quality


def baseline_of(population: str, samples: Sequence[Sample]) -> QualityBaseline | None:
    """Of samples in order; None if they are too few."""
    if len(samples) < MINIMUM:
        return None
    first, last = (list(zip(*(s[-1] for s in part), strict=True)) for part in (samples[:REFERENCE], samples[-RECENT:]))
    return QualityBaseline(
        population=population,
        pieces=len(samples),
        reference_pieces=min(len(samples), REFERENCE),
        usual=tuple(_usual(score, first[at], last[at]) for at, score in enumerate(MAIN)),
        updated_us=samples[-1][0],
    )


def _usual(score: str, reference: Sequence[float], recent: Sequence[float]) -> Usual:
    (middle, spread), (recent_middle, recent_spread) = _median_and_mad(reference), _median_and_mad(recent)
    return Usual(
        score=score,
        median=max(middle - spread, min(middle + spread, recent_middle)),
        mad=spread,
        reference_median=middle,
        recent_median=recent_middle,
        recent_mad=recent_spread,
    )


def _median_and_mad(values: Sequence[float]) -> tuple[float, float]:
    middle = median(values)
    return middle, median(abs(value - middle) for value in values)


def _samples(facts: JobFacts) -> set[tuple[str, Sample]]:
    return {
        (check.population, (check.checked_us, facts.job_id, check.piece, check.attempt, check.scores))
        for check in facts.checks
        if check.scores
    }
