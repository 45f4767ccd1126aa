"""Intervals over models: what they cover, and what they do not depend on."""

import math

import numpy as np
import pytest

from certcal.lab.study import kendall, kendall_resampled
from certcal.lab.study._resampling import (
    FEWEST,
    LARGEST,
    POOL,
    Resampling,
    chance_correlation,
    fewest_models,
    kendall_draws,
    shrinkage,
)

HOW = Resampling(200, 0.95, 0)
TRIALS = 600
# Observed coverage of 600 trials at 0.95 is below this with probability 0.001.
LEAST_COVERED = 0.95 - 3.09 * math.sqrt(0.95 * 0.05 / TRIALS)


@pytest.mark.parametrize("rho", [0.0, 0.6])
@pytest.mark.parametrize("n", [50, 150])
def test_the_interval_of_a_correlation_covers_the_truth_of_normal_populations(n: int, rho: float) -> None:
    truth = 2 / math.pi * math.asin(rho)
    rng = np.random.default_rng([n, int(10 * rho)])
    # The exact variance of tau in normal samples (Esscher 1924).
    pairs = 1 - truth**2 + 2 * (n - 2) * (1 / 9 - (2 / math.pi * math.asin(rho / 2)) ** 2)
    deviation = math.sqrt(2 * pairs / (n * (n - 1)))
    widths, covered, covered_by_less = [], 0, 0
    for trial in range(TRIALS):
        x = rng.normal(size=n)
        y = rho * x + math.sqrt(1 - rho**2) * rng.normal(size=n)
        found = HOW.correlation("tau", x, y, tag=str(trial))
        covered += found.low <= truth <= found.high
        middle, half = (found.low + found.high) / 2, (found.high - found.low) / 2
        covered_by_less += abs(truth - middle) <= 0.8 * half
        widths.append(half)
    assert covered / TRIALS >= LEAST_COVERED
    assert covered_by_less / TRIALS < LEAST_COVERED
    # Not by being wide, and none narrower than by a few per cent would do.
    assert 0.98 < np.mean(widths) / (1.96 * deviation) < 1.1


def test_few_models_have_the_wider_interval_of_student() -> None:
    draws = np.random.default_rng(0).normal(size=200)
    for n, quantile in ((10, 2.262157), (30, 2.045230), (10_000, 1.960201)):
        low, high, _ = HOW.interval(0.5, draws, n, "difference", 1.0)
        half = quantile * draws.std(ddof=1)
        assert (0.5 - low, high - 0.5) == pytest.approx((half, half), rel=1e-6)
        # On the other scales by the derivative: that of the logarithm is 1/x, of Fisher's z 1/(1 - x²).
        low, high, _ = HOW.interval(2.0, draws, n, "ratio", 1.0)
        assert (math.log(2 / low), math.log(high / 2)) == pytest.approx((half / 2, half / 2), rel=1e-6)
        low, high, _ = HOW.interval(0.5, draws, n, "correlation", 0.2)
        ends = (math.atanh(0.5) - math.atanh(low), math.atanh(high) - math.atanh(0.5))
        assert ends == pytest.approx((0.2 * half / 0.75,) * 2, rel=1e-6)


@pytest.mark.parametrize(("value", "spread"), [(0.0, 0.0), (0.0, 1.0), (1e-9, 0.5)])
def test_a_ratio_that_is_zero_or_varies_beyond_measure_has_no_interval(value: float, spread: float) -> None:
    draws = value + spread * np.random.default_rng(0).uniform(size=200)
    low, high, why = HOW.interval(value, draws, 30, "ratio")
    assert math.isnan(low)
    assert math.isnan(high)
    assert "varies too much" in why


def test_numbers_of_the_same_step_are_of_the_same_models() -> None:
    n = 3 * POOL
    x, y = np.random.default_rng(1).normal(size=(2, n))
    rows = HOW.rows(n, tag="both")
    part = rows[:20, :100]
    assert kendall_draws(x, y, part, 1).tolist() == kendall_resampled(x, y, part).tolist()
    assert kendall_draws(x, y, rows[:20], 1).tolist() == kendall_resampled(x, y, rows[:20]).tolist()
    every_third = kendall_resampled(x[::3], y[::3], rows[:20] // 3).tolist()
    assert kendall_draws(x, y, rows[:20], 3).tolist() == every_third


@pytest.mark.parametrize("sign", [1, -1])
def test_a_perfect_correlation_is_not_taken_for_certain(sign: int) -> None:
    x = np.arange(60.0)
    found = HOW.correlation("tau", x, sign * x, tag="perfect")
    # Pairs ordered otherwise with probability p are all missed with probability (1 - p)^30.
    p = 1 - 0.05 ** (1 / 30)
    ends = (1 - 2 * p, 1.0) if sign > 0 else (-1.0, 2 * p - 1)
    assert found.value == sign
    assert (found.low, found.high) == pytest.approx(ends)


def test_resamples_are_uniform_draws_with_repetition() -> None:
    how = Resampling(4000, 0.95, 3)
    rows = how.rows(20, tag="uniform")
    assert rows.shape == (4000, 20)
    assert (np.diff(rows, axis=1) >= 0).all()
    counts = np.bincount(rows.ravel(), minlength=20)
    assert np.abs(counts - 4000).max() < 4.5 * math.sqrt(4000)
    times = (rows == 7).sum(axis=1)  # binomial(20, 1/20)
    assert times.var() == pytest.approx(0.95, rel=0.12)


def test_the_first_of_a_resample_are_those_of_a_whole_one() -> None:
    how = Resampling(3000, 0.95, 1)
    quick = how.rows(400, tag="top", top=40)
    whole = np.sort(np.random.default_rng(5).integers(0, 400, (3000, 400)), axis=1)[:, :40]
    for place in (0, 20, 39):
        error = whole[:, place].std() / math.sqrt(3000)
        assert abs(quick[:, place].mean() - whole[:, place].mean()) < 4.5 * math.sqrt(2) * error
        assert quick[:, place].std() == pytest.approx(whole[:, place].std(), rel=0.1)


def test_small_resamples_of_large_populations_give_the_deviation_of_large_ones() -> None:
    n = 3 * POOL
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, n))
    how = Resampling(800, 0.95, 0)
    rows = how.rows(n, tag="large")
    assert rows.shape[1] == LARGEST
    deviation = kendall_draws(x, y, rows).std() * shrinkage(n)
    # Of unrelated columns; a deviation of 800 draws is known to 2.5 %.
    assert deviation == pytest.approx(math.sqrt(2 * (2 * n + 5) / (9 * n * (n - 1))), rel=0.1)


def test_the_top_of_a_large_population_has_an_interval_of_its_own_size() -> None:
    n, top = 12_000, 3000
    x, y = np.random.default_rng(0).normal(size=(2, n))
    found = Resampling(800, 0.95, 0).correlation("tau", x, y, tag="large", top=top)
    assert found.n == top
    assert found.value == kendall(x[:top], y[:top])
    assert (found.high - found.low) / 2 == pytest.approx(chance_correlation(top), rel=0.1)


def test_up_to_the_pool_all_models_are_drawn_from() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 300))
    rows = HOW.rows(300, tag="all")
    assert kendall_draws(x, y, rows).tolist() == kendall_resampled(x, y, rows).tolist()


def test_the_same_seed_gives_the_same_interval_and_another_tag_another() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 40))
    first = HOW.correlation("tau", x, y, tag="a")
    assert HOW.correlation("tau", x, y, tag="a") == first
    assert HOW.correlation("tau", x, y, tag="b").low != first.low
    assert Resampling(200, 0.95, 1).correlation("tau", x, y, tag="a").low != first.low


@pytest.mark.parametrize(("n", "value", "interval"), [(0, False, False), (2, False, False), (5, True, False)])
def test_few_models_have_no_interval_and_very_few_no_number(n: int, value: bool, interval: bool) -> None:
    x = np.arange(float(n))
    for found in (HOW.correlation("tau", x, x**2, tag="few"), HOW.finding("mean", np.mean, x, tag="few")):
        assert math.isfinite(found.value) is value
        assert math.isfinite(found.low) is interval
        assert found.n == n
        assert "at least 3" in found.note if not value else f"fewer than {FEWEST}" in found.note


def test_a_constant_column_has_no_correlation() -> None:
    found = HOW.correlation("tau", np.ones(30), np.arange(30.0), tag="constant")
    assert math.isnan(found.value)
    assert "the same for all models" in found.note


def test_a_number_that_resamples_often_lack_has_no_interval() -> None:
    x = np.zeros(30)
    x[0] = 1  # a third of the resamples are without it, and constant
    found = HOW.correlation("tau", x, np.arange(30.0), tag="rare")
    assert math.isfinite(found.value)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert "undefined" in found.note


def test_the_interval_of_a_ratio_of_medians_covers_the_truth() -> None:
    rng = np.random.default_rng(4)
    covered = 0
    trials = 200
    for trial in range(trials):
        shared = rng.normal(size=80)
        below, above = np.exp(shared), 3 * np.exp(shared + 0.5 * rng.normal(size=80))
        found = HOW.finding(
            "ratio", lambda a, b: np.median(a) / np.median(b), above, below, tag=str(trial), scale="ratio"
        )
        covered += found.low <= 3 <= found.high
        assert 0 < found.low < found.value < found.high
    # 200 trials at 0.95 are below this with probability 0.001.
    assert covered / trials >= 0.95 - 3.09 * math.sqrt(0.95 * 0.05 / trials)


def test_shares_have_the_exact_interval() -> None:
    found = HOW.share("share", 30, 30)
    assert (found.value, found.high) == (1, 1)
    assert found.low == pytest.approx(0.025 ** (1 / 30))
    assert "exact" in found.note


def test_chance_is_that_of_unrelated_columns() -> None:
    rng = np.random.default_rng(0)
    found = [kendall(*rng.normal(size=(2, 40))) for _ in range(2000)]
    beyond = np.mean(np.abs(found) > chance_correlation(40))
    assert abs(beyond - 0.05) < 4 * math.sqrt(0.05 * 0.95 / 2000)
    assert chance_correlation(fewest_models(0.1)) <= 0.1 < chance_correlation(fewest_models(0.1) - 1)
