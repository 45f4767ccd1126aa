"""Calibrators as scikit-learn's estimators."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import estimator_checks as checks
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from certcal.calibrators import (
    BetaCalibration,
    CertifiedBeta,
    CertifiedIsotonic,
    CertifiedMap,
    CertifiedTemperature,
    Chain,
    ConfidenceChain,
    EqualMassBinning,
    HistogramBinning,
    IsotonicCalibration,
    MatrixScaling,
    OneVsRest,
    PlattScaling,
    TemperatureScaling,
    TopLabel,
    VectorScaling,
)

CONFIDENCE = [
    PlattScaling(targets="outcomes"),
    BetaCalibration(parameters="am"),
    IsotonicCalibration(),
    HistogramBinning(bins=4),
    EqualMassBinning(bins=4, closed="right"),
    ConfidenceChain([PlattScaling(), HistogramBinning()]),
    CertifiedIsotonic(tradeoff=0.25),
    CertifiedTemperature(tradeoff=0.25),
    CertifiedBeta(tradeoff=1.0),
]
SCORES = [
    TopLabel(HistogramBinning(bins=3), per_class=True),
    OneVsRest(IsotonicCalibration()),
    Chain([TopLabel(PlattScaling())]),
    TemperatureScaling(),
    VectorScaling(penalty=2.0),
    MatrixScaling(off_diagonal_penalty=10.0),
]
every_one = pytest.mark.parametrize("one", [*CONFIDENCE, *SCORES], ids=repr)

# Checks that need no samples.
WITHOUT_SAMPLES = [
    checks.check_estimator_cloneable,
    checks.check_estimator_repr,
    checks.check_no_attributes_set_in_init,
    checks.check_get_params_invariance,
    checks.check_set_params,
    checks.check_valid_tag_types,
    checks.check_estimator_tags_renamed,
    checks.check_mixin_order,
]

LABELS = "labels are the numbers of the columns; the check has more labels than columns, or other ones"
ARGUMENTS = "the arguments are called scores and labels, and both are needed"
SENTENCES = "the error is there, in certcal's words: which entry, and what to do"
COLUMNS = "columns are classes and are counted by classes_; another number is refused, in certcal's words"
PREDICTIONS = "it keeps the predictions of the scores, which the check takes for features to learn from"
NO_IMPORT = "certcal.calibrators.NotFittedError is raised; scikit-learn's would have to be imported to be raised"
NUMBERS = "arrays of Python objects are refused rather than converted"

# What a map of scores does not do as scikit-learn's own classifiers, and why.
OTHERWISE = {
    "check_fit_score_takes_y": ARGUMENTS,
    "check_requires_y_none": SENTENCES,
    "check_sample_weight_equivalence_on_dense_data": ARGUMENTS,
    "check_transformer_data_not_an_array": ARGUMENTS,
    "check_transformer_general": ARGUMENTS,
    "check_estimators_overwrite_params": LABELS,
    "check_estimators_fit_returns_self": LABELS,
    "check_readonly_memmap_input": LABELS,
    "check_sample_weights_pandas_series": LABELS,
    "check_sample_weights_not_an_array": LABELS,
    "check_sample_weights_shape": LABELS,
    "check_sample_weights_not_overwritten": LABELS,
    "check_classifier_data_not_an_array": LABELS,
    "check_classifiers_classes": LABELS,
    "check_supervised_y_2d": "labels in one column are taken as they are, without a warning",
    "check_all_zero_sample_weights_error": SENTENCES,
    "check_complex_data": SENTENCES,
    "check_estimators_empty_data_messages": SENTENCES,
    "check_estimators_nan_inf": SENTENCES,
    "check_classifiers_regression_target": SENTENCES,
    "check_fit2d_1feature": SENTENCES,
    "check_fit2d_predict1d": SENTENCES,
    "check_dtype_object": NUMBERS,
    "check_n_features_in": COLUMNS,
    "check_n_features_in_after_fitting": COLUMNS,
    "check_classifiers_one_label": PREDICTIONS,
    "check_classifiers_train": PREDICTIONS,
    "check_estimators_unfitted": NO_IMPORT,
}


def results(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of checks that do not apply
        return checks.check_estimator(estimator, on_fail=None, on_skip=None)


def drawn(n=300):
    rng = np.random.default_rng(19)
    z = rng.random(n)
    return z, (rng.random(n) < z**2).astype(int)


def scored(n=300):
    rng = np.random.default_rng(20)
    logits = 2 * rng.normal(size=(n, 3))
    return logits, np.where(rng.random(n) < 0.7, logits.argmax(axis=1), rng.integers(0, 3, n))


@every_one
@pytest.mark.parametrize("check", WITHOUT_SAMPLES, ids=lambda check: check.__name__)
def test_checks_that_need_no_samples_pass(one, check):
    assert check(type(one).__name__, one) is None


@pytest.mark.parametrize("one", CONFIDENCE, ids=repr)
def test_maps_of_confidences_pass_what_is_asked_of_estimators_with_one_column(one):
    found = results(one)
    assert found
    assert [each["check_name"] for each in found if each["status"] == "failed"] == []


def test_maps_of_scores_differ_from_other_classifiers_where_it_is_written_down_and_nowhere_else():
    found = results(TopLabel(PlattScaling()))
    assert {each["check_name"] for each in found if each["status"] == "failed"} == set(OTHERWISE)
    assert sum(each["status"] == "passed" for each in found) > 30


@every_one
def test_a_clone_has_the_parameters_and_is_not_fitted(one):
    sample = scored() if one in SCORES else drawn()
    if isinstance(one, CertifiedMap):
        z, correct = sample
        sample = (z / 2, (1 + z) / 2, correct, z)
    one = one.unfitted().fit(*sample)
    other = clone(one)
    assert repr(other) == repr(one)
    assert other is not one
    assert not other.__sklearn_is_fitted__()


@every_one
def test_scikit_learn_knows_what_they_are(one):
    tags = get_tags(one)
    assert tags.target_tags.required
    assert is_classifier(one) == (one in SCORES)
    assert is_regressor(one) == (one in CONFIDENCE)
    assert (tags.input_tags.one_d_array, tags.input_tags.two_d_array) == (one in CONFIDENCE, one in SCORES)


def test_scikit_learn_sees_whether_they_are_fitted():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        check_is_fitted(PlattScaling())
    fitted = PlattScaling().fit(*drawn())
    check_is_fitted(fitted)
    assert fitted.slope_ > 0


def test_a_pipeline_of_maps_is_their_chain():
    z, c = drawn()
    steps = [PlattScaling(), HistogramBinning(bins=5)]
    pipeline = Pipeline([("scale", clone(steps[0])), ("bin", clone(steps[1]))]).fit(z, c)
    assert np.array_equal(pipeline.predict(z), ConfidenceChain(steps).fit(z, c).transform(z))


@pytest.mark.parametrize(
    ("one", "name"),
    [
        (HistogramBinning(), "bins"),
        (EqualMassBinning(), "bins"),
        (ConfidenceChain([PlattScaling(), HistogramBinning()]), "1__bins"),
        (Pipeline([("scale", PlattScaling()), ("bin", HistogramBinning())]), "bin__bins"),
    ],
    ids=["histogram", "equal-mass", "chain", "pipeline"],
)
def test_the_number_of_bins_can_be_searched_for(one, name):
    search = GridSearchCV(one, {name: [1, 6, 300]}, scoring="neg_mean_squared_error", cv=3, error_score="raise")
    search.fit(*drawn())
    assert search.best_params_ == {name: 6}


def test_parameters_of_a_map_inside_can_be_searched_for():
    one = TopLabel(HistogramBinning())
    search = GridSearchCV(one, {"calibrator__bins": [1, 3]}, scoring="neg_log_loss", cv=3, error_score="raise")
    search.fit(*scored())
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.classes_.tolist() == [0, 1, 2]
