"""Predictions from any source: arrays, an estimator, a model, a frame, a file; all the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import certcal
from certcal import InputError, Predictions

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
        (torch.tensor(Y), torch.tensor(P)),
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
        (("trees.txt", "b.csv"), r"trees\.txt"),
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
    several = LogisticRegression().fit(X, CLASS)
    assert ece(several, X, CLASS) == ece(Predictions.from_probabilities(several.predict_proba(X), CLASS))
    with pytest.raises(InputError, match=r"^'new' is no class of LogisticRegression; it knows 'default', 'paid'$"):
        ece(fitted, X, ["new"] * 60)


def test_a_model_is_run_on_the_data() -> None:
    model = torch.nn.Linear(3, 3).eval()
    data = X.astype(np.float32)
    logits = model(torch.tensor(data)).detach().numpy()
    expected = ece(Predictions.from_logits(logits, CLASS))
    assert ece(certcal.models.wrap(model, "logits"), (data, CLASS)) == expected
    with pytest.raises(InputError, match=r"never guessed; pass certcal\.models\.wrap\(model, 'logits'\)"):
        certcal.measure(model, (data, CLASS))


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
        ((Y, P), {"score": "pd"}, "^score: it names a column of a table, and no table is given; leave it out$"),
        ((Y, P), {"weight": "w"}, "^weight: no table is given; give the weight of each sample$"),
    ],
)
def test_columns_without_a_table_are_refused(source: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        certcal.measure(*source, **options)


@pytest.mark.parametrize("verb", [certcal.measure, certcal.bound])
def test_the_settings_of_a_result_ask_for_it_again(verb: Any) -> None:
    found = verb(Y, P, bins=7, closed="right", delta=0.01)
    again = verb(Y, P, **vars(found.settings))
    assert again.settings == found.settings
    assert again.to_dict() == found.to_dict()
