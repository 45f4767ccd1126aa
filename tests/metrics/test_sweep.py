"""The calibration error that chooses its own number of bins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certcal._kernels.sorted_bins import most_rising_bins
from certcal.metrics import equal_mass_ece, sweep_ece
from certcal.metrics.binned import sweep_bins
from tests import naive

CLOSE = {"rel": 1e-12, "abs": 1e-12}


@settings(max_examples=150)
@given(naive.weighted(25))
def test_the_error_agrees_with_its_definition(data):
    z, c, w = data
    assert sweep_ece(z, c, sample_weight=w) == pytest.approx(naive.sweep_ece(z, c, w), **CLOSE)


@settings(max_examples=150)
@given(st.integers(0, 2**32), st.integers(2, 30), st.floats(0, 1))
def test_the_error_of_mostly_sorted_outcomes_agrees_with_its_definition(seed, n, mixed):
    # Outcomes that rise with the confidence except for a few allow many bins.
    rng = np.random.default_rng(seed)
    z = rng.random(n)
    c = np.where(rng.random(n) < mixed * 0.3, rng.random(n) < 0.5, z > 0.5).astype(np.uint8)
    assert sweep_ece(z, c) == pytest.approx(naive.sweep_ece(z, c), **CLOSE)


def most_rising(z, c):
    """The number of equal-mass bins before an accuracy falls for the first time, by sorting and counting; 0 if none."""
    order = np.argsort(z, kind="stable")
    z, right = z[order], np.concatenate(([0], np.cumsum(c[order], dtype=np.int64)))
    bins = 1
    while bins < z.size:
        edges = z[[k * z.size // (bins + 1) for k in range(1, bins + 1)]]
        ends = np.unique(np.concatenate(([0], np.searchsorted(z, edges, side="left"), [z.size])))
        if (np.diff(np.diff(right[ends]) / np.diff(ends)) < -1e-12).any():
            return bins
        bins += 1
    return 0


@settings(max_examples=150)
@given(st.integers(0, 2**32), st.integers(2, 60), st.integers(0, 3))
def test_tied_scores_have_the_bins_of_the_definition(seed, n, rare):
    # Few values whose accuracies rise, but for a few samples; and rare values between and beyond them.
    rng = np.random.default_rng(seed)
    z = np.round(rng.random(n), 1)
    z[: min(rare, n)] = rng.random(min(rare, n)) ** rng.choice([0.02, 1.0, 50.0])
    c = np.zeros(n, np.uint8)
    for value in np.unique(z):
        same = np.flatnonzero(z == value)
        c[same[: round(value * same.size)]] = 1
    c[rng.integers(n)] ^= rng.random() < 0.7
    given = np.sort(z), np.sort(z[c == 1]), np.empty(0), np.empty(0), 1e-12
    assert most_rising_bins.compiled(*given) == most_rising_bins.interpreted(*given) == most_rising(z, c)


def test_ties_end_the_sweep_where_it_ends_by_counting():
    n = 100_000
    z = np.repeat(np.arange(1, 10) / 10, n // 10)
    right = np.concatenate([np.arange(n // 10) < k * n // 100 for k in range(1, 10)])
    assert sweep_bins(z, right.astype(np.uint8), None) is None  # no number of bins makes them fall
    # The last two samples are apart from the rest as soon as a bin holds two.
    z, c = np.append(z, [1.0, 1.0]), np.append(right, [0, 1]).astype(np.uint8)
    assert sweep_bins(z, c, None) == z.size // 2 - 1
    assert sweep_bins(z, c, np.ones(z.size)) == z.size // 2 - 1


@pytest.mark.parametrize("dtype", naive.DTYPES)
def test_many_samples_use_the_last_number_of_bins_before_an_accuracy_falls(monkeypatch, dtype):
    rng = np.random.default_rng(0)
    z = rng.random(450_001).astype(dtype)
    c = (rng.random(z.size) < z).astype(np.uint8)
    bins = most_rising(z, c)
    assert bins > 10
    for threads in (1, 3):
        monkeypatch.setattr("certcal._base.threads.thread_count", lambda threads=threads: threads)
        assert sweep_bins(z, c, None) == bins
        assert sweep_ece(z, c) == pytest.approx(equal_mass_ece(z, c, bins), **CLOSE)
    equal = np.full(z.size, 0.5)
    assert sweep_ece(z, c, sample_weight=equal) == pytest.approx(equal_mass_ece(z, c, bins), **CLOSE)


@given(naive.weighted(40))
def test_the_error_lies_between_the_mean_gap_and_the_mean_absolute_gap(data):
    z, c, w = data
    gaps = c - z.astype(np.float64)
    error = sweep_ece(z, c, sample_weight=w)
    assert abs(np.average(gaps, weights=w)) - 1e-14 <= error <= np.average(np.abs(gaps), weights=w) + 1e-14


def test_all_right_all_wrong_and_one_sample_have_the_mean_gap():
    assert sweep_ece([0.3, 0.9], [1, 1]) == pytest.approx(0.4)
    assert sweep_ece([0.3, 0.9], [0, 0]) == pytest.approx(0.6)
    assert sweep_ece([0.3], [1]) == pytest.approx(0.7)


def test_accuracies_that_stay_equal_do_not_stop_the_sweep():
    # Pairs with one right each: 2 bins have accuracies 1/2 and 1/2, 4 bins 0, 1, 0, 1.
    z, c = [0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1]
    assert sweep_bins(np.array(z), np.array(c, np.uint8), None) == 2
    assert sweep_ece(z, c) == pytest.approx(0.2)


def test_a_falling_accuracy_leaves_one_bin():
    assert sweep_ece([0.2, 0.8], [1, 0]) == 0
    assert sweep_bins(np.array([0.2, 0.8]), np.array([1, 0], np.uint8), None) == 1
