from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certcal.metrics.kernel import mmce
from tests import naive_kernels as naive
from tests.naive_kernels import SHAPES, samples, shapes

widths = st.floats(-12, 3).map(lambda exponent: 10.0**exponent)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [1, 2, 30, 1000])
def test_it_agrees_with_the_sum_over_all_pairs(shape: str, n: int) -> None:
    z, c = shapes(n, seed=n)[shape]
    w = np.random.default_rng(n).random(n) + 0.01
    for width in (0.4, 1e-3, 30.0):
        assert abs(mmce(z, c, width=width) - naive.mmce(z, c, width)) < 1e-9
        assert abs(mmce(z, c, width=width, sample_weight=w) - naive.mmce(z, c, width, w)) < 1e-9


def test_it_agrees_with_the_sum_over_all_pairs_of_ten_thousand_samples() -> None:
    z, c = shapes(10_000, seed=1)["overconfident"]
    assert abs(mmce(z, c) - naive.mmce(z, c)) < 1e-12


@given(samples(40), widths)
def test_it_agrees_on_awkward_samples(data: tuple[Any, Any], width: float) -> None:
    z, c = data
    # The sum over pairs cancels, and the root magnifies what rounding leaves; ours is a sum of squares.
    assert mmce(z, c, width=width) ** 2 == pytest.approx(naive.mmce(z, c, width) ** 2, abs=1e-15)


@given(samples(40))
def test_duplicating_the_samples_changes_nothing(data: tuple[Any, Any]) -> None:
    z, c = data
    assert mmce(np.tile(z, 7), np.tile(c, 7)) == pytest.approx(mmce(z, c), abs=1e-14)


@given(samples(40), widths)
def test_it_lies_between_nothing_and_the_mean_absolute_residual(data: tuple[Any, Any], width: float) -> None:
    z, c = data
    assert 0 <= mmce(z, c, width=width) <= np.mean(np.abs(c - z)) + 1e-14


@given(samples(40))
def test_single_and_double_precision_agree_on_the_same_values(data: tuple[Any, Any]) -> None:
    z, c = data
    single = z.astype(np.float32)
    assert mmce(single, c) == mmce(single.astype(np.float64), c)
    assert mmce(single, c) == pytest.approx(mmce(z, c), abs=1e-6)


@pytest.mark.parametrize(
    ("z", "c", "value"),
    [([0.75], [1], 0.25), ([1.0, 0.0], [1, 0], 0.0), ([0.5, 0.5], [1, 0], 0.0), ([0.25] * 4, [1, 1, 1, 1], 0.75)],
)
def test_values_known_in_closed_form(z: list[float], c: list[int], value: float) -> None:
    assert mmce(z, c) == value


def test_balanced_ties_do_not_leave_the_root_of_a_rounding_error() -> None:
    assert mmce([0.3] * 100_000, [1] * 30_000 + [0] * 70_000) < 1e-16


def test_extreme_widths_give_the_limits() -> None:
    z, c = np.array([0.2, 0.7, 0.9]), np.array([1, 0, 1], np.uint8)
    assert mmce(z, c, width=1e300) == pytest.approx(abs(np.mean(c - z)), abs=1e-14)
    assert mmce(z, c, width=1e-300) == pytest.approx(np.sqrt(np.sum((c - z) ** 2)) / 3, abs=1e-14)


def test_a_negative_zero_is_a_zero() -> None:
    assert mmce([-0.0, 0.5], [1, 0]) == mmce([0.0, 0.5], [1, 0])
