"""Is the candidate worse than the control? Rates of bad jobs, compared as often as one likes at one error rate.

The two proportions are compared by Cochran's stratified z-test (1954, Biometrics 10): within each share of the jobs, then
summed up. A release whose share grows while the line's own rate changes would otherwise look better or worse than it is
(Simpson's paradox; Crook et al., KDD 2009, pitfall 3). With one share it is the pooled z-test of `gpu_consumers.proportions`.

Looking again and again is paid for by O'Brien and Fleming's spending function in the form of Lan and DeMets (1983, Biometrika 70):
with the fraction t of the planned information, z * sqrt(t) is a Brownian motion, and the most it reaches until t = 1 is above
c with the probability 2 * (1 - Phi(c)). So the limit is one number however often and whenever one looks, it is strict while
counts are small and the normal approximation poor, and near the plain test's at the end. A rare event in a small arm is skewed to the
side of harm: z is taken back to what it would be without the skewness (Cornish and Fisher 1938, first term).

Arrays are [..., strata] float64 counts; a plain number is an array of none.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, sqrt
from statistics import NormalDist
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Candidate against control over all strata; each an array without the axis of strata."""

    effective: Array
    """Jobs: the sum of n_candidate * n_control / (n_candidate + n_control)."""
    difference: Array
    """Of the rates; 0 where nothing is to be compared."""
    z: Array
    """Above 0: the candidate is worse."""
    skewness: Array
    """Of z, if there is no difference."""


def score(candidate_bad: ArrayLike, candidate: ArrayLike, control_bad: ArrayLike, control: ArrayLike) -> Score:
    """Cochran's test. A stratum without jobs on one side says nothing."""
    counts = [np.asarray(each, np.float64) for each in (candidate_bad, candidate, control_bad, control)]
    bad_c, n_c, bad_k, n_k = np.broadcast_arrays(*counts)
    both = n_c + n_k
    weight = np.divide(n_c * n_k, both, out=np.zeros(both.shape), where=both > 0)
    some = weight > 0
    rate_c = np.divide(bad_c, n_c, out=np.zeros(both.shape), where=some)
    rate_k = np.divide(bad_k, n_k, out=np.zeros(both.shape), where=some)
    pooled = np.divide(bad_c + bad_k, both, out=np.zeros(both.shape), where=some)
    total = weight.sum(-1)
    raised = (weight * (rate_c - rate_k)).sum(-1)
    spread = weight * pooled * (1 - pooled)
    variance = spread.sum(-1)
    smaller = np.divide(n_k - n_c, both, out=np.zeros(both.shape), where=some)
    third = (spread * (1 - 2 * pooled) * smaller).sum(-1)
    return Score(
        effective=total,
        difference=np.divide(raised, total, out=np.zeros(total.shape), where=total > 0),
        z=np.divide(raised, np.sqrt(variance), out=np.zeros(total.shape), where=variance > 0),
        skewness=np.divide(third, variance**1.5, out=np.zeros(total.shape), where=variance > 0),
    )


def level(found: Score, planned_jobs: float) -> Array:
    """Evidence of harm, which may not reach `limit`: z * sqrt(t) without its skewness. t: the part of the planned jobs compared, at most 1."""
    skewness = np.maximum(found.skewness, 0.0)
    root = np.sqrt(np.maximum(0.0, 1 + skewness * (2 * found.z / 3 + skewness / 9))) - 1
    straight = np.divide(3 * root, skewness, out=found.z.copy(), where=skewness > 1e-6)
    return straight * np.sqrt(np.minimum(1.0, found.effective / planned_jobs))


def limit(alpha: float) -> float:
    """What `level` reaches with the probability `alpha` if there is no difference, looked at at every job until the planned ones."""
    return _NORMAL.inv_cdf(1 - alpha / 2)


def power_at(drift: float, alpha: float) -> float:
    """How likely the limit is reached by t = 1 where z at t = 1 is `drift` on average (Brownian motion with drift; reflection)."""
    c = limit(alpha)
    return _NORMAL.cdf(drift - c) + exp(min(700.0, 2 * c * drift)) * _NORMAL.cdf(-drift - c)


def planned(base_rate: float, effect: float, alpha: float, power: float) -> int:
    """Effective jobs after which a rate of `base_rate + effect` was found with `power`.

    The variance is the candidate's: it has the smaller arm. Raises: ValueError unless 0 <= base_rate < base_rate + effect < 1.
    """
    if not 0 <= base_rate < base_rate + effect < 1:
        raise ValueError(f"a rate of {base_rate:g} cannot rise by {effect:g}")
    worse = base_rate + effect
    variance = max(worse * (1 - worse), base_rate * (1 - base_rate))
    return int(np.ceil((_drift(alpha, power) / effect) ** 2 * variance))


def detectable(base_rate: float, jobs: float, alpha: float, power: float) -> float:
    """The smallest rise of `base_rate` that so many effective jobs find with `power`; 1 if none."""
    drift = _drift(alpha, power)

    def missing(effect: float) -> float:
        worse = base_rate + effect
        return effect * sqrt(jobs) - drift * sqrt(max(worse * (1 - worse), base_rate * (1 - base_rate)))

    most = 1.0 - base_rate
    return _root(missing, 1e-9, most) if most > 1e-9 and missing(1e-9) < 0 < missing(most) else 1.0


def _drift(alpha: float, power: float) -> float:
    """Mean of z at the end that gives the power."""
    return _root(lambda drift: power_at(drift, alpha) - power, 0.0, limit(alpha) + 10.0)


def _root(of: Callable[[float], float], low: float, high: float) -> float:
    from scipy.optimize import brentq  # half a second that no other command has to wait for

    return cast(float, brentq(of, low, high))
