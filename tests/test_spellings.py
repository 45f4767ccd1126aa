"""Calls as they stand in the documentation of other libraries, and as people type them: a number, or the line to write.

The libraries are scikit-learn, probcal, relplot, netcal, torchmetrics, MAPIE, skore, uncertainty-calibration, TFP and
evaluate. Some lines are the same for all verbs about predictions, some are those of one.
"""

from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from torch.utils.data import DataLoader, TensorDataset

import certcal
from certcal import InputError, Predictions

RNG = np.random.default_rng(0)
P = RNG.uniform(0.05, 0.95, 60)
Y = (RNG.random(60) < P).astype(int)
X = RNG.normal(size=(60, 3))
K = RNG.dirichlet(np.ones(3), 60)
C = np.array([RNG.choice(3, p=row) for row in K])
L = np.log(K)
CAT = np.array(["cat", "dog", "owl"])[C]
SPAM = np.where(Y == 1, "spam", "ham")
CLF = LogisticRegression().fit(X, Y)
FRAME = pd.DataFrame({"y": Y, "p": P})
LAZY = pl.LazyFrame({"y": Y, "p": P})
LOADER = DataLoader(TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor(C)), 16)
BRAIN = torch.tensor(P).bfloat16()
BINARY, CLASSES = Predictions.from_scores(P, Y), Predictions.from_probabilities(K, C)
FITTED = Predictions.from_scores(CLF.predict_proba(X)[:, 1], Y)
LOGITS = Predictions.from_logits(L, C)
PAIR = torch.tensor(X, dtype=torch.float32), torch.tensor(C)
NET = torch.nn.Linear(3, 3).eval()
NET_LOGITS = Predictions.from_logits(NET(PAIR[0]).detach().numpy(), C)
ROUNDED = Predictions.from_scores(BRAIN.float().numpy(), Y)
PART = Predictions.from_scores(P.astype(np.float16), Y)


class Keras:
    """What has predict in place of predict_proba, and is called."""

    def predict(self, batch: Any) -> Any:
        return batch

    __call__ = predict


WORK: list[tuple[str, tuple[Any, ...], dict[str, Any], Predictions]] = [
    ("sklearn: brier_score_loss(y_true, y_prob)", (Y, P), {}, BINARY),
    ("sklearn: calibration_curve(y_true=, y_prob=)", (), {"y_true": Y, "y_prob": P}, BINARY),
    ("one by position, one by name", (Y,), {"y_prob": P}, BINARY),
    ("sklearn: log_loss(words, rows)", (CAT, K), {}, CLASSES),
    ("sklearn: predict_proba of two classes", (SPAM, np.column_stack([P, 1 - P])[:, ::-1]), {}, BINARY),
    ("sklearn: CalibrationDisplay.from_estimator", (CLF, X, Y), {}, FITTED),
    ("sklearn: estimator by position", (CLF,), {"X": X, "y": Y}, FITTED),
    ("sklearn: all by name", (), {"estimator": CLF, "X": X, "y": Y}, FITTED),
    ("lists", (Y.tolist(), P.tolist()), {}, BINARY),
    ("tuples", (tuple(Y), tuple(P)), {}, BINARY),
    ("column vectors", (Y[:, None], P[:, None]), {}, BINARY),
    ("bool outcomes", (Y == 1, P), {}, BINARY),
    ("pandas series", (FRAME["y"], FRAME["p"]), {}, BINARY),
    ("nullable columns", (pd.Series(Y, dtype="Int64"), pd.Series(P, dtype="Float64")), {}, BINARY),
    ("nullable bool", (pd.Series(Y == 1, dtype="boolean"), P), {}, BINARY),
    ("Arrow columns", (pd.Series(Y, dtype="int64[pyarrow]"), pd.Series(P, dtype="double[pyarrow]")), {}, BINARY),
    ("polars series", (pl.Series(Y), pl.Series(P)), {}, BINARY),
    ("polars LazyFrame", (LAZY,), {"score": "p", "outcome": "y"}, BINARY),
    ("columns of a LazyFrame", (LAZY.select("y"), LAZY.select("p")), {}, BINARY),
    ("masked arrays without masks", (np.ma.array(Y), np.ma.array(P)), {}, BINARY),
    ("half tensors", (torch.tensor(Y), torch.tensor(P).half()), {}, PART),
    ("bf16 tensors", (torch.tensor(Y), BRAIN), {}, ROUNDED),
    ("bf16 tensors by role", (), {"score": BRAIN, "outcome": torch.tensor(Y)}, ROUNDED),
    ("a frame and names", (FRAME,), {"score": "p", "outcome": "y"}, BINARY),
    ("a frame by name", (), {"data": FRAME, "score": "p", "outcome": "y"}, BINARY),
    ("values by role", (), {"score": P, "outcome": Y}, BINARY),
    ("probabilities by role", (), {"probabilities": K, "label": C}, CLASSES),
    ("logits by role", (), {"logits": L, "label": C}, LOGITS),
    ("the positive one", (SPAM, P), {"positive": "spam"}, BINARY),
    ("classes from 1", (C + 1, K), {}, CLASSES),
    ("a network and arrays", (NET, (X, C)), {}, NET_LOGITS),
    ("a network and a loader", (NET, LOADER), {}, NET_LOGITS),
    ("outcomes -1 and 1", (2 * Y - 1, P), {"positive": 1}, BINARY),
    ("decimals of a data base", (Y, [Decimal(str(p)) for p in P]), {}, BINARY),
    ("a column of a frame with text", (FRAME.assign(site="a").to_numpy()[:, 0], FRAME["p"].astype(object)), {}, BINARY),
    ("numbers of columns", (pd.DataFrame({0: Y, 1: P}),), {"outcome": 0, "score": 1}, BINARY),
]

WRITE = "certcal.{verb}(y_true, y_prob"
LINES: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    ("sklearn: n_bins", (Y, P), {"n_bins": 10}, f"{WRITE}, bins=10)"),
    ("sklearn: strategy='uniform'", (Y, P), {"strategy": "uniform"}, f"{WRITE})"),
    ("sklearn: pos_label", (SPAM, P), {"pos_label": "spam"}, f"{WRITE}, positive='spam')"),
    ("sklearn: sample_weight", (Y, P), {"sample_weight": P}, f"{WRITE}, weight=…)"),
    ("sklearn: brier_score_loss(y_proba=)", (Y,), {"y_proba": P}, "certcal.{verb}(y_true, y_proba)"),
    ("sklearn: log_loss(y_pred=)", (), {"y_true": Y, "y_pred": P}, "certcal.{verb}(y_true, y_pred)"),
    ("sklearn: log_loss(labels=)", (CAT, K), {"labels": ["cat", "dog", "owl"]}, f"{WRITE})"),
    ("sklearn: normalize", (Y, P), {"normalize": True}, f"{WRITE})"),
    ("sklearn: ax", (Y, P), {"ax": None, "n_bins": 5}, f"{WRITE}, bins=5)"),
    ("probcal: strategy='mass'", (Y, P), {"strategy": "mass", "n_bins": 15}, f"{WRITE}, "),
    ("relplot: smECE(f, y)", (P, Y), {}, f"{WRITE}), the outcomes first"),
    ("relplot: smECE(f=, y=)", (), {"f": P, "y": Y}, "certcal.{verb}(y, f)"),
    ("netcal: measure(confidences, ground_truth)", (K, C), {}, f"{WRITE}), the outcomes first"),
    ("netcal: by name", (), {"confidences": P, "ground_truth": Y}, "certcal.{verb}(ground_truth, confidences)"),
    ("torchmetrics: (preds, target)", (torch.tensor(P), torch.tensor(Y)), {}, f"{WRITE}), the outcomes first"),
    ("torchmetrics: preds=, target=", (), {"preds": P, "target": Y, "n_bins": 9}, "(target, preds, bins=9)"),
    ("torchmetrics: task, norm", (Y, P), {"task": "binary", "n_bins": 9, "norm": "l1"}, f"{WRITE}, bins=9)"),
    ("torchmetrics: num_classes", (C, K), {"task": "multiclass", "num_classes": 3}, f"{WRITE})"),
    ("MAPIE: y_scores, num_bins", (), {"y_true": Y, "y_scores": P, "num_bins": 9}, "(y_true, y_scores, bins=9)"),
    ("MAPIE: split_strategy", (Y, P), {"split_strategy": "quantile"}, WRITE),
    ("skore: EstimatorReport(X_test=, y_test=)", (CLF,), {"X_test": X, "y_test": Y}, "(estimator, X_test, y_test)"),
    ("TFP: logits, labels_true", (), {"logits": L, "labels_true": C}, "(label=labels_true, logits=logits)"),
    ("evaluate: predictions, references", (), {"predictions": P, "references": Y}, "(references, predictions)"),
    ("probs, labels", (), {"probs": K, "labels": C}, "certcal.{verb}(labels, probs)"),
    ("logits by position", (C, L), {}, "certcal.{verb}(label=y_true, logits=y_prob)"),
    ("logits beside classes", (C,), {"logits": L}, "certcal.{verb}(label=y_true, logits=logits)"),
    ("names of columns as arguments", (FRAME,), {"y_true": "y", "y_prob": "p"}, "(data, outcome='y', score='p')"),
    ("names of columns by position", (FRAME, "y", "p"), {}, "certcal.{verb}(data, score=…, outcome=…"),
    ("predicted classes", (Y, CLF.predict(X)), {}, "predict_proba(X)"),
    ("inputs without classes", (CLF, X), {}, "certcal.{verb}(estimator, X, y)"),
    ("X and y swapped", (CLF, Y, X), {}, "certcal.{verb}(estimator, X, y)"),
    ("weights by position", (Y, P, P), {}, f"{WRITE}, weight=…)"),
    ("sklearn: scale_by_half", (Y, P), {"scale_by_half": True, "pos_label": 1}, f"{WRITE}, positive=1)"),
    (
        "sklearn: from_predictions(name=, ref_line=)",
        (Y, P),
        {"ref_line": True, "name": "rf"},
        "{verb}(y_true, y_prob, ",
    ),
    ("probcal: n_boot, stratify", (Y, P), {"stratify": False, "random_state": 4}, f"{WRITE}, seed=4)"),
    ("relplot: kernel", (Y, P), {"kernel": "gaussian"}, f"{WRITE})"),
    ("netcal: equal_intervals", (C, K), {"equal_intervals": True, "bins": 9}, f"{WRITE}, bins=9)"),
    ("netcal: uncertainty", (Y, P), {"uncertainty": "mean"}, f"{WRITE})"),
    ("torchmetrics: average, ignore_index", (C, K), {"average": "macro", "ignore_index": -1}, f"{WRITE})"),
    ("MAPIE: y_score_arg", (C, K), {"y_score_arg": C, "num_bins": 9}, f"{WRITE}, bins=9)"),
    ("skore: X_train=", (CLF,), {"X_train": X, "y_train": Y, "X_test": X, "y_test": Y}, "(estimator, X_test, y_test)"),
    ("skore: data_source", (CLF, X, Y), {"data_source": "test"}, "certcal.{verb}(estimator, X, y)"),
    ("uncertainty-calibration: (probs, labels)", (P, Y), {}, f"{WRITE}), the outcomes first"),
    ("uncertainty-calibration: p, debias, mode", (C, K), {"p": 1, "debias": True, "mode": "marginal"}, f"{WRITE})"),
    ("evaluate: prediction_scores", (), {"references": Y, "prediction_scores": P}, "(references, prediction_scores)"),
    ("one array", (P,), {}, f"{WRITE})"),
    ("nothing", (), {}, "{verb}(y_true, y_prob)"),
    ("words", (SPAM, P), {}, f"{WRITE}, positive=…)"),
    ("-1 and 1", (2 * Y - 1, P), {}, f"{WRITE}, positive=…)"),
    ("per cent", (Y, 100 * P), {}, "certcal.{verb}(y_true, y_prob / 100)"),
    ("one-hot rows", (np.eye(3)[C], K), {}, "certcal.{verb}(y_true.argmax(1), y_prob)"),
    (
        "a missing value",
        (Y, pd.Series([*P[1:], None], dtype="Float64")),
        {},
        "keep = pandas.notna(y_prob) and ",
    ),
    (
        "a missing outcome",
        (pd.Series([*Y[1:], None], dtype="Int64"), P),
        {},
        "keep = pandas.notna(y_true) and ",
    ),
    ("a masked outcome", (np.ma.array(Y, mask=Y == 1), P), {}, "keep = ~np.ma.getmaskarray(y_true) and certcal."),
    ("a function without outputs", (np.tanh, (X, C)), {}, "certcal.models.wrap(model, 'logits')"),
    ("numbers as text", (Y, P.astype(str)), {}, "certcal.{verb}(y_true, numpy.asarray(y_prob, float))"),
    ("percentages as text", (Y, [f"{p:.1%}" for p in P]), {}, "(y_true, [float(p.rstrip('%')) / 100 for p in y_prob])"),
    ("classes in words", (SPAM, SPAM), {}, "'spam', in place of probabilities; pass probabilities, such as predict_"),
    ("a score of None", (Y, [None, *P[1:]]), {}, "keep = pandas.notna(y_prob) and certcal.{verb}(y_true[keep], "),
    ("no scores", (Y, None), {}, "y_prob is None; pass one value per sample"),
    (
        "an infinite score",
        (Y, np.where(P[3] == P, np.inf, P)),
        {},
        "y_prob[3] is inf; write keep = numpy.isfin",
    ),
    ("above 1 by rounding", (Y, np.where(P[3] == P, 1 + 1e-7, P)), {}, "numpy.clip(…, 0, 1)"),
    ("one row of scores", (Y, P[None]), {}, "certcal.{verb}(y_true, y_prob[0])"),
    ("one row of classes", (C[None], K), {}, "certcal.{verb}(y_true[0], y_prob)"),
    (
        "pixels",
        (C.reshape(3, 4, 5), np.moveaxis(K.reshape(3, 4, 5, 3), -1, 1)),
        {},
        "certcal.{verb}(y_true.ravel(), numpy.moveaxis(y_prob, 1, -1).reshape(-1, 3))",
    ),
    ("tokens", (C.reshape(6, 10), K.reshape(6, 10, 3)), {}, "(y_true.ravel(), y_prob.reshape(-1, 3))"),
    ("confidences of several classes", (C, K.max(1)), {}, "(confidence=y_prob, correct=predicted == y_true)"),
    ("one of three classes", (C, P), {"positive": 2}, "pass true where it is the one that counts as 1"),
    ("bins by position", (Y, P, 10), {}, f"{WRITE}, bins=10)"),
    ("a network, inputs and labels", (NET, X, C), {}, "certcal.{verb}(model, (X, y))"),
    ("the estimator last", (X, Y, CLF), {}, "the estimator stands first; write certcal.{verb}(estimator, X, y)"),
    ("margins only", (LinearSVC(), X, Y), {}, "LinearSVC has no predict_proba; calibrate it first"),
    ("keras", (Keras(), (X, C)), {}, "certcal.models.wrap(model, 'logits'), or 'probabilities'"),
    ("other rows", (FRAME["y"][1:-4], FRAME["p"][5:]), {}, "y_prob: its index is not that of y_true"),
    ("scores of several classes", (FRAME,), {"score": ["a", "b"], "outcome": "y"}, "probabilities=['a', 'b'], label=…"),
    ("a target's name", (FRAME,), {"target": "y", "score": "p"}, "certcal.{verb}(data, outcome='y', score='p')"),
    ("a pair of loaders", (NET, (LOADER, LOADER)), {}, "data is a pair of loaders; pass one of them"),
    ("two batches", (NET, list(LOADER)[:2]), {}, "data is a list of batches; join the batches: pass (numpy.conc"),
    ("three batches", (NET, list(LOADER)[:3]), {}, "data[0] is a batch of 16; join the batches: pass (numpy.conc"),
    ("inputs alone", (NET, PAIR[0]), {}, "data[0] is a Tensor, not a pair of an input and its label; pass inputs and"),
    ("one logit", (torch.nn.Linear(3, 1).eval(), (X, Y)), {}, "return two columns, 0 and z of a logit z"),
    (
        "logits as probabilities",
        (certcal.models.wrap(NET, "probabilities"), (X, C)),
        {},
        "outputs: the model returns no probabilities: probabilities[0, ",
    ),
    ("a softmax without outputs", (torch.nn.Softmax(1).eval(), (X, C)), {}, "wrap(model, 'probabilities')"),
]
OF_MEASURE: list[tuple[str, dict[str, Any], str]] = [
    ("sklearn: strategy='quantile'", {"n_bins": 9, "strategy": "quantile"}, "bins=9, metrics='equal_mass_ece')"),
    ("netcal: equal_intervals=False", {"equal_intervals": False}, "metrics='equal_mass_ece')"),
    ("torchmetrics: norm='l2'", {"norm": "l2"}, "metrics='lp_ece')"),
    ("torchmetrics: norm='max'", {"norm": "max"}, "metrics='mce')"),
    ("metric", {"metric": "ece"}, "metrics='ece')"),
    ("confidence_level", {"confidence_level": 0.9}, "level=0.9)"),
    ("groups", {"groups": SPAM}, "by=…)"),
    ("name", {"name": "forest"}, "source='forest')"),
    ("a level in per cent", {"level": 95}, "level: 95 is not between 0 and 1; did you mean 0.95?"),
    ("MAPIE: cv", {"cv": 5}, "certcal.measure(y_true, y_prob)"),
]
VERBS = [certcal.measure, certcal.bound, certcal.recalibrate]


def test_there_are_more_than_forty() -> None:
    names = [each[0] for each in (*WORK, *LINES, *OF_MEASURE)]
    assert len(set(names)) == len(names) > 88


def answers(*given: Any, **options: Any) -> tuple[Any, ...]:
    measured = certcal.measure(*given, **options, metrics=["ece", "nll"], bootstrap=0)
    fitted = certcal.recalibrate(*given, **options)
    return [row.value for row in measured], certcal.bound(*given, **options)["binned"].value, fitted.to_dict()["after"]


answers_of = cache(answers)  # of the few predictions that all calls come down to


@pytest.mark.parametrize(("given", "options", "same"), [each[1:] for each in WORK], ids=[each[0] for each in WORK])
def test_a_call_is_the_number_of_the_predictions(given: Any, options: dict[str, Any], same: Predictions) -> None:
    assert answers(*given, **options) == answers_of(same)


@pytest.mark.parametrize(("given", "options", "line"), [each[1:] for each in LINES], ids=[each[0] for each in LINES])
def test_another_spelling_gets_the_line_to_write(given: Any, options: dict[str, Any], line: str) -> None:
    for verb in VERBS:
        with pytest.raises(InputError) as error:
            verb(*given, **options)
        assert line.format(verb=verb.__name__) in str(error.value)


@pytest.mark.parametrize(("options", "line"), [each[1:] for each in OF_MEASURE], ids=[each[0] for each in OF_MEASURE])
def test_an_option_of_measuring_is_called_otherwise(options: dict[str, Any], line: str) -> None:
    with pytest.raises(InputError) as error:
        certcal.measure(Y, P, **options)
    assert str(error.value).endswith(line)


def test_softmax_in_bf16_sums_to_one_as_closely_as_it_can() -> None:
    rows = torch.tensor(L).bfloat16().softmax(1)
    assert abs(float(rows.float().sum(1).max()) - 1) > 1e-3
    exact = Predictions.from_probabilities(rows.float().numpy(), C)
    assert certcal.measure(torch.tensor(C), rows)["ece"].value == certcal.measure(exact)["ece"].value
    with pytest.raises(InputError, match=r"not to 1 within 0\.001"):
        Predictions.from_probabilities(rows.float().numpy() * np.float32(1.003), C)


def test_where_both_are_0_and_1_the_documented_order_holds_with_a_note() -> None:
    found = certcal.measure(Y, 1.0 - Y)
    assert found["ece"].value == 1
    assert "assumed: the scores are probabilities, although each is 0 or 1" in found.description
    assert "although each is 0 or 1" in certcal.bound(Y, 1.0 - Y)["binned"].assumptions[-1]
    assert "assumed" not in certcal.measure(Y, P).description


def test_compared_tables_may_be_lazy_and_arrays_get_the_line() -> None:
    lazy = {"score": "p", "outcome": "y", "metrics": "ece"}
    assert certcal.compare(LAZY, FRAME, **lazy)["ece"].difference == 0
    with pytest.raises(InputError, match=r"compare\(Predictions.from_scores\(old, y\), Predictions.from_scores\(new, "):
        certcal.compare(Y, P, P**2)
