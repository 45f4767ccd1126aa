"""Bounds on the binned calibration error of the population, by enumeration of every outcome where possible."""

import math
from bisect import bisect_left
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from certcal import Bound, InputError
from certcal.binning import assign, equal_width_edges
from certcal.bounds import binned, binned_lower, bounded_variation, classwise, lipschitz
from certcal.bounds._bets import SMALL_DEVIATIONS, BetPoints, place_bets, upper_limit
from certcal.bounds._binned import orders
from certcal.bounds.concentration import DEVIATIONS
from certcal.claims import ORDER
from certcal.lab.study import SYNTHETIC
from certcal.metrics import ece
from tests.bounds import naive

DELTA = 0.1


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.37, 0.5, 0.9, 1.0]), st.booleans()), min_size=1, max_size=40),
    st.sampled_from([1, 2, 10, 15]),
    st.sampled_from([0.2, 0.01]),
    st.sampled_from(["left", "right"]),
)
def test_the_value_is_where_the_least_capital_reaches_one_over_delta(
    rows: list[tuple[float, bool]], bins: int, delta: float, closed: str
) -> None:
    z, c = np.array([row[0] for row in rows]), np.array([row[1] for row in rows], float)
    bound = binned(z, c, bins, delta, closed=closed)
    where = assign(z, equal_width_edges(bins), closed)
    bets = place_bets(delta, z.size)
    observed = ece(z, c, bins, closed=closed)
    assert bound.terms["error on the samples"] == pytest.approx(observed, abs=1e-12)
    if bound.value < 1:
        # Chords make the value a little larger, never smaller.
        assert naive.least_capital(z, c, where, bets, bound.value) >= math.log(1 / delta)
        assert naive.least_capital(z, c, where, bets, bound.value - 1e-5) < math.log(1 / delta)


def test_the_chord_of_a_cell_costs_next_to_nothing() -> None:
    rng = np.random.default_rng(0)
    z = rng.random(3000)
    c = (rng.random(3000) < z).astype(float)
    value = binned(z, c).value
    where = assign(z, equal_width_edges(15), "left")
    assert naive.least_capital(z, c, where, place_bets(0.05, 3000), value) == pytest.approx(math.log(20), abs=1e-5)


@pytest.mark.parametrize(("delta", "part"), [(0.05, 0.7), (0.001, 0.8)])
def test_in_one_bin_the_bound_fails_with_at_most_delta_and_a_part_of_the_deviation_more_often(
    delta: float, part: float
) -> None:
    n, z = 100, 0.5
    counts = np.arange(n + 1)
    upper = np.array([binned(np.full(n, z), counts[:n] < k, 1, delta).value for k in counts])
    seen = np.abs(counts / n - z)
    rates, shrunk = [], []
    for p in np.linspace(0.5, 1, 101):
        chance = stats.binom.pmf(counts, n, p)
        rates.append(chance[upper < p - z].sum())
        shrunk.append(chance[seen + part * (upper - seen) < p - z].sum())
    assert max(rates) <= delta
    assert max(shrunk) > delta


def test_at_a_small_level_nine_tenths_of_the_deviation_fail_too_often() -> None:
    n, delta, p = 2000, 1e-12, 0.75
    counts = np.arange(1100, 1500)
    upper = np.array([binned(np.full(n, 0.5), np.arange(n) < k, 1, delta).value for k in counts])
    seen = counts / n - 0.5
    log_chance = stats.binom.logcdf(counts, n, p)

    def log_rate(part: float) -> float:
        below = seen + part * (upper - seen) < p - 0.5
        return float(log_chance[below].max(initial=-np.inf))

    assert log_rate(1.0) <= math.log(delta)
    assert log_rate(0.9) > math.log(delta)


@pytest.mark.parametrize(("n", "weighted"), [(60, False), (60, True), (700, False), (9000, False), (9000, True)])
def test_the_lower_value_is_where_the_mean_capital_over_orders_falls_below_one_over_delta(
    n: int, weighted: bool
) -> None:
    """Of many samples the nodes of a grid stand for them, which makes the value a little smaller, never larger."""
    rng = np.random.default_rng(n)
    z = rng.integers(0, 257, n) / 256  # so that sums are exact
    c = (rng.random(n) < z**3).astype(np.uint8)
    w = rng.choice([0.5, 1.0, 2.0], n) if weighted else None
    found = binned_lower(z, c, 7, DELTA, seed=3, sample_weight=w)
    stake = np.ones(n) if w is None else w / 2
    where = assign(z, equal_width_edges(7))
    signs = [naive.signs_before(each, where, stake * (c - z)) for each in orders(n, 3)]
    values = [each * (c - z) for each in signs]
    assert len(values) == 4
    assert found.terms["error with the signs seen before"] == pytest.approx(np.average(np.mean(values, 0), weights=w))
    bets = place_bets(DELTA, n, SMALL_DEVIATIONS if weighted else DEVIATIONS)
    assert found.value > 0
    assert naive.capital_from_below(stake, values, bets, found.value) >= math.log(1 / DELTA)
    assert naive.capital_from_below(stake, values, bets, found.value + 1e-5) < math.log(1 / DELTA)


def test_the_lower_bound_fails_with_at_most_a_small_level_and_two_per_cent_more_of_it_more_often() -> None:
    """A coin whose first tosses show the right sign: then only the number of hits counts, which is binomial."""
    n, delta, p = 4000, 1e-12, 0.1

    def fails_at(part: float) -> int:
        """The most hits with which this part of the bound is above the truth."""
        found = lambda hits: part * binned_lower(np.full(n, 0.5), late_hits(n, hits), 1, delta).value  # noqa: E731
        return bisect_left(range(400), True, lo=200, key=lambda hits: found(hits) <= 0.5 - p) - 1

    # Other signs would only lower the value: a sum that crosses 0 loses there.
    assert stats.binom.logcdf(fails_at(1.0), n, p) <= math.log(delta)
    most, rng = fails_at(1.02), np.random.default_rng(0)
    heads = rng.permuted(np.tile(np.arange(n) < most, (200, 1)), axis=1) - 0.5
    late = np.all([heads[:, order].cumsum(axis=1).max(axis=1) <= 0 for order in orders(n, 0)], axis=0)
    assert stats.binom.logcdf(most, n, p) + math.log(late.mean()) > math.log(delta)


def late_hits(n: int, hits: int) -> np.ndarray:
    """So many correct ones, late in every order of the lower bound with seed 0."""
    first = np.min([np.argsort(order) for order in orders(n, 0)], axis=0)
    return (np.argsort(np.argsort(-first)) < hits).astype(np.uint8)


def test_samples_at_the_two_ends_of_a_cell_do_not_count_as_samples_in_its_middle() -> None:
    """The first bin is one cell, whose chord is exact here; with the logarithm at the mean the value is too small."""
    edges = np.concatenate(([0.0], np.linspace(0.9, 1, 1024)))
    z, c = np.repeat([0.0, 0.0, 0.89, 0.89], [29, 11, 6, 34]), np.repeat([0.0, 1.0, 0.0, 1.0], [29, 11, 6, 34])
    for delta in (0.2, 0.01):
        value = binned(z, c, delta=delta, edges=edges).value
        one_bin = np.zeros(z.size, np.int64)
        assert naive.least_capital(z, c, one_bin, place_bets(delta, z.size), value) >= math.log(1 / delta)
        assert naive.least_capital(z, c, one_bin, place_bets(delta, z.size), value - 0.01) < math.log(1 / delta)


@pytest.mark.parametrize("z", [0.5, 205 / 1024, 3 / 1024])
def test_the_value_of_ten_billion_samples_has_the_capital_to_forty_digits(z: float) -> None:
    """So many logarithms of nearly 1 are rounded that without room for it about one limit in seven is too small."""
    n, delta = 10**10, 0.05
    bets = place_bets(delta, n)
    for k in np.random.default_rng(0).binomial(n, z, 60).tolist():
        points = np.array([[n - k, 1.0, -z, 0.0], [k, 1.0, 1 - z, 0.0]])
        limit = upper_limit(BetPoints(points, np.zeros(2, np.int64)), delta, n)
        with mpmath.workdps(40):
            at, m = mpmath.mpf(z), mpmath.mpf(limit)
            capital = mpmath.mpf(0)
            for bet in map(mpmath.mpf, bets.tolist()):
                gain = [1 - bet + bet / (1 - m) * (1 - x) for x in (1 - at, -at, at - 1, at)]  # X, then -X
                logs = [mpmath.log(each) for each in gain]
                capital += mpmath.exp(min(k * logs[0] + (n - k) * logs[1], k * logs[2] + (n - k) * logs[3]))
            assert capital / len(bets) >= 1 / mpmath.mpf(delta)


@pytest.mark.parametrize("name", ["calibrated", "monotone", "oscillating"])
def test_both_sides_hold_for_known_functions(name: str) -> None:
    each = SYNTHETIC[name]
    edges = equal_width_edges(5)
    grid = (np.arange(1_000_000) + 0.5) / 1_000_000
    true = float(np.abs((each.eta(grid) - grid).reshape(5, -1).mean(axis=1)).mean())
    rng = np.random.default_rng(3)
    upper, lower = [], []
    for _ in range(200):
        s, y = each.draw(150, rng)
        upper.append(binned(s, y, delta=DELTA, edges=edges).value)
        lower.append(binned_lower(s, y, 5, DELTA).value)
    assert np.mean(np.array(upper) < true) <= DELTA
    assert np.mean(np.array(lower) > true) <= DELTA
    assert np.mean(upper) < true + 0.2
    assert np.mean(np.array(lower) <= each.calibration_error) >= 1 - DELTA


def test_both_sides_close_in_on_the_truth() -> None:
    s, y = SYNTHETIC["monotone"].draw(200_000, np.random.default_rng(4))
    true = 1 / 6  # s² is below s everywhere, so nothing cancels within bins
    lower, upper = binned_lower(s, y).value, binned(s, y).value
    assert lower < true < upper
    assert upper - lower < 0.012


def test_ties_mass_at_the_ends_and_both_conventions_hold() -> None:
    rng = np.random.default_rng(5)
    scores, eta = np.array([0.0, 0.5, 1.0]), np.array([0.3, 0.5, 0.6])
    for closed in ("left", "right"):
        values = []
        for _ in range(200):
            chosen = rng.integers(0, 3, 300)
            values.append(binned(scores[chosen], rng.random(300) < eta[chosen], 2, DELTA, closed=closed).value)
        # 1/2 shares a bin with 1 when bins are closed on the left, with 0 when on the right; its own gap is 0.
        assert np.mean(np.array(values) < 0.7 / 3) <= DELTA
        assert np.mean(values) < 0.7 / 3 + 0.12


def test_float32_confidences_fall_into_the_bins_of_the_metric() -> None:
    z = np.array([0.1, 0.2, 0.3, 0.7, 0.9, 1.0] * 50, np.float32)
    c = np.arange(300) % 2
    for bins in (10, 15):
        assert binned(z, c, bins).terms["error on the samples"] == pytest.approx(ece(z, c, bins), abs=1e-9)


def test_more_bins_than_cells_and_repeated_edges_work() -> None:
    rng = np.random.default_rng(6)
    z = rng.random(500)
    c = rng.random(500) < z
    assert binned(z, c, 5000).terms["error on the samples"] == pytest.approx(ece(z, c, 5000), abs=1e-12)
    edges = [0, 0.5, 0.5, 1, 1]
    assert binned(z, c, edges=edges).terms["error on the samples"] == pytest.approx(ece(z, c, edges=edges), abs=1e-12)
    assert binned(z, c, edges=edges).settings == {"bins": 4, "closed": "left", "edges": "given"}


def test_the_order_of_the_samples_does_not_matter() -> None:
    rng = np.random.default_rng(7)
    z = rng.random(1000)
    c = rng.random(1000) < z**2
    order = rng.permutation(1000)
    assert binned(z, c) == binned(z[order], c[order])


@pytest.mark.parametrize("seed", range(2))
def test_the_lower_bound_holds_for_every_seed_by_itself_over_all_outcomes_of_ten_samples(seed: int) -> None:
    n, delta = 10, 0.2
    outcomes = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    found = np.array([binned_lower(np.full(n, 0.5), each, 1, delta, seed=seed).value for each in outcomes])
    hits = outcomes.sum(axis=1)
    rates = [(p**hits * (1 - p) ** (n - hits))[found > abs(p - 0.5) + 1e-12].sum() for p in np.linspace(0, 1, 101)]
    assert 0.01 < max(rates) <= delta


def test_signs_are_not_chosen_by_the_sample_that_is_tested() -> None:
    """Calibrated, so nothing is to be found; signs that fit the gaps of a hundred bins would find much."""
    rng = np.random.default_rng(9)
    z = (np.arange(1000) % 100 + 0.5) / 100
    values = [binned_lower(z, rng.random(1000) < z, 100, 1e-6, seed=seed).value for seed in range(20)]
    assert values == [0.0] * 20


@pytest.mark.parametrize("outcome", [0, 1])
def test_constant_confidences_and_equal_outcomes_have_a_defined_bound(outcome: int) -> None:
    for n in (1, 2, 1000):
        assert abs(0.25 - outcome) < binned(np.full(n, 0.25), np.full(n, outcome)).value <= 1
    assert binned_lower(np.full(1000, 0.25), np.full(1000, outcome)).value <= abs(0.25 - outcome)
    assert binned_lower(np.full(1000, 0.25), np.full(1000, outcome)).value > abs(0.25 - outcome) - 0.05


def test_a_lower_bound_that_finds_nothing_is_zero_and_says_so() -> None:
    bound = binned_lower([0.5, 0.5], [0, 1])
    assert (bound.value, bound.side, bound.settings["sum of the terms"]) == (0.0, "lower", "raised to 0")


def test_of_one_sample_the_lower_bound_is_zero() -> None:
    assert binned_lower([0.5], [1]).value == 0


# ----------------------------------------------------------------------------------------------------------- classwise


def test_classwise_bounds_spend_delta_over_the_classes_and_bound_their_mean() -> None:
    rng = np.random.default_rng(8)
    p = rng.dirichlet([1, 1, 1, 1], 4000)
    y = (p.cumsum(axis=1) < rng.random((4000, 1))).sum(axis=1)
    for bound, options in ((binned, {"bins": 7}), (bounded_variation, {}), (lipschitz, {"constant": 2.0})):
        found = classwise(bound, p, y, 0.04, **options)
        assert len(found.classes) == 4
        for k, each in enumerate(found.classes):
            assert each == bound(p[:, k], y == k, delta=0.01, **options)
        assert found.mean.delta == 0.04
        assert found.mean.value == pytest.approx(np.mean([each.value for each in found.classes]), rel=1e-12)
        assert found.mean.value >= math.fsum(each.value for each in found.classes) / 4
        assert found.mean.value == pytest.approx(sum(found.mean.terms.values()), rel=1e-12)
        assert found.to_dict()["mean"]["delta"] == 0.04


def test_the_mean_over_classes_uses_the_capped_values() -> None:
    found = classwise(bounded_variation, [[0.5, 0.5], [0.2, 0.8]], [0, 1])
    assert found.mean.value == 1.0
    assert found.mean.settings["sum of the terms"] == "capped at 1 in some classes"


def test_classwise_refuses_lower_bounds_and_bad_levels() -> None:
    with pytest.raises(InputError, match="pass an upper bound"):
        classwise(binned_lower, [[0.5, 0.5], [0.2, 0.8]], [0, 1])
    with pytest.raises(InputError, match="delta is 0; pass a probability"):
        classwise(binned, [[0.5, 0.5]], [0], 0)


@pytest.mark.parametrize(("bound", "more"), [(binned, ()), (binned_lower, (ORDER,))])
def test_what_it_rests_on_is_said(bound: Callable[..., Bound], more: tuple[str, ...]) -> None:
    found = bound(np.linspace(0.1, 0.9, 50), np.arange(50) % 2)
    assert found.assumptions == (
        "samples are independent draws from the population",
        "they were not used to train, choose or recalibrate the classifier",
        "the edges were not chosen from them",
        *more,
    )


def test_the_lower_bound_needs_an_order_that_does_not_depend_on_correctness() -> None:
    """Calibrated. With what a bin has more of first, in one of the orders, the past tells what the future will be."""
    n, bins, rng = 2000, 100, np.random.default_rng(0)
    order = next(orders(n, 0))
    z = np.full(n, 0.5) + np.arange(n) % bins * 1e-3
    edges = np.concatenate(([0.0], 0.4995 + np.arange(bins) * 1e-3, [1.0]))
    correct = rng.random(n) < z
    assert binned_lower(z, correct, edges=edges).value == 0
    rare = correct != (np.bincount(np.arange(n) % bins, correct - z) > 0)[np.arange(n) % bins]
    place = np.empty(n, np.int64)
    place[order] = np.argsort(rare, kind="stable")
    assert binned_lower(z[place], correct[place], edges=edges).value > 0.005
