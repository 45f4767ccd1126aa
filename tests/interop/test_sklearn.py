"""A classifier and its calibrator as one estimator of scikit-learn, and metrics as scorers."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.metrics import log_loss, make_scorer
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils import estimator_checks as checks

from certcal import InputError, Predictions, metrics
from certcal.calibrators import (
    HistogramBinning,
    IsotonicCalibration,
    MatrixScaling,
    OneVsRest,
    PlattScaling,
    TemperatureScaling,
    TopLabel,
    save,
)
from certcal.interop.sklearn import CalibratedModel, CalibrationScorer, ece_loss, ece_scorer

X, Y = make_classification(900, n_features=20, n_informative=3, n_redundant=15, random_state=3)
TEXTS = np.array(["good", "bad"])[Y]
X3, Y3 = make_classification(900, n_features=8, n_informative=5, n_classes=3, random_state=4)
FIT, REST = slice(600), slice(600, None)


@pytest.mark.parametrize("calibrator", ["auto", TemperatureScaling(), "isotonic"], ids=repr)
def test_every_check_of_scikit_learn_passes(calibrator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = checks.check_estimator(CalibratedModel(GaussianNB(), calibrator, cv=3), on_fail=None, on_skip=None)
    assert [each["check_name"] for each in found if each["status"] == "failed"] == []
    assert sum(each["status"] == "passed" for each in found) > 55


@pytest.mark.parametrize(
    "calibrator", ["auto", "beta", "histogram", "vector", PlattScaling(), TopLabel(PlattScaling())]
)
@pytest.mark.parametrize(("x", "y"), [(X, TEXTS), (X3, Y3)], ids=["two texts", "three numbers"])
def test_probabilities_are_those_of_the_classes_and_better_than_before(calibrator, x, y):
    model = CalibratedModel(GaussianNB(), calibrator).fit(x[FIT], y[FIT])
    p = model.predict_proba(x[REST])
    assert p.shape == (300, np.unique(y).size)
    assert np.allclose(p.sum(axis=1), 1)
    assert model.classes_.tolist() == np.unique(y).tolist()
    assert np.array_equal(model.predict(x[REST]), model.classes_[p.argmax(axis=1)])
    loss = log_loss if calibrator == "auto" else ece_loss  # what it is chosen by
    assert loss(y[REST], p) < loss(y[REST], GaussianNB().fit(x[FIT], y[FIT]).predict_proba(x[REST]))
    assert model.score(x[REST], y[REST]) > 0.6


def test_the_scores_of_the_fit_are_those_of_other_folds():
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    model = CalibratedModel(RandomForestClassifier(20, random_state=0), "platt", cv=folds, ensemble=False).fit(X, Y)
    out = cross_val_predict(RandomForestClassifier(20, random_state=0), X, Y, cv=folds, method="predict_proba")[:, 1]
    assert model.calibrator_.slope_ == PlattScaling().fit(out, Y).slope_
    whole = RandomForestClassifier(20, random_state=0).fit(X, Y)
    assert np.array_equal(model.estimators_[0].predict_proba(X), whole.predict_proba(X))


def test_an_ensemble_is_the_mean_of_the_classifiers_of_the_folds_after_the_map():
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    model = CalibratedModel(RandomForestClassifier(20, random_state=0), "platt", cv=folds).fit(X, TEXTS)
    parts = [
        RandomForestClassifier(20, random_state=0).fit(X[train], TEXTS[train]).predict_proba(X)[:, 1]
        for train, _ in folds.split(X, TEXTS)
    ]
    expected = np.mean([model.calibrator_.transform(part) for part in parts], axis=0)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expected, atol=1e-12)
    one = CalibratedModel(RandomForestClassifier(20, random_state=0), "platt", cv=folds, ensemble=False).fit(X, TEXTS)
    assert (len(model.estimators_), len(one.estimators_)) == (4, 1)
    assert model.calibrator_.to_dict() == one.calibrator_.to_dict()


def test_a_forest_is_not_worse_than_it_was_nor_than_the_sigmoid_of_scikit_learn():
    """Votes of 0 and 1 had so much leverage that the map made the Brier score worse."""
    losses = []
    for seed in range(3):
        x, y = make_classification(3000, n_features=20, n_informative=6, flip_y=0.1, random_state=seed)
        fit, rest = slice(2000), slice(2000, None)
        forest = RandomForestClassifier(15, random_state=seed)
        models = (CalibratedModel(forest, cv=3), forest, CalibratedClassifierCV(forest, cv=3))
        losses.append([((m.fit(x[fit], y[fit]).predict_proba(x[rest])[:, 1] - y[rest]) ** 2).mean() for m in models])
    ours, none, sigmoid = np.mean(losses, axis=0)
    assert ours < min(none - 0.004, sigmoid + 0.001)


def test_a_fitted_classifier_is_used_as_it_is_and_clones_keep_it():
    fitted = GaussianNB().fit(X[FIT], TEXTS[FIT])
    model = CalibratedModel(fitted, "platt", cv="prefit")
    other = clone(model)
    assert other.estimator is fitted
    assert not hasattr(other, "calibrator_")
    held_out = X[REST], TEXTS[REST]
    p = fitted.predict_proba(held_out[0])[:, 1]
    assert model.fit(*held_out).calibrator_.slope_ == PlattScaling().fit(p, TEXTS[REST] == "good").slope_
    assert model.estimators_ == [fitted]
    frozen = CalibratedModel(FrozenEstimator(fitted), "platt").fit(*held_out)
    assert frozen.calibrator_.slope_ == model.calibrator_.slope_
    assert (cross_val_score(model, *held_out, scoring=ece_scorer, error_score="raise") < 0).all()


def test_scikit_learn_s_own_calibration_of_a_frozen_classifier_has_the_same_isotonic_map():
    fitted = GaussianNB().fit(X[FIT], Y[FIT])
    theirs = CalibratedClassifierCV(FrozenEstimator(fitted), method="isotonic", ensemble=False).fit(X[REST], Y[REST])
    ours = CalibratedModel(fitted, "isotonic", cv="prefit").fit(X[REST], Y[REST])
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-9)


def test_margins_count_as_logits_so_that_scaling_them_is_platt_s_own():
    margins = cross_val_predict(LinearSVC(), X, Y, cv=5, method="decision_function")
    model = CalibratedModel(LinearSVC(), "platt").fit(X, Y)
    assert model.calibrator_.slope_ == pytest.approx(PlattScaling().fit(1 / (1 + np.exp(-margins)), Y).slope_)
    assert np.isfinite(log_loss(Y, model.predict_proba(X)))
    logits = CalibratedModel(LinearSVC(), TemperatureScaling()).fit(X3, Y3)
    assert logits.predict_proba(X3).shape == (900, 3)
    probabilities = CalibratedModel(LinearSVC(), TemperatureScaling(inputs="probabilities")).fit(X3, Y3)
    assert probabilities.calibrator_.temperature_ == pytest.approx(logits.calibrator_.temperature_)
    forest = CalibratedModel(RandomForestClassifier(5, random_state=0), MatrixScaling(inputs="logits")).fit(X3, Y3)
    assert np.isfinite(log_loss(Y3, forest.predict_proba(X3)))


def test_margins_of_any_size_are_calibrated():
    small, large = LinearSVC().fit(X[FIT], Y[FIT]), LinearSVC().fit(X[FIT], Y[FIT])
    large.coef_, large.intercept_ = 1e4 * small.coef_, 1e4 * small.intercept_
    one, other = (CalibratedModel(each, "platt", cv="prefit").fit(X[REST], Y[REST]) for each in (small, large))
    assert (one.unit_, other.unit_ > 100) == (1, True)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-4)  # ends are cut off


def test_the_default_takes_margins_as_real_scores_on_whatever_scale():
    words = np.array(["no", "yes"])[Y]
    small, large = LinearSVC().fit(X[FIT], words[FIT]), LinearSVC().fit(X[FIT], words[FIT])
    large.coef_, large.intercept_ = 1e4 * small.coef_, 1e4 * small.intercept_
    one, other = (CalibratedModel(each, cv="prefit").fit(X[REST], words[REST]) for each in (small, large))
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-9)
    assert {each.method for each in one.choice_.tried}.isdisjoint({"none"})
    folds = CalibratedModel(LinearSVC()).fit(X, words)
    assert folds.classes_.tolist() == ["no", "yes"]
    assert log_loss(words, folds.predict_proba(X)) < log_loss(words, np.full((Y.size, 2), 0.5)) - 0.1


def test_the_default_never_makes_the_log_loss_infinite_even_where_a_forest_is_certain():
    for x, y in ((X, Y), (X3, Y3)):
        model = CalibratedModel(RandomForestClassifier(3, random_state=0)).fit(x[FIT], y[FIT])
        p = model.predict_proba(x[REST])
        assert p.min() > 0
        assert np.isfinite(np.log(p[np.arange(300), y[REST]])).all()


def test_features_may_be_a_frame_inside_a_pipeline():
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(20)])
    model = CalibratedModel(make_pipeline(StandardScaler(), GaussianNB())).fit(frame[FIT], pd.Series(TEXTS[FIT]))
    assert model.feature_names_in_.tolist() == list(frame.columns)
    assert model.n_features_in_ == 20
    outer = make_pipeline(StandardScaler(), CalibratedModel(GaussianNB())).fit(frame[FIT], TEXTS[FIT])
    np.testing.assert_allclose(outer.predict_proba(frame[REST]), model.predict_proba(frame[REST]), atol=1e-3)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[REST].rename(columns={"x0": "other"}))


def test_the_calibrator_and_the_classifier_can_be_searched_over():
    grid = {"calibrator": ["platt", HistogramBinning(5)], "estimator__var_smoothing": [1e-9, 1e-3]}
    search = GridSearchCV(CalibratedModel(GaussianNB(), cv=3), grid, scoring=ece_scorer, cv=3, error_score="raise")
    search.fit(X, TEXTS)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    inner = CalibratedModel(GaussianNB(), HistogramBinning(), cv=3)
    assert clone(inner).set_params(calibrator__bins=4).calibrator.bins == 4
    assert inner.calibrator.bins == 15


def test_weights_count_for_classifier_and_calibrator():
    weight = np.where(np.arange(900) % 3 == 0, 2.0, 1.0)
    twice = np.concatenate([np.arange(900), np.arange(0, 900, 3)])
    fitted = GaussianNB().fit(X[FIT], Y[FIT])
    weighted = CalibratedModel(fitted, "platt", cv="prefit").fit(X, Y, weight)
    repeated = CalibratedModel(fitted, "platt", cv="prefit").fit(X[twice], Y[twice])
    assert weighted.calibrator_.slope_ == pytest.approx(repeated.calibrator_.slope_, rel=1e-6)
    both = CalibratedModel(GaussianNB(), ensemble=False).fit(X, Y, sample_weight=weight)
    assert np.array_equal(both.estimators_[0].theta_, GaussianNB().fit(X, Y, weight).theta_)


def test_one_s_own_calibrator_and_a_saved_one_go_through(tmp_path):
    model = CalibratedModel(GaussianNB(), IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")).fit(X, Y)
    assert ece_loss(Y, model.predict_proba(X)) < 0.05
    several = CalibratedModel(GaussianNB(), OneVsRest(IsotonicCalibration(), inputs="probabilities")).fit(X3, Y3)
    save(several.calibrator_, tmp_path / "map.json")
    assert (tmp_path / "map.json").stat().st_size > 100


@pytest.mark.parametrize(
    ("model", "y", "message"),
    [
        (CalibratedModel(GaussianNB(), cv="prefit"), Y, "the estimator is not fitted, and it is used as it is; fit it"),
        (
            CalibratedModel(GaussianNB().fit(X, Y), cv="prefit"),
            TEXTS,
            "the label '(good|bad)' is none of",
        ),
        (CalibratedModel(GaussianNB()), ["a"] * 900, "every label is 'a', only one class; give samples of at least 2"),
        (CalibratedModel(StandardScaler()), Y, "StandardScaler has neither predict_proba nor decision_function"),
        (CalibratedModel(GaussianNB(), "plat"), Y, r"^method is 'plat'"),
        (CalibratedModel(GaussianNB(), IsotonicRegression()), Y3, "pass a map that is fitted to confidences and outc"),
    ],
    ids=["not fitted", "another label", "one class", "no scores", "no such name", "of one confidence"],
)
def test_what_cannot_be_calibrated_is_refused_with_what_to_do(model, y, message):
    with pytest.raises(InputError, match=message):
        model.fit(X, y)


def test_an_unfitted_model_says_so():
    with pytest.raises(NotFittedError):
        CalibratedModel(Perceptron()).predict(X)


def test_scorer_and_loss_are_the_metric_of_certcal():
    model = LogisticRegression().fit(X, TEXTS)
    p = model.predict_proba(X)
    wanted = metrics.ece(p[:, 1], model.classes_[1] == TEXTS, bins=15)
    assert ece_loss(TEXTS, p) == ece_loss(TEXTS, p[:, 1]) == wanted
    assert ece_scorer(model, X, TEXTS) == -wanted
    assert CalibrationScorer("smooth_ece")(model, X, TEXTS) == -metrics.smooth_ece(p[:, 1], TEXTS == "good")
    several = LogisticRegression().fit(X3, Y3).predict_proba(X3)
    given = Predictions.from_probabilities(several, Y3)
    assert ece_loss(Y3, several, bins=10) == metrics.ece(given.confidence, given.correct, bins=10)
    weight = np.linspace(0, 1, 900)
    assert ece_loss(Y, p[:, 0], sample_weight=weight) == metrics.ece(p[:, 0], Y, bins=15, sample_weight=weight)


def test_the_loss_is_a_metric_function_for_make_scorer_and_the_scorer_is_cloned_and_compared():
    scorer = make_scorer(ece_loss, response_method="predict_proba", greater_is_better=False)
    found = cross_val_score(GaussianNB(), X, Y, scoring=scorer)
    assert np.array_equal(found, cross_val_score(GaussianNB(), X, Y, scoring=ece_scorer))
    assert CalibrationScorer() == ece_scorer
    search = GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9, 1]}, scoring=ece_scorer).fit(X, Y)
    assert clone(search).scoring == ece_scorer


def test_a_fold_without_a_class_still_has_its_columns():
    p = np.array([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1]])
    with pytest.raises(InputError, match=r"^there are 2 classes and probabilities of 3; pass all classes in the order"):
        ece_loss([0, 1], p)
    assert ece_loss([0, 1], p, labels=[0, 1, 2]) == pytest.approx(0.35)
