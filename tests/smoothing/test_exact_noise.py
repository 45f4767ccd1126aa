"""Exact noise: thresholds right to the last bit, whole numbers with the law of rounded noise, on the grid."""

import hashlib
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from certcal import InputError
from certcal._kernels import noise
from certcal.smoothing._noise import ExactNoise, exact_noise, grid_levels
from tests.smoothing import naive

SIGMAS = (0.0001, 0.001, 0.12, 0.25, 0.5)


def numbers(table: ExactNoise) -> list[int]:
    """The thresholds as whole numbers of 128 bits."""
    return [
        int(high) << 96 | int(a) << 64 | int(b) << 32 | int(c)
        for high, (a, b, c) in zip(table.upper[:-1], table.lower, strict=True)
    ]


def fill(
    levels: Any, count: int, *, sigma: float, seed: int = 0, index: int = 0, stage: int = 1, start: int = 0
) -> np.ndarray:
    point = np.atleast_2d(np.array(levels, np.int32))
    out = np.empty((count, point.shape[1]), np.float32)
    table, keys = exact_noise(sigma), noise.key_schedule(np.uint64(seed))
    thresholds = (table.upper, table.lower, table.guide, table.shift)
    noise.add_exact(point, np.array([index]), keys, stage, start, count, 0, *thresholds, out)
    return out


@pytest.mark.parametrize("sigma", SIGMAS)
def test_thresholds_are_the_cumulative_probabilities_to_the_last_of_128_bits(sigma: float) -> None:
    expected = naive.thresholds(sigma) or [0, 2**128 - 1]  # noise too small to leave its level
    assert numbers(exact_noise(sigma)) == expected


@pytest.mark.parametrize("sigma", SIGMAS)
def test_the_distance_in_total_variation_is_what_is_claimed(sigma: float) -> None:
    table = exact_noise(sigma)
    cuts = [Fraction(number, 2**128) for number in numbers(table)]
    drawn = [b - a for a, b in zip([Fraction(0), *cuts], [*cuts, Fraction(1)], strict=True)]
    with mpmath.workdps(80):
        half = len(cuts) // 2
        scale = 255 * mpmath.mpf(sigma)
        law = [
            mpmath.ncdf(-(abs(j) - mpmath.mpf(0.5)) / scale) - mpmath.ncdf(-(abs(j) + mpmath.mpf(0.5)) / scale)
            for j in range(-half, half + 1)
        ]
        apart = sum(abs(mpmath.mpf(p.numerator) / p.denominator - q) for p, q in zip(drawn, law, strict=True))
        distance = (apart + 1 - sum(law)) / 2
        assert distance <= (len(cuts) + 2) * mpmath.mpf(2) ** -128
    assert table.distance(1, 1) >= float((len(cuts) + 2) * 2.0**-128)
    assert table.distance(784, 100_000) == pytest.approx(784e5 * (len(cuts) + 2) * 2.0**-128, rel=1e-12)
    assert table.distance(10**30, 10**30) == 1


def test_the_distance_of_a_large_run_is_below_the_rounding_of_alpha() -> None:
    assert exact_noise(1.0).distance(224 * 224 * 3, 100_000) < 1e-8 * 2.0**-53


@given(
    seed=st.integers(0, 2**64 - 1),
    index=st.integers(0, 2**32 - 1),
    stage=st.sampled_from([0, 1]),
    start=st.integers(0, 2**32 - 3),
    dimension=st.integers(1, 90),
    sigma=st.sampled_from([0.001, 0.12, 0.5]),
)
def test_each_value_is_its_slow_twin(
    seed: int, index: int, stage: int, start: int, dimension: int, sigma: float
) -> None:
    levels = [(37 * c) % 256 for c in range(dimension)]
    found = fill(levels, 2, sigma=sigma, seed=seed, index=index, stage=stage, start=start)
    for row in range(2):
        whole = [
            level + naive.whole_number(seed, index, stage, start + row, coordinate, sigma)
            for coordinate, level in enumerate(levels)
        ]
        assert found[row].tolist() == [float(np.float32(k / 255)) for k in whole]


def test_a_first_word_that_ties_is_decided_by_the_next_three() -> None:
    upper = np.array([5, 5, 5, 5, 5, 9, 2**32 - 1], np.uint32)
    lower = np.array([[1, 0, 0], [1, 2, 3], [1, 2, 3], [1, 2, 4], [7, 0, 0], [0, 0, 0]], np.uint32)
    thresholds = [
        int(high) << 96 | int(a) << 64 | int(b) << 32 | int(c) for high, (a, b, c) in zip(upper, lower, strict=False)
    ]
    guide, shift = np.zeros(1, np.uint16), np.uint64(32)
    for word in (0, 4, 5, 6, 9, 2**32 - 1):
        for more in (
            [0, 0, 0],
            [0, 9, 9],
            [1, 0, 0],
            [1, 2, 2],
            [1, 2, 3],
            [1, 2, 4],
            [1, 2, 5],
            [1, 3, 0],
            [7, 0, 0],
            [8, 0, 0],
        ):
            place = noise.below(np.uint64(word), upper, guide, shift)
            place = noise.pass_ties(place, np.uint64(word), np.array(more, np.uint32), upper, lower)
            number = word << 96 | more[0] << 64 | more[1] << 32 | more[2]
            assert place == sum(threshold <= number for threshold in thresholds), (word, more)


@pytest.mark.parametrize(
    ("draw", "coordinate", "passed"),
    [(2751, 511, 0), (17025, 877, 1), (19862, 598, 5), (23001, 1002, 0), (27126, 496, 1), (32158, 585, 2)],
)
def test_ties_happen_and_are_decided_as_the_slow_twin_does(draw: int, coordinate: int, passed: int) -> None:
    """One coordinate in three million at this sigma; these were looked for."""
    sigma, seed = 0.5, 6
    block, place = naive.block_and_place(coordinate)
    word, cuts = naive.words(seed, 0, 1, draw, block)[place], naive.thresholds(sigma)
    assert word in {cut >> 96 for cut in cuts}
    whole = naive.whole_number(seed, 0, 1, draw, coordinate, sigma)
    assert whole + len(cuts) // 2 - sum(cut >> 96 < word for cut in cuts) == passed
    assert fill(np.zeros(1024), 1, sigma=sigma, seed=seed, start=draw)[0, coordinate] == np.float32(whole / 255)


@pytest.mark.parametrize("sigma", [0.002, 0.12, 0.5])
def test_whole_numbers_have_the_law_of_rounded_noise(sigma: float) -> None:
    """Ten million values in a test of χ² over all levels that expect ten or more."""
    found = np.rint(fill(np.zeros(1000), 10_000, sigma=sigma, seed=31) * 255).astype(np.int64).reshape(-1)
    reach = int(np.abs(found).max()) + 1
    counts = np.bincount(found + reach, minlength=2 * reach + 1)
    edges = (np.arange(-reach, reach + 2) - 0.5) / (255 * sigma)
    edges[[0, -1]] = -np.inf, np.inf
    expected = np.where(edges[1:] > 0, -np.diff(special.ndtr(-edges)), np.diff(special.ndtr(edges))) * found.size
    enough = expected >= 10
    observed = np.append(counts[enough], counts[~enough].sum())
    wanted = np.append(expected[enough], expected[~enough].sum())
    assert stats.chisquare(observed, wanted, sum_check=False).pvalue > 0.005
    assert abs(found.mean()) < 3 * np.sqrt(found.var() / found.size)


def test_coordinates_draws_samples_and_stages_are_independent() -> None:
    one = fill(np.zeros(1024), 2000, sigma=0.5, seed=3)
    others = [
        fill(np.zeros(1024), 2000, sigma=0.5, **{"seed": 3} | change)
        for change in ({"seed": 4}, {"index": 1}, {"stage": 0}, {"start": 2000})
    ]
    pairs = [(one, other) for other in others] + [(one[:, :-lag], one[:, lag:]) for lag in (1, 8, 16, 24, 32)]
    for a, b in [*pairs, (one[:-1], one[1:])]:
        assert abs(np.mean(a.astype(np.float64) * b) / 0.25 * np.sqrt(a.size)) < 3.5


def test_values_are_the_float32_quotients_of_whole_numbers() -> None:
    found = fill(np.arange(256), 500, sigma=0.25)
    whole = np.rint(found.astype(np.float64) * 255).astype(np.int64)
    assert whole.min() < -100
    assert whole.max() > 355
    np.testing.assert_array_equal(found, (whole / 255).astype(np.float32))


def test_a_coordinate_does_not_depend_on_how_many_there_are() -> None:
    full = fill(np.zeros(2000), 2, sigma=0.5)
    for dimension in (1, 7, 8, 9, 31, 33, 784, 1024, 1025):
        np.testing.assert_array_equal(fill(np.zeros(dimension), 2, sigma=0.5), full[:, :dimension])


def test_noise_far_below_a_level_never_leaves_it() -> None:
    np.testing.assert_array_equal(fill([0, 100, 255], 1000, sigma=0.0001), [[0, np.float32(100 / 255), 1]] * 1000)


def test_the_bits_are_those_of_every_other_machine() -> None:
    found = fill(np.arange(1000) % 256, 1000, sigma=0.5, seed=123456789, index=42)
    assert (
        hashlib.sha256(found.astype("<f4").tobytes()).hexdigest()
        == "a32c1bf2ab230b7c32cf4ef484a21dd70a72cbbfed582e21a750497079d6656e"
    )


def test_a_sigma_beyond_the_table_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"sigma is 4.5, too large for exact noise; pass at most 4 or use Gaussian noise"
    ):
        exact_noise(4.5)


def test_every_way_to_divide_a_byte_by_255_is_on_the_grid() -> None:
    k = np.arange(256)
    for inputs in (
        (k / 255).astype(np.float32),
        k.astype(np.float32) * np.float32(1 / 255),
        k.astype(np.float32) / np.float32(255),
    ):
        np.testing.assert_array_equal(grid_levels(inputs[:, None], k), k[:, None])


@pytest.mark.parametrize("value", [0.5, 1e-4, -1 / 255, 256 / 255, 100.5 / 255, 0.2 + 1e-6])
def test_an_input_off_the_grid_is_refused_with_its_sample(value: float) -> None:
    inputs = np.zeros((3, 2, 2), np.float32)
    inputs[1, 0, 1] = value
    with pytest.raises(InputError) as caught:
        grid_levels(inputs, np.array([10, 20, 30]))
    assert str(caught.value) == (
        f"sample 20 is not on the grid k/255: its coordinate [0, 1] is {np.float32(value):.9g}; "
        "divide bytes by 255, or use Gaussian noise"
    )
