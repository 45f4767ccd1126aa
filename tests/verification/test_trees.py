"""No input inside its box leaves its interval, and with a budget the interval is what brute force finds."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import lightgbm
import numpy as np
import pytest
import xgboost
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.multioutput import MultiOutputClassifier
from sklearn.tree import DecisionTreeClassifier

import certcal
from certcal import InputError
from certcal.models import wrap
from certcal.verification import InputBox, verifier_of
from certcal.verification.trees import TreeVerifier
from tests.naive import box_points

N, FEATURES = 240, 4


@cache
def data(classes: int, *, missing: bool, categories: bool) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(classes)
    x = np.round(rng.normal(size=(N, FEATURES)), 2)
    x[:, 3] = rng.integers(0, 5, N)
    score = x[:, 0] + np.abs(x[:, 1]) + np.isin(x[:, 3], (1, 4)) + rng.normal(0, 0.3, N)
    y = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
    if missing:
        x[rng.random((N, FEATURES)) < 0.15] = np.nan
    if not categories:
        x[:, 3] += rng.normal(size=N).round(3)
    return x, y


def _booster(x: Any, y: Any, classes: int, **more: Any) -> Any:
    """XGBoost with categories, by its own interface."""
    rows = xgboost.DMatrix(x, y, feature_types=["q", "q", "q", "c"], enable_categorical=True)
    softmax = {"objective": "multi:softprob", "num_class": classes} if classes > 2 else {"objective": "binary:logistic"}
    return xgboost.train({**softmax, "max_depth": 3, "nthread": 1, "max_cat_to_onehot": 1, **more}, rows, 6)


def _lightgbm(x: Any, y: Any, *, categories: Any = (), **more: Any) -> Any:
    given: dict[str, Any] = {"n_estimators": 6, "num_leaves": 6, "min_child_samples": 5, "n_jobs": 1, "verbose": -1}
    given |= {"cat_smooth": 1, "cat_l2": 0.1, "min_data_per_group": 5, "max_cat_to_onehot": 1, **more}
    return lightgbm.LGBMClassifier(**given).fit(x, y, categorical_feature=list(categories))


# A model, whether it takes missing values, and whether the last feature holds categories.
KINDS: dict[str, tuple[Callable[[Any, Any, int], Any], bool, bool]] = {
    "random forest": (
        lambda x, y, _: RandomForestClassifier(6, max_depth=4, random_state=0).fit(x, y),
        True,
        False,
    ),
    "extra trees": (lambda x, y, _: ExtraTreesClassifier(6, max_depth=4, random_state=0).fit(x, y), False, False),
    "gradient boosting": (
        lambda x, y, _: GradientBoostingClassifier(n_estimators=6, max_depth=3, random_state=0).fit(x, y),
        False,
        False,
    ),
    "histogram boosting": (
        lambda x, y, _: HistGradientBoostingClassifier(
            max_iter=6, max_leaf_nodes=6, categorical_features=[3], min_samples_leaf=5
        ).fit(x, y),
        True,
        True,
    ),
    "XGBoost": (_booster, True, True),
    "XGBoost, DART": (
        lambda x, y, k: _booster(x, y, k, booster="dart", rate_drop=0.5, base_score=0.3 if k == 2 else 0.5),
        True,
        True,
    ),
    "LightGBM": (lambda x, y, _: _lightgbm(x, y, categories=[3]), True, True),
    "LightGBM, averaged": (
        lambda x, y, _: _lightgbm(x, y, boosting_type="rf", subsample=0.6, subsample_freq=1, use_missing=False),
        True,
        False,
    ),
}


@cache
def fitted(kind: str, classes: int) -> tuple[TreeVerifier, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    make, missing, categories = KINDS[kind]
    x, y = data(classes, missing=missing, categories=categories)
    verifier: Any = verifier_of(wrap(make(x, y, classes)))
    return verifier, x, verifier.predict(x)


def answers(verifier: TreeVerifier, points: Any, predicted: int) -> np.ndarray[Any, Any]:
    """The library's own: the score of class 1, or the predicted class's confidence."""
    found = np.asarray(verifier.ensemble.predict(points), np.float64)
    if verifier.classes == 2:
        return found if found.ndim == 1 else found[:, 1]
    return found[:, predicted]


def joined_ends(verifier: TreeVerifier, points: Any, predicted: int, truth: Any) -> tuple[float, float]:
    """The best ends that the verifier can find: each margin of a softmax is bounded by itself, all else as a whole."""
    if verifier.classes == 2 or verifier.ensemble.link != "softmax":
        return truth.min(), truth.max()
    logs = np.log(np.asarray(verifier.ensemble.predict(points), np.float64))
    margins = logs - logs[:, [predicted]]
    return 1 / np.exp(margins.max(axis=0)).sum(), 1 / np.exp(margins.min(axis=0)).sum()


def thresholds(verifier: TreeVerifier) -> list[Any]:
    e = verifier.ensemble
    plain = np.setdiff1d(np.flatnonzero(e.feature >= 0), list(e.categories))
    found = [np.unique(e.threshold[plain[e.feature[plain] == place]]) for place in range(FEATURES)]
    return [cuts[np.abs(cuts) < 1e30] for cuts in found]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_are_what_brute_force_over_the_thresholds_finds(kind: str, classes: int) -> None:
    verifier, x, clean = fitted(kind, classes)
    cuts, categories = thresholds(verifier), KINDS[kind][2]
    rows = x[:6].copy()
    at = [(0, 0), (1, 1), (2, 0)]  # exactly on a threshold
    for row, place in at:
        rows[row, place] = cuts[place][len(cuts[place]) // 2]
    clean = verifier.predict(rows)
    predicted = clean.argmax(axis=1)
    change: dict[str, Any] = {"0": 0.15, "1": "+0.2", "2": "30%"}
    change |= {"3": [0, 1, 2, 3, 4, 9]} if categories else {"3": "-0.3"}
    for at_most in (None, 1, 2):
        region = InputBox(change, at_most=at_most).on(rows).region(0, len(rows))
        found = verifier.verify(region, predicted, budget=400, attack=True)
        first = verifier.verify(region, predicted, budget=0, attack=True)
        assert (first.lower <= found.lower + 1e-9).all()
        assert (first.upper >= found.upper - 1e-9).all()
        for k, row in enumerate(rows):
            step = np.float32 if verifier.ensemble.single else np.float64
            low, high = region.lower[k].copy(), region.upper[k].copy()
            several = list(cuts)
            if categories and not np.isnan(row[3]):
                several[3], low[3], high[3] = np.array([0, 1, 2, 3, 4, 9.0]), 0, 9
            points = box_points(row, low, high, several, at_most, step)
            if categories and not np.isnan(row[3]):
                points = points[np.isin(points[:, 3], several[3])]
            truth = answers(verifier, points, int(predicted[k]))
            assert found.lower[k] <= truth.min()
            assert truth.max() <= found.upper[k]
            ends = joined_ends(verifier, points, int(predicted[k]), truth)
            room = 1e-5 + 0.02 * (ends[1] - ends[0])
            assert found.lower[k] >= ends[0] - room
            assert found.upper[k] <= ends[1] + room
            assert truth.min() <= found.reached_lower[k] <= found.reached_upper[k] <= truth.max()
            if classes > 2:
                labels = np.asarray(verifier.ensemble.predict(points)).argmax(axis=1)
                assert found.certified[k] == (labels == predicted[k]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_no_random_input_leaves_its_interval(kind: str) -> None:
    verifier, x, clean = fitted(kind, 2)
    box = InputBox("0.5sd", fixed=["3"] if KINDS[kind][2] else [])
    region = box.on(x).region(0, N)
    found = verifier.verify(region, clean.argmax(axis=1), budget=20, attack=False)
    rng = np.random.default_rng(0)
    shares = rng.choice([0.0, 1.0, 0.5], (420, N, FEATURES)) + rng.uniform(-0.5, 0.5, (420, N, FEATURES))
    points = region.lower + np.clip(shares, 0, 1) * (region.upper - region.lower)
    points = np.clip(points, region.lower, region.upper).reshape(-1, FEATURES)
    truth = answers(verifier, points, 1).reshape(420, N)
    assert points.shape[0] > 100_000
    assert (found.lower <= truth.min(axis=0)).all()
    assert (truth.max(axis=0) <= found.upper).all()


@settings(max_examples=15)
@given(st.data())
def test_bounds_of_small_forests_are_exact_on_threshold_values(pick: st.DataObject) -> None:
    verifier, x, _ = fitted(pick.draw(st.sampled_from(["gradient boosting", "XGBoost", "LightGBM"])), 2)
    cuts = thresholds(verifier)
    row = x[pick.draw(st.integers(0, 50))].copy()
    for place in range(3):
        if cuts[place].size and pick.draw(st.booleans()):
            row[place] = pick.draw(st.sampled_from(cuts[place].tolist()))
    amounts = {str(k): pick.draw(st.sampled_from([0.0, 0.1, 0.5])) for k in range(3)}
    region = InputBox(amounts).on(row[None]).region(0, 1)
    found = verifier.verify(region, verifier.predict(row[None]).argmax(axis=1), budget=500, attack=True)
    step = np.float32 if verifier.ensemble.single else np.float64
    points = box_points(row, region.lower[0], region.upper[0], [*cuts[:3], []], None, step)
    truth = answers(verifier, points, 1)
    assert found.lower[0] <= truth.min() <= found.reached_lower[0] + 1e-9
    assert found.reached_upper[0] - 1e-9 <= truth.max() <= found.upper[0]
    assert found.upper[0] - found.lower[0] <= truth.max() - truth.min() + 2e-5


def test_whole_numbers_stay_whole_numbers() -> None:
    x, y = data(2, missing=False, categories=True)
    model = GradientBoostingClassifier(n_estimators=5, max_depth=2, random_state=0).fit(x, y)
    verifier: Any = verifier_of(wrap(model))
    box = InputBox({"3": 1.5}, integers=["3"], limits={"3": (0, 4)})
    region = box.on(x[:20]).region(0, 20)
    found = verifier.verify(region, verifier.predict(x[:20]).argmax(axis=1), budget=100, attack=True)
    for k, row in enumerate(x[:20]):
        several = np.repeat(row[None], 3, axis=0)
        several[:, 3] = np.clip(row[3] + np.arange(-1, 2), 0, 4)
        truth = model.predict_proba(several)[:, 1]
        assert np.allclose([found.lower[k], found.upper[k]], [truth.min(), truth.max()], atol=1e-9)


def test_a_model_that_computes_something_else_than_its_trees_is_refused() -> None:
    for kind in ("random forest", "XGBoost", "LightGBM"):
        verifier, x, _ = fitted(kind, 2)
        own = verifier.ensemble.predict
        other = TreeVerifier(replace(verifier.ensemble, predict=lambda rows, own=own: 0.9999 * np.asarray(own(rows))))
        with pytest.raises(InputError, match="computes something else"):
            other.predict(x)
        shifted = replace(verifier.ensemble, threshold=verifier.ensemble.threshold + 0.3)
        with pytest.raises(InputError, match="computes something else"):
            TreeVerifier(shifted).predict(x)


def test_what_cannot_be_converted_is_refused_by_name() -> None:
    x, y = data(2, missing=False, categories=True)
    zeros = np.where(x > 1, 0.0, x)
    both = np.stack([y, 1 - y], axis=1)
    text = np.array(["a", "b"])[y].astype(object)[:, None]
    several: list[tuple[Any, str]] = [
        (lambda: _lightgbm(x, y, linear_tree=True), "linear_tree"),
        (lambda: _lightgbm(zeros, y, zero_as_missing=True), "zero_as_missing"),
        (lambda: _lightgbm(x, y, objective="multiclassova", num_class=2), "multiclassova"),
        (lambda: xgboost.XGBClassifier(n_estimators=2, booster="gblinear", n_jobs=1).fit(x, y), "gblinear"),
        (lambda: xgboost.XGBClassifier(n_estimators=2, missing=0.0, n_jobs=1).fit(x, y), "missing=0.0"),
        (lambda: GradientBoostingClassifier(n_estimators=2, loss="exponential").fit(x, y), "exponential"),
        (lambda: GradientBoostingClassifier(n_estimators=2, init=RandomForestClassifier(2)).fit(x, y), "init="),
        (lambda: MultiOutputClassifier(RandomForestClassifier(2)).fit(x, both), "several outputs|cannot be verified"),
        (lambda: RandomForestClassifier(2).fit(x, both), "several outputs"),
        (lambda: HistGradientBoostingClassifier(max_iter=2, categorical_features=[0]).fit(text, y), "texts"),
    ]
    for make, name in several:
        with pytest.raises(InputError, match=name):
            verifier_of(wrap(make()))


def test_categories_alone_are_verified_and_those_that_a_library_would_cut_are_refused():
    random = np.random.default_rng(0)
    x = np.c_[random.integers(0, 4, 300), random.integers(0, 3, 300)].astype(float)
    y = (x[:, 0] == 1).astype(int)
    forest = HistGradientBoostingClassifier(max_iter=5, categorical_features=[0, 1]).fit(x, y)
    found = certcal.verify(forest, (x[:20], y[:20]), InputBox({"0": [0, 1, 2, 3]})).at().verified
    for category in range(4):
        moved = x[:20].copy()
        moved[:, 0] = category
        score = forest.predict_proba(moved)[:, 1]
        assert ((found.lower <= score) & (score <= found.upper)).all()
    boosted = xgboost.XGBClassifier(
        n_estimators=5, max_depth=2, feature_types=["c", "q"], enable_categorical=True, n_jobs=1
    ).fit(x, y)
    with pytest.raises(InputError, match=r"the category 2\.5 of feature 0 is no whole number from 0"):
        certcal.verify(boosted, (x[:20], y[:20]), InputBox({"0": [0, 1, 2, 2.5, 3]}))


def test_values_that_lightgbm_takes_for_zero_are_taken_so():
    random = np.random.default_rng(0)
    x = np.round(random.normal(size=(300, 2)), 0)
    y = (x[:, 0] > -0.5).astype(int)
    model = lightgbm.LGBMClassifier(n_estimators=3, num_leaves=3, min_child_samples=3, verbose=-1, n_jobs=1).fit(x, y)
    nearly = -1.0000000180025095e-35
    box = InputBox({"0": "+2"}, limits={"0": (-5, nearly)})
    found = certcal.verify(model, (np.array([[-1.0, 0.0]] * 5), np.zeros(5, int)), box, attack=False).at().verified
    assert found.upper[0] >= model.predict_proba([[nearly, 0.0]])[0, 1]


def test_what_an_attack_reached_is_about_the_class_that_was_predicted():
    x = np.r_[np.full(100, -1.0), np.full(100, 1.0)][:, None]
    y = np.r_[[0] * 40 + [1] * 30 + [2] * 30, [0] * 30 + [1] * 40 + [2] * 30]
    tree = DecisionTreeClassifier(max_depth=1).fit(x, y)
    line = certcal.verify(tree, (np.full((50, 1), -1.0), np.zeros(50, int)), {"0": 3.0}).at()
    assert line.verified.certified.sum() == 0
    assert line.reached.value <= 0.6  # whatever inputs are: the confidence is 0.4 and the class right or wrong


def test_a_verifier_is_made_of_estimators_as_they_are():
    random = np.random.default_rng(0)
    x = random.normal(size=(60, 2))
    y = (x[:, 0] > 0).astype(int)
    for model in (RandomForestClassifier(3), xgboost.XGBClassifier(n_estimators=3, n_jobs=1)):
        assert verifier_of(model.fit(x, y)).classes == 2
