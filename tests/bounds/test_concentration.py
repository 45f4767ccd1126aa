"""Each limit fails as rarely as it says, by enumeration of every outcome; a smaller one would fail more often."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from certcal import InputError
from certcal.bounds import Limits, betting, clopper_pearson, dkw_width, empirical_bernstein, hoeffding

ALPHAS = (0.3, 0.1, 0.01, 1e-4)


def tail(count: int, n: int, p: Fraction) -> Fraction:
    """P(Bin(n, p) >= count) without rounding."""
    terms = (math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(count, n + 1))
    return sum(terms, Fraction(0))


# ------------------------------------------------------------------------------------------------------ Clopper-Pearson


@pytest.mark.parametrize("n", [1, 2, 7, 32])
@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-6, 1e-60, 1e-200, 1e-249])
def test_clopper_pearson_limits_are_on_the_safe_side_in_exact_arithmetic_and_next_to_the_limit(
    n: int, alpha: float
) -> None:
    counts = np.arange(n + 1)
    lower = clopper_pearson(counts, n, alpha, side="lower").lower
    upper = clopper_pearson(counts, n, alpha, side="upper").upper
    for k in range(n + 1):
        if k:
            assert tail(k, n, Fraction(lower[k])) <= Fraction(alpha)
            assert tail(k, n, Fraction(lower[k] * (1 + 1e-7))) > Fraction(alpha)
        if k < n:
            assert tail(n - k, n, 1 - Fraction(upper[k])) <= Fraction(alpha)
            closer = upper[k] - 1e-7 * (1 - upper[k]) - 3e-16
            assert tail(n - k, n, 1 - Fraction(closer)) > Fraction(alpha)
    assert (lower[0], upper[n]) == (0.0, 1.0)


@pytest.mark.parametrize("n", [5, 20, 200])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_clopper_pearson_fails_with_at_most_alpha_for_every_probability_and_nearly_that_for_some(
    n: int, alpha: float
) -> None:
    counts = np.arange(n + 1)
    lower = clopper_pearson(counts, n, alpha, side="lower").lower
    just_below = np.nextafter(lower[1:], 0)
    rates = failure_rates(just_below, n, lambda p: lower > p)
    assert rates.max() <= alpha
    assert rates.min() >= alpha * (1 - 1e-6)
    shrunk = lower + 0.02 * (counts / n - lower)  # two per cent narrower
    assert failure_rates(np.nextafter(shrunk[1:-1], 0), n, lambda p: shrunk > p).min() > alpha


def failure_rates(probabilities: np.ndarray, n: int, fails: Callable[[float], np.ndarray]) -> np.ndarray:
    """Exact probability of failing at each p, from all n + 1 outcomes."""
    counts = np.arange(n + 1)
    return np.array([stats.binom.pmf(counts, n, p)[fails(p)].sum() for p in probabilities])


def test_two_sided_limits_share_alpha() -> None:
    both = clopper_pearson(7, 20, 0.1)
    assert both.lower == clopper_pearson(7, 20, 0.05, side="lower").lower
    assert both.upper == clopper_pearson(7, 20, 0.05, side="upper").upper


def test_levels_at_which_the_inverse_beta_function_gives_up_still_have_limits() -> None:
    lower = clopper_pearson(np.array([500, 990, 1000]), 1000, 1e-249, side="lower").lower
    assert np.all((lower > 0.01) & (lower < 0.6))
    assert np.all(np.diff(lower) > 0)
    assert lower[-1] == pytest.approx(1e-249 ** (1 / 1000), rel=1e-9)


def test_long_runs_of_successes_keep_their_digits() -> None:
    n = 10**7
    lower = clopper_pearson(n, n, 1e-3, side="lower").lower
    assert 1 - lower == pytest.approx(-math.expm1(math.log(1e-3) / n), rel=1e-6)
    assert 1 - lower >= -math.expm1(math.log(1e-3) / n)


# ----------------------------------------------------------------------------------------- means of variables in [0, 1]

# Means of n variables in {0, 1}: the hardest ones for most limits, and all outcomes can be written down.
METHODS: dict[str, Callable[[np.ndarray, int, float, str], Limits]] = {
    "hoeffding": lambda k, n, alpha, side: hoeffding(k / n, n, alpha, side),
    "empirical_bernstein": lambda k, n, alpha, side: empirical_bernstein(k / n, k / n * (1 - k / n), n, alpha, side),
    "betting": lambda k, n, alpha, side: betting([0, 1], alpha, side, counts=np.stack([n - k, k], axis=1)),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [1, 5, 40, 150])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_limits_of_means_fail_with_at_most_alpha_by_enumeration(method: str, n: int, alpha: float) -> None:
    counts = np.arange(n + 1)
    grid = np.concatenate([np.linspace(0, 1, 301), stats.beta.ppf(0.3, counts[1:], n - counts[1:] + 1)])
    lower = METHODS[method](counts, n, alpha, "lower").lower
    upper = METHODS[method](counts, n, alpha, "upper").upper
    both = METHODS[method](counts, n, alpha, "both")
    assert failure_rates(grid, n, lambda p: lower > p).max() <= alpha
    assert failure_rates(grid, n, lambda p: upper < p).max() <= alpha
    assert failure_rates(grid, n, lambda p: (both.lower > p) | (both.upper < p)).max() <= alpha
    assert np.all(both.lower <= counts / n + 1e-12)
    assert np.all(both.upper >= counts / n - 1e-12)


def test_hoeffding_is_its_formula_rounded_outward() -> None:
    for mean, n, alpha in ((0.5, 100, 0.05), (0.875, 12345, 1e-6)):
        width = math.sqrt(math.log(1 / alpha) / 2 / n)
        found = hoeffding(mean, n, alpha, "lower").lower
        assert mean - width - 1e-13 < found <= mean - width
        assert mean + width <= hoeffding(mean, n, alpha, "upper").upper < mean + width + 1e-13
        assert hoeffding(mean, n, 2 * alpha).lower == found


def test_empirical_bernstein_has_the_published_constants_rounded_outward() -> None:
    for mean, variance, n, alpha in ((0.5, 0.2, 1000, 0.05), (0.875, 0.01, 12345, 1e-6)):
        width = math.sqrt(2 * variance * math.log(3 / alpha) / n) + 3 * math.log(3 / alpha) / n
        found = empirical_bernstein(mean, variance, n, alpha)
        assert mean - width - 1e-13 < found.lower <= mean - width
        assert mean + width <= found.upper < mean + width + 1e-13


@pytest.mark.parametrize("n", [10, 100, 10_000])
@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-3])
def test_dkw_holds_by_the_exact_distribution_and_five_per_cent_less_would_not_for_many_draws(
    n: int, alpha: float
) -> None:
    one, two = dkw_width(n, alpha, "lower"), dkw_width(n, alpha)
    assert stats.ksone.sf(one, n) <= alpha
    assert stats.kstwo.sf(two, n) <= alpha
    if n == 10_000:
        assert stats.ksone.sf(0.95 * one, n) > alpha
        assert stats.kstwo.sf(0.95 * two, n) > alpha


def test_dkw_is_not_used_beyond_the_levels_it_is_proved_for() -> None:
    assert dkw_width(100, 0.9, "lower") == dkw_width(100, 0.5, "lower")


# ---------------------------------------------------------------------------------------------------------------- bets


def test_everything_on_one_bet_gives_the_limit_of_an_unbroken_run() -> None:
    for n in (1, 10, 1000):
        found = betting([1.0], 0.01, "lower", counts=[n], bets=[1.0]).lower
        exact = clopper_pearson(n, n, 0.01, "lower").lower
        assert exact - 1e-9 < found <= exact * (1 + 1e-12)


def test_a_betting_limit_two_per_cent_larger_would_fail_more_often_than_alpha() -> None:
    # One draw of a variable in {0, 1}: the limit after a success is alpha, and Markov's inequality is sharp there.
    alpha = 0.1
    limit = betting([1.0], alpha, "lower", bets=[1.0]).lower
    p = alpha * 1.01
    assert limit <= p  # a success, of probability p > alpha, must not exclude p
    assert 1.02 * limit > p


@pytest.mark.parametrize("theta", [0.05, 0.4, 1.0])
def test_the_capital_has_expectation_one_at_the_true_mean(theta: float) -> None:
    from certcal.bounds.concentration import _log_capital

    values, shares, n = np.array([0.0, 0.3, 1.0]), np.array([0.2, 0.5, 0.3]), 9
    outcomes = np.array([(i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)])
    chance = stats.multinomial.pmf(outcomes, n, shares)
    mean = float(values @ shares)
    capital = np.exp(
        _log_capital(values, outcomes.astype(float), np.full(len(outcomes), mean), np.array([theta, theta / 2]))
    )
    assert chance @ capital == pytest.approx(1.0, abs=1e-12)


def test_bets_do_not_depend_on_the_order_of_the_draws_or_on_how_they_are_counted() -> None:
    draws = np.random.default_rng(0).integers(0, 5, 300) / 4
    values, counts = np.unique(draws, return_counts=True)
    one, other = betting(draws, 0.05), betting(draws[::-1], 0.05)
    counted = betting(values, 0.05, counts=counts)
    assert one.lower == pytest.approx(other.lower, abs=1e-11)
    assert one.lower == pytest.approx(counted.lower, abs=1e-11)
    assert one.upper == pytest.approx(counted.upper, abs=1e-11)


def test_bets_are_narrower_than_hoeffding_when_the_variance_is_small() -> None:
    draws = np.random.default_rng(1).beta(90, 10, 1000)
    bets, wide = betting(draws, 0.01), hoeffding(draws.mean(), 1000, 0.01)
    assert bets.upper - bets.lower < 0.4 * (wide.upper - wide.lower)


# ---------------------------------------------------------------------------------------------------------- behaviour


@settings(max_examples=15)
@given(n=st.integers(1, 500), share=st.floats(0, 1), low=st.floats(1e-9, 0.4), factor=st.floats(1.01, 2))
def test_limits_are_narrower_for_larger_alpha_and_contain_the_estimate(
    n: int, share: float, low: float, factor: float
) -> None:
    k = round(share * n)
    for method in (
        lambda alpha: clopper_pearson(k, n, alpha),
        lambda alpha: hoeffding(k / n, n, alpha),
        lambda alpha: empirical_bernstein(k / n, k / n * (1 - k / n), n, alpha),
        lambda alpha: betting([0, 1], alpha, counts=[n - k, k]),
    ):
        wide, narrow = method(low), method(low * factor)
        assert 0 <= wide.lower <= narrow.lower <= k / n + 1e-9
        assert 1 >= wide.upper >= narrow.upper >= k / n - 1e-9


def test_arrays_give_arrays_and_numbers_give_numbers() -> None:
    assert isinstance(clopper_pearson(3, 10, 0.1).lower, float)
    assert clopper_pearson([[1, 2], [3, 4]], 10, 0.1).upper.shape == (2, 2)
    assert hoeffding([0.1, 0.2], [10, 20], 0.1).lower.shape == (2,)
    assert betting([0, 1], 0.1, counts=[[3, 4], [5, 6], [0, 1]]).lower.shape == (3,)
    assert isinstance(betting([0.5], 0.1).lower, float)


def test_draws_that_are_all_zero_or_missing_bound_nothing_from_below() -> None:
    assert betting([0.0, 0.0], 0.1).lower == 0
    assert betting([0.0, 1.0], 0.1, counts=[0, 0]) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: clopper_pearson(11, 10, 0.1), "count must be from 0 to n"),
        (lambda: clopper_pearson(-1, 10, 0.1), "count must be from 0 to n"),
        (lambda: clopper_pearson(0.5, 10, 0.1), "count must be whole numbers"),
        (lambda: clopper_pearson(1, 10, 0.0), "alpha is 0.0; pass a probability"),
        (lambda: clopper_pearson(1, 10, 1e-300), "alpha is 1e-300; below 1e-250"),
        (lambda: clopper_pearson(1, 10, 0.1, "left"), "side is 'left'"),
        (lambda: hoeffding(1.5, 10, 0.1), "mean is outside"),
        (lambda: hoeffding(math.nan, 10, 0.1), "mean is outside"),
        (lambda: hoeffding(0.5, 0, 0.1), "n must be at least 1"),
        (lambda: empirical_bernstein(0.5, 0.3, 10, 0.1), "variance is outside"),
        (lambda: dkw_width(10, 1.0), "alpha is 1.0"),
        (lambda: betting([0.5, 1.5], 0.1), "values must be numbers in"),
        (lambda: betting([], 0.1), "values must be numbers in"),
        (lambda: betting([0.5], 0.1, counts=[1, 2]), "counts has shape"),
        (lambda: betting([0.5], 0.1, bets=[1.5]), "bets must be numbers in"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(call: Callable[[], object], text: str) -> None:
    with pytest.raises(InputError, match=text):
        call()
