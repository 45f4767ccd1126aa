"""Noise by counter: the published words, the exact transform, the right distribution, one stream for each draw."""

import hashlib
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from certcal._kernels import noise
from tests.smoothing import naive

SELECT, COUNT = 0, 1


def draws(
    dimension: int, count: int, *, seed: int = 0, index: int = 0, stage: int = COUNT, start: int = 0, sigma: float = 1.0
) -> np.ndarray:
    """Rows of bare noise: draws start … of one sample."""
    out = np.empty((count, dimension), np.float32)
    keys = noise.key_schedule(np.uint64(seed))
    point = np.zeros((1, dimension), np.float32)
    noise.add_gaussian(point, np.array([index]), keys, stage, start, count, 0, np.float32(sigma), out)
    return out


def transformed(
    radius: Any, angle: Any, second: Any = 2**31, third: Any = 2**31
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The kernel's transform of given words, with the distances it begins with."""
    first, other, *more = (
        np.ascontiguousarray(np.broadcast_to(np.array(each, np.uint32), np.shape(radius)))
        for each in (radius, angle, second, third)
    )
    unit, distance, cosine, sine = np.empty((4, first.size), np.float32)
    noise.distances(first, first.size, distance)
    near = np.minimum(first, 2**32 - 1 - first)
    for lane in np.flatnonzero(near < 2**20):
        distance[lane] = noise.long_distance(np.int32(near[lane]), more[0][lane], more[1][lane])
    noise.box_muller(first, other, distance, first.size, unit, unit.view(np.int32), cosine, sine)
    return cosine, sine, distance


@pytest.fixture(scope="module")
def many() -> np.ndarray:
    """Thirteen million values of many samples, sorted."""
    return np.sort(np.concatenate([draws(784, 64, seed=2024, index=index).reshape(-1) for index in range(260)]))


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_the_words_are_the_published_ones(counter: str, key: str, expected: str) -> None:
    """The known answers for philox4x32, ten rounds, of the Random123 library (tests/kat_vectors)."""
    c, k, answer = ([int(word, 16) for word in text.split()] for text in (counter, key, expected))
    found = np.empty((4, 1), np.uint32)
    keys = noise.key_schedule(np.uint64(k[0] | k[1] << 32))
    noise.philox(np.uint64(c[0]), np.uint64(c[1]), np.uint64(c[2]), np.uint64(c[3]), keys, 1, found)
    assert found[:, 0].tolist() == answer
    assert list(naive.philox(c, k)) == answer


@given(
    seed=st.integers(0, 2**64 - 1),
    index=st.integers(0, 2**32 - 1),
    stage=st.sampled_from([SELECT, COUNT]),
    start=st.integers(0, 2**32 - 3),
    dimension=st.integers(1, 90),
)
def test_each_value_is_its_slow_twin(seed: int, index: int, stage: int, start: int, dimension: int) -> None:
    found = draws(dimension, 2, seed=seed, index=index, stage=stage, start=start)
    expected = [
        [naive.gaussian(seed, index, stage, start + row, coordinate) for coordinate in range(dimension)]
        for row in range(2)
    ]
    np.testing.assert_allclose(found, expected, rtol=0, atol=6.77 * 2.0**-21)


# Words where something happens: ends, powers of two and their neighbours, √½ of the unit interval, quarter turns.
EDGES = sorted(
    {(edge + shift) % 2**32 for edge in (0, *(1 << bit for bit in range(32)), 3037000500) for shift in range(-3, 4)}
)


def exact_length(radius: np.ndarray, second: np.ndarray, third: np.ndarray) -> np.ndarray:
    """√(-2 ln u) in float64, u having 96 bits where 32 are too few."""
    near = np.minimum(radius, 2**32 - 1 - radius).astype(np.float64)
    wide = near * 2.0**32 + second + (third + 0.5) * 2.0**-32
    distance = np.where(near < 2**20, wide * 2.0**-64, (near + 0.5) * 2.0**-32)
    return np.sqrt(-2 * np.where(radius < 2**31, np.log(distance), np.log1p(-distance)))


def test_the_transform_is_exact_to_two_to_the_minus_21_of_the_radius() -> None:
    rng = np.random.default_rng(0)
    edges = np.array(EDGES, np.uint64)
    radius = np.concatenate([np.repeat(edges, edges.size), rng.integers(0, 2**32, 400_000, np.uint64)])
    angle = np.concatenate([np.tile(edges, edges.size), rng.integers(0, 2**32, 400_000, np.uint64)])
    second, third = rng.integers(0, 2**32, (2, radius.size), np.uint64) >> rng.integers(
        0, 33, (2, radius.size), np.uint64
    )
    cosine, sine, _ = transformed(radius, angle, second, third)
    length = exact_length(radius, second, third)
    turn = 2 * np.pi * angle.astype(np.uint32).astype(np.int32) / 2**32
    assert np.abs(cosine - length * np.cos(turn)).max() > 0  # it is float32, after all
    assert np.all(np.abs(cosine - length * np.cos(turn)) <= length * 2.0**-21)
    assert np.all(np.abs(sine - length * np.sin(turn)) <= length * 2.0**-21)


def test_each_value_is_next_to_one_of_an_exactly_gaussian_pair() -> None:
    """All 96 bits of u, and an angle of many bits, are real numbers that words stand for: how far are the values?"""
    rng = np.random.default_rng(7)
    radius, angle, second, third = rng.integers(0, 2**32, (4, 400_000), np.uint64)
    radius[:100_000] >>= rng.integers(0, 33, 100_000, np.uint64)
    radius[50_000:100_000] = 2**32 - 1 - radius[50_000:100_000]
    cosine, sine, _ = transformed(radius, angle, second, third)
    near = np.minimum(radius, 2**32 - 1 - radius)
    away = (near + (second + third * 2.0**-32) * 2.0**-32) * 2.0**-32
    length = np.sqrt(-2 * np.where(radius < 2**31, np.log(away), np.log1p(-away)))
    turn = 2 * np.pi * (angle.astype(np.uint32).astype(np.int32) + rng.random(radius.size)) / 2**32
    far = np.maximum(np.abs(cosine - length * np.cos(turn)), np.abs(sine - length * np.sin(turn))) / length
    assert far.max() <= 2.0**-20
    assert far.max() > 2.0**-23


@pytest.mark.parametrize("more", [(), (0, 0), (0, 1), (1, 0), (2**32 - 1, 2**32 - 1)])
def test_the_float64_twin_of_the_transform_is_exact(more: tuple[int, ...]) -> None:
    with mpmath.workdps(60):
        for radius in EDGES[::3]:
            near = min(radius, 2**32 - 1 - radius)
            for word in more:
                near = 2**32 * near + word
            distance = (near + mpmath.mpf(0.5)) / 2 ** (32 + 32 * len(more))
            length = mpmath.sqrt(-2 * mpmath.log(distance if radius < 2**31 else 1 - distance))
            for angle in EDGES[::7]:
                turn = 2 * mpmath.pi * angle / 2**32
                cosine, sine = naive.pair(radius, angle, more)
                assert abs(cosine - length * mpmath.cos(turn)) < 1e-14
                assert abs(sine - length * mpmath.sin(turn)) < 1e-14


# ------------------------------------------------------------------------------------------ both ends of the radius


def test_tails_reach_beyond_eleven_and_a_half_and_both_ends_are_finite() -> None:
    cosine, sine, _ = transformed([0, 0, 0, 0, 2**32 - 1], [0, 2**30, 2**31, 3 * 2**30, 0], 0, 0)
    largest = np.sqrt(194 * np.log(2))
    assert largest > 11.5
    np.testing.assert_allclose(cosine[[0, 2]], [largest, -largest], rtol=1e-6)
    np.testing.assert_allclose(sine[[1, 3]], [largest, -largest], rtol=1e-6)
    np.testing.assert_allclose(cosine[4], 2.0**-48, rtol=1e-6)


def forced(word: int, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """What the transform makes of one first word of the radius and random other words."""
    angle, second, third = np.random.default_rng(seed).integers(0, 2**32, (3, count), np.uint64)
    return transformed(np.full(count, word), angle, second, third)[:2]


def test_the_tail_beyond_the_first_word_has_the_law_it_should() -> None:
    """Given that the first word is 0, which happens once in 2³² pairs, radius²/2 - 32 ln 2 is exponential."""
    cosine, sine = (each.astype(np.float64) for each in forced(0, 200_000, 0))
    excess = (cosine**2 + sine**2) / 2 - 32 * np.log(2)
    assert stats.kstest(excess, "expon").pvalue > 0.005
    assert np.hypot(cosine, sine).max() > 8  # 32 bits alone would end at 6.77, at one and the same radius


@pytest.mark.parametrize("beyond", [6.77, 7.0, 7.5, 7.8])
def test_values_beyond_six_and_three_quarters_are_as_frequent_as_normal_ones(beyond: float) -> None:
    """A value beyond 6.67 comes from a first word 0, so given that word, its probability is 2³² times as large."""
    values = np.concatenate(forced(0, 200_000, 1))
    probability = 2.0**32 * special.ndtr(-beyond)
    for side in (values, -values):
        count = int(np.count_nonzero(side > beyond))
        assert 0.001 < stats.binom.cdf(count, values.size, probability) < 0.9995
    assert np.count_nonzero(np.abs(values) > beyond) > 0


def test_radii_next_to_nought_have_the_law_they_should() -> None:
    """Given that the first word is the last one, 1 - exp(-radius²/2) is uniform below 2⁻³²: no hole at the origin."""
    cosine, sine = (each.astype(np.float64) for each in forced(2**32 - 1, 200_000, 2))
    assert stats.kstest(2.0**32 * -np.expm1(-(cosine**2 + sine**2) / 2), "uniform").pvalue > 0.005
    assert np.hypot(cosine, sine).min() < 2.0**-22  # 32 bits alone would give 2⁻¹⁶ always


def test_the_law_is_continued_where_more_bits_begin_and_end() -> None:
    """Radii fall and never jump as the bits of u grow, through the ends of the ranges with 32 and with 96 bits."""
    edge = 2**20
    low = np.repeat(np.arange(edge - 3, edge + 3), 3)
    second = np.tile(np.array([0, 2**31, 2**32 - 1]), 6)
    for words in (low, 2**32 - 1 - low):
        _, _, distance = transformed(words, np.zeros(18, int), second, second)
        exact = (low + np.where(low < edge, (second + 0.5) / 2**32, 0.5)) / 2**32
        np.testing.assert_allclose(distance, exact, rtol=2.0**-23)
        assert np.all(np.diff(distance) >= 0)


@pytest.mark.parametrize(
    ("draw", "coordinate", "word"),
    [
        (461356, 614, 0),
        (14392141, 126, 0),
        (15302339, 521, 0),
        (18990519, 580, 1),
        (19862, 598, 2**32 - 1),
        (5525686, 717, 2**32 - 1),
        (22701218, 802, 2**32 - 2),
    ],
)
def test_first_words_at_the_ends_happen_and_go_on_as_the_slow_twin_does(draw: int, coordinate: int, word: int) -> None:
    """One radius in two thousand million; these were looked for."""
    block, place = naive.block_and_place(coordinate)
    assert naive.words(6, 0, COUNT, draw, block)[place - place % 2] == word
    found = draws(1024, 1, seed=6, start=draw)[0, coordinate]
    expected = naive.gaussian(6, 0, COUNT, draw, coordinate)
    short = naive.pair(*naive.words(6, 0, COUNT, draw, block)[place - place % 2 :][:2])[place % 2]
    assert abs(found - expected) <= 2.0**-21 * 12
    assert abs(found - expected) <= 1e-5 * abs(expected)
    assert abs(short - expected) > 1e-3 * abs(expected)


def test_radii_with_more_bits_are_those_of_the_slow_twin() -> None:
    """One radius in a thousand has them: all of those in two hundred draws, one by one."""
    seed, dimension = 17, 1024
    found = draws(dimension, 200, seed=seed)
    seen = 0
    for draw in range(200):
        for block in range(dimension // 4):
            words = naive.words(seed, 0, COUNT, draw, block)
            for k in (0, 2):
                if naive.is_short(words[k]):
                    seen += 1
                    for place in (k, k + 1):
                        coordinate = 32 * (block // 8) + 8 * place + block % 8
                        expected = naive.gaussian(seed, 0, COUNT, draw, coordinate)
                        assert abs(found[draw, coordinate] - expected) <= 2.0**-21 * 12
                        assert abs(found[draw, coordinate] - expected) <= 2.0**-19 * abs(expected) + 2.0**-28
    assert 20 < seen < 90


# --------------------------------------------------------------------------------------------------- the whole law


def test_the_transform_takes_equally_often_each_sign_and_axis() -> None:
    rng = np.random.default_rng(1)
    radius, angle = rng.integers(0, 2**32, (2, 1000), np.uint64)
    cosine, sine, _ = transformed(radius, angle)
    for quarter, (c, s) in enumerate([(cosine, sine), (-sine, cosine), (-cosine, -sine), (sine, -cosine)]):
        turned = transformed(radius, (angle + quarter * 2**30) % 2**32)
        np.testing.assert_array_equal(turned[0], c)
        np.testing.assert_array_equal(turned[1], s)


def test_values_have_the_normal_distribution(many: np.ndarray) -> None:
    """At thirteen million values chance allows a deviation of 4.5e-4."""
    n = many.size
    expected = special.ndtr(many.astype(np.float64))
    distance = np.abs(np.arange(1, n + 1) / n - expected).max()
    assert distance < stats.kstwobign.isf(0.01) / np.sqrt(n)
    assert stats.kstwobign.isf(0.01) / np.sqrt(n) < 5e-4


def test_moments_are_those_of_the_normal_distribution(many: np.ndarray) -> None:
    value = many.astype(np.float64)
    power = np.ones_like(value)
    for exponent, expected, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96), (5, 0, 945), (6, 15, 10170)):
        power *= value
        assert abs(power.mean() - expected) < 3 * np.sqrt(variance / many.size), exponent


@pytest.mark.parametrize("beyond", [0.001, 0.01, 0.1, 1.0, 2.0, 3.0, 4.0, 5.0])
def test_tails_and_centre_hold_as_many_values_as_they_should(many: np.ndarray, beyond: float) -> None:
    probability = special.ndtr(-beyond)
    for side in (many, -many[::-1]):
        count = side.size - np.searchsorted(side, beyond)
        assert 0.001 < stats.binom.cdf(count, side.size, probability) < 0.9995


def correlation(one: np.ndarray, two: np.ndarray) -> float:
    """Correlation in units of its standard deviation for independent values."""
    one, two = one.reshape(-1).astype(np.float64), two.reshape(-1).astype(np.float64)
    return float(np.mean(one * two) * np.sqrt(one.size))


STREAM = {"seed": 11, "index": 5, "stage": COUNT, "start": 1000}


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 12},
        {"seed": 11 + 2**32},
        {"index": 6},
        {"index": 5 + 2**31},
        {"stage": SELECT},
        {"start": 1000 + 2000},
        {"start": 1000 + 2**31},
    ],
)
@pytest.mark.parametrize("power", [1, 2])
def test_streams_are_independent_of_each_other(other: dict[str, int], power: int) -> None:
    """Two million pairs: a correlation of 3e-3, of values or of their squares, would be found."""
    one, two = draws(1024, 2000, **STREAM), draws(1024, 2000, **(STREAM | other))
    assert not np.any(one == two, axis=1).all()
    centre, scale = (0, 1) if power == 1 else (1, np.sqrt(2))
    assert abs(correlation((one**power - centre) / scale, (two**power - centre) / scale)) < 3.5


@pytest.mark.parametrize("lag", [1, 2, 7, 8, 16, 24, 32, 256, 1000])
@pytest.mark.parametrize("power", [1, 2])
def test_coordinates_and_draws_are_independent_of_each_other(lag: int, power: int) -> None:
    """Lags 8 and 16 meet the two values of one radius, and the two halves of one block."""
    values = (draws(1024, 3000, seed=3) ** power - (power == 2)) / np.sqrt(power)
    assert abs(correlation(values[:, :-lag], values[:, lag:])) < 3.5
    assert abs(correlation(values[:-1], values[1:])) < 3.5


def test_projections_on_random_directions_are_normal() -> None:
    """What a linear classifier sees: sums over all coordinates of one draw."""
    directions = np.random.default_rng(4).normal(size=(784, 5))
    sums = draws(784, 40_000, seed=9).astype(np.float64) @ (directions / np.linalg.norm(directions, axis=0))
    assert all(stats.kstest(column, "norm").pvalue > 0.005 for column in sums.T)
    squares = (draws(784, 40_000, seed=9).astype(np.float64) ** 2).sum(axis=1)
    assert stats.kstest(squares, stats.chi2(784).cdf).pvalue > 0.005


def test_a_coordinate_does_not_depend_on_how_many_there_are() -> None:
    full = draws(3000, 3, seed=1, index=2)
    for dimension in (1, 2, 3, 7, 8, 9, 31, 32, 33, 100, 784, 1023, 1024, 1025, 2999):
        np.testing.assert_array_equal(draws(dimension, 3, seed=1, index=2), full[:, :dimension])


def test_values_never_repeat_across_the_chunks_of_a_long_row() -> None:
    row = draws(40_000, 1)[0]
    assert np.unique(row).size > 39_900  # a few float32 coincide by chance; a repeated chunk would be a thousand


def test_rows_follow_the_sequence_of_samples_and_draws_from_any_position() -> None:
    rng = np.random.default_rng(0)
    points, indices = rng.random((4, 37), np.float32), np.array([9, 2, 70_000, 4_294_967_295])
    keys = noise.key_schedule(np.uint64(77))
    whole = np.empty((20, 37), np.float32)
    noise.add_gaussian(points, indices, keys, COUNT, 100, 5, 0, np.float32(0.25), whole)
    for place, index in enumerate(indices):
        bare = draws(37, 5, seed=77, index=int(index), start=100)
        np.testing.assert_array_equal(
            whole[5 * place : 5 * place + 5], points[place] + np.float32(0.25) * bare, err_msg=str(index)
        )
    for first in range(20):
        part = np.empty((min(7, 20 - first), 37), np.float32)
        noise.add_gaussian(points, indices, keys, COUNT, 100, 5, first, np.float32(0.25), part)
        np.testing.assert_array_equal(part, whole[first : first + 7])


def test_the_bits_are_those_of_every_other_machine() -> None:
    """No fused operation, no library's logarithm: these digits change if a single bit of a million values does."""
    digest = hashlib.sha256(draws(1000, 1000, seed=123456789, index=42).astype("<f4").tobytes()).hexdigest()
    assert digest == "bd6c710f522dfdb87c0a57d1b4d58b631ec3d87e879363a9af4c188023473496"


def test_every_operation_is_rounded_on_its_own() -> None:
    """The same formula, one float32 operation of NumPy's after the other: nothing is fused, reordered or widened."""
    rng = np.random.default_rng(8)
    radius, angle = rng.integers(0, 2**32, (2, 300_000), np.uint64)
    radius[: len(EDGES)] = EDGES
    radius[-100_000:] >>= 12  # radii with more bits, which would be one in a thousand
    second, third = rng.integers(0, 2**32, (2, 300_000), np.uint64)
    cosine, sine, distance = transformed(radius, angle, second, third)
    first = radius.astype(np.uint32)
    away = naive.distance_in_float32(first, second, third)
    np.testing.assert_array_equal(distance, away)
    expected = naive.box_muller_in_float32(first, angle.astype(np.uint32), away)
    np.testing.assert_array_equal(cosine, expected[0])
    np.testing.assert_array_equal(sine, expected[1])


def test_a_mean_or_standard_deviation_off_by_a_thousandth_would_be_found(many: np.ndarray) -> None:
    """The tests of moments can fail: moved or scaled by a thousandth, the same values leave the allowed range."""
    assert abs(np.mean(many.astype(np.float64) + 1e-3)) > 3 * np.sqrt(1 / many.size)
    assert abs(np.mean((many.astype(np.float64) * 1.001) ** 2) - 1) > 3 * np.sqrt(2 / many.size)
