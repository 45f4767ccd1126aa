"""Proper scores, their decomposition, discrimination, and the harmonic score."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax
from scipy.stats import mannwhitneyu

from certcal import InputError
from certcal.metrics import (
    accuracy,
    auroc,
    brier_decomposition,
    brier_score,
    ece,
    harmonic_calibration_score,
    harmonic_score,
    nll,
    top_label_brier_score,
    top_label_nll,
)
from tests import naive

CLOSE = {"rel": 1e-12, "abs": 1e-12, "nan_ok": True}
MANY = 450_001


# ---------------------------------------------------------------------------------------------------------- definitions


@given(naive.weighted(30))
def test_scores_of_confidences_agree_with_their_definitions(data):
    z, c, w = data
    assert accuracy(c, sample_weight=w) == pytest.approx(naive.accuracy(c, w), **CLOSE)
    assert top_label_brier_score(z, c, sample_weight=w) == pytest.approx(naive.top_label_brier_score(z, c, w), **CLOSE)
    assert top_label_nll(z, c, sample_weight=w) == pytest.approx(naive.top_label_nll(z, c, w), **CLOSE)
    assert auroc(z, c, sample_weight=w) == pytest.approx(naive.auroc(z, c, w), **CLOSE)


@given(naive.classified())
def test_scores_of_rows_agree_with_their_definitions(data):
    p, y, w = data
    assert brier_score(p, y, sample_weight=w) == pytest.approx(naive.brier_score(p, y, w), **CLOSE)
    assert nll(p, y, sample_weight=w) == pytest.approx(naive.nll(p, y, w), **CLOSE)


@given(st.integers(0, 2**32), st.sampled_from([1e-3, 1.0, 30.0, 1e4]), st.sampled_from([np.float32, np.float64]))
def test_log_likelihood_of_logits_agrees_with_its_definition(seed, scale, dtype):
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(20, 7)) * scale).astype(dtype)
    y = rng.integers(0, 7, 20)
    w = rng.random(20) + 0.1
    expected = naive.nll_from_logits(x, y, w)
    assert nll(x, y, from_logits=True, sample_weight=w) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(naive.weighted(), st.one_of(st.integers(1, 20), st.integers(1, 200)), st.sampled_from(["left", "right"]))
def test_each_term_of_the_decomposition_agrees_with_its_own_definition(data, bins, closed):
    z, c, w = data
    found = brier_decomposition(z, c, bins, closed=closed, sample_weight=w)
    expected = naive.brier_decomposition(naive.groups(z, c, naive.equal_width_edges(bins), closed, w))
    for name in ("reliability", "resolution", "uncertainty", "within_bin"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), **CLOSE)


@given(naive.weighted(), naive.own_edges())
def test_the_decomposition_adds_up_to_the_brier_score_for_any_bins(data, edges):
    z, c, w = data
    parts = brier_decomposition(z, c, edges=edges, sample_weight=w)
    total = parts.reliability - parts.resolution + parts.uncertainty + parts.within_bin
    assert total == pytest.approx(top_label_brier_score(z, c, sample_weight=w), **CLOSE)


@given(st.floats(0, 1), st.lists(st.integers(0, 1), min_size=1, max_size=50), st.integers(1, 20))
def test_equal_confidences_have_no_spread_within_bins_at_all(z, correct, bins):
    assert brier_decomposition([z] * len(correct), correct, bins).within_bin == 0


@given(naive.weighted(), st.integers(1, 40), st.sampled_from([0.1, 1.0, 2.0, 3.0]))
def test_the_harmonic_score_is_the_weighted_harmonic_mean_of_accuracy_and_calibration(data, bins, beta):
    z, c, w = data
    expected = naive.harmonic_score(naive.accuracy(c, w), naive.ece(z, c, bins, w=w), beta)
    found = harmonic_calibration_score(z, c, bins, beta=beta, sample_weight=w)
    assert found == pytest.approx(expected, **CLOSE)
    assert found == pytest.approx(harmonic_score(naive.accuracy(c, w), ece(z, c, bins, sample_weight=w), beta), **CLOSE)


def test_the_harmonic_score_of_no_number_is_none_and_of_per_cent_is_refused():
    assert math.isnan(harmonic_score(math.nan, 0.1))
    assert math.isnan(harmonic_score(0.9, math.nan))
    assert harmonic_score(0.0, 1.0) == 0
    for pair, name in (((93.9, 0.04), "accuracy"), ((0.9, 4.2), "calibration_error"), ((-0.1, 0.1), "accuracy")):
        with pytest.raises(InputError, match=f"{name} is .*; pass a share from 0 to 1"):
            harmonic_score(*pair)


# --------------------------------------------------------------------------------------------------------- many samples


@pytest.mark.parametrize("dtype", naive.DTYPES)
@pytest.mark.parametrize("weigh", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_scores_of_many_samples_on_several_threads_agree_with_plain_sums(monkeypatch, dtype, weigh, threads):
    monkeypatch.setattr("certcal._base.threads.thread_count", lambda: threads)
    rng = np.random.default_rng(0)
    z = rng.beta(3, 1, MANY).astype(dtype) * dtype(0.998) + dtype(0.001)
    c = (rng.random(MANY) < 0.7).astype(np.uint8)
    w = rng.gamma(1.0, size=MANY) if weigh else None
    exact = z.astype(np.longdouble)
    assert accuracy(c, sample_weight=w) == pytest.approx(np.average(c, weights=w), **CLOSE)
    squares = float(np.average((c - exact) ** 2, weights=w))
    assert top_label_brier_score(z, c, sample_weight=w) == pytest.approx(squares, **CLOSE)
    losses = float(np.average(-np.log(np.where(c, exact, 1 - exact)), weights=w))
    assert top_label_nll(z, c, sample_weight=w) == pytest.approx(losses, **CLOSE)
    p = np.stack((z, dtype(1) - z), axis=1)
    y = (1 - c).astype(np.int64)
    distances = ((p.astype(np.longdouble) - np.eye(2)[y]) ** 2).sum(axis=1)
    assert brier_score(p, y, sample_weight=w) == pytest.approx(float(np.average(distances, weights=w)), **CLOSE)
    chosen = -np.log(p.astype(np.longdouble)[np.arange(MANY), y])
    assert nll(p, y, sample_weight=w) == pytest.approx(float(np.average(chosen, weights=w)), **CLOSE)


@pytest.mark.parametrize("dtype", naive.DTYPES)
def test_the_area_of_many_samples_is_the_mann_whitney_statistic(dtype):
    rng = np.random.default_rng(1)
    z = rng.beta(3, 1, MANY).astype(dtype)
    c = (rng.random(MANY) < z).astype(np.uint8)
    good, bad = z[c == 1].astype(np.float64), z[c == 0].astype(np.float64)
    u = mannwhitneyu(good, bad).statistic
    assert auroc(z, c) == pytest.approx(u / good.size / bad.size, rel=1e-12)
    assert auroc(z, c, sample_weight=np.full(MANY, 0.3)) == pytest.approx(u / good.size / bad.size, rel=1e-10)


def test_log_likelihood_of_many_logits_agrees_with_scipy():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(300_000, 10)) * 4
    y = rng.integers(0, 10, 300_000)
    expected = -log_softmax(x, axis=1)[np.arange(y.size), y].mean()
    assert nll(x, y, from_logits=True) == pytest.approx(expected, rel=1e-12)


# ----------------------------------------------------------------------------------------------------------- properties


@given(naive.scored())
def test_the_area_is_the_mann_whitney_statistic_over_the_number_of_pairs(pair):
    z, c = pair[0].astype(np.float64), pair[1]
    good, bad = z[c == 1], z[c == 0]
    if good.size and bad.size:
        expected = mannwhitneyu(good, bad).statistic / (good.size * bad.size)
        assert auroc(z, c) == pytest.approx(expected, **CLOSE)
        assert auroc(z, 1 - c) == pytest.approx(1 - expected, **CLOSE)
    else:
        assert math.isnan(auroc(z, c))


@given(naive.scored(dtypes=(np.float64,)))
def test_the_area_depends_only_on_the_order_of_the_confidences(pair):
    z, c = pair
    ranks = np.searchsorted(np.unique(z), z) / z.size
    assert auroc(ranks, c) == pytest.approx(auroc(z, c), **CLOSE)


@given(naive.classified())
def test_the_brier_score_lies_between_zero_and_two_and_is_twice_the_top_label_score_for_two_classes(data):
    p, y, w = data
    assert 0 <= brier_score(p, y, sample_weight=w) <= 2 + 1e-2
    if p.shape[1] == 2:
        z = p[:, 1].astype(np.float64)
        both = np.stack((1 - z, z), axis=1)
        expected = 2 * top_label_brier_score(z, y, sample_weight=w)
        assert brier_score(both, y, sample_weight=w) == pytest.approx(expected, **CLOSE)


@pytest.mark.parametrize("tiny", [1e-6, 1e-8, 1e-9, 3e-9, 1e-12, 1e-16])
def test_a_nearly_certain_and_right_prediction_has_a_brier_score_that_is_small_and_not_negative(tiny):
    assert 0 <= brier_score([[1 - tiny, tiny]], [0]) <= 3 * tiny**2 + 1e-15


@given(naive.weighted(), st.integers(1, 40))
def test_reliability_resolution_and_uncertainty_are_not_negative_and_resolution_at_most_uncertainty(data, bins):
    z, c, w = data
    parts = brier_decomposition(z, c, bins, sample_weight=w)
    assert min(parts.reliability, parts.resolution) >= 0
    assert 0 <= parts.uncertainty <= 0.25 + 1e-15
    assert parts.resolution <= parts.uncertainty + 1e-14


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.1, 10))
def test_the_harmonic_score_lies_between_accuracy_and_one_minus_the_error(share, error, beta):
    found = harmonic_score(share, error, beta)
    low, high = sorted((share, 1 - error))
    assert low - 1e-12 <= found <= high + 1e-12


# --------------------------------------------------------------------------------------------------- decided edge cases


def test_log_likelihoods_are_infinite_when_what_happened_had_probability_zero():
    assert nll([[1.0, 0.0], [0.5, 0.5]], [1, 0]) == math.inf
    assert top_label_nll([1.0, 0.5], [0, 1]) == math.inf
    assert top_label_nll([0.0, 0.5], [1, 1]) == math.inf
    assert top_label_nll([0.0, 1.0], [0, 1]) == 0


def test_an_infinite_loss_of_weight_zero_does_not_count():
    assert nll([[1.0, 0.0], [0.5, 0.5]], [1, 0], sample_weight=[0, 3]) == pytest.approx(math.log(2))
    assert top_label_nll([1.0, 0.5], [0, 1], sample_weight=[0, 3]) == pytest.approx(math.log(2))
    assert nll([[1.0, 0.0], [0.5, 0.5]], [1, 0], sample_weight=[0.1, 3]) == math.inf


def test_log_likelihoods_of_huge_logits_are_finite_or_infinite_but_not_an_overflow():
    assert nll([[1000.0, 0.0]], [1], from_logits=True) == 1000
    assert nll([[1e30, -1e30]], [0], from_logits=True) == 0
    assert nll([[1e308, -1e308]], [1], from_logits=True) == math.inf


def test_log_likelihood_keeps_the_digits_of_tiny_probabilities():
    assert nll([[1.0, 1e-300]], [1]) == pytest.approx(300 * math.log(10), rel=1e-14)
    assert top_label_nll([1e-18], [0]) == pytest.approx(1e-18, rel=1e-12)
    assert top_label_nll([np.nextafter(1, 0)], [0]) == pytest.approx(53 * math.log(2), rel=1e-14)


@pytest.mark.parametrize("c", [[1, 1, 1], [0, 0, 0]])
def test_the_area_is_undefined_when_all_are_right_or_all_are_wrong(c):
    assert math.isnan(auroc([0.1, 0.5, 0.9], c))
    assert math.isnan(auroc([0.1, 0.5, 0.9], c, sample_weight=[1, 2, 3]))
    assert math.isnan(auroc([0.1, 0.5, 0.9], [1, 1, 0], sample_weight=[1, 1, 0]))


def test_the_area_counts_ties_half_and_order_fully():
    assert auroc([0.1, 0.9], [0, 1]) == 1
    assert auroc([0.9, 0.1], [0, 1]) == 0
    assert auroc([0.5, 0.5], [0, 1]) == 0.5
    assert auroc([0.2, 0.5, 0.5, 0.9], [0, 0, 1, 1]) == 0.875


def test_a_harmonic_score_of_nothing_is_zero():
    assert harmonic_score(0.0, 1.0) == 0
    assert harmonic_calibration_score([1.0], [0]) == 0
    assert harmonic_calibration_score([1.0], [1]) == 1


def test_the_decomposition_cannot_be_changed():
    parts = brier_decomposition([0.5], [1])
    with pytest.raises(dataclasses.FrozenInstanceError):
        parts.reliability = 0.0
