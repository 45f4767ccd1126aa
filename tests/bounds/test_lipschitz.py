"""The bucketing bound for calibration functions of bounded slope."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certcal import InputError
from certcal._kernels.buckets import cell_sums, run_sums
from certcal.bounds import lipschitz
from certcal.bounds._lipschitz import _merged
from certcal.bounds._shared import bucket_gap, bucket_spread, chernoff_upper, in_order
from certcal.study import SYNTHETIC
from tests.bounds import naive

DELTA = 0.1


def edges_of(count: int, shift: float) -> np.ndarray:
    """Inner edges k/count, moved by a share of a bucket."""
    return (np.arange(count + 1) + shift) / count


@given(
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=50),
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([0, 1, 2, 3]),
)
@settings(max_examples=100, deadline=None)
def test_merged_cells_agree_with_buckets_sample_by_sample(
    rows: list[tuple[float, bool]], count: int, shift: int
) -> None:
    s, y = in_order(np.array([row[0] for row in rows]), np.array([row[1] for row in rows], np.uint8))
    cells = np.empty((32, 4))
    cell_sums(s, y, 32, cells)
    sums = _merged(cells, 32 // count, shift * (32 // (count * 4)))
    inner = [edge for edge in edges_of(count, shift / 4) if 0 < edge < 1]
    labels = np.searchsorted(inner, s, side="right")
    gap, spread = naive.bucket_bound(s, y, labels)
    assert np.array_equal(sums[:, 0], np.bincount(labels, minlength=len(inner) + 1))
    assert bucket_gap(sums, s.size) == pytest.approx(gap, abs=1e-11)
    assert bucket_spread(sums, s.size) == pytest.approx(spread, abs=1e-7)
    assert bucket_gap(sums, s.size) >= gap


def test_the_value_is_the_best_grid_plus_the_deviations_of_all() -> None:
    rng = np.random.default_rng(3)
    s = rng.random(2000)
    y = (rng.random(2000) < s).astype(np.uint8)
    bound = lipschitz(s, y, 3.0, 0.02, shifts=2)
    counts = [2**k for k in range(8)]
    assert counts[-1] >= 4 * (16 * 2000) ** (1 / 3) > counts[-2]
    found = []
    for count in counts:
        for shift in (0, 0.5) if count > 1 else (0,):
            inner = [edge for edge in edges_of(count, shift) if 0 < edge < 1]
            gap, spread = naive.bucket_bound(s, y, np.searchsorted(inner, s, side="right"))
            found.append(gap + 4 * spread)
    labels = naive.outcome_term(s, y, np.full(2000, 1 / 2000), 0.01, 2 * len(counts) - 1)
    assert bound.terms["draw of the outcomes"] == pytest.approx(labels, rel=1e-10)
    assert bound.value == pytest.approx(chernoff_upper(min(found) + labels, 2000, 0.01), rel=1e-9)
    assert bound.value >= math.fsum(bound.terms.values())


def test_the_part_without_deviations_is_attained_by_two_scores_and_the_steepest_line() -> None:
    # Scores 1/2 ± w and η falling from 1/2 + L w to 1/2 - L w: the gaps cancel in one bucket, |g| is (L + 1) w.
    n, steep, w = 1000, 4.0, 0.05
    s = np.repeat([0.5 - w, 0.5 + w], n // 2)
    y = np.concatenate((np.arange(500) < 350, np.arange(500) < 150)).astype(np.uint8)
    bound = lipschitz(s, y, steep)
    least = bound.terms["gap"] + bound.terms["change within a bucket"]
    assert (steep + 1) * w <= least * (1 + 1e-12)
    assert 0.999 * least < (steep + 1) * w


@pytest.mark.parametrize("name", SYNTHETIC)
@pytest.mark.parametrize("n", [20, 200])
def test_the_bound_holds_for_known_functions(name: str, n: int) -> None:
    rng = np.random.default_rng(0)
    each = SYNTHETIC[name]
    values = np.array(
        [lipschitz(*each.draw(n, rng), each.lipschitz, DELTA).value for _ in range(400 if n == 20 else 150)]
    )
    assert np.mean(values < each.calibration_error) <= DELTA
    assert values.min() < 1


def test_the_bound_holds_for_ties_with_mass_at_the_ends() -> None:
    rng = np.random.default_rng(1)
    scores, eta = np.array([0.0, 0.5, 1.0]), np.array([0.2, 0.5, 0.8])
    true = 0.4 / 3
    values = []
    for _ in range(500):
        chosen = rng.integers(0, 3, 1000)
        values.append(lipschitz(scores[chosen], rng.random(1000) < eta[chosen], 0.6, DELTA).value)
    assert np.mean(np.array(values) < true) <= DELTA
    assert np.mean(values) < true + 0.13


def test_the_bound_is_consistent_and_grows_with_the_constant() -> None:
    rng = np.random.default_rng(2)
    s, y = SYNTHETIC["smooth"].draw(300_000, rng)
    true = SYNTHETIC["smooth"].calibration_error
    gaps = [lipschitz(s[:n], y[:n], 2.0).value - true for n in (3000, 30_000, 300_000)]
    assert gaps[0] > 1.7 * gaps[1] > 1.7 * 1.7 * gaps[2] > 0
    values = [lipschitz(s, y, constant).value for constant in (0.5, 2, 8, 200)]
    assert values == sorted(values)
    values = [lipschitz(s, y, 2.0, delta).value for delta in (0.4, 0.05, 1e-5)]
    assert values == sorted(values)


def test_the_order_of_the_samples_does_not_matter() -> None:
    rng = np.random.default_rng(2)
    s, y = SYNTHETIC["smooth"].draw(3000, rng)
    order = rng.permutation(3000)
    assert lipschitz(s, y, 2) == lipschitz(s[order], y[order], 2)


def test_constant_scores_equal_outcomes_and_one_sample_have_a_defined_bound() -> None:
    for n in (1, 3, 1000):
        for score in (0.0, 0.3, 1.0):
            for outcome in (0, 1):
                found = lipschitz(np.full(n, score), np.full(n, outcome), 2.0)
                assert abs(score - outcome) <= found.value <= 1
                assert found.terms["change within a bucket"] < 1e-10


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([0.5], [1], 0.0), {}, "constant is 0.0; pass a positive finite number"),
        (([0.5], [1], math.inf), {}, "constant is inf; pass a positive finite number"),
        (([0.5], [1], 1.0), {"shifts": 3}, "shifts is 3; pass 1, 2, 4"),
        (([0.5], [1], 1.0), {"shifts": 0}, "shifts is 0; pass 1, 2, 4"),
        (([0.5], [1], 1.0, 2.0), {}, "delta is 2.0; it is the probability of failing"),
        (([math.nan], [1], 1.0), {}, r"scores\[0\] is nan"),
    ],
)
def test_unusable_input_is_named(arguments: tuple[object, ...], options: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        lipschitz(*arguments, **options)  # pyright: ignore


def test_the_claim_names_the_slope_it_assumes() -> None:
    bound = lipschitz(np.full(100, 0.5), np.arange(100) % 2, 1.5)
    assert "changes by at most 1.5 per unit of the score" in bound.statement
    assert bound.settings["constant"] == 1.5


@pytest.mark.parametrize("outlier", [0.1, 0.7])
def test_the_sum_of_squares_in_a_bucket_is_rounded_up_where_nearly_all_of_it_cancels(outlier: float) -> None:
    many = 30_000
    s = np.sort(np.append(np.full(many, 0.3), outlier))
    sums = np.empty((1, 4))
    run_sums(s, np.zeros(s.size, np.uint8), np.array([0, s.size]), sums)
    exact = (Fraction(outlier) - Fraction(0.3)) ** 2 * many / (many + 1)
    assert exact <= Fraction(float(sums[0, 3])) <= exact * (1 + Fraction(1, 10**6))
