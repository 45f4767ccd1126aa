"""All bin counts from one sort: the same bits as a pass over the samples for each."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certcal import Predictions, measure, metrics
from certcal.binning import bin_table, equal_mass_edges, equal_width_edges
from certcal.metrics import STUDY_BINS, _measure
from certcal.metrics._measure import classwise_errors, score_tables

FIELDS = ("edges", "count", "weight", "squared_weight", "confidence_sum", "correct_sum")


def matrix(n, classes, kind, dtype, seed):
    """Probabilities that are smooth, that lie on the edges of bins, or that are 0 and 1 (by rounding a bit above)."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(classes, 0.5), n)
    if kind == "decimals":
        p = rng.multinomial(20, p) / 20
    elif kind == "certain":
        p = np.where(np.arange(classes) == rng.integers(0, classes, (n, 1)), 1 + 5e-7, -0.0)
    return p.astype(dtype), rng.integers(0, classes, n)


cases = given(
    st.integers(1, 300),
    st.integers(2, 10),
    st.sampled_from(["smooth", "decimals", "certain"]),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from(["left", "right"]),
    st.lists(st.sampled_from([1, 2, 3, 7, *STUDY_BINS]), min_size=1, max_size=4, unique=True),
    st.integers(0, 2**32),
)


@cases
def test_classwise_errors_from_one_sort_are_those_of_their_functions_to_the_last_bit(
    n, k, kind, dtype, closed, bins, s
):
    p, y = matrix(n, k, kind, dtype, s)
    found = classwise_errors(p, y, tuple(bins), closed)
    for count in bins:
        assert found[count] == (
            metrics.classwise_ece(p, y, count, closed=closed),
            metrics.classwise_equal_mass_ece(p, y, count, closed=closed),
        )


@cases
def test_bin_tables_from_one_sort_are_those_of_the_binning_to_the_last_bit(n, k, kind, dtype, closed, bins, s):
    p, y = matrix(n, k, kind, dtype, s)
    z, c = np.minimum(p.max(axis=1), 1), (p.argmax(axis=1) == y).astype(np.uint8)
    found = score_tables(z, c, tuple(bins), closed)
    for count in bins:
        expected = (
            bin_table(z, c, equal_width_edges(count), closed),
            bin_table(z, c, equal_mass_edges(z, count, closed), closed),
        )
        for one, other in zip(found[count], expected, strict=True):
            for name in FIELDS:
                assert getattr(one, name).dtype == getattr(other, name).dtype
                assert np.array_equal(getattr(one, name), getattr(other, name)), name


def test_short_floats_keep_their_own_edges():
    z, c = (np.arange(11) / 10).astype(np.float16), np.arange(11, dtype=np.uint8) % 2
    assert score_tables(z, c, (10,), "left")[10][0].count.tolist() == [1] * 9 + [2]
    assert score_tables(z, c, (10,), "right")[10][0].count.tolist() == [2] + [1] * 9


def test_sums_of_more_samples_than_fit_one_word_are_exact():
    n = 40_000  # of confidences near 1: their sum in units of 2⁻⁵⁰ is beyond 2⁶³
    p = np.tile([[0.9999, 0.0001]], (n, 1))
    y = np.zeros(n, np.int64)
    y[:4] = 1
    found = classwise_errors(p, y, (2, 3), "left")
    for count in (2, 3):
        assert found[count] == (
            metrics.classwise_ece(p, y, count),
            metrics.classwise_equal_mass_ece(p, y, count),
        )


def test_measure_gives_the_same_rows_whether_samples_are_sorted_or_passed_over(monkeypatch):
    p, y = matrix(500, 6, "smooth", np.float32, 3)
    predictions = Predictions.from_probabilities(p, y)
    for bins in (15, STUDY_BINS):
        by_sorting = measure(predictions, bins=bins, metrics="all")
        with monkeypatch.context() as patch:
            patch.setattr(_measure, "MOST_SORTED", 0)
            by_passes = measure(predictions, bins=bins, metrics="all")
        for one, other in zip(by_sorting, by_passes, strict=True):
            assert (one.name, one.settings, one.value) == (other.name, other.settings, other.value)


@pytest.mark.parametrize("threads", ["1", "2"])
def test_classwise_errors_do_not_depend_on_threads(threads, monkeypatch):
    p, y = matrix(400, 1100, "smooth", np.float64, 4)
    expected = metrics.classwise_ece(p, y, 20), metrics.classwise_equal_mass_ece(p, y, 20)
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    assert classwise_errors(p, y, (5, 20), "left")[20] == expected
