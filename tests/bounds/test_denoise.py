"""Total variation denoising is exact, and the step function made of it is read correctly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certcal._kernels.denoise import denoise, design_points, held_out_gaps, variation
from tests.bounds.naive import denoised, step_function

POINTS = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 4)), min_size=1, max_size=5)


def solve(weight: list[int], total: list[int], price: float) -> np.ndarray:
    return denoise(np.array(weight, np.int32), np.array(total, np.int32), price)


@given(POINTS, st.sampled_from([0.0, 0.125, 0.3, 0.5, 1.0, 1.7, 4.0, 100.0]))
@settings(max_examples=75)
def test_denoising_agrees_with_the_enumeration_of_all_patterns(points: list[tuple[int, int]], price: float) -> None:
    weight, total = [w for w, _ in points], [min(w, t) for w, t in points]
    assert np.abs(solve(weight, total, price) - denoised(weight, total, price)).max() < 1e-9


@pytest.mark.parametrize("price", [0.2, 3.0, 80.0, 1500.0])
@pytest.mark.parametrize("most", [1, 5])
def test_large_problems_satisfy_the_conditions_of_optimality(price: float, most: int) -> None:
    # Convex, so these are sufficient: dual variables within ±price, at the end 0, and at ±price where the values move.
    rng = np.random.default_rng(0)
    n = 200_000
    weight = rng.integers(1, most + 1, n)
    total = rng.binomial(weight, 0.5 + 0.4 * np.sin(np.linspace(0, 20, n)))
    values = solve(weight.tolist(), total.tolist(), price)
    dual = np.cumsum(weight * values - total)
    steps = np.diff(values)
    moves = np.sign(steps) * (np.abs(steps) > 1e-12)  # pieces of equal value differ by rounding
    room = 1e-12 * weight.sum()  # rounding of the running sums in this test
    assert abs(dual[-1]) < room
    assert np.abs(dual).max() <= price + room
    assert np.abs(dual[:-1] - price * moves)[moves != 0].max(initial=0) < room
    assert values.min() >= 0
    assert values.max() <= 1


def test_without_a_price_nothing_changes_and_a_high_price_leaves_the_mean() -> None:
    assert solve([1, 2, 1], [1, 0, 1], 0.0).tolist() == [1.0, 0.0, 1.0]
    assert solve([1, 2, 1], [1, 0, 1], 10.0).tolist() == [0.5, 0.5, 0.5]
    assert solve([4], [1], 3.0).tolist() == [0.25]


def test_runs_of_equal_observations_cost_no_more_than_one_heavy_point() -> None:
    rng = np.random.default_rng(1)
    weight = rng.integers(1, 6, 300)
    total = rng.integers(0, 2, 300) * weight
    spread = solve([1] * int(weight.sum()), np.repeat(total // weight, weight).tolist(), 2.5)
    assert np.allclose(spread, np.repeat(solve(weight.tolist(), total.tolist(), 2.5), weight), atol=1e-12)


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.booleans()), min_size=2, max_size=30))
@settings(max_examples=50)
def test_equal_scores_are_one_design_point_and_held_out_scores_take_the_value_below_them(
    rows: list[tuple[int, bool, bool]],
) -> None:
    rows = sorted(rows)
    s = np.array([row[0] / 5 for row in rows])
    y = np.array([row[1] for row in rows], np.uint8)
    fold = np.array([row[2] for row in rows], np.uint8)
    fold[0], fold[-1] = 0, 1
    weight, total = np.empty(s.size + 1, np.int32), np.empty(s.size + 1, np.int32)
    m = design_points(s, y, fold, 1, weight, total)
    design = np.unique(s[fold == 0])
    assert weight[1 : m + 1].tolist() == [int(np.sum((s == x) & (fold == 0))) for x in design]
    assert total[1 : m + 1].tolist() == [int(np.sum(y[(s == x) & (fold == 0)])) for x in design]
    values = np.linspace(0.1, 0.9, m)
    number, gaps, squares = held_out_gaps(s, fold, 1, values)
    held_out = s[fold == 1]
    expected = np.abs(held_out - step_function(held_out, design, values))
    assert number == expected.size
    assert gaps == pytest.approx(expected.sum(), abs=1e-12)
    assert squares == pytest.approx((expected**2).sum(), abs=1e-12)
    assert variation(values) == pytest.approx(values[-1] - values[0], abs=1e-15)
