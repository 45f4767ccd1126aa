"""Predictions from any source: arrays, an estimator, a model, a frame, a file; all the same numbers."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import certcal
from certcal import InputError, Predictions
from certcal.smoothing.robustness import VoteRecord

RNG = np.random.default_rng(0)
P = RNG.uniform(0.05, 0.95, 60)
Y = (RNG.random(60) < P).astype(int)
X = RNG.normal(size=(60, 3))
K = RNG.dirichlet(np.ones(3), 60)
CLASS = np.array([RNG.choice(3, p=row) for row in K])
BINARY = Predictions.from_scores(P, Y)
MULTICLASS = Predictions.from_probabilities(K, CLASS)
FRAME = pd.DataFrame({"pd": P, "default": np.where(Y == 1, "yes", "no"), "region": np.where(X[:, 0] > 0, "n", "s")})


def ece(*source: Any, **options: Any) -> float:
    return certcal.measure(*source, **options)["ece"].value


@pytest.mark.parametrize(
    "source",
    [
        (Y, P),
        (Y.tolist(), P.tolist()),
        (torch.tensor(Y), torch.tensor(P, requires_grad=True)),
        (pl.Series(Y), pl.Series(P)),
        (pa.chunked_array([Y]), pa.chunked_array([P])),
        (pd.DataFrame({"y": Y}), pd.DataFrame({"p": P})),
        (pd.Series(Y, dtype="Int64"), pd.Series(P, dtype="Float64")),
        ((y for y in Y), (p for p in P)),
        (np.where(Y == 1, "YES", "no"), np.column_stack([P, 1 - P])),
        (np.where(Y == 1, "yes", "no"), pd.DataFrame({"yes": P, "no": 1 - P})),
        (2 * Y - 1, np.column_stack([1 - P, P])),
        (pd.Series(Y), pd.Series(P)),
        (Y.astype(bool), P[:, None]),
        (Y, np.column_stack([1 - P, P])),
        (np.where(Y == 1, "sick", "healthy"), np.column_stack([1 - P, P])),
        ({"score": P, "outcome": Y},),
    ],
)
def test_binary_arrays_are_outcomes_and_scores(source: Any) -> None:
    assert ece(*source) == ece(BINARY)


def test_the_positive_outcome_is_named_where_words_do_not_say_it() -> None:
    words = np.where(Y == 1, "default", "paid")
    assert ece(words, P, positive="default") == ece(BINARY)
    with pytest.raises(InputError, match=r"^y_true\[0\] is '\w+', neither 0/1 nor true/false"):
        ece(words, P)


@pytest.mark.parametrize("names", [[0, 1, 2], [1, 2, 3], ["cat", "dog", "owl"]])
def test_classes_of_arrays_are_in_sorted_order(names: list[Any]) -> None:
    found = certcal.measure(np.array(names)[CLASS], K)
    assert found["ece"].value == ece(MULTICLASS)
    assert found.about["classes"] == 3


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_of_a_frame_are_the_classes_of_their_names(frame: Any) -> None:
    words = np.array(["cat", "dog", "owl"])[CLASS]
    assert ece(words, frame({"owl": K[:, 2], "cat": K[:, 0], "dog": K[:, 1]})) == ece(MULTICLASS)
    assert ece(words, frame(K)) == ece(CLASS.astype(float), frame(K)) == ece(MULTICLASS)
    with pytest.raises(InputError, match=r"^y_true\[\d+\] is '\w+', and no column of y_prob is called so; name the"):
        ece(words, frame({"p_owl": K[:, 2], "p_cat": K[:, 0], "p_dog": K[:, 1]}))


def test_of_two_columns_the_positive_one_is_taken() -> None:
    words, both = np.where(Y == 1, "default", "paid"), np.column_stack([P, 1 - P])
    assert ece(words, both, positive="default") == ece(BINARY)
    assert ece(words, both) == ece(Predictions.from_scores(1 - P, 1 - Y))
    assert ece(np.ones(60, int), np.column_stack([1 - P, P])) == ece(Predictions.from_scores(P, np.ones(60)))


SHUFFLED = RNG.permutation(60)
_ORDER = "its index is that of y_true in another order; write "


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ((Y, np.column_stack([P, P])), {}, r"^y_prob\[0\] sums to"),
        ((np.where(Y == 1, "a", "b"), P), {"positive": "c"}, "none is 'c'; name one of"),
        ((CLASS, K), {"positive": 1}, "^positive: y_true has 3 classes; leave it out$"),
        ((pd.Series(Y), pd.Series(P)[SHUFFLED]), {}, f"^y_prob: {_ORDER}"),
        ((pd.Series(Y), P), {"weight": pd.Series(P)[SHUFFLED]}, f"^weight: {_ORDER}"),
        ((pd.Series(Y), P), {"by": pd.Series(Y)[SHUFFLED]}, f"^by: {_ORDER}"),
        ((FRAME,), {"score": FRAME["pd"][SHUFFLED], "outcome": "default"}, "^score: its index is that of data"),
        ((FRAME,), {"score": 5, "outcome": "default"}, "^score: there is no column '5'; the columns are"),
        ((CLASS, pd.DataFrame(K, columns=["a", "a", "b"])), {}, "^y_prob has two columns that are called 'a'; rename"),
        ((np.ma.array(Y, mask=Y == 1), P), {}, "^y_true has masked entries; write keep = "),
        ((pd.Series(["yes", pd.NA], dtype="string"), [0.1, 0.2]), {}, r"^y_true\[1\] is missing; write keep = "),
        ((np.where(CLASS == 1, np.nan, CLASS), K), {}, r"^y_true\[\d+\] is missing; write keep = "),
        ((np.eye(3)[CLASS], K), {}, r"^y_true has shape \(60, 3\); pass one class per sample"),
        ((np.arange(60).astype(str), RNG.dirichlet(np.ones(60), 60)), {}, "^the classes of y_true are numbers as text"),
        ((Y, Y), {}, "^y_prob holds whole numbers or true/false, as outcomes and predicted classes are; pass prob"),
        ((set(Y.tolist()), P), {}, "^y_true: a set has no order; pass a list or an array$"),
        ((Y, P), {"weight": [1.0, 2.0]}, "^lengths differ: y_prob has 60, weight has 2;"),
        ((Y,), {"data": P}, "^data: it is given by position and by name; give it once$"),
        ((Y, P), {"y_prob": P}, r"^y_prob: it does not go with what else is given; write certcal\.measure\(y_true, y_"),
        ((P,), {}, r"^a table is .*, not ndarray; name the columns, or write certcal\.measure\(y_true, y_prob\) for"),
        ((LogisticRegression, X, Y), {}, "^LogisticRegression is a class; pass a fitted one"),
        ((LogisticRegression(), X, Y), {}, "^LogisticRegression could not predict X: This .*; fit it, and pass"),
        (
            (LogisticRegression().fit(X, Y), X[:, :2], Y),
            {},
            "^LogisticRegression could not predict X: X has 2 features",
        ),
        ((LogisticRegression().fit(X, Y), X, Y[1:]), {}, "^lengths differ: predict_proba has 60, y has 59;"),
        ((LogisticRegression().fit(X, Y), pd.DataFrame(X).iloc[SHUFFLED], pd.Series(Y)), {}, "^X: its index is that"),
    ],
)
def test_what_would_be_a_wrong_number_is_one_sentence(source: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        certcal.measure(*source, **options)


def test_classes_that_do_not_fit_the_columns_are_refused() -> None:
    with pytest.raises(InputError, match=r"^y_true has 2 classes and y_prob 3 columns, .*whole numbers from 0 to 2$"):
        ece(np.where(CLASS == 0, "cat", "dog"), K)


@pytest.mark.parametrize("swapped", [(P, Y), (P, Y.astype(float)), (K, CLASS), (P, np.where(Y == 1, "yes", "no"))])
def test_swapped_arrays_are_told_apart_by_their_values(swapped: Any) -> None:
    line = r"they are swapped; write certcal\.bound\(y_true, y_prob\), the outcomes first$"
    with pytest.raises(InputError, match=line):
        certcal.bound(*swapped)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ((Y, P * 2), r"^y_prob\[\d+\] is 1\.\d+, outside \[0, 1\]"),
        ((Y[1:], P), r"y_prob"),
        ((Y, P, P), r"has no predict_proba; write certcal\.measure\(y_true, y_prob, weight=…\) for arrays$"),
        ((Y, P, P, P), r"^measure takes 1 to 3 arguments by position and was given 4; call it as measure\(data\)"),
        (("a.csv", "b.csv"), r"^measure takes one table and was given 2 arguments by position; name the others"),
        (("trees.txt", "b.csv"), r"^b\.csv: there is no such file"),
        ((FRAME, FRAME), r"^measure takes one table and was given 2 arguments by position; name the others"),
    ],
)
def test_what_cannot_be_a_source_is_one_sentence(source: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        certcal.measure(*source)


ODD: list[Any] = ["text", 3, None, [None], ["a", None], [[1, 2], [3]], np.zeros((2, 2, 2)), {"a": 1}, [], object()]


@pytest.mark.parametrize("source", [*((odd, P) for odd in ODD), *((Y, odd) for odd in ODD), *((odd, K) for odd in ODD)])
def test_whatever_is_no_array_is_one_sentence(source: Any) -> None:
    with pytest.raises(InputError):
        certcal.measure(*source)


def test_an_estimator_is_asked_for_its_probabilities() -> None:
    words = np.where(Y == 1, "default", "paid")
    fitted = LogisticRegression().fit(X, words)
    chances = fitted.predict_proba(X)
    assert ece(fitted, X, words) == ece(Predictions.from_scores(chances[:, 1], words == "paid"))
    assert ece(fitted, X, words, positive="default") == ece(Predictions.from_scores(chances[:, 0], Y))
    assert certcal.bound(fitted, X, words).n == 60
    assert ece(fitted, (X, words)) == ece(fitted, X, words)
    several = LogisticRegression().fit(X, CLASS)
    assert ece(several, X, CLASS) == ece(Predictions.from_probabilities(several.predict_proba(X), CLASS))
    with pytest.raises(
        InputError, match=r"^y\[0\] is 'new', which is no class of LogisticRegression; it knows 'default', 'paid'$"
    ):
        ece(fitted, X, ["new"] * 60)


def test_a_model_is_run_on_the_data() -> None:
    model = torch.nn.Linear(3, 3).eval()
    data = X.astype(np.float32)
    logits = model(torch.tensor(data)).detach().numpy()
    expected = ece(Predictions.from_logits(logits, CLASS))
    assert ece(certcal.models.wrap(model, "logits"), (data, CLASS)) == expected
    assert ece(certcal.models.wrap(model, "logits"), data=(data, CLASS)) == expected
    assert ece(model, (data, CLASS)) == expected  # its rows cannot be probabilities


def test_columns_are_named_by_keywords_or_given_as_values() -> None:
    expected = ece(BINARY)
    assert ece(FRAME, score="pd", outcome="default") == expected
    assert ece(FRAME, score=P, outcome="default") == expected
    assert ece(FRAME, columns={"score": "pd"}, outcome="default") == expected
    assert ece(FRAME, score="pd", outcome=FRAME["default"].tolist()) == expected
    named = {f"p_{name}": K[:, place] for place, name in enumerate("abc")} | {"label": np.array(list("abc"))[CLASS]}
    assert ece(named, probabilities=["p_a", "p_b", "p_c"]) == ece(MULTICLASS)
    weighted = ece(Predictions.from_scores(P, Y, np.arange(1, 61)))
    assert ece(Y, P, weight=np.arange(1, 61)) == ece(FRAME, score="pd", outcome=Y, weight=np.arange(1, 61)) == weighted
    groups = certcal.measure(FRAME, score="pd", outcome="default", by="region").groups
    assert [group.name for group in groups] == ["n", "s"]
    assert [group.n for group in certcal.measure(Y, P, by=FRAME["region"]).groups] == [group.n for group in groups]


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ((FRAME,), {"score": "pd", "columns": {"score": "pd"}}, "^score: it is also in columns; give it once$"),
        ((BINARY,), {"score": "pd"}, "^score: predictions have no columns; leave it out$"),
        ((FRAME,), {"score": P[1:], "outcome": Y}, "^score: it has 59 values for 60 rows; give one each$"),
        (("t.csv",), {"score": P}, "^score: values stand beside a table in memory only; give the name of a column$"),
        ((Y, P), {"score": "pd"}, "^score: it is for a table, and no table is given; leave it out$"),
        ((Y, P), {"weight": "w"}, "^weight: no table is given; give the weight of each sample$"),
    ],
)
def test_columns_without_a_table_are_refused(source: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        certcal.measure(*source, **options)


def test_columns_of_tables_that_are_compared_are_those_that_are_named() -> None:
    old = FRAME.assign(score=1 - P, outcome=1 - Y, w=np.arange(1, 61))
    roles = {"score": "pd", "outcome": "default", "weight": "w"}
    found = certcal.compare(old, old.assign(pd=P**2), **roles, metrics="ece")
    assert found["ece"].old.value == ece(Y, P, weight=np.arange(1, 61))
    assert found["ece"].new.value == ece(Y, P**2, weight=np.arange(1, 61))
    assert certcal.compare(old, old, **{**roles, "weight": P}, metrics="ece")["ece"].new.value == ece(Y, P, weight=P)
    groups = certcal.compare(BINARY, BINARY, by=(name for name in FRAME["region"]), metrics="ece").groups
    assert list(groups) == ["n", "s"]


INTERVALS = {"lower": P * 0.8, "upper": P, "confidence": P, "correct": Y}
VOTES = VoteRecord.of([90, 80], 100, [1, 1], sigma=1.0)
NETWORK = torch.nn.Linear(3, 3).eval()


@pytest.mark.parametrize(
    ("verb", "source", "options"),
    [
        (certcal.measure, (Y, P), {"bins": 7, "closed": "right", "delta": 0.01}),
        (certcal.bound, (Y, P), {"bins": 7, "closed": "right", "delta": 0.01}),
        (certcal.certify, (INTERVALS,), {"edges": [0, 0.3, 1], "closed": "right"}),
        (certcal.recalibrate, (Y, P), {"method": "isotonic", "seed": 3}),
        (certcal.recalibrate, (INTERVALS,), {"tradeoff": 0.5, "delta": 0.01}),
        (certcal.recalibrate, (Y, P), {"fit_on_all": True}),
        (certcal.compare, (BINARY, Predictions.from_scores(P**2, Y)), {"bins": [5, 7], "bounds": True}),
        (certcal.compare, (VOTES, VOTES), {"radii": [0.5], "budgets": [(50, 0.01)], "alpha": 0.01}),
        (certcal.attack, (certcal.models.wrap(NETWORK, "logits"), (X, CLASS)), {"epsilon": [0.1, 0.2], "steps": 2}),
        (certcal.verify, (DecisionTreeClassifier(max_depth=2).fit(X, Y), (X, Y), 0.1), {"epsilon": [1, 0.5]}),
    ],
)
def test_the_settings_of_a_result_ask_for_it_again(verb: Any, source: Any, options: dict[str, Any]) -> None:
    found = verb(*source, **options)
    again = verb(*source, **vars(found.settings))
    assert again.settings == found.settings
    assert again.to_dict() == found.to_dict()
