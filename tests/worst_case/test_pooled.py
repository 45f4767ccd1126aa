"""The worst case when a sum of the intervals' ends is limited, too: against enumeration, and against feasible ends."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certcal.worst_case import PooledEnds, calibration_error, pooled_calibration_error
from tests.worst_case import naive


def ends_of(n: int, seed: int, deviation: float = 0.25) -> PooledEnds:
    """Intervals that often begin and end at edges of four bins, estimates inside and sometimes beyond them."""
    random = np.random.default_rng(seed)
    grid = np.concatenate([np.linspace(0, 1, 5), random.random(12)])
    low, inner, high = np.sort(random.choice(grid, (3, n)), axis=0)
    end = random.integers(-1, 2, n).astype(np.int8)
    far = np.where(end < 0, low, high)
    estimate = far + random.uniform(-0.2, 1.2, n) * (inner - far)
    return PooledEnds(low, high, end, estimate, inner, random.random(n) < 0.6, deviation)


@pytest.mark.parametrize("samples", ["certified", "all"])
@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("seed", range(6))
def test_the_value_is_the_largest_over_all_signs_and_ends(seed: int, closed: str, samples: str) -> None:
    random = np.random.default_rng([seed, 1])
    ends = ends_of(5, seed)
    certified, correct = random.random(5) < 0.7, random.integers(0, 2, 5)
    certified[0] = True
    p = naive.problem(ends.lower, ends.upper, correct, np.linspace(0, 1, 5), closed)
    value = pooled_calibration_error(ends, correct, certified, 4, closed=closed, samples=samples)
    expected = naive.pooled(p, ends, certified, samples == "all")
    assert value == pytest.approx(min(1.0, expected), abs=1e-9)
    assert value >= min(1.0, expected) - 1e-15


@given(st.integers(0, 2**32), st.integers(1, 30), st.sampled_from(["left", "right"]))
def test_no_ends_that_keep_the_limits_are_worse(seed: int, n: int, closed: str) -> None:
    random = np.random.default_rng(seed)
    ends = ends_of(n, seed)
    certified, correct = random.random(n) < 0.8, random.integers(0, 2, n)
    certified[0] = True
    # True ends anywhere between their limits, and a sum whose members are unknown where they are not sure.
    share = random.random(n) * random.integers(0, 2)
    lower = np.where(ends.end < 0, ends.lower + share * (ends.inner - ends.lower), ends.lower)
    upper = np.where(ends.end > 0, ends.upper + share * (ends.inner - ends.upper), ends.upper)
    apart = np.where(ends.end < 0, ends.estimate - lower, np.where(ends.end > 0, upper - ends.estimate, 0.0))
    members = ends.sure | (random.random(n) < 0.5)
    limited: Any = PooledEnds(*(getattr(ends, name) for name in naive.FIELDS), ends.sure, apart[members].sum())
    worst = calibration_error(lower, upper, correct, 10, closed=closed, certified=certified)
    for samples, truth in (("certified", worst), ("all", worst.all_samples)):
        assert truth is not None
        value = pooled_calibration_error(limited, correct, certified, 10, closed=closed, samples=samples)
        assert value >= truth.value - 1e-12


def test_a_sum_that_is_known_exactly_leaves_nothing_to_give_away() -> None:
    random = np.random.default_rng(0)
    estimate = random.uniform(0.22, 0.28, 400)
    correct, all_of_them = np.ones(400, bool), np.ones(400, bool)
    ends = PooledEnds(
        estimate - 0.1, estimate + 0.5, np.full(400, -1, np.int8), estimate, estimate + 0.1, all_of_them, 0.0
    )
    truth = calibration_error(estimate, estimate + 0.5, correct, 4).value
    value = pooled_calibration_error(ends, correct, all_of_them, 4)
    assert truth <= value < 1.000001 * truth
    alone = calibration_error(ends.lower, ends.upper, correct, 4).value
    assert alone > value + 0.09


def test_without_a_sum_it_is_the_worst_case_of_the_intervals() -> None:
    random = np.random.default_rng(3)
    low, high = np.sort(random.random((2, 300)), axis=0)
    correct, certified = random.integers(0, 2, 300), random.random(300) < 0.6
    none = PooledEnds(low, high, np.zeros(300, np.int8), low, low, certified, 0.0)
    for bins in (1, 15, 200):
        worst = calibration_error(low, high, correct, bins, certified=certified)
        assert worst.all_samples is not None
        for samples, found in (("certified", worst), ("all", worst.all_samples)):
            value = pooled_calibration_error(none, correct, certified, bins, samples=samples)
            assert value == pytest.approx(found.value, abs=1e-11)
