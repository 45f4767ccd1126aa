"""Perturbed scores: their distribution, and what the noise does to a calibration function."""

import math

import numpy as np
import pytest

from certcal import InputError
from certcal.bounds import perturb
from certcal.bounds._perturb import distribution, normaliser, quantile
from tests.bounds import naive_smooth as naive

BANDWIDTHS = (1e-9, 2**-10, 2**-6, 0.3, 1.0, 1000.0)
SCORES = np.array([0.0, 1e-12, 0.01, 0.3, 0.5, 0.99, 1 - 1e-12, 1.0])


@pytest.mark.parametrize("h", BANDWIDTHS)
def test_quantiles_invert_the_distribution_function(h: float) -> None:
    share = np.linspace(0, 1, 501)[1:-1]
    for score in SCORES:
        values = quantile(share, np.full(share.size, score), h)
        # A float near the score is only so near to the quantile: one step is a share of step/h of the distribution.
        room = 4e-15 + 2.0**-53 / h
        np.testing.assert_allclose(distribution(values, np.full(share.size, score), h), share, rtol=0, atol=room)
        assert np.all(np.diff(values) >= 0)
        assert values[0] >= 0
        assert values[-1] <= 1


def test_quantiles_keep_their_digits_in_the_tails() -> None:
    share = np.array([1e-300, 1e-100, 1e-17, 1e-9])
    h = 2.0**-10
    # Far from the ends the lower tail is 2/π · exp(-distance/h) / (1 + 1), its angle 2 atan(exp(-distance/h)) of π.
    expected = 0.9 + h * np.log(np.tan(share * math.pi / 2))
    np.testing.assert_allclose(quantile(share, np.full(4, 0.9), h), expected, rtol=1e-13)


@pytest.mark.parametrize("h", [2**-6, 0.3])
def test_perturbed_scores_have_the_density_that_is_claimed(h: float) -> None:
    grid = np.linspace(0, 1, 20_001)
    for score in (0.0, 0.02, 0.6, 1.0):
        drawn = np.sort(perturb(np.full(20_000, score), h, seed=5))
        density = naive.sech_density(grid, score, h)
        below = np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(grid))])
        cdf = np.interp(drawn, grid, below)
        steps = np.arange(20_001) / 20_000
        distance = max(np.max(steps[1:] - cdf), np.max(cdf - steps[:-1]))
        assert distance < math.sqrt(math.log(2 / 1e-4) / (2 * 20_000))


def test_the_normaliser_is_the_integral_of_the_kernel() -> None:
    grid = np.linspace(0, 1, 200_001)
    for h in (0.01, 0.5, 20.0):
        for score in (0.0, 0.2, 1.0):
            integral = np.trapezoid(1 / np.cosh(np.clip((grid - score) / h, -700, 700)), grid)
            assert normaliser(np.array([score]), h)[0] == pytest.approx(integral, rel=1e-7)


def two_or_three_scores(h: float) -> tuple[np.ndarray, np.ndarray]:
    """Grid and slopes of calibration functions that come near to the largest derivatives."""
    slopes, bends = [0.0], [0.0]
    for distance in np.linspace(1, 12, 23) * h:
        for outer in (0.15, 0.25, 0.5):
            scores = np.array([0.5 - distance, 0.5, 0.5 + distance])
            for probability in ([0.0, 0.0, 1.0], [0.0, 1.0, 0.0]):
                # Masses so that at the middle the kernel weighs both neighbours by ``outer`` each.
                mass = np.array([outer * math.cosh(distance / h), 1 - 2 * outer, outer * math.cosh(distance / h)])
                grid, _, eta = naive.perturbed_calibration(scores, np.array(probability), mass / mass.sum(), h, 8000)
                slopes.append(np.max(np.abs(np.gradient(eta, grid))))
                bends.append(np.max(np.abs(np.diff(eta, 2))) * 8000**2)
    return np.array(slopes), np.array(bends)


def test_derivatives_of_the_calibration_function_reach_their_bounds_and_stay_below() -> None:
    h = 0.02
    slopes, bends = two_or_three_scores(h)
    assert 0.97 / (2 * h) < slopes.max() <= 1 / (2 * h)
    assert 0.97 / (2 * h**2) < bends.max() <= 1 / (2 * h**2)


def test_derivatives_stay_below_their_bounds_for_any_mixture() -> None:
    rng = np.random.default_rng(0)
    for h in (0.02, 0.1, 1.0):
        for atoms in (2, 3, 10):
            for _ in range(5):
                scores, probability = rng.random(atoms), rng.integers(0, 2, atoms).astype(float)
                mass = rng.dirichlet(np.full(atoms, 0.3))
                grid, density, eta = naive.perturbed_calibration(scores, probability, mass, h, 4000)
                good = density > 1e-6  # elsewhere differences of the two integrals have no digits left
                inner = good[1:-1] & good[:-2] & good[2:]
                assert np.max(np.abs(np.gradient(eta, grid))[good]) <= 1 / (2 * h) * (1 + 1e-6)
                assert np.max(np.abs(np.diff(eta, 2))[inner], initial=0) * 4000**2 <= 1 / (2 * h**2) * (1 + 1e-4) + 1e-3


def test_the_same_seed_gives_the_same_bits_and_a_generator_moves_on() -> None:
    scores = np.random.default_rng(1).random(100_000)
    first = perturb(scores, 0.01, seed=7)
    np.testing.assert_array_equal(first, perturb(scores, 0.01, seed=7))
    np.testing.assert_array_equal(first[:10], perturb(scores[:10], 0.01, seed=7))
    assert not np.array_equal(first, perturb(scores, 0.01, seed=8))
    generator = np.random.default_rng([7, 1])
    np.testing.assert_array_equal(first, perturb(scores, 0.01, generator))
    assert not np.array_equal(first, perturb(scores, 0.01, generator))


def test_the_noise_is_another_stream_than_that_of_scores_drawn_with_the_same_seed() -> None:
    h = 0.2
    for seed in (0, 7):
        scores = np.random.default_rng(seed).random(10_000)
        noise = distribution(perturb(scores, h, seed), scores, h)
        # With one stream for both this is 1: scores that are not moved at random keep their calibration function.
        assert abs(np.corrcoef(noise, scores)[0, 1]) < 0.04


def test_scores_of_any_type_stay_within_0_and_1() -> None:
    for given in ([0, 1], np.array([0.5], np.float16), np.array([1.0], np.float32)):
        for h in BANDWIDTHS:
            perturbed = perturb(given, h)
            assert perturbed.dtype == np.float64
            assert np.all((perturbed >= 0) & (perturbed <= 1))


@pytest.mark.parametrize("bandwidth", [0, -1, float("nan"), float("inf"), 1e-12, 2000, "wide"])
def test_a_bandwidth_that_cannot_be_used_is_refused(bandwidth: object) -> None:
    with pytest.raises(InputError, match=r"^bandwidth is "):
        perturb([0.5], bandwidth)  # type: ignore[arg-type]


def test_scores_outside_0_and_1_and_bad_seeds_are_refused() -> None:
    with pytest.raises(InputError, match=r"scores\[1\] is 1.5"):
        perturb([0.5, 1.5], 0.1)
    with pytest.raises(InputError, match="seed is -1"):
        perturb([0.5], 0.1, -1)
