"""Bounds on the KS and Kuiper calibration errors: the twin, exact failure probabilities, and many populations."""

import math
from bisect import bisect_left
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from certcal import Bound, InputError
from certcal._kernels.capital import CELL, cut_cells, largest_mean_of_cuts, log_capital_of_cuts
from certcal.bounds import ks, ks_lower, kuiper, kuiper_lower
from certcal.bounds._bets import place_bets
from certcal.bounds._shared import fold_of_each
from certcal.claims import ORDER
from certcal.lab.study import SYNTHETIC
from certcal.metrics import ks_error, kuiper_error
from tests.bounds import naive

DELTA = 0.1
UPPER = {"ks": (ks, ks_error, False), "kuiper": (kuiper, kuiper_error, True)}


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.37, 0.5, 0.9, 1.0]), st.booleans()), min_size=1, max_size=25),
    st.sampled_from([0.2, 0.01]),
    st.sampled_from(list(UPPER)),
)
def test_the_value_is_where_the_least_capital_reaches_one_over_delta(
    rows: list[tuple[float, bool]], delta: float, name: str
) -> None:
    bound, metric, interval = UPPER[name]
    z, c = np.array([row[0] for row in rows]), np.array([row[1] for row in rows], float)
    found = bound(z, c, delta)
    assert found.terms["error on the samples"] == pytest.approx(metric(z, c), abs=1e-12)
    if found.value < 1:
        bets = place_bets(delta, z.size)
        assert naive.capital_of_cuts(z, c, bets, found.value, interval) >= math.log(1 / delta)
        assert naive.capital_of_cuts(z, c, bets, found.value - 2e-8, interval) < math.log(1 / delta)


@pytest.mark.parametrize("interval", [False, True])
@pytest.mark.parametrize("size", [2, 3, 7, 20])
def test_cells_never_raise_the_capital(size: int, interval: bool) -> None:
    """Cut-offs inside cells, ties across where a cell would end, and runs that are a cell of their own."""
    rng = np.random.default_rng(size)
    for n, values in ((60, 10**9), (60, 30), (120, 4), (100, 10**9)):
        z = np.sort(rng.integers(0, values + 1, n) / values)
        c = (rng.random(n) < z ** rng.choice([1.0, 1.5, 0.5])).astype(np.uint8)
        cells = np.empty((n, CELL))
        cells = cells[: cut_cells.interpreted(z, c, size, cells)]
        assert cells[:, :2].sum() == n
        bets = place_bets(0.05, n)
        for m in (0.01, 0.1, 0.3):
            exact = naive.capital_of_cuts(z, c, bets, m, interval)
            capital = log_capital_of_cuts.interpreted(cells, bets, m, interval)
            assert capital <= exact + 1e-12
            assert capital > exact - 1.5 * size


@pytest.mark.parametrize("name", UPPER)
def test_cells_cost_next_to_nothing(name: str) -> None:
    bound, _, interval = UPPER[name]
    rng = np.random.default_rng(0)
    n = 20_000
    z = np.sort(rng.beta(0.5, 1, n))
    c = (rng.random(n) < z).astype(np.uint8)
    each = np.empty((n, CELL))
    exact = largest_mean_of_cuts(each[: cut_cells(z, c, 1, each)], place_bets(0.05, n), math.log(20), interval)
    found = bound(z, c)
    assert exact < found.value < exact + 0.002 * found.terms["deviation"]


@pytest.mark.parametrize("name", UPPER)
def test_a_cut_off_inside_a_cell_counts(name: str) -> None:
    """5000 samples in cells of three: over- and underconfident ones meet where no cell ends."""
    bound, metric, _ = UPPER[name]
    n = 6001
    z = np.linspace(0.3, 0.7, n)
    for turn in (3000, 3001, 3002):
        c = (np.arange(n) < turn).astype(float)
        found = bound(z, c)
        assert found.value >= metric(z, c)
        assert found.terms["error on the samples"] == pytest.approx(metric(z, c), abs=1e-12)


@pytest.mark.parametrize("name", UPPER)
def test_at_a_small_level_nine_tenths_of_the_deviation_fail_too_often(name: str) -> None:
    bound = UPPER[name][0]
    n, delta, p = 2000, 1e-12, 0.75

    def log_rate(part: float) -> float:
        def covered(k: int) -> bool:
            upper, seen = bound(np.full(n, 0.5), np.arange(n) < k, delta).value, k / n - 0.5
            return seen + part * (upper - seen) >= p - 0.5

        return float(stats.binom.logcdf(bisect_left(range(n), True, lo=n // 2, key=covered) - 1, n, p))

    assert log_rate(1.0) <= math.log(delta)
    assert log_rate(0.9) > math.log(delta)


@pytest.mark.parametrize("bound", [ks_lower, kuiper_lower])
def test_the_lower_bounds_fail_with_at_most_a_small_level_and_with_nine_tenths_more_often(bound: Any) -> None:
    n, delta, p = 4000, 1e-12, 0.75
    tested = fold_of_each(n, 2, 0) == 1
    places = np.flatnonzero(tested)

    def log_rate(part: float) -> float:
        def fails(k: int) -> bool:
            c = (~tested).astype(
                np.uint8
            )  # the other half chooses the right sign and cut-off, as it nearly always does
            c[places[:k]] = 1
            lower, seen = bound(np.full(n, 0.5), c, delta).value, k / places.size - 0.5
            return seen + part * (lower - seen) > p - 0.5

        least = bisect_left(range(places.size), True, lo=places.size // 2, key=fails)
        return float(stats.binom.logsf(least - 1, places.size, p))

    assert log_rate(1.0) <= math.log(delta)
    assert log_rate(0.9) > math.log(delta)


def test_cut_offs_are_not_chosen_on_the_half_that_is_tested() -> None:
    """Calibrated, so nothing is to be found; an interval that fits the tested half finds something too often."""
    rng = np.random.default_rng(9)
    z = np.linspace(0.45, 0.55, 300)
    found = [kuiper_lower(z, rng.random(300) < z, 0.3, seed=seed).value > 0 for seed in range(60)]
    assert np.mean(found) < 0.2


def _skewed(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.beta(0.3, 6, n)


def _uniform(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.random(n)


def _tied(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.integers(0, 8, n) / 7


def _ends(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.choice([0.0, 0.02, 0.98, 1.0], n)


REGIMES: dict[str, tuple[Callable[..., np.ndarray], Callable[[np.ndarray], np.ndarray], int]] = {
    **{f"{name}, uniform": (_uniform, each.eta, 150) for name, each in SYNTHETIC.items()},
    **{f"{name}, tied": (_tied, each.eta, 60) for name, each in SYNTHETIC.items()},
    "rare and calibrated": (_skewed, lambda z: z, 200),
    "rare and too low": (_skewed, lambda z: np.clip(2 * z, 0, 1), 200),
    "sure and often wrong": (_ends, lambda z: np.where(z < 0.5, 0.2, 0.7), 40),
    "over below and under above": (_uniform, lambda z: np.clip(z + np.where(z < 0.5, -0.2, 0.2), 0, 1), 80),
    "one sample at a time": (_uniform, lambda z: 1 - z, 3),
}


@cache
def truth(name: str) -> tuple[float, float]:
    """KS and Kuiper errors of the population, from very many of its confidences."""
    draw, eta, _ = REGIMES[name]
    z = np.sort(draw(np.random.default_rng(99), 500_000))
    last = np.append(z[1:] != z[:-1], True)
    sums = np.concatenate(([0.0], np.cumsum(eta(z) - z)[last])) / z.size
    return float(np.abs(sums).max()), float(sums.max() - sums.min())


@pytest.mark.parametrize("name", REGIMES)
def test_all_four_hold_on_small_samples(name: str) -> None:
    draw, eta, n = REGIMES[name]
    rng, repetitions = np.random.default_rng(7), 60
    upper, lower = np.empty((repetitions, 2)), np.empty((repetitions, 2))
    for row in range(repetitions):
        z = draw(rng, n)
        c = (rng.random(n) < eta(z)).astype(np.uint8)
        upper[row] = ks(z, c, DELTA).value, kuiper(z, c, DELTA).value
        lower[row] = ks_lower(z, c, DELTA).value, kuiper_lower(z, c, DELTA).value
    true = np.array(truth(name))
    room = 0.002  # of the draws that the truth is from
    assert (np.mean(upper < true - room, axis=0) <= DELTA).all()
    assert (np.mean(lower > true + room, axis=0) <= DELTA).all()
    assert n < 10 or upper.mean() < true.max() + 0.4


def test_they_close_in_on_the_truth_as_one_over_the_root_of_n() -> None:
    rng = np.random.default_rng(4)
    excess = []
    for n in (10_000, 1_000_000):
        z = rng.random(n)
        c = rng.random(n) < z**2
        assert ks_lower(z, c).value < 1 / 6 < ks(z, c).value
        assert kuiper_lower(z, c).value < 1 / 6 < kuiper(z, c).value
        excess.append(ks(z, c).value - ks_error(z, c))
    assert excess[0] / excess[1] == pytest.approx(10, rel=0.2)


def test_the_order_of_the_samples_does_not_matter_and_float32_works() -> None:
    rng = np.random.default_rng(7)
    z = rng.random(3000).astype(np.float32)
    c = rng.random(3000) < z**2
    order = rng.permutation(3000)
    for bound in (ks, kuiper):
        assert bound(z, c) == bound(z[order], c[order])
        assert bound(z, c).value == bound(z.astype(np.float64), c).value


@pytest.mark.parametrize("outcome", [0, 1])
def test_equal_confidences_and_outcomes_have_defined_bounds(outcome: int) -> None:
    for n in (1, 2, 1000):
        for bound in (ks, kuiper):
            assert abs(0.25 - outcome) < bound(np.full(n, 0.25), np.full(n, outcome)).value <= 1
    assert abs(0.25 - outcome) - 0.05 < ks_lower(np.full(1000, 0.25), np.full(1000, outcome)).value


@pytest.mark.parametrize(("bound", "more"), [(ks, ()), (kuiper, ()), (ks_lower, (ORDER,)), (kuiper_lower, (ORDER,))])
def test_what_it_rests_on_is_said_and_one_sample_has_no_lower_bound(bound: Callable[..., Bound], more: Any) -> None:
    found = bound(np.linspace(0.1, 0.9, 50), np.arange(50) % 2)
    assert found.assumptions == (
        "samples are independent draws from the population",
        "they were not used to train, choose or recalibrate the classifier",
        *more,
    )
    if more:
        with pytest.raises(InputError, match="pass at least 2 samples"):
            bound([0.5], [1])
