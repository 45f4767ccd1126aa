from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certcal import InputError
from certcal.calibrators import (
    Calibrator,
    CertifiedIsotonic,
    EqualMassBinning,
    HistogramBinning,
    IsotonicCalibration,
    NotFittedError,
    OneVsRest,
    PlattScaling,
    TopLabel,
)
from tests.calibrators import naive_maps as naive

BOTH = [TopLabel(HistogramBinning(bins=5)), TopLabel(PlattScaling(), per_class=True), OneVsRest(IsotonicCalibration())]

both = pytest.mark.parametrize("one", BOTH, ids=repr)


def drawn(seed, n=80, classes=4):
    rng = np.random.default_rng([seed, 16])
    logits = 2 * rng.normal(size=(n, classes))
    labels = np.where(rng.random(n) < 0.6, logits.argmax(axis=1), rng.integers(0, classes, n))
    return logits, labels


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.integers(2, 5), st.booleans(), st.booleans())
def test_top_label_maps_the_largest_and_shares_the_rest_in_proportion(seed, classes, per_class, weighted):
    logits, y = drawn(seed, 60, classes)
    w = np.random.default_rng(seed).random(60) if weighted else None
    p = softmax(logits)
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
    logits, y = drawn(seed, 60, classes)
    w = np.random.default_rng(seed).random(60) if weighted else None
    p = softmax(logits)
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


@both
def test_the_given_calibrator_is_not_touched(one):
    made = one.unfitted()
    made.fit(*drawn(0))
    assert not made.calibrator.__sklearn_is_fitted__()


@both
def test_it_comes_back_from_json_bit_for_bit(one):
    logits, y = drawn(1)
    fitted = one.unfitted().fit(logits, y)
    again = Calibrator.from_dict(json.loads(json.dumps(fitted.to_dict(), allow_nan=False)))
    assert again.to_dict() == fitted.to_dict()
    assert np.array_equal(again.predict_proba(logits), fitted.predict_proba(logits))
    assert again.classes_.tolist() == [0, 1, 2, 3]


@both
def test_huge_logits_and_two_samples_are_served(one):
    found = one.unfitted().fit([[1e4, -1e4], [1e308, -1e308]], [0, 1]).predict_proba([[1e308, -1e308], [0.0, 0.0]])
    assert found.sum(axis=1) == pytest.approx([1.0, 1.0])


@both
def test_what_cannot_be_used_is_refused_with_a_sentence(one):
    logits, y = drawn(2)
    with pytest.raises(NotFittedError, match="is not fitted; call fit first"):
        one.unfitted().predict_proba(logits)
    fitted = one.unfitted().fit(logits, y)
    with pytest.raises(InputError, match=r"scores have 2 columns; this .* was fitted to 4 classes"):
        fitted.predict_proba(logits[:, :2])
    with pytest.raises(InputError, match=r"scores\[0, 1\] is nan"):
        fitted.predict_proba([[0.0, np.nan, 0.0, 0.0]])
    with pytest.raises(InputError, match="labels"):
        one.unfitted().fit(logits, y + 1)
    with pytest.raises(InputError, match="lengths differ"):
        one.unfitted().fit(logits, y[:-1])
    with pytest.raises(InputError, match="inputs is 'scores'; pass one of 'logits', 'probabilities'"):
        one.unfitted().set_params(inputs="scores").fit(logits, y)


@pytest.mark.parametrize("wrong", [None, "isotonic", CertifiedIsotonic(), TopLabel(PlattScaling())])
@pytest.mark.parametrize("kind", [TopLabel, OneVsRest])
def test_something_that_is_no_map_of_outcomes_is_refused(kind, wrong):
    with pytest.raises(InputError, match="pass a map that is fitted to confidences and outcomes, such as Isotonic"):
        kind(wrong).fit(*drawn(3))


@pytest.mark.parametrize(
    "change",
    [
        {"classes": 1},
        {"classes": "4"},
        {"maps": {"4": None}},
        {"maps": {"-1": None}},
        {"maps": {"1": {}}},
        {"maps": []},
        {"pooled": None},
        {"pooled": PlattScaling().to_dict()},
        {"pooled": TopLabel(PlattScaling()).to_dict()},
    ],
)
def test_a_damaged_state_is_refused(change):
    document = TopLabel(PlattScaling(), per_class=True).fit(*drawn(4)).to_dict()
    document["fitted"] |= change
    with pytest.raises(InputError):
        Calibrator.from_dict(document)
