"""Certified maps with one and two parameters: the least score of their family, with a gap that is proved."""

import json
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit

from certcal import InputError
from certcal._kernels.map_losses import _least_bend
from certcal.calibrators import (
    CertifiedBeta,
    CertifiedIsotonic,
    CertifiedSamples,
    CertifiedTemperature,
    NotFittedError,
    certified_path,
)
from certcal.calibrators import _search as searching
from certcal.calibrators._certified import BrierTerms
from certcal.calibrators._search import BoxRows, least_of_quadratic, search
from certcal.worst_case import calibration_error
from tests.calibrators import naive_certified as naive

BOTH = pytest.mark.parametrize("kind", [CertifiedTemperature, CertifiedBeta])


def drawn(n, seed, width=0.1, share=None):
    """Samples whose confidences are too high; with ``share``, some at exactly 0 and 1."""
    rng = np.random.default_rng(seed)
    z = expit(rng.normal(1.5, 1.5 + seed % 3, n))
    correct = (rng.random(n) < expit(0.6 * np.log(z / (1 - z)) - 0.3)).astype(np.uint8)
    lower, upper = np.maximum(z - width * rng.random(n), 0), np.minimum(z + width * rng.random(n), 1)
    if share:
        lower[rng.random(n) < share], upper[rng.random(n) < share] = 0.0, 1.0
    return lower, upper, correct, z


def points_of(arguments, tradeoff):
    return BrierTerms.of(CertifiedSamples.from_intervals(*arguments)).at(tradeoff)


def score(points, slope, intercept):
    """Of one map, by its formula."""
    x = np.clip(points.x, 2.0**-24, 1 - 2.0**-24)
    return points.score(expit(slope * (np.log(x) - np.log1p(-x)) + intercept))


def slope_of(made):
    return made.slope_ if isinstance(made, CertifiedBeta) else 1 / made.temperature_


def random_rows(seed, n=60):
    rng = np.random.default_rng(seed)
    places = np.sort(3 * rng.standard_normal(n))
    correct = rng.random(n) < expit(places)
    weight = rng.dirichlet(np.ones(n))
    both = rng.random(n) < 0.2
    return places, weight * np.where(both, 0.3, correct), weight * np.where(both, 0.7, ~correct)


# --------------------------------------------------------------------------------------------------------- the optimum


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("tradeoff", [0.0, 0.5, 1.0])
def test_no_temperature_of_a_fine_grid_is_better_than_the_gap_allows(seed, tradeoff):
    arguments = drawn(80, seed, share=0.1 if seed > 2 else None)
    made = CertifiedTemperature(tradeoff).fit(*arguments)
    points = points_of(arguments, tradeoff)
    grid = np.concatenate([[0.0], np.logspace(-3, 3, 3001)])
    least = min(score(points, slope, 0.0) for slope in grid)
    assert made.objective_ - made.gap_ <= least + 1e-12
    assert made.objective_ <= least + 1e-7
    assert 0 <= made.gap_ <= 1e-7
    assert made.objective_ == pytest.approx(score(points, slope_of(made), 0.0), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("tradeoff", [0.0, 0.7, 1.0])
def test_no_map_of_a_grid_or_of_a_local_solver_is_better_than_the_gap_allows(seed, tradeoff):
    arguments = drawn(60, seed, share=0.1 if seed > 1 else None)
    made = CertifiedBeta(tradeoff).fit(*arguments)
    points = points_of(arguments, tradeoff)
    grid = [(a, c) for a in [0.0, *np.logspace(-2, 2, 25)] for c in np.linspace(-5, 5, 41)]
    starts = sorted(grid, key=lambda pair: score(points, *pair))
    local = minimize(lambda v: score(points, *v), starts[0], bounds=[(0, 1000), (-1e4, 1e4)], tol=1e-12)
    least = min(score(points, *starts[0]), local.fun)
    assert made.objective_ - made.gap_ <= least + 1e-12
    assert made.objective_ <= least + 1e-7
    assert 0 <= made.gap_ <= 1e-7


@BOTH
def test_many_places_are_searched_as_exactly_as_few(kind):
    """Enough for both coarser problems, and an order of samples that changes no bit."""
    arguments = drawn(6000, 1)
    made = kind(0.5).fit(*arguments)
    assert made.gap_ <= 1e-7
    points = points_of(arguments, 0.5)
    intercept = getattr(made, "intercept_", 0.0)
    for slope, more in [(1.02, 0.0), (0.98, 0.0), *([(1, 0.02), (1, -0.02)] if kind is CertifiedBeta else [])]:
        assert score(points, slope * slope_of(made), intercept + more) > made.objective_ + 1e-7
    order = np.random.default_rng(0).permutation(6000)
    assert kind(0.5).fit(*(each[order] for each in arguments)).to_dict() == made.to_dict()


def test_the_least_of_several_local_minima_is_found():
    """Samples near 0 want a steep map and those further away a flat one: between the two the score rises."""
    places = np.array([-1.48, -0.05, 0.03, 0.84])
    right, wrong = np.array([0.07, 0.05, 0.18, 0.04]), np.array([0.11, 0.49, 0.0, 0.06])
    grid = np.logspace(-3, 3, 4001)
    values = np.array([np.sum(right * expit(-a * places) ** 2 + wrong * expit(a * places) ** 2) for a in grid])
    minima = np.flatnonzero((values[1:-1] < values[:-2]) & (values[1:-1] <= values[2:])) + 1
    assert minima.size >= 2
    found = search(places, right, wrong, np.array([0.0, 0.0]), np.array([1000.0, 0.0]), 1e-9)
    assert found.value <= values.min() + 1e-9
    assert found.value < np.sort(values[minima])[1] - 0.03


@pytest.mark.parametrize("seed", range(3))
def test_two_parameters_are_between_all_monotone_maps_and_what_they_contain(seed):
    arguments = drawn(300, seed)
    points = points_of(arguments, 0.5)
    beta, temperature = CertifiedBeta(0.5).fit(*arguments), CertifiedTemperature(0.5).fit(*arguments)
    isotonic = points.score(CertifiedIsotonic(0.5).fit(*arguments).transform(points.x))
    share = float(points.right.sum())
    assert isotonic <= beta.objective_ + 1e-12
    assert beta.objective_ <= temperature.objective_ + 1e-7
    assert beta.objective_ <= share * (1 - share) + 1e-7
    assert temperature.objective_ <= min(score(points, 1.0, 0.0), 0.25) + 1e-7


@pytest.mark.parametrize("method", ["temperature", "beta"])
def test_along_the_path_clean_rises_and_certified_falls(method):
    samples = CertifiedSamples.from_intervals(*drawn(300, 0, width=0.4))
    ends = [BrierTerms.of(samples).at(level) for level in (0, 1)]
    made = certified_path(samples, [0, 0.25, 0.5, 0.75, 1], method=method)
    clean, certified = np.array([[part.score(each.transform(part.x)) for part in ends] for each in made]).T
    assert (np.diff(clean) >= -4e-7).all()
    assert (np.diff(certified) <= 4e-7).all()
    assert certified[0] > certified[-1] + 1e-3


# ------------------------------------------------------------------------------------------------------------- the gap


@given(st.integers(0, 10**6), st.floats(0, 20), st.floats(0, 5), st.floats(-8, 8), st.floats(0, 8))
def test_the_bounds_of_a_box_are_below_every_value_in_it(seed, slope, wide, offset, tall):
    places, right, wrong = random_rows(seed)
    low, high = np.array([slope, offset]), np.array([slope + wide, offset + tall])
    at = low + np.random.default_rng(seed).random(2) * (high - low)
    inside = low + np.random.default_rng(seed + 1).random((40, 2)) * (high - low)
    inside = np.concatenate([inside, [low, high, at], [[low[0], high[1]], [high[0], low[1]]]])
    values = [np.sum(right * expit(-(a * places + q)) ** 2 + wrong * expit(a * places + q) ** 2) for a, q in inside]
    rows = searching._finest(places, right, wrong)
    for level in (rows, searching._coarser(places, right, wrong, 7)):
        seen = level.look(low[None], high[None], at[None])
        assert seen[0, 6] <= min(values) + 1e-13
        change, _ = least_of_quadratic(seen[:, 1:3], seen[:, 3:6], (low - at)[None], (high - at)[None])
        assert seen[0, 0] + change[0] <= min(values) + 1e-13
        assert seen[0, 0] <= values[-3] + 1e-13  # a coarser problem is below the others everywhere
    assert rows.look(low[None], high[None], at[None])[0, 0] == pytest.approx(values[-3], abs=1e-13)


def test_the_least_curvature_of_a_range_is_found_at_its_ends_or_inside():
    ends = np.linspace(0.001, 0.999, 60)
    for low in ends:
        for high in ends[ends >= low]:
            s = np.linspace(low, high, 200)
            inside = np.min(2 * s**2 * (1 - s) * (2 - 3 * s))
            assert inside - 1e-4 <= _least_bend(low, high) <= inside + 1e-15


@pytest.mark.parametrize("seed", range(5))
def test_slopes_are_those_of_finite_differences_and_curvature_at_a_point_is_the_hessian(seed):
    places, right, wrong = random_rows(seed)
    rows, at, step = searching._finest(places, right, wrong), np.array([0.8, -0.3]), 1e-5

    def look(a, q):
        point = np.array([[a, q]])
        return rows.look(point, point, point)[0]

    here = look(*at)
    moved = [(look(*(at + move)) - look(*(at - move))) / (2 * step) for move in step * np.eye(2)]
    np.testing.assert_allclose([each[0] for each in moved], here[1:3], atol=1e-9)
    np.testing.assert_allclose(
        [moved[0][1], moved[0][2], moved[1][1], moved[1][2]], [here[3], here[4], here[4], here[5]], atol=1e-9
    )


@given(
    st.lists(st.floats(-5, 5), min_size=5, max_size=5),
    st.lists(st.floats(0, 3), min_size=4, max_size=4),
    st.booleans(),
)
def test_the_least_value_of_a_quadratic_over_a_rectangle_is_below_all_others(numbers, reach, singular):
    g, k = np.array([numbers[:2]]), np.array([numbers[2:]])
    if singular:
        k[0, 2] = k[0, 1] ** 2 / k[0, 0] if k[0, 0] > 0.1 else 0.0
    low, high = -np.array([reach[:2]]), np.array([reach[2:]])
    found, where = least_of_quadratic(g, k, low, high)
    x, y = np.meshgrid(np.linspace(low[0, 0], high[0, 0], 41), np.linspace(low[0, 1], high[0, 1], 41))
    (aa, ab, bb), (g0, g1) = k[0], g[0]
    values = g0 * x + g1 * y + 0.5 * (aa * x * x + bb * y * y) + ab * x * y
    assert found[0] <= values.min() + 1e-9
    assert (low <= where).all()
    assert (where <= high).all()
    a, b = where[0]
    assert found[0] == pytest.approx(g0 * a + g1 * b + 0.5 * (aa * a * a + bb * b * b) + ab * a * b, abs=1e-6)


@pytest.mark.parametrize("tolerance", [1e-1, 1e-2, 1e-4])
@BOTH
def test_a_coarse_search_says_how_coarse_it_is(kind, tolerance):
    for seed in range(3):
        arguments = drawn(100, seed)
        fine, coarse = kind(1).fit(*arguments), kind(1, tolerance=tolerance).fit(*arguments)
        assert coarse.objective_ - coarse.gap_ <= fine.objective_
        assert coarse.gap_ <= tolerance


@BOTH
def test_a_search_that_ends_away_from_the_best_map_says_how_far_that_may_be(kind, monkeypatch):
    """Without its steps downhill it stops at the first point that is good enough."""

    def stay(rows, start, low, high):
        return start, float(rows.look(start[None], start[None], start[None])[0, 0])

    arguments = drawn(100, 0)
    fine = kind(1).fit(*arguments)
    monkeypatch.setattr(searching, "_descend", stay)
    coarse = kind(1, tolerance=1e-3).fit(*arguments)
    assert fine.objective_ + 1e-6 < coarse.objective_
    assert coarse.objective_ - coarse.gap_ <= fine.objective_
    assert coarse.gap_ <= 1e-3


def test_a_search_that_runs_out_of_time_says_how_far_it_got(monkeypatch):
    arguments = drawn(400, 0)
    fine = CertifiedBeta(1).fit(*arguments)
    monkeypatch.setattr(searching, "_BUDGET", 20_000)
    short = CertifiedBeta(1).fit(*arguments)
    assert short.gap_ > 1e-7
    assert short.objective_ - short.gap_ <= fine.objective_ - fine.gap_ + 1e-12
    assert short.objective_ >= fine.objective_ - 1e-12


# ----------------------------------------------------------------------------------------------------- what it carries


@given(
    st.sampled_from([0.0, 1e-3, 0.7, 30.0, 1000.0]),
    st.floats(-20, 20),
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=20),
)
def test_mapped_intervals_hold_the_mapped_value_of_anything_inside(slope, middle, triples):
    ends = np.sort([pair[:2] for pair in triples], axis=1)
    inside = ends[:, 0] + np.array([part for _, _, part in triples]) * (ends[:, 1] - ends[:, 0])
    beta, temperature = CertifiedBeta(), CertifiedTemperature()
    more = {"slope": slope, "objective": 0.1, "gap": 0.0}
    beta._restore({**more, "intercept": -slope * middle})
    temperature._restore(more)
    for made in (beta, temperature):
        low, high = made.intervals(ends[:, 0], ends[:, 1])
        for z in (inside, np.nextafter(ends[:, 0], 2), np.nextafter(ends[:, 1], -1)):
            mapped = made.transform(np.clip(z, ends[:, 0], ends[:, 1]))
            assert (low <= mapped).all()
            assert (mapped <= high).all()
        assert (high - made.transform(ends[:, 1])).max() < 1e-6


@pytest.mark.parametrize(("slope", "intercept"), [(0.37, 0.1), (1.0, 0.0), (30.0, -35.0), (1000.0, -1100.0)])
def test_mapped_ends_hold_the_map_without_rounding(slope, intercept):
    made = CertifiedBeta()
    made._restore({"slope": slope, "intercept": intercept, "objective": 0.1, "gap": 0.0})
    z = np.random.default_rng(0).uniform(0.74, 0.76, 200)
    low, high = made.intervals(z, z)
    outside = 0
    with localcontext() as context:
        context.prec = 50
        for each, under, value, over in zip(z.tolist(), low, made.transform(z), high, strict=True):
            odds = (Decimal(each) / (1 - Decimal(each))).ln()
            exact = 1 / (1 + (-(Decimal(slope) * odds + Decimal(intercept))).exp())
            assert Decimal(float(under)) <= exact <= Decimal(float(over))
            outside += Decimal(float(value)) != exact
    assert outside > 100  # so ends that were not moved would not do


def test_a_constant_map_has_intervals_of_one_value_also_on_an_edge_of_bins():
    """Ends moved outward would let an attack choose between two bins."""
    made = CertifiedBeta(1).fit(np.zeros(5), np.ones(5), [1, 1, 1, 1, 0])
    assert made.slope_ == 0
    low, high = made.intervals(np.zeros(50), np.ones(50))
    np.testing.assert_array_equal(low, high)
    assert low[0] == pytest.approx(0.8, abs=1e-6)
    assert calibration_error(low, high, [1, 1, 1, 1, 0] * 10, bins=5).value < 1e-6


# ---------------------------------------------------------------------------------------------------------- degenerate


def test_wide_intervals_make_the_best_maps_constant():
    _, _, correct, z = drawn(200, 0)
    made = CertifiedBeta(1).fit(np.zeros(200), np.ones(200), correct)
    assert made.slope_ == 0
    assert made.transform([0, 1]) == pytest.approx(correct.mean(), abs=1e-6)
    temperature = CertifiedTemperature(1).fit(np.zeros(200), np.ones(200), correct)
    assert temperature.temperature_ == np.inf
    assert temperature.transform([0, z[0], 1]).tolist() == [0.5] * 3
    assert json.dumps(temperature.to_dict(), allow_nan=False)


@pytest.mark.parametrize("outcome", [0, 1])
@pytest.mark.parametrize("n", [1, 6])
def test_one_class_only_is_fitted_to_a_score_of_nothing_by_two_parameters(outcome, n):
    z = np.linspace(0.3, 0.9, n)
    made = CertifiedBeta(0.5).fit(z - 0.1, z + 0.1, np.full(n, outcome), z)
    assert made.objective_ <= 1e-7
    assert np.abs(made.transform(z) - outcome).max() < 0.01


@BOTH
def test_one_place_for_all_samples_is_fitted(kind):
    made = kind(1).fit([0.7] * 10, [0.7] * 10, [1] * 8 + [0] * 2)
    assert made.transform([0.7]).item() == pytest.approx(0.8, abs=1e-3)


@BOTH
def test_bad_input_is_refused_in_one_sentence(kind):
    with pytest.raises(NotFittedError, match="call fit first"):
        kind().transform([0.5])
    with pytest.raises(InputError, match=r"tolerance is 0\.0; pass a positive finite number"):
        kind(tolerance=0.0).fit(*drawn(20, 0))
    with pytest.raises(InputError, match="confidence is missing"):
        kind(0.5).fit(*drawn(20, 0)[:3])
    with pytest.raises(InputError, match=r"upper\[0\] is nan"):
        kind(1).fit([0.1], [np.nan], [1])


def test_a_temperature_is_asked_for_after_fit_only():
    with pytest.raises(NotFittedError, match="CertifiedTemperature is not fitted"):
        _ = CertifiedTemperature().temperature_


def test_the_formula_is_that_of_the_twin():
    made = CertifiedBeta(0.5).fit(*drawn(50, 0))
    g = naive.logistic(made.slope_, made.intercept_)
    z = np.array([0, 1e-12, 0.01, 0.3, 0.999, 1 - 1e-12, 1])
    np.testing.assert_allclose(made.transform(z), [g(each) for each in z], atol=1e-12)


def test_rows_are_shared_among_threads_without_changing_a_bit():
    places, right, wrong = random_rows(3, 500)
    rows = searching._finest(places, right, wrong)
    rng = np.random.default_rng(0)
    low = np.abs(rng.standard_normal((200, 2)))
    together = rows.look(low, low + 1, low)
    alone = np.concatenate([rows.look(each[None], each[None] + 1, each[None]) for each in low])
    np.testing.assert_array_equal(together, alone)
    assert isinstance(rows, BoxRows)
