"""Calibrators as scikit-learn's estimators."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import estimator_checks as checks
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from certcal import InputError
from certcal.calibrators import (
    BetaCalibration,
    Calibrator,
    CertifiedBeta,
    CertifiedIsotonic,
    CertifiedMap,
    CertifiedTemperature,
    EqualMassBinning,
    HistogramBinning,
    IsotonicCalibration,
    MatrixScaling,
    OneVsRest,
    PlattScaling,
    QuadraticScaling,
    SplineScaling,
    StructuredMatrixScaling,
    TemperatureScaling,
    TopLabel,
    Unchanged,
    UnchangedScores,
    VectorScaling,
    VennAbers,
    load,
    save,
)

CONFIDENCE = [
    PlattScaling(targets="outcomes"),
    BetaCalibration(parameters="am"),
    IsotonicCalibration(),
    HistogramBinning(bins=4),
    EqualMassBinning(bins=4, closed="right"),
    QuadraticScaling(),
    SplineScaling(),
    VennAbers(),
    Unchanged(),
    CertifiedIsotonic(tradeoff=0.25),
    CertifiedTemperature(tradeoff=0.25),
    CertifiedBeta(tradeoff=1.0),
]
SCORES = [
    TopLabel(HistogramBinning(bins=3), per_class=True),
    OneVsRest(IsotonicCalibration()),
    TemperatureScaling(),
    VectorScaling(penalty=2.0),
    MatrixScaling(off_diagonal_penalty=10.0),
    StructuredMatrixScaling(),
    UnchangedScores(),
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

LABELS = "columns are classes, and the check has more labels than columns"
SENTENCES = "the error is there, in certcal's words: which entry, and what to do"
COLUMNS = "columns are classes; another number is refused, in certcal's words"
PREDICTIONS = "a class keeps its column: scores are repaired, and not features that anything is learned from"
NUMBERS = "arrays of Python objects are refused rather than converted"
ONE_COLUMN = "labels in one column are taken as they are, without a warning"

# Refused or taken otherwise than scikit-learn's own estimators do, whatever is calibrated.
OTHERWISE = {
    "check_complex_data": SENTENCES,
    "check_dtype_object": NUMBERS,
    "check_estimators_empty_data_messages": SENTENCES,
    "check_estimators_nan_inf": SENTENCES,
    "check_requires_y_none": SENTENCES,
    "check_supervised_y_2d": ONE_COLUMN,
}
OF_SCORES = OTHERWISE | {
    "check_estimators_overwrite_params": LABELS,
    "check_estimators_fit_returns_self": LABELS,
    "check_readonly_memmap_input": LABELS,
    "check_sample_weights_pandas_series": LABELS,
    "check_sample_weights_not_an_array": LABELS,
    "check_sample_weights_shape": LABELS,
    "check_sample_weights_not_overwritten": LABELS,
    "check_classifier_data_not_an_array": LABELS,
    "check_classifiers_classes": LABELS,
    "check_classifiers_regression_target": SENTENCES,
    "check_fit2d_1feature": SENTENCES,
    "check_fit2d_predict1d": SENTENCES,
    "check_n_features_in_after_fitting": COLUMNS,
    "check_classifiers_train": PREDICTIONS,
}
# Others than vectors and matrices keep the predictions even where all labels are the same.
OF_TOP_LABELS = OF_SCORES | {"check_classifiers_one_label": PREDICTIONS}

UNTOUCHED = "the check's own numbers are no confidences and outcomes: outside [0, 1], several columns, three labels"
OF_CONFIDENCES = OTHERWISE | {
    "check_positive_only_tag_during_fit": UNTOUCHED,
    "check_sample_weights_pandas_series": UNTOUCHED,
    "check_sample_weights_not_an_array": UNTOUCHED,
    "check_sample_weights_shape": UNTOUCHED,
    "check_sample_weights_not_overwritten": UNTOUCHED,
    "check_sample_weight_equivalence_on_dense_data": UNTOUCHED,
    "check_n_features_in_after_fitting": "the check leaves out one of several columns, and there is one",
    "check_regressors_train": "there is no score method: a map of confidences is judged by metrics",
    "check_fit2d_predict1d": "confidences without columns are what it takes, so they are not refused",
}


def differing(estimator, expected):
    """Checks that fail and are not expected to, and those that are expected to and pass."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of checks that do not apply
        found = checks.check_estimator(estimator, expected_failed_checks=expected, on_fail=None, on_skip=None)
    assert sum(each["status"] == "passed" for each in found) > 40
    failed = {each["check_name"] for each in found if each["status"] == "failed"}
    return failed, expected.keys() - {each["check_name"] for each in found if each["status"] == "xfail"}


def squashed(X):
    """Any features as one column of confidences."""
    return 1 / (1 + np.exp(-np.asarray(X, float)[:, [0]]))


def halved(y):
    """Any labels as outcomes."""
    y = np.asarray(y, float)
    return (y > np.median(y)).astype(int)


def drawn(n=300):
    rng = np.random.default_rng(19)
    z = rng.random(n)
    return z, (rng.random(n) < z**2).astype(int)


def scored(n=300):
    rng = np.random.default_rng(20)
    logits = 2 * rng.normal(size=(n, 3))
    return logits, np.where(rng.random(n) < 0.7, logits.argmax(axis=1), rng.integers(0, 3, n))


@every_one
def test_checks_that_need_no_samples_pass(one):
    assert [check.__name__ for check in WITHOUT_SAMPLES if check(type(one).__name__, one) is not None] == []


@pytest.mark.parametrize("one", CONFIDENCE, ids=repr)
def test_scikit_learn_runs_one_check_of_maps_of_confidences_as_of_its_own_isotonic_regression(one):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = checks.check_estimator(one, on_skip=None)
    assert [each["check_name"] for each in found] == ["check_estimator_cloneable"]


@pytest.mark.parametrize("kind", [PlattScaling, IsotonicCalibration], ids=lambda kind: kind.__name__)
def test_on_confidences_and_outcomes_the_other_checks_pass_but_for_those_written_down(kind, monkeypatch):
    def tags(self, own=kind.__sklearn_tags__):
        found = own(self)
        found.input_tags.two_d_array = True
        return found

    def features(estimator, X, X_test=None, kernel=None):
        return squashed(X) if X_test is None else (squashed(X), squashed(X_test))

    monkeypatch.setattr(kind, "__sklearn_tags__", tags)
    monkeypatch.setattr(checks, "_enforce_estimator_tags_X", features)
    monkeypatch.setattr(checks, "_enforce_estimator_tags_y", lambda estimator, y: halved(y))
    assert differing(kind(), OF_CONFIDENCES) == (set(), set())


@pytest.mark.parametrize(
    ("one", "expected"),
    [(TopLabel(PlattScaling()), OF_TOP_LABELS), (TemperatureScaling(), OF_TOP_LABELS), (VectorScaling(), OF_SCORES)],
    ids=["TopLabel", "TemperatureScaling", "VectorScaling"],
)
def test_maps_of_scores_differ_from_other_classifiers_where_it_is_written_down_and_nowhere_else(one, expected):
    assert differing(one, expected) == (set(), set())


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


@every_one
def test_an_unfitted_map_raises_the_error_of_scikit_learn_and_of_certcal(one):
    from sklearn.exceptions import NotFittedError

    from certcal.calibrators import NotFittedError as Own

    with pytest.raises(NotFittedError, match="is not fitted; call fit first") as raised:
        one.unfitted().predict(scored()[0] if one in SCORES else drawn()[0])
    assert isinstance(raised.value, Own)
    assert pickle.loads(pickle.dumps(PlattScaling())).get_params() == {"targets": "platt", "intercept": True}


@pytest.mark.parametrize("one", SCORES, ids=repr)
@pytest.mark.parametrize("kind", ["texts", "objects", "numbers", "pandas"])
def test_labels_may_be_any_as_many_as_columns_in_their_order(one, kind, tmp_path):
    logits, labels = scored()
    names = np.array(["ape", "bee", "cat"]) if kind != "numbers" else np.array([-1, 4, 9])
    given = names[labels]
    given = {"objects": given.astype(object), "pandas": pd.Series(given, dtype="category")}.get(kind, given)
    named, numbered = one.unfitted().fit(logits, y=given), one.unfitted().fit(logits, labels)
    assert named.classes_.tolist() == names.tolist()
    assert named.n_features_in_ == 3
    assert np.array_equal(named.predict_proba(logits), numbered.predict_proba(logits))
    assert np.array_equal(named.predict(logits), names[numbered.predict(logits)])
    save(named, tmp_path / "map.json")
    again = load(tmp_path / "map.json").calibrator
    assert again.classes_.tolist() == names.tolist()
    assert np.array_equal(again.predict(logits), named.predict(logits))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a", "b", "a"], r"labels are 2 different texts, and scores have 3 columns; give samples of every class"),
        ([1, 2, 3], r"labels\[2\] is 3; labels are whole numbers from 0 to 2"),
        ([0.5, 1.5, 2.5], r"labels\[0\] is 0.5; labels are whole numbers from 0 to 2"),
        (["a", 1, None], r"labels\[0\] is 'a', not a number"),
    ],
)
def test_labels_that_do_not_tell_their_columns_are_refused(labels, message):
    with pytest.raises(InputError, match=message):
        TemperatureScaling().fit(scored(3)[0], labels)


@pytest.mark.parametrize("labels", [["a"] * 3, ["b", "a", "c"], [1, 2], ["a", "b", 3], "abc", None])
def test_labels_of_a_file_are_checked(labels):
    document = TemperatureScaling().fit(*scored()).to_dict()
    document["fitted"]["labels"] = labels
    with pytest.raises(InputError, match="labels is damaged; expected 3 different texts or whole numbers, sorted"):
        Calibrator.from_dict(document)


@pytest.mark.parametrize("one", SCORES, ids=repr)
def test_probabilities_that_are_called_logits_are_refused_by_the_fit(one):
    logits, labels = scored()
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    for given in (p, p.astype(np.float32)):
        with pytest.raises(InputError, match=r"adds up to 1, and inputs is 'logits'; pass inputs='probabilities'$"):
            one.unfitted().fit(given, labels)
    p[-1] += 0.01
    assert one.unfitted().fit(p, labels).predict_proba([[0.2, 0.3, 0.5]]).sum() == pytest.approx(1)


def test_a_pipeline_fits_each_map_to_what_the_one_before_makes_of_the_samples():
    z, c = drawn()
    pipeline = Pipeline([("scale", PlattScaling()), ("bin", HistogramBinning(bins=5))]).fit(z, c)
    scaled = PlattScaling().fit(z, c).transform(z)
    assert np.array_equal(pipeline.predict(z), HistogramBinning(bins=5).fit(scaled, c).transform(scaled))


@pytest.mark.parametrize(
    ("one", "name"),
    [
        (HistogramBinning(), "bins"),
        (EqualMassBinning(), "bins"),
        (Pipeline([("scale", PlattScaling()), ("bin", HistogramBinning())]), "bin__bins"),
    ],
    ids=["histogram", "equal-mass", "pipeline"],
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
