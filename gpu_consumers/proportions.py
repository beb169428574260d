"""Success rates: how certain one is, and whether one is better than another."""

from dataclasses import dataclass
from math import sqrt

from scipy.stats import binomtest, norm


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """`successes` of `trials`, of which there is at least one."""

    successes: int
    trials: int

    @property
    def value(self) -> float:
        """In [0, 1]."""
        return self.successes / self.trials


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """First rate minus second, with its confidence interval, and how likely so much of a difference is if there is none."""

    difference: float
    low: float
    high: float
    p_value: float


def wilson(rate: Rate, confidence: float = 0.95) -> tuple[float, float]:
    """The score interval of one rate: right also where it is near 1 (Wilson 1927)."""
    interval = binomtest(rate.successes, rate.trials).proportion_ci(confidence, method="wilson")
    return float(interval.low), float(interval.high)


def exact(rate: Rate, confidence: float = 0.95) -> tuple[float, float]:
    """The interval that never promises too much (Clopper and Pearson 1934): wider than `wilson`."""
    interval = binomtest(rate.successes, rate.trials).proportion_ci(confidence, method="exact")
    return float(interval.low), float(interval.high)


def compare(a: Rate, b: Rate, confidence: float = 0.95) -> Comparison:
    """Two rates: Newcombe's interval from the two score intervals (1998, method 10), and the pooled two-sided z-test."""
    (a_low, a_high), (b_low, b_high) = wilson(a, confidence), wilson(b, confidence)
    difference = a.value - b.value
    pooled = (a.successes + b.successes) / (a.trials + b.trials)
    error = sqrt(pooled * (1 - pooled) * (1 / a.trials + 1 / b.trials))
    return Comparison(
        difference=difference,
        low=difference - sqrt((a.value - a_low) ** 2 + (b_high - b.value) ** 2),
        high=difference + sqrt((a_high - a.value) ** 2 + (b.value - b_low) ** 2),
        p_value=float(2 * norm.sf(abs(difference) / error)) if error else 1.0,
    )


def above(rate: Rate, figure: float) -> float:
    """How likely so many successes are if the true rate is only `figure`: the one-sided exact test against a published figure."""
    return float(binomtest(rate.successes, rate.trials, figure, alternative="greater").pvalue)
