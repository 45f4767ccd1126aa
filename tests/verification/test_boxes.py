"""What may change about an input, and from bounds on margins to intervals of confidences."""

import re
from typing import Any

import numpy as np
import pytest

from certcal import InputError
from certcal.verification import InputBox, confidence_intervals, predicted_intervals, score_intervals

ROWS = np.array([[1000.0, 30.0, 1.0], [2000.0, 40.0, 2.0], [np.nan, 50.0, 1.0]])
NAMES = ("income", "age", "region")


def region(change: Any, epsilon: float = 1.0, columns: Any = None, **more: Any) -> Any:
    return InputBox(change, **more).on(ROWS, NAMES, columns).region(0, 3, epsilon)


def test_every_unit_side_and_limit_moves_the_ends_it_says() -> None:
    found = region({"income": "+10%", "age": "-5"}, 2.0)
    assert np.allclose(found.upper[:2, 0], [1200, 2400], rtol=1e-15)
    assert found.lower[:2, 0].tolist() == [1000, 2000]
    assert np.allclose(found.lower[:, 1], [20, 30, 40], rtol=1e-14)
    assert found.upper[:, 1].tolist() == [30, 40, 50]
    assert np.isnan(found.lower[2, 0])
    assert (found.lower[:, 2] == ROWS[:, 2]).all()
    deviations = region("1sd", fixed=["region"])
    assert np.allclose(deviations.upper[:, 1] - ROWS[:, 1], ROWS[:, 1].std())
    assert np.allclose(deviations.upper[0, 0] - 1000, ROWS[:2, 0].std())
    column = region({"income": "@slack"}, columns={"slack": np.array([1.0, 2.0, 3.0])})
    assert np.allclose(column.upper[:2, 0] - ROWS[:2, 0], [1, 2])
    whole = region({"age": 2.5}, integers=["age"], limits={"age": (29, None)})
    assert whole.lower[:, 1].tolist() == [29, 38, 48]
    assert whole.upper[:, 1].tolist() == [32, 42, 52]
    pixels = InputBox(0.5, limits=(0, 1)).on(np.array([[0.25, 1.0]], np.float32)).region(0, 1)
    assert pixels.lower.dtype == np.float32
    assert pixels.lower.tolist() == [[0.0, 0.5]]


def test_an_amount_that_was_computed_leaves_nothing_out() -> None:
    rows = np.random.default_rng(0).normal(size=(1000, 1)) * 10.0 ** np.arange(-5, 5)[:, None].repeat(100, 0)
    found = InputBox({"0": "7%"}).on(rows).region(0, 1000, 0.3)
    exact = np.longdouble(rows) * (1 + np.sign(rows) * np.longdouble(0.07) * np.longdouble(0.3))
    assert (found.upper >= exact).all()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: region({"incme": 1}), "no feature 'incme'.*income"),
        (lambda: region({"age": "5 years"}), "'5 years' is no amount"),
        (lambda: region({"age": -1}), "below 0"),
        (lambda: region({"region": [1, 3]}), "region of sample 1 is 2, not among"),
        (lambda: region({"age": 1}, limits={"age": (18, 35)}), "age of sample 1 is 40, outside"),
        (lambda: region({"age": 1}, limits={"age": (35, 18)}), "35, is above the largest, 18"),
        (lambda: region({"age": 1}, limits={"age": "x"}), "no pair"),
        (lambda: region({"age": 1}, at_most=0), "at_most: 0 features"),
        (lambda: InputBox("1sd", integers=["0"]).on(ROWS + 0.5), "sample 0 is 1000.5, no whole number"),
        (lambda: region({"age": 1}, fixed=["income"]), "not named stay"),
        (lambda: region([1, 2]), "single features"),
        (lambda: region({"age": "@slack"}), "no column 'slack'"),
        (lambda: region({"age": "@slack"}, columns={"slack": np.array([1, np.nan, 1])}), "row 2"),
        (lambda: region("1sd", at_most=0), "0 features cannot"),
        (lambda: region({"age": 1}, norm="l2"), "one radius"),
        (lambda: InputBox.of_texts(["1sd", "age=1"]), "another for one"),
        (lambda: InputBox.of_texts(["age=1", "age=2"]), "named twice"),
        (lambda: InputBox.of_texts(limits=["age=18"]), "no pair"),
    ],
)
def test_what_is_no_box_is_said_in_a_sentence(make: Any, said: str) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert re.search(said, str(caught.value)), str(caught.value)


def test_a_box_from_texts_is_the_box() -> None:
    found = InputBox.of_texts(["income=+10%", "region=1|2"], ["age=18:"], integers=("age",), at_most=1)
    assert found == InputBox(
        {"income": "+10%", "region": [1, 2]}, limits={"age": (18, None)}, integers=["age"], at_most=1
    )


def test_confidences_from_margins_hold_every_softmax_and_are_nearly_reached() -> None:
    rng = np.random.default_rng(1)
    low = rng.normal(-2, 1, (200, 4))
    high = low + rng.exponential(0.5, (200, 4))
    predicted = rng.integers(0, 4, 200)
    lower, upper, certified = confidence_intervals(low, high, predicted)
    for margins, sign in ((low, 1), (high, -1), ((low + high) / 2, 0)):
        logits = margins.copy()
        logits[np.arange(200), predicted] = 0.0
        for kind in (np.float64, np.float32):
            powers = np.exp(logits.astype(kind) - logits.max(axis=1, keepdims=True).astype(kind))
            own = (powers / powers.sum(axis=1, keepdims=True))[np.arange(200), predicted]
            ends = (
                (lower, upper) if kind is np.float64 else confidence_intervals(low, high, predicted, unit=2.0**-24)[:2]
            )
            assert (ends[0] <= own).all()
            assert (own <= ends[1]).all()
        if sign:
            assert np.allclose(upper if sign > 0 else lower, own, rtol=1e-5)
    others = np.where(np.arange(4) == predicted[:, None], -np.inf, high).max(axis=1)
    assert (certified == (others < 0)).all()
    assert not confidence_intervals([[0.0, -1.0]], [[0.0, -1e-16]], [0])[2][0]


def test_large_logits_that_a_softmax_rounds_stay_inside() -> None:
    rng = np.random.default_rng(2)
    for classes in (2, 3):
        logits = rng.normal(0, 30, (4000, classes)).astype(np.float32)
        predicted = rng.integers(0, classes, len(logits))
        margins = logits - logits.astype(np.float64)[np.arange(len(logits)), predicted][:, None]
        low, high, _ = predicted_intervals(margins, margins, predicted, unit=2.0**-24)
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        found = (powers / powers.sum(axis=1, keepdims=True))[np.arange(len(logits)), predicted if classes > 2 else 1]
        assert (low <= found).all()
        assert (found <= high).all()
        assert np.allclose(low, high, rtol=1e-4, atol=1e-37)


def test_scores_of_extreme_margins_stay_inside() -> None:
    lower, upper = score_intervals([-1000.0, -90.0, 40.0], [-800.0, -89.0, 900.0], unit=2.0**-24)
    assert lower[0] == 0
    assert 0 < upper[0] < 1e-30
    assert lower[2] < 1
    assert upper[2] == 1
    assert upper[1] >= np.float32(1) / (np.float32(1) + np.exp(np.float32(88.7)))
    binary = predicted_intervals([[0.0, -2.0], [-1.0, 0.0]], [[0.0, 1.0], [2.0, 0.0]], [0, 1])
    assert np.allclose(binary[0], 1 / (1 + np.exp([2.0, 2.0])))
    assert np.allclose(binary[1], 1 / (1 + np.exp([-1.0, -1.0])))
