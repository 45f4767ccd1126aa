import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certcal.metrics.cosine import MomentGrid, error_bound
from certcal.metrics.kernel import fixed_point, residual_range, smooth_ece, smooth_ece_of
from tests import naive_kernels as naive
from tests.naive_kernels import SHAPES, samples, shapes

bandwidths = st.floats(-6, 1).map(lambda exponent: 10.0**exponent)


def filled(z: Any, c: Any, w: Any = None, cells: int = 4096) -> MomentGrid:
    grid = MomentGrid(cells)
    grid.update(z, c, w)
    return grid


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [1, 2, 30, 120])
def test_it_agrees_with_direct_sums_at_a_given_bandwidth(shape: str, n: int) -> None:
    z, c = shapes(n, seed=n)[shape]
    w = np.random.default_rng(n).random(n) + 0.01
    for sigma in (1e-4, 0.003, 0.02, 0.3, 3.0):
        if n < 120 or sigma >= 0.003:
            assert abs(smooth_ece(z, c, bandwidth=sigma) - naive.smooth_ece_at(z, c, sigma)) < 1e-9
    assert abs(smooth_ece(z, c, bandwidth=0.05, sample_weight=w) - naive.smooth_ece_at(z, c, 0.05, w)) < 1e-9


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [1, 2, 25])
def test_it_agrees_with_the_fixed_point_of_direct_sums(shape: str, n: int) -> None:
    z, c = shapes(n, seed=n + 1)[shape]
    assert abs(smooth_ece(z, c) - naive.smooth_ece(z, c)) < 1e-9


@pytest.mark.parametrize(("shape", "n"), [("overconfident", 10_000), ("uniform", 2000), ("near one", 500)])
def test_the_value_of_many_samples_is_its_own_smooth_ece(shape: str, n: int) -> None:
    # smECE does not increase with σ, so a σ that it misses by ε is within ε of the fixed point.
    z, c = shapes(n, seed=5)[shape]
    value = smooth_ece(z, c)
    assert abs(naive.smooth_ece_at(z, c, value) - value) < 1e-9


@given(samples(), bandwidths)
def test_it_agrees_with_direct_sums_on_awkward_samples(data: tuple[Any, Any], sigma: float) -> None:
    z, c = data
    assert abs(smooth_ece(z, c, bandwidth=sigma) - naive.smooth_ece_at(z, c, sigma)) < 1e-9


@given(samples())
def test_awkward_samples_have_the_value_that_direct_sums_give(data: tuple[Any, Any]) -> None:
    z, c = data
    value = smooth_ece(z, c)
    assert value < 1e-9 or abs(naive.smooth_ece_at(z, c, value) - value) < 1e-9


@given(samples(), st.randoms(use_true_random=False))
def test_the_order_of_the_samples_does_not_matter_to_the_last_bit(data: tuple[Any, Any], random: Any) -> None:
    z, c = data
    order = list(range(z.size))
    random.shuffle(order)
    assert smooth_ece(z[order], c[order]) == smooth_ece(z, c)
    assert smooth_ece(z[order], c[order], bandwidth=0.001) == smooth_ece(z, c, bandwidth=0.001)


@given(samples(), st.data())
def test_a_weight_is_a_repetition_and_weight_zero_is_absence(data: tuple[Any, Any], draw: st.DataObject) -> None:
    z, c = data
    counts = draw.draw(st.lists(st.integers(0, 3), min_size=z.size, max_size=z.size).filter(any))
    repeated = np.repeat(z, counts), np.repeat(c, counts)
    assert abs(smooth_ece(z, c, sample_weight=counts) - smooth_ece(*repeated)) < 1e-9
    assert abs(smooth_ece(z, c, bandwidth=0.01, sample_weight=counts) - smooth_ece(*repeated, bandwidth=0.01)) < 1e-9


@given(samples(), bandwidths)
@settings(max_examples=15)
def test_duplicating_the_samples_changes_nothing(data: tuple[Any, Any], sigma: float) -> None:
    # 5000 copies are summed on another grid than one.
    z, c = data
    many = np.tile(z, 5000), np.tile(c, 5000)
    assert abs(smooth_ece(*many, bandwidth=sigma) - smooth_ece(z, c, bandwidth=sigma)) < 1e-9
    assert abs(smooth_ece(*many) - smooth_ece(z, c)) < 1e-9


@given(samples(), bandwidths, bandwidths)
def test_it_falls_with_the_bandwidth_from_the_mean_absolute_to_the_absolute_mean_residual(
    data: tuple[Any, Any], one: float, other: float
) -> None:
    z, c = data
    wide, narrow = (smooth_ece(z, c, bandwidth=sigma) for sigma in (max(one, other), min(one, other)))
    residual = c - z
    assert abs(residual.mean()) - 1e-9 <= wide <= narrow + 1e-9 <= np.abs(residual).mean() + 2e-9


@given(samples())
def test_single_and_double_precision_agree_on_the_same_values(data: tuple[Any, Any]) -> None:
    z, c = data
    single = z.astype(np.float32)
    assert smooth_ece(single, c) == smooth_ece(single.astype(np.float64), c)
    assert abs(smooth_ece(single, c, bandwidth=0.05) - smooth_ece(z, c, bandwidth=0.05)) < 1e-5


@pytest.mark.parametrize(
    ("z", "c", "value"),
    [
        ([0.75], [1], 0.25),
        ([0.0], [1], 1.0),
        ([1.0], [1], 0.0),
        ([0.0, 1.0], [0, 1], 0.0),
        ([0.0, 1.0], [1, 1], 0.5),
        ([0.9999] * 7, [1] * 7, 1e-4),
        ([1 - 1e-9] * 3, [1] * 3, 1e-9),
        ([0.5, 0.5], [0, 1], 0.0),
        ([0.1, 0.2, 0.9], [0, 0, 0], 0.4),
    ],
)
def test_values_known_in_closed_form(z: list[float], c: list[int], value: float) -> None:
    assert smooth_ece(z, c) == pytest.approx(value, abs=1e-12)


def test_two_opposite_residuals_far_below_any_grid_have_the_value_of_the_closed_form() -> None:
    # Masses ±m at distance e: smECE_σ = 2m (2Φ(e / 2σ) - 1), whose fixed point solves a scalar equation.
    from scipy.optimize import brentq
    from scipy.special import erf

    gap, mass = 2.0**-30, 0.25
    expected = brentq(lambda s: 2 * mass * erf(gap / (s * 8**0.5)) - s, 1e-9, 1e-3, xtol=1e-15)
    assert smooth_ece([0.5, 0.5 + gap], [0, 1]) == pytest.approx(expected, abs=1e-9)
    assert smooth_ece([0.5, 0.5 + gap], [0, 1]) > 1e-6


def test_separate_clusters_at_a_tiny_bandwidth_add_up() -> None:
    z = np.array([0.0, 1e-6, 0.3, 0.300001, 0.7, 1.0 - 1e-6, 1.0])
    c = np.array([1, 0, 1, 0, 0, 1, 0], np.uint8)
    for sigma in (1e-7, 1e-6, 1e-5):
        assert abs(smooth_ece(z, c, bandwidth=sigma) - naive.smooth_ece_at(z, c, sigma)) < 1e-9


def test_a_dense_sample_at_a_tiny_bandwidth_is_cut_into_windows_without_a_seam() -> None:
    # 300 units of 16 σ: more than one window. Equal residuals make the value known.
    z = np.linspace(0.25, 0.75, 40_000)
    c = np.zeros(z.size, np.uint8)
    assert smooth_ece(z, c, bandwidth=1e-4) == pytest.approx(0.5, abs=1e-10)


def test_samples_of_every_size_class_agree_where_their_grids_meet() -> None:
    z, c = shapes(3000, seed=8)["overconfident"]
    for sigma in (0.00488, 0.00489, 0.00061, 0.000611, 0.00007):
        values = [smooth_ece(np.tile(z, k), np.tile(c, k), bandwidth=sigma) for k in (1, 20, 80)]
        assert max(values) - min(values) < 1e-9


def test_bandwidths_beyond_all_bounds_give_the_limits() -> None:
    z, c = np.array([0.2, 0.7, 0.9]), np.array([1, 0, 1], np.uint8)
    assert smooth_ece(z, c, bandwidth=1e300) == pytest.approx(abs(np.mean(c - z)), abs=1e-12)
    assert smooth_ece(z, c, bandwidth=1e-300) == pytest.approx(np.mean(np.abs(c - z)), abs=1e-12)


@pytest.mark.parametrize("kind", ["calibrated", "overconfident", "underconfident"])
def test_it_agrees_with_relplot_as_far_as_its_mesh_allows(kind: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from relplot.metrics import smECE, smECE_sigma
    rng = np.random.default_rng(3)
    z = rng.beta(3, 1.5, 20_000)
    chance = {"calibrated": z, "overconfident": z**2, "underconfident": np.sqrt(z)}[kind]
    c = (rng.random(z.size) < chance).astype(np.uint8)
    # relplot searches σ in steps of 2**-10 and evaluates on a mesh of σ / 10, weighting both ends of [0, 1] fully.
    assert smooth_ece(z, c) == pytest.approx(smECE(z, c), abs=1e-3)
    assert smooth_ece(z, c, bandwidth=0.05) == pytest.approx(smECE_sigma(z, c, 0.05), abs=1e-3)


@given(samples(), st.floats(0, 1))
def test_a_grid_does_not_depend_on_how_the_samples_were_cut(data: tuple[Any, Any], where: float) -> None:
    z, c = data
    cut = round(where * z.size)
    merged = filled(z[cut:], c[cut:], cells=64)
    merged.merge(filled(z[:cut], c[:cut], cells=64))
    whole = filled(z, c, cells=64)
    assert np.array_equal(merged.words, whole.words)
    assert smooth_ece_of(merged) == smooth_ece_of(whole)


def test_a_grid_holds_its_integers_beyond_one_word() -> None:
    z, c = np.full(600_000, 0.9), np.ones(600_000, np.uint8)
    grid = filled(z, c, cells=4)
    for _ in range(5):
        copy = MomentGrid(4)
        copy.merge(grid)
        grid.merge(copy)
    assert grid.weight == 600_000 * 32
    assert grid.mean_confidence == pytest.approx(0.9, abs=1e-14)
    assert smooth_ece_of(grid)[0] == pytest.approx(0.1, abs=1e-12)


@given(samples(), st.floats(-2.5, 1).map(lambda exponent: 10.0**exponent))
def test_what_a_grid_says_is_within_its_bound(data: tuple[Any, Any], sigma: float) -> None:
    z, c = data
    grid = filled(z, c, cells=64)
    value, error = smooth_ece_of(grid, sigma)
    assert abs(value - naive.smooth_ece_at(z, c, sigma)) <= error
    value, error = smooth_ece_of(grid)
    assert abs(value - smooth_ece(z, c)) <= error + 1e-9
    assert error <= 1 / 128 + 1e-6


def test_a_grid_with_weights_gives_the_value_of_the_samples() -> None:
    z, c = shapes(500, seed=4)["overconfident"]
    w = np.random.default_rng(4).random(500)
    first, second = filled(z[:200], c[:200], w[:200]), filled(z[200:], c[200:], w[200:])
    first.merge(second)
    value, error = smooth_ece_of(first)
    assert abs(value - smooth_ece(z, c, sample_weight=w)) < 1e-11
    assert error < 1e-9


def test_the_stated_error_is_below_a_billionth_from_the_smallest_bandwidth_on() -> None:
    for cells in (512, 4096, 32768):
        smallest = MomentGrid(cells).smallest_bandwidth
        assert all(error_bound(1 / cells, smallest * factor) < 5e-10 for factor in (1, 2, 10, 1000))


@given(samples())
def test_the_residual_range_is_that_of_the_samples(data: tuple[Any, Any]) -> None:
    z, c = data
    low, high = residual_range(filled(z, c))
    assert low == pytest.approx(abs(np.mean(c - z)), abs=1e-14)
    assert high == pytest.approx(np.mean(np.abs(c - z)), abs=1e-14)


@given(st.floats(0, 4), st.floats(-6, -0.1))
def test_the_fixed_point_of_a_falling_power_is_found(power: float, exponent: float) -> None:
    factor, calls = 10.0**exponent, 0

    def falling(x: float) -> float:
        nonlocal calls
        calls += 1
        return min(1.0, factor * x**-power)

    found = fixed_point(falling, 0.0, 1.0, 1e-3)
    assert abs(found - factor ** (1 / (1 + power))) < 1e-9
    assert calls < 60


def test_the_fixed_point_of_a_step_is_found_by_halving() -> None:
    assert fixed_point(lambda x: 0.9 if x < 0.123456789 else 1e-9, 0.0, 1.0, 1e-3) == pytest.approx(
        0.123456789, abs=1e-9
    )
