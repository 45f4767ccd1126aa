from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from certcal import InputError
from certcal.calibrators import (
    CertifiedIsotonic,
    EqualMassBinning,
    HistogramBinning,
    IsotonicCalibration,
    OneVsRest,
    PlattScaling,
    TopLabel,
)
from tests.calibrators import naive_maps as naive
from tests.calibrators.naive_maps import scored

BOTH = [TopLabel(HistogramBinning(bins=5)), TopLabel(PlattScaling(), per_class=True), OneVsRest(IsotonicCalibration())]

both = pytest.mark.parametrize("one", BOTH, ids=repr)


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.integers(2, 5), st.booleans(), st.booleans())
def test_top_label_maps_the_largest_and_shares_the_rest_in_proportion(seed, classes, per_class, weighted):
    logits, y = scored(seed, 60, classes)
    w = np.random.default_rng(seed).random(60) if weighted else None
    p = softmax(logits, axis=1)
    fitted = TopLabel(EqualMassBinning(bins=3), per_class=per_class).fit(logits, y, w)
    top, z = p.argmax(axis=1), p.max(axis=1)

    @cache
    def twin(k):
        rows = top == k if per_class and (top == k).any() else np.ones(60, bool)
        return EqualMassBinning(bins=3).fit(z[rows], (top == y)[rows], None if w is None else w[rows])

    found = fitted.predict_proba(logits)
    assert found == pytest.approx(naive.top_label(p, twin), abs=1e-12)
    assert found.sum(axis=1) == pytest.approx(np.ones(60), abs=1e-12)


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.integers(2, 5), st.booleans())
def test_one_vs_rest_maps_every_class_and_normalises(seed, classes, weighted):
    logits, y = scored(seed, 60, classes)
    w = np.random.default_rng(seed).random(60) if weighted else None
    p = softmax(logits, axis=1)
    found = OneVsRest(HistogramBinning(bins=4)).fit(logits, y, w).predict_proba(logits)
    mapped = np.stack([HistogramBinning(bins=4).fit(p[:, k], y == k, w).transform(p[:, k]) for k in range(classes)], 1)
    for i, row in enumerate(mapped):
        assert found[i] == pytest.approx(row / row.sum() if row.sum() > 0 else p[i], abs=1e-12)


def test_predictions_of_top_label_stay_even_where_another_class_gets_more():
    p = np.array([[0.6, 0.4], [0.7, 0.3], [0.55, 0.45]])
    fitted = TopLabel(HistogramBinning(bins=1), inputs="probabilities").fit(p, [1, 1, 0])
    assert fitted.predict_proba(p)[:, 0] == pytest.approx([1 / 3] * 3)
    assert fitted.predict(p).tolist() == [0, 0, 0]


def test_logits_that_differ_less_than_their_probabilities_show_are_still_told_apart():
    logits = np.array([[0.0, 1e-17], [1.0, 0.0]])
    assert TopLabel(HistogramBinning(bins=1)).fit(logits, [1, 0]).predict(logits).tolist() == [1, 0]


def test_a_class_that_was_never_predicted_is_served_by_the_map_of_all():
    p = np.array([[0.9, 0.1, 0.0], [0.8, 0.1, 0.1], [0.1, 0.7, 0.2]])
    fitted = TopLabel(HistogramBinning(bins=1), per_class=True, inputs="probabilities").fit(p, [0, 1, 1])
    assert sorted(fitted.maps_) == [0, 1]
    assert fitted.predict_proba([[0.1, 0.1, 0.8]])[0, 2] == pytest.approx(2 / 3)
    assert fitted.predict_proba([[0.8, 0.1, 0.1]])[0, 0] == pytest.approx(1 / 2)


def test_a_class_whose_samples_have_no_weight_is_served_by_the_map_of_all():
    p = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9]])
    fitted = TopLabel(HistogramBinning(bins=1), per_class=True, inputs="probabilities").fit(p, [0, 1, 1], [1, 1, 0])
    assert sorted(fitted.maps_) == [0]


def test_a_certain_prediction_leaves_equal_shares_to_the_others():
    fitted = TopLabel(HistogramBinning(bins=1), inputs="probabilities").fit([[1, 0, 0], [0, 1, 0]], [0, 2])
    assert fitted.predict_proba([[0, 0, 1.0]]).tolist() == [[0.25, 0.25, 0.5]]


def test_a_row_that_one_vs_rest_maps_to_nothing_keeps_its_probabilities():
    p = [[0.6, 0.4], [0.6, 0.4], [0.9, 0.1], [0.1, 0.9]]
    maps = OneVsRest(HistogramBinning(bins=10), inputs="probabilities").fit(p, [1, 1, 0, 1])
    maps.maps_[1] = maps.maps_[1].unfitted().fit([0.4, 0.1], [0, 0])
    assert maps.predict_proba([[0.6, 0.4]]) == pytest.approx(np.array([[0.6, 0.4]]))


def test_probabilities_are_binned_as_they_are_given():
    p = np.array([[0.7, 0.3], [0.7, 0.3]])
    fitted = TopLabel(HistogramBinning(bins=10), inputs="probabilities").fit(p, [0, 0])
    assert fitted.pooled_.counts_["inside"].tolist() == [0, 0, 0, 0, 0, 0, 0, 2, 0, 0]


@pytest.mark.parametrize("wrong", [None, "isotonic", CertifiedIsotonic(), TopLabel(PlattScaling())])
@pytest.mark.parametrize("kind", [TopLabel, OneVsRest])
def test_something_that_is_no_map_of_outcomes_is_refused(kind, wrong):
    with pytest.raises(InputError, match="pass a map that is fitted to confidences and outcomes, such as Isotonic"):
        kind(wrong).fit(*scored(3))
