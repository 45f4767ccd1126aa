"""The worst-case KS calibration error: exact against all thresholds and all combinations of points, and attained."""

from typing import Any

import numpy as np
import pytest

from certcal.metrics import ks_error as plain_ks_error
from certcal.worst_case import ks_error
from tests.worst_case import naive

# The brute force steps back from a breakpoint by 1e-9 where the fast code takes the limit.
LIMIT = 1e-7


@pytest.mark.parametrize("start", range(0, 120, 40))
def test_the_value_is_the_largest_over_all_thresholds_and_the_witness_attains_it(start: int) -> None:
    for seed in range(start, start + 40):
        p = naive.instance(seed)
        result = ks_error(*p.arguments)
        assert result.value == pytest.approx(naive.worst_ks_by_thresholds(p), abs=LIMIT), seed
        assert ((result.witness >= p.lower) & (result.witness <= p.upper)).all()
        assert plain_ks_error(result.witness, p.correct) == pytest.approx(result.value, abs=1e-9), seed
        assert result.bins is None
        assert result.signs is None


def test_the_value_is_the_largest_over_all_combinations_of_points() -> None:
    for seed in range(42):
        p = naive.instance(seed, n=3)
        assert ks_error(*p.arguments).value == pytest.approx(naive.worst_ks_by_points(p), abs=LIMIT), seed


def test_many_samples_agree_with_all_thresholds() -> None:
    random = np.random.default_rng(0)
    ends = np.sort(random.integers(0, 33, (2, 60)) / 32, axis=0)
    p = naive.problem(ends[0], ends[1], random.integers(0, 2, 60))
    result = ks_error(*p.arguments)
    assert result.value == pytest.approx(naive.worst_ks_by_thresholds(p), abs=LIMIT)
    assert plain_ks_error(result.witness, p.correct) == pytest.approx(result.value, abs=1e-9)


def test_the_limit_before_a_breakpoint_counts() -> None:
    # Incorrect samples creep up to .5 from below, before the correct one sitting at .5 enters against them.
    lower, upper, correct = [0.0, 0.0, 0.5], [1.0, 1.0, 0.5], [0, 0, 1]
    result = ks_error(lower, upper, correct)
    assert result.value == pytest.approx(naive.worst_ks_by_thresholds(naive.problem(lower, upper, correct)), abs=LIMIT)
    stuck = ks_error([0.0, 0.0, 0.5, 0.5], [0.5, 0.5, 0.5, 0.5], [0, 0, 1, 1])
    assert stuck.value == pytest.approx(1.0 / 4, abs=1e-12)
    assert plain_ks_error(stuck.witness, [0, 0, 1, 1]) == pytest.approx(stuck.value, abs=1e-9)


@pytest.mark.parametrize(
    ("lower", "upper", "correct", "expected"),
    [
        ([0.2], [0.7], [1], 0.8),
        ([0.2], [0.7], [0], 0.7),
        ([0.0], [1.0], [1], 1.0),
        ([1.0], [1.0], [1], 0.0),
        ([0.0], [0.0], [0], 0.0),
        ([0.0, 0.0], [1.0, 1.0], [1, 0], 0.5),
    ],
)
def test_small_cases_have_the_value_found_by_hand(
    lower: list[float], upper: list[float], correct: list[int], expected: float
) -> None:
    assert ks_error(lower, upper, correct).value == pytest.approx(expected, abs=1e-12)


def test_points_give_the_plain_error() -> None:
    for seed in range(20):
        p = naive.instance(seed)
        value = ks_error(p.lower, p.lower, p.correct).value
        assert value == pytest.approx(plain_ks_error(p.lower, p.correct), abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_narrow_floats_are_taken_exactly_and_attained(dtype: Any) -> None:
    for seed in range(10):
        p = naive.instance(seed)
        lower, upper = p.lower.astype(dtype), p.upper.astype(dtype)
        result = ks_error(lower, upper, p.correct)
        assert result.value == ks_error(lower.astype(float), upper.astype(float), p.correct).value
        assert plain_ks_error(result.witness, p.correct) == pytest.approx(result.value, abs=1e-9)


def test_certified_samples_are_counted_alone_and_all_samples_with_the_others_free() -> None:
    for seed in range(42):
        p = naive.instance(seed, n=6)
        mask = np.random.default_rng(seed).random(p.n) < 0.6
        mask[-1] = True
        result = ks_error(*p.arguments, certified=mask)
        assert result.value == ks_error(*p.select(mask).arguments).value
        assert np.isnan(result.witness).tolist() == (~mask).tolist()
        free = result.all_samples
        assert free is not None
        assert free.n == p.n
        assert free.value == pytest.approx(naive.worst_ks_by_thresholds(p, mask.tolist()), abs=LIMIT), seed
        attained = [plain_ks_error(free.witness, np.where(mask, p.correct, c)) for c in (0, 1)]
        assert max(attained) == pytest.approx(free.value, abs=1e-9), seed
