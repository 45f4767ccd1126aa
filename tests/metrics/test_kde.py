from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certcal import InputError
from certcal.metrics.cosine import MomentGrid
from certcal.metrics.kernel import kde_ece, kde_ece_of
from tests import naive_kernels as naive
from tests.naive_kernels import SHAPES, samples, shapes

bandwidths = st.floats(-5, 1).map(lambda exponent: 10.0**exponent)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [1, 2, 30, 120])
def test_it_agrees_with_direct_sums(shape: str, n: int) -> None:
    z, c = shapes(n, seed=n)[shape]
    w = np.random.default_rng(n).random(n) + 0.01
    assert abs(kde_ece(z, c) - naive.kde_ece(z, c)) < 1e-9
    assert abs(kde_ece(z, c, sample_weight=w) - naive.kde_ece(z, c, None, w)) < 1e-9
    for h in (0.003, 0.02, 0.3, 3.0):
        assert abs(kde_ece(z, c, bandwidth=h) - naive.kde_ece(z, c, h)) < 1e-9


def test_it_agrees_with_direct_sums_for_ten_thousand_samples() -> None:
    z, c = shapes(10_000, seed=6)["uniform"]
    assert abs(kde_ece(z, c) - naive.kde_ece(z, c)) < 1e-9


@given(samples(), bandwidths)
def test_it_agrees_with_direct_sums_on_awkward_samples(data: tuple[Any, Any], h: float) -> None:
    z, c = data
    assert abs(kde_ece(z, c, bandwidth=h) - naive.kde_ece(z, c, h)) < 1e-9


@given(samples(), st.randoms(use_true_random=False))
def test_the_order_of_the_samples_does_not_matter(data: tuple[Any, Any], random: Any) -> None:
    z, c = data
    order = list(range(z.size))
    random.shuffle(order)
    assert kde_ece(z[order], c[order], bandwidth=0.002) == kde_ece(z, c, bandwidth=0.002)
    assert kde_ece(z[order], c[order]) == pytest.approx(kde_ece(z, c), abs=1e-9)


@given(samples(), st.data())
def test_at_a_given_bandwidth_a_weight_is_a_repetition(data: tuple[Any, Any], draw: st.DataObject) -> None:
    z, c = data
    counts = draw.draw(st.lists(st.integers(0, 3), min_size=z.size, max_size=z.size).filter(any))
    repeated = np.repeat(z, counts), np.repeat(c, counts)
    assert abs(kde_ece(z, c, bandwidth=0.03, sample_weight=counts) - kde_ece(*repeated, bandwidth=0.03)) < 1e-9


@given(samples(), bandwidths)
def test_it_lies_between_nothing_and_one(data: tuple[Any, Any], h: float) -> None:
    z, c = data
    assert 0 <= kde_ece(z, c, bandwidth=h) <= 1 + 1e-9


@given(samples())
def test_single_and_double_precision_agree_on_the_same_values(data: tuple[Any, Any]) -> None:
    z, c = data
    single = z.astype(np.float32)
    assert kde_ece(single, c, bandwidth=0.05) == kde_ece(single.astype(np.float64), c, bandwidth=0.05)


@pytest.mark.parametrize(
    ("z", "c", "value"),
    [([0.75], [1], 0.25), ([0.3] * 10, [1] * 3 + [0] * 7, 0.0), ([1.0, 1.0], [1, 1], 0.0), ([0.0], [1], 1.0)],
)
def test_equal_confidences_have_the_gap_of_their_means(z: list[float], c: list[int], value: float) -> None:
    assert kde_ece(z, c) == pytest.approx(value, abs=1e-12)
    assert kde_ece(z, c, bandwidth=1e-9) == pytest.approx(value, abs=2e-9)


def test_a_wide_kernel_forgets_the_confidences() -> None:
    # K = 1: the value is ∫ |t - mean c| dt.
    assert kde_ece([0.1, 0.9], [1, 0], bandwidth=1e6) == pytest.approx(0.25, abs=1e-12)


@given(samples(), st.floats(-2.5, 1).map(lambda exponent: 10.0**exponent))
def test_what_a_grid_says_is_within_its_bound(data: tuple[Any, Any], h: float) -> None:
    z, c = data
    grid = MomentGrid(64)
    grid.update(z, c)
    value, error = kde_ece_of(grid, h)
    assert abs(value - naive.kde_ece(z, c, h)) <= error
    assert h < 2.5 / 64 or error < 1e-9


def test_a_grid_finds_the_bandwidth_that_the_samples_have() -> None:
    z, c = shapes(700, seed=2)["overconfident"]
    w = np.random.default_rng(2).random(700)
    grid = MomentGrid()
    grid.update(z, c, w)
    value, error = kde_ece_of(grid)
    assert abs(value - kde_ece(z, c, sample_weight=w)) < 1e-11
    assert error < 1e-9
    grid = MomentGrid()
    grid.update(np.array([0.75, 0.75]), np.array([0, 1], np.uint8))
    assert kde_ece_of(grid)[0] == 0.25


@pytest.mark.parametrize("shape", SHAPES[:2])
def test_the_triweight_kernel_agrees_with_direct_sums(shape: str) -> None:
    z, c = shapes(120, seed=3)[shape]
    w = np.random.default_rng(3).random(z.size) + 0.01
    for options in ({}, {"sample_weight": w}, {"bandwidth": 0.05}, {"bandwidth": 0.4}):
        assert kde_ece(z, c, kernel="triweight", **options) == pytest.approx(
            naive.triweight_ece(z, c, **options), abs=2e-4
        )


@pytest.mark.parametrize(("seed", "n", "value"), [(1, 500, 0.146546), (0, 2000, 0.132886)])
def test_the_triweight_kernel_has_the_values_of_its_authors_code(seed: int, n: int, value: float) -> None:
    """ece_kde_binary of zhang64-llnl/Mix-n-Match-Calibration with KDEpy 1.1.12 on these ten classes."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, 10)) * 2
    true, said = (np.exp(k * logits) / np.exp(k * logits).sum(1, keepdims=True) for k in (1.0, 1.5))
    labels = (true.cumsum(1) < rng.random((n, 1))).sum(1).clip(0, 9)
    assert kde_ece(said.max(1), said.argmax(1) == labels, kernel="triweight") == pytest.approx(value, abs=2e-5)


def test_the_triweight_kernel_without_spread_has_the_gap_of_the_means() -> None:
    assert kde_ece([0.75, 0.75], [1, 0], kernel="triweight") == 0.25
    assert 0 <= kde_ece([0.2, 0.9, 0.9], [0, 0, 0], kernel="triweight") <= 1
    with pytest.raises(InputError, match="kernel is 'box'"):
        kde_ece([0.5], [1], kernel="box")
