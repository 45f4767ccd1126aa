"""Calibration errors without bins: the largest deviation of a cumulative sum, found without sorting everything."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certcal.metrics import ece, equal_mass_ece, ks_error, kuiper_error
from certcal.metrics.cumulative import extremes
from tests import naive

CLOSE = {"rel": 1e-12, "abs": 1e-12}


@given(naive.weighted())
def test_errors_agree_with_their_definitions(data):
    z, c, w = data
    assert ks_error(z, c, sample_weight=w) == pytest.approx(naive.ks_error(z, c, w), **CLOSE)
    assert kuiper_error(z, c, sample_weight=w) == pytest.approx(naive.kuiper_error(z, c, w), **CLOSE)


@given(st.integers(0, 2**32), st.integers(1, 400), st.sampled_from([1e-3, 1e-7, 1e-12]), st.booleans())
def test_errors_agree_when_all_confidences_share_few_buckets(seed, n, width, weigh):
    rng = np.random.default_rng(seed)
    centre = rng.random() * 0.9
    z = centre + width * rng.random(n)
    c = rng.random(n) < centre
    w = rng.random(n) if weigh else None
    assert ks_error(z, c, sample_weight=w) == pytest.approx(naive.ks_error(z, c, w), **CLOSE)
    assert kuiper_error(z, c, sample_weight=w) == pytest.approx(naive.kuiper_error(z, c, w), **CLOSE)


def reference(z, c, w):
    """Sorted and summed in extended precision: a full sort, but not a loop."""
    order = np.argsort(z, kind="stable")
    z, c = z[order].astype(np.longdouble), c[order]
    w = np.ones(z.size) if w is None else w[order].astype(np.longdouble)
    reached = np.cumsum(w * (c - z))[np.append(z[1:] != z[:-1], True)] / w.sum()
    high, low = max(0.0, float(reached.max())), min(0.0, float(reached.min()))
    return max(high, -low), high - low


SHAPES = {
    "calibrated": lambda rng, n: rng.random(10 * n),  # so many that buckets are as fine as they become
    "near one": lambda rng, n: 1 - 10.0 ** rng.uniform(-9, 0, n),
    "near zero": lambda rng, n: 10.0 ** rng.uniform(-12, 0, n),
    "hundredths": lambda rng, n: rng.integers(0, 101, n) / 100,
    "narrow": lambda rng, n: 0.7 + 1e-6 * rng.random(n),
}


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("make", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize("dtype", naive.DTYPES)
@pytest.mark.parametrize("weigh", [False, True])
def test_errors_of_many_samples_on_several_threads_agree_with_a_full_sort(monkeypatch, make, dtype, weigh):
    rng = np.random.default_rng(0)
    z = make(rng, 45_001).astype(dtype)
    c = (rng.random(z.size) < z.astype(np.float64)).astype(np.uint8)
    w = rng.gamma(1.0, size=z.size) if weigh else None
    expected = reference(z, c, w)
    for threads in (1, 3):
        monkeypatch.setattr("certcal._base.threads.thread_count", lambda threads=threads: threads)
        assert ks_error(z, c, sample_weight=w) == pytest.approx(expected[0], **CLOSE)
        assert kuiper_error(z, c, sample_weight=w) == pytest.approx(expected[1], **CLOSE)


@pytest.mark.parametrize(("value", "weight"), [(0.1, None), (0.8, 0.1)])
def test_millions_of_equal_confidences_do_not_lose_digits(value, weight):
    n, right = 3_000_000, 1_000_000
    z, c = np.full(n, value), np.zeros(n, np.uint8)
    c[:right] = 1
    w = None if weight is None else np.full(n, weight)
    expected = float(abs(Fraction(right, n) - Fraction(value)))
    assert ks_error(z, c, sample_weight=w) == pytest.approx(expected, **CLOSE)
    assert kuiper_error(z, c, sample_weight=w) == pytest.approx(expected, **CLOSE)


@given(naive.weighted())
def test_ks_is_at_most_kuiper_and_kuiper_at_most_twice_ks(data):
    z, c, w = data
    ks, kuiper = ks_error(z, c, sample_weight=w), kuiper_error(z, c, sample_weight=w)
    assert 0 <= ks <= kuiper + 1e-15
    assert kuiper <= 2 * ks + 1e-15


@given(naive.weighted(), st.integers(1, 40))
def test_both_are_at_most_the_mean_absolute_gap_and_at_least_the_mean_gap(data, bins):
    z, c, w = data
    gaps = c - z.astype(np.float64)
    assert abs(np.average(gaps, weights=w)) <= ks_error(z, c, sample_weight=w) + 1e-14
    assert kuiper_error(z, c, sample_weight=w) <= np.average(np.abs(gaps), weights=w) + 1e-14
    # With every distinct confidence in a bin of its own no interval can deviate more than the sum over bins.
    finest = [0.0, *np.unique(z).astype(np.float64).tolist(), 1.0]
    assert kuiper_error(z, c, sample_weight=w) <= ece(z, c, edges=finest, sample_weight=w) + 1e-14


@given(naive.scored(dtypes=(np.float64,)))
def test_kuiper_is_the_same_seen_from_the_other_end(pair):
    z, c = np.round(pair[0] * 1024) / 1024, pair[1]
    assert kuiper_error(1 - z, 1 - c) == pytest.approx(kuiper_error(z, c), **CLOSE)


@given(naive.weighted(), st.integers(0, 5), st.randoms(use_true_random=False))
def test_the_cumulative_sum_does_not_depend_on_the_blocks_it_is_read_in(data, pieces, random):
    z, c, w = data
    places = sorted(random.sample(range(1, z.size), min(pieces, z.size - 1)))
    parts = list(
        zip(
            np.split(z, places),
            np.split(c, places),
            [None] * (len(places) + 1) if w is None else np.split(w, places),
            strict=True,
        )
    )
    low, high = extremes(lambda: iter(parts), spread=True)
    reached = naive.cumulative(z, c, w)
    assert low == pytest.approx(float(min(reached)), **CLOSE)
    assert high == pytest.approx(float(max(reached)), **CLOSE)


def test_ties_move_the_sum_together():
    # One at a time the sum would reach 0.5 before it falls back.
    assert ks_error([0.5, 0.5], [1, 0]) == 0
    assert kuiper_error([0.5, 0.5], [1, 0]) == 0


def test_the_sum_starts_at_zero_which_counts_for_kuiper():
    assert kuiper_error([0.5], [1]) == 0.5
    assert kuiper_error([0.5], [0]) == 0.5
    assert ks_error([0.5], [0]) == 0.5


def test_confidences_of_exactly_zero_and_one_count():
    assert ks_error([0.0, 1.0], [1, 0]) == 0.5
    assert kuiper_error([0.0, 1.0], [1, 1]) == 0.5
    assert kuiper_error([0.0, 1.0], [0, 0]) == 0.5
    assert ks_error([0.0, 1.0], [0, 1]) == 0


def test_two_opposite_deviations_make_kuiper_larger_than_ks():
    z, c = [0.1] * 5 + [0.9] * 10, [1] * 5 + [0] * 10
    assert ks_error(z, c) == pytest.approx(4.5 / 15)
    assert kuiper_error(z, c) == pytest.approx(9 / 15)


def test_ks_of_one_bin_worth_of_confidences_is_the_error_of_that_bin():
    z, c = [0.25] * 8, [1, 0, 0, 0, 1, 1, 1, 0]
    assert ks_error(z, c) == ece(z, c) == equal_mass_ece(z, c) == 0.25
