"""The calibration error that chooses its own number of bins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from certcal import _threads
from certcal.metrics import equal_mass_ece, sweep_ece
from certcal.metrics.binned import sweep_bins
from tests import naive

CLOSE = {"rel": 1e-12, "abs": 1e-12}


@settings(max_examples=150)
@given(naive.weighted(25))
def test_the_error_agrees_with_its_definition(data):
    z, c, w = data
    expected, fell = naive.sweep_ece(z, c, w)
    assume(fell or w is None)  # with weights and no fall see the test about whole weights
    assert sweep_ece(z, c, sample_weight=w) == pytest.approx(expected, **CLOSE)


@settings(max_examples=150)
@given(st.integers(0, 2**32), st.integers(2, 30), st.floats(0, 1))
def test_the_error_of_mostly_sorted_outcomes_agrees_with_its_definition(seed, n, mixed):
    # Outcomes that rise with the confidence except for a few allow many bins.
    rng = np.random.default_rng(seed)
    z = rng.random(n)
    c = np.where(rng.random(n) < mixed * 0.3, rng.random(n) < 0.5, z > 0.5).astype(np.uint8)
    assert sweep_ece(z, c) == pytest.approx(naive.sweep_ece(z, c)[0], **CLOSE)


def most_rising(z, c):
    """The number of equal-mass bins before an accuracy falls for the first time, by sorting and counting."""
    order = np.argsort(z, kind="stable")
    z, right = z[order], np.concatenate(([0], np.cumsum(c[order], dtype=np.int64)))
    bins = 1
    while True:
        edges = z[[k * z.size // (bins + 1) for k in range(1, bins + 1)]]
        ends = np.unique(np.concatenate(([0], np.searchsorted(z, edges, side="left"), [z.size])))
        if (np.diff(np.diff(right[ends]) / np.diff(ends)) < -1e-12).any():
            return bins
        bins += 1


@pytest.mark.parametrize("dtype", naive.DTYPES)
def test_many_samples_use_the_last_number_of_bins_before_an_accuracy_falls(monkeypatch, dtype):
    rng = np.random.default_rng(0)
    z = rng.random(450_001).astype(dtype)
    c = (rng.random(z.size) < z).astype(np.uint8)
    bins = most_rising(z, c)
    assert bins > 10
    for threads in (1, 3):
        monkeypatch.setattr(_threads, "thread_count", lambda threads=threads: threads)
        assert sweep_bins(z, c, None) == bins
        assert sweep_ece(z, c) == pytest.approx(equal_mass_ece(z, c, bins), **CLOSE)
    equal = np.full(z.size, 0.5)
    assert sweep_ece(z, c, sample_weight=equal) == pytest.approx(equal_mass_ece(z, c, bins), **CLOSE)


@settings(max_examples=60)
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
