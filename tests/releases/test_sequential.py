"""How often a release is rolled back: too often never, often enough if it is worse. Simulated, with the figures of the docs."""

import numpy as np
import pytest
from scipy.stats import norm

from gpu_consumers.proportions import Rate, compare
from streams.releases.gate import ALPHA, GATES, POWER, SHARES, alpha_of_gate, planned_jobs
from streams.releases.sequential import Array, detectable, level, limit, planned, power_at, score

BASE, EFFECT = 0.05, 0.05
RUNS, LOOKS = 4000, 50
NOISE = 3 * (ALPHA * (1 - ALPHA) / RUNS) ** 0.5
"""Three standard errors of a simulated rate of 5 %."""


def highest_levels(
    candidate_rate: float, jobs: int, *, gates: int = 1, base: float = BASE, drift: float = 0.0
) -> Array:
    """[RUNS, gates] highest level of each gate until the planned jobs, looked at `LOOKS` times, the share widened on the way.

    `drift` is by how much the rate of both sides rises with each share: what mixes up strata that are not kept apart.
    """
    random = np.random.default_rng(7)
    shape = (RUNS, gates, len(SHARES))
    bad_c, n_c, bad_k, n_k = (np.zeros(shape) for _ in range(4))
    highest = np.full((RUNS, gates), -np.inf)
    for look in range(LOOKS):
        step = min(look * len(SHARES) // LOOKS, len(SHARES) - 1)
        more_c = int(np.ceil(jobs / LOOKS / (1 - SHARES[step])))  # so that each look adds 1/LOOKS of the effective jobs
        more_k = round(more_c * (1 - SHARES[step]) / SHARES[step])
        rise = drift * step
        bad_c[..., step] += random.binomial(more_c, candidate_rate + rise, shape[:2])
        bad_k[..., step] += random.binomial(more_k, base + rise, shape[:2])
        n_c[..., step] += more_c
        n_k[..., step] += more_k
        found = score(bad_c, n_c, bad_k, n_k)
        highest = np.maximum(highest, level(found, jobs))
        if found.effective.min() >= jobs:
            break
    return highest


@pytest.mark.parametrize("base", [0.01, 0.05, 0.3])
def test_a_release_without_a_change_is_hardly_ever_rolled_back(base: float) -> None:
    highest = highest_levels(base, planned_jobs(base, EFFECT), gates=len(GATES), base=base)
    assert (highest >= limit(alpha_of_gate())).any(axis=-1).mean() <= ALPHA


def test_a_release_that_is_worse_by_the_stated_effect_is_rolled_back() -> None:
    highest = highest_levels(BASE + EFFECT, planned_jobs(BASE, EFFECT))
    assert (highest >= limit(alpha_of_gate())).mean() >= POWER


def test_a_better_release_stays() -> None:
    highest = highest_levels(BASE / 2, planned_jobs(BASE, EFFECT), gates=len(GATES))
    assert (highest >= limit(alpha_of_gate())).any(axis=-1).mean() < ALPHA / 10


def test_a_plain_z_test_at_every_look_would_roll_back_far_more() -> None:
    """What the limit is for: the same looks with the limit of one look."""
    random = np.random.default_rng(3)
    bad = random.binomial(20, BASE, (2, RUNS, LOOKS)).cumsum(-1)[..., None]
    jobs = np.arange(20, 20 * LOOKS + 1, 20.0)[:, None]
    found = score(bad[0], jobs, bad[1], jobs)
    assert (found.z >= norm.isf(ALPHA)).any(-1).mean() > 3 * ALPHA
    assert (level(found, 20 * LOOKS / 2) >= limit(ALPHA)).any(-1).mean() <= ALPHA + NOISE


def test_a_line_that_gets_worse_while_the_share_grows_is_not_held_against_the_release() -> None:
    jobs = planned_jobs(BASE, EFFECT)
    rises = highest_levels(BASE, jobs, gates=len(GATES), drift=0.05)
    assert (rises >= limit(alpha_of_gate())).any(axis=-1).mean() <= ALPHA
    together = score(20 + 10 * 0.05, 400 + 10, 20 + 990 * 0.05, 400 + 990)  # the same rates, mixed: 5 % of all
    apart = score([20, 0.5], [400, 10], [20, 49.5], [400, 990])
    assert abs(apart.z) < 0.01
    mixed = score([2 + 40], [20 + 200], [98 + 40], [1980 + 200])  # 10 % and 20 %, at shares of 1 % and 50 %
    assert mixed.z > 3
    assert abs(score([2, 40], [20, 200], [198, 40], [1980, 200]).z) < 0.01
    assert abs(together.z) < 0.1


def test_one_stratum_is_the_pooled_two_proportion_test() -> None:
    found = score([30], [400], [50], [1000])
    assert 2 * norm.sf(found.z) == pytest.approx(
        compare(Rate(successes=30, trials=400), Rate(successes=50, trials=1000)).p_value
    )
    assert found.difference == pytest.approx(30 / 400 - 50 / 1000)


def test_nothing_to_compare_is_no_difference() -> None:
    for counts in ([0], [0], [0], [0]), ([0], [0], [3], [9]), ([2], [2], [5], [5]):
        assert score(*counts).z == 0


def test_the_power_formula_says_what_a_brownian_motion_with_drift_does() -> None:
    assert power_at(0.0, 0.05) == pytest.approx(0.05)
    steps = 2000
    for drift in (1.0, 3.0):
        walk = np.random.default_rng(5).normal(drift / steps, steps**-0.5, (4000, steps)).cumsum(-1)
        reached = (walk.max(-1) >= limit(0.05)).mean()
        assert reached == pytest.approx(power_at(drift, 0.05), abs=0.03)


def test_planned_jobs_and_detectable_effect_are_each_other_s_inverse() -> None:
    jobs = planned(BASE, EFFECT, 0.01, 0.9)
    assert detectable(BASE, jobs, 0.01, 0.9) == pytest.approx(EFFECT, rel=0.01)
    assert detectable(BASE, 4 * jobs, 0.01, 0.9) < EFFECT < detectable(BASE, jobs / 4, 0.01, 0.9)
    assert detectable(BASE, 0.5, 0.01, 0.9) == 1.0
    with pytest.raises(ValueError, match="cannot rise"):
        planned(0.96, 0.05, 0.01, 0.9)
