"""Fits of outcomes by functions that are analytic near the real line."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from certcal._kernels.buckets import run_sums
from certcal.bounds import _smooth, perturb, smooth
from certcal.bounds._analytic import (
    NarrowCells,
    Pieces,
    cut_in_pieces,
    distance_bound,
    fit_pieces,
    group_in_cells,
    interpolating,
    optimal_nodes,
)
from certcal.bounds._shared import outcome_term, places, sort_pairs
from certcal.bounds.concentration import chernoff_upper
from tests.bounds import naive_smooth as naive
from tests.bounds.test_smooth import populations

DELTA = 0.1


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.02, 0.1, 0.5]),
    st.integers(1, 25),
    st.booleans(),
)
def test_no_calibration_function_is_farther_from_its_interpolation_than_claimed(
    seed: int, h: float, count: int, sure: bool
) -> None:
    rng = np.random.default_rng(seed)
    original, mass = rng.random(6), rng.dirichlet(np.full(6, 0.5))
    probability = rng.integers(0, 2, 6).astype(float) if sure else rng.random(6)
    nodes = optimal_nodes(0, 1, count, h) if seed % 2 else np.sort(rng.random(count))
    if count > 1 and np.diff(nodes).min() < 1e-3 * h:  # nodes that nearly coincide lose digits, here as in the twin
        return
    x = np.linspace(0, 1, 301)
    values, product = interpolating(x, nodes, h)
    eta, at_nodes = (naive.calibration_of_atoms(each, original, probability, mass, h) for each in (x, nodes))
    off = np.abs(eta - 0.5 - values @ (at_nodes - 0.5))
    spread = 2 * np.sqrt(np.clip(eta * (1 - eta), 0, None))
    room = 1e-10 * (1 + np.abs(values).sum(axis=1))
    assert np.all(off <= product * (spread + product * np.abs(eta - 0.5)) + room)
    assert np.all(off <= distance_bound(product) + room)


def test_scores_whose_outcomes_alternate_are_as_far_from_their_interpolation_as_claimed() -> None:
    h, apart = 0.1, 0.09
    atoms = np.arange(-200, 201) * apart
    middles = atoms[:-1] + apart / 2  # there η is ½
    x = np.linspace(-1, 1, 401)
    ones = (np.arange(401) % 2).astype(float)
    eta = naive.calibration_of_atoms(x, atoms, ones, np.full(401, 1 / 401), h)
    inside = np.abs(middles) < 10
    _, product = interpolating(x, middles[inside], h)
    claimed = distance_bound(product)
    away = product > product.max() / 10
    assert np.all(np.abs(eta - 0.5) <= claimed + 1e-12)
    assert np.all(np.abs(eta - 0.5)[away] > 0.99 * claimed[away])


def test_the_functions_interpolate_and_agree_with_every_factor_written_out() -> None:
    nodes = optimal_nodes(0.1, 0.9, 12, 0.1)
    values, product = interpolating(nodes, nodes, 0.1)
    np.testing.assert_allclose(values, np.eye(12), atol=1e-12)
    np.testing.assert_allclose(product, 0, atol=1e-100)
    x = np.random.default_rng(1).random(30)
    for fast, slow in zip(interpolating(x, nodes, 0.1), naive.interpolating(x, nodes, 0.1), strict=True):
        np.testing.assert_allclose(fast, slow, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("length", [0.0, 1e-3, 0.3, 3.0, 60.0])
def test_the_product_at_optimal_nodes_is_as_small_as_is_expected(length: float) -> None:
    for count in (4, 20, 100):
        expected = 2 * math.exp(-(math.pi**2) * count / (4 * (length / 2 + math.log(2))))
        if expected > 1e-12:
            _, product = interpolating(np.linspace(0, length, 4001), optimal_nodes(0, length, count, 1.0), 1.0)
            assert product.max() < 1.6 * expected


def some_cells(rng: np.random.Generator, n: int, h: float, *, logit: bool = False) -> tuple[NarrowCells, np.ndarray]:
    """Samples of which each has a cell for itself, and their outcomes."""
    scores = np.sort(rng.beta(1, 2, n))
    where = places(scores, "logit" if logit else "probability", 0.5 / h)
    sample = sort_pairs(scores, (rng.random(n) < scores).astype(np.uint8))
    cells = group_in_cells(sample, where, 1e-9)
    assert cells.place.size == n
    return cells, sample.outcomes.astype(float)


@pytest.mark.parametrize("logit", [False, True])
def test_every_part_of_a_fit_is_its_formula(logit: bool) -> None:
    rng = np.random.default_rng(2)
    n, h, count = 150, 0.1, 9
    cells, y = some_cells(rng, n, h, logit=logit)
    fast = fit_pieces(cells, Pieces(np.zeros(1, np.int64), np.full(1, count), 0.0), h)
    nodes = optimal_nodes(cells.place[0], cells.place[-1], count, h)
    slow = naive.projection(cells.place, cells.score, nodes, h)
    spread, errors = np.sum(1 / slow.weights), (y - cells.score) ** 2
    signs = slow.matrix.T * np.sqrt(slow.weights)  # of a vector of length √Σv
    assert fast.gap == pytest.approx(np.mean(np.abs(cells.score - 0.5 - slow.matrix @ (y - 0.5))), rel=1e-5)
    assert fast.bias == pytest.approx(math.sqrt(spread * np.sum(slow.weights * slow.far**2)) / n, rel=1e-3)
    assert fast.squares == pytest.approx(np.linalg.norm(slow.matrix, 2) ** 2 / n, rel=3e-4)
    assert fast.errors == pytest.approx(
        spread * np.linalg.norm(np.sqrt(errors)[:, None] * signs, 2) ** 2 / n**2, rel=3e-4
    )
    exactly = np.abs(slow.matrix).sum(axis=0).max() / n
    assert exactly < fast.largest < 2 * exactly


def test_no_signs_and_no_calibration_function_exceed_what_a_fit_allows_for() -> None:
    rng = np.random.default_rng(3)
    n, h = 400, 0.05
    cells, y = some_cells(rng, n, h)
    nodes = np.array([12, 0, 14])
    starts = np.array([0, 180, 200])
    fast = fit_pieces(cells, Pieces(starts, nodes, 0.0), h)
    matrix = np.eye(n)
    for start, stop, count in ((0, 180, 12), (200, n, 14)):
        place, score = cells.place[start:stop], cells.score[start:stop]
        part = naive.projection(place, score, optimal_nodes(place[0], place[-1], count, h), h)
        matrix[start:stop, start:stop] = part.matrix
    errors = (y - cells.score) ** 2
    for k in range(60):
        atoms, sure = rng.random(40), rng.integers(0, 2, 40).astype(float)
        eta = naive.calibration_of_atoms(cells.place, atoms, sure, rng.dirichlet(np.full(40, 0.3)), h)
        assert np.mean(np.abs((np.eye(n) - matrix) @ (eta - 0.5))) <= fast.bias
        signs = np.sign(eta - cells.score) if k % 2 else rng.choice([-1.0, 1.0], n)
        a = matrix.T @ signs / n
        assert a @ a <= fast.squares
        assert errors @ a**2 <= fast.errors
        assert np.abs(a).max() <= fast.largest


def test_cells_change_a_fit_by_no_more_than_they_pay_for() -> None:
    rng = np.random.default_rng(4)
    n, h = 4000, 0.1
    s = np.sort(rng.random(n))
    sample = sort_pairs(s, (rng.random(n) < s**2).astype(np.uint8))
    where = places(sample.scores, "probability", 0.5 / h)
    one = Pieces(np.zeros(1, np.int64), np.full(1, 12), 0.0)
    coarse, fine = group_in_cells(sample, where, h), group_in_cells(sample, where, 1e-9)
    assert coarse.place.size < n / 2 < fine.place.size == n
    both = [fit_pieces(each, one, h) for each in (coarse, fine)]
    assert both[0].gap == pytest.approx(both[1].gap, rel=1e-3)
    assert both[1].bias < both[0].bias < both[1].bias + 0.5 / h * math.sqrt(coarse.within.sum() / n) * 1.2
    assert both[0].squares == pytest.approx(both[1].squares, rel=1e-3)
    assert both[0].errors == pytest.approx(both[1].errors, rel=1e-3)


def test_pieces_cover_the_scores_and_are_none_where_samples_are_too_few() -> None:
    rng = np.random.default_rng(5)
    s = np.concatenate((rng.random(20_000) * 0.5, [0.7, 0.9]))
    for h, together in ((0.01, True), (1e-7, False)):
        sample = sort_pairs(s, np.zeros(s.size, np.uint8))
        cells = group_in_cells(sample, places(sample.scores, "probability", 0.5 / h), h)
        pieces = cut_in_pieces(cells, h)
        assert pieces.starts[0] == 0
        assert np.all(np.diff(pieces.starts) > 0)
        assert pieces.starts.size == pieces.nodes.size
        assert bool(pieces.nodes[0] > 0) is together
        lengths = cells.place[np.append(pieces.starts[1:], cells.place.size) - 1] - cells.place[pieces.starts]
        assert lengths.max() <= 64 * h


@pytest.mark.parametrize("h", [1e-9, 1e-6, 1000.0])
def test_very_little_and_very_much_noise_leave_a_bound_that_is_not_wasteful(h: float) -> None:
    rng = np.random.default_rng(11)
    s = rng.random(20_000)
    y = rng.random(s.size) < (0.5 if h > 1 else s)
    rough = 0.25 if h > 1 else 1 / 3  # of a constant, or of every outcome by itself
    assert rough < smooth(s, y, h).value < rough + 0.03


def test_which_fit_is_taken_depends_on_scores_only() -> None:
    rng = np.random.default_rng(6)
    many, sure = perturb(rng.random(20_000), 0.05, 1), perturb(1 - rng.random(2000) * 0.01, 0.01, 1)
    for scores, fit in ((many, "nodes"), (sure, "smoothing")):
        used = [
            smooth(scores, outcomes, h).settings[fit]
            for h in (0.05 if fit == "nodes" else 0.01,)
            for outcomes in (np.zeros(scores.size), scores > 0.5, rng.random(scores.size) < scores)
        ]
        assert used[0] == used[1] == used[2]


def test_the_default_is_the_sum_of_the_parts_of_the_fit() -> None:
    rng = np.random.default_rng(7)
    n, h, delta = 3000, 0.05, 0.02
    s = np.sort(rng.random(n))
    y = (rng.random(n) < s).astype(np.uint8)
    sample = sort_pairs(s, y)
    cells = group_in_cells(sample, places(sample.scores, "probability", 0.5 / h), h)
    fit = fit_pieces(cells, cut_in_pieces(cells, h), h)
    drawn = outcome_term(delta / 2, 1, fit.squares, fit.errors, fit.largest)
    bound = smooth(s, y, h, delta)
    assert "nodes" in bound.settings
    assert list(bound.terms.values())[:3] == pytest.approx([fit.gap, fit.bias, drawn], rel=1e-9)
    assert bound.value == pytest.approx(chernoff_upper(fit.gap + fit.bias + drawn, n, delta / 2), rel=1e-9)


@pytest.mark.parametrize("h", [0.25, 0.03])
@pytest.mark.parametrize("name", list(populations()))
def test_the_bound_holds_as_often_as_it_says(name: str, h: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_smooth, "TYPICAL_SQUARES", 0.0)  # so that the analytic fit is taken, even if it is no better
    monkeypatch.setattr(_smooth, "TYPICAL_LARGEST", 0.0)
    values, probability, mass = populations()[name]
    rng = np.random.default_rng(8)
    truth = naive.perturbed_calibration_error(values, probability, mass, h)
    repetitions, failures, found = 20, 0, []
    for _ in range(repetitions):
        drawn = rng.choice(values.size, 400, p=mass)
        bound = smooth(perturb(values[drawn], h, rng), rng.random(400) < probability[drawn], h, DELTA)
        failures += bound.value < truth
        found.append("nodes" in bound.settings)
    assert failures <= repetitions * DELTA
    assert all(found)


def test_on_the_logit_scale_rare_outcomes_are_fitted_too() -> None:
    rng = np.random.default_rng(9)
    n = 50_000
    s = expit(rng.normal(-3, 1, n))
    p = perturb(s, 0.1, 1, scale="logit")
    y = rng.random(n) < s
    bound = smooth(p, y, 0.1, scale="logit")
    assert "nodes" in bound.settings
    assert bound.value < 0.8 * smooth(p, y, 0.1, scale="logit", smoothing=0.04).value


def test_the_bound_falls_nearly_like_one_over_the_root_of_the_number_of_samples() -> None:
    rng = np.random.default_rng(10)
    values = []
    for n in (10_000, 160_000):
        s = perturb(rng.random(n), 2**-5, rng)
        values.append(smooth(s, rng.random(n) < s, 2**-5).value)
    assert values[1] < 1.25 * values[0] / 4


@pytest.mark.parametrize("outlier", [0.1, 0.7])
def test_the_sum_of_squares_in_a_bucket_is_rounded_up_where_nearly_all_of_it_cancels(outlier: float) -> None:
    many = 30_000
    s = np.sort(np.append(np.full(many, 0.3), outlier))
    sums = np.empty((1, 4))
    run_sums(s, np.zeros(s.size, np.uint8), np.array([0, s.size]), sums)
    exact = (Fraction(outlier) - Fraction(0.3)) ** 2 * many / (many + 1)
    assert exact <= Fraction(float(sums[0, 3])) <= exact * (1 + Fraction(1, 10**6))
