"""Success rates against published examples and against the chi-squared test."""

import pytest
from scipy.stats import chi2_contingency

from gpu_consumers.proportions import Rate, above, compare, exact, wilson


@pytest.mark.parametrize(
    ("rate", "low", "high"),
    [
        (Rate(successes=81, trials=263), 0.2553, 0.3662),
        (Rate(successes=15, trials=148), 0.0624, 0.1605),
        (Rate(successes=0, trials=20), 0.0, 0.1611),
        (Rate(successes=1, trials=29), 0.0061, 0.1718),
    ],
)
def test_the_score_interval_is_the_published_one(rate: Rate, low: float, high: float) -> None:
    """Newcombe 1998a, table I, method 3."""
    assert wilson(rate) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("rate", "low", "high"),
    [
        (Rate(successes=81, trials=263), 0.2527, 0.3676),
        (Rate(successes=15, trials=148), 0.0578, 0.1617),
        (Rate(successes=0, trials=20), 0.0, 0.1684),
        (Rate(successes=1, trials=29), 0.0009, 0.1776),
    ],
)
def test_the_exact_interval_is_the_published_one(rate: Rate, low: float, high: float) -> None:
    """Newcombe 1998a, table I, method 5."""
    assert exact(rate) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("a", "b", "low", "high"),
    [
        (Rate(successes=56, trials=70), Rate(successes=48, trials=80), 0.0524, 0.3339),
        (Rate(successes=9, trials=10), Rate(successes=3, trials=10), 0.1705, 0.8090),
        (Rate(successes=10, trials=10), Rate(successes=0, trials=20), 0.6791, 1.0),
    ],
)
def test_the_difference_has_the_published_interval(a: Rate, b: Rate, low: float, high: float) -> None:
    """Newcombe 1998b, table II, method 10."""
    found = compare(a, b)
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)
    assert found.difference == pytest.approx(a.value - b.value)


def test_the_z_test_is_the_chi_squared_test_without_correction() -> None:
    a, b = Rate(successes=463, trials=500), Rate(successes=499, trials=500)
    table = [[463, 37], [499, 1]]
    assert compare(a, b).p_value == pytest.approx(chi2_contingency(table, correction=False).pvalue)


def test_equal_rates_differ_in_nothing() -> None:
    same = compare(Rate(successes=50, trials=50), Rate(successes=70, trials=70))
    assert (same.difference, same.p_value) == (0.0, 1.0)
    assert same.low < 0 < same.high


def test_a_published_rate_is_beaten_only_with_enough_trials() -> None:
    assert above(Rate(successes=20, trials=20), 0.926) > 0.05
    assert above(Rate(successes=1000, trials=1000), 0.926) < 1e-9
    assert wilson(Rate(successes=4000, trials=4000))[0] > 0.999
