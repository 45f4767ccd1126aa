"""Bounds per class of other verifiers: found by their names, checked, and turned into sound intervals."""

import re
from typing import Any

import numpy as np
import pytest

import certcal
from certcal import InputError
from certcal.data import read_intervals
from certcal.verification import confidence_intervals

RNG = np.random.default_rng(3)
LOGITS = RNG.normal(0, 2, (300, 4)).astype(np.float32)
PREDICTED, LABELS = LOGITS.argmax(1), RNG.integers(0, 4, 300)
RADIUS = RNG.exponential(0.3, LOGITS.shape)


def by_class(name: str, values: Any) -> dict[str, Any]:
    return {f"{name}_{k}": values[:, k] for k in range(values.shape[1])}


def table(**more: Any) -> dict[str, Any]:
    return {"prediction": PREDICTED, "label": LABELS, **more}


def margins(side: float) -> Any:
    """Of l_A − l_k, k's logit and A's moved by their own radius each; A's own entry is nothing."""
    own = np.take_along_axis(LOGITS.astype(float), PREDICTED[:, None], 1) - LOGITS
    room = RADIUS + np.take_along_axis(RADIUS, PREDICTED[:, None], 1)
    return np.where(np.arange(4) == PREDICTED[:, None], np.nan, own + side * room)


def test_margins_and_logits_give_the_intervals_of_their_softmax_however_they_are_written(tmp_path):
    low, high = margins(-1), margins(1)
    found = read_intervals(table(**by_class("margin_lower", low), **by_class("margin_upper", high)))
    expected = confidence_intervals(-high, -low, PREDICTED, unit=2.0**-24)
    assert [*map(np.array_equal, (found.lower, found.upper, found.certified), expected)] == [True] * 3
    assert np.array_equal(found.correct, PREDICTED == LABELS)
    assert not found.binary
    logits = table(**by_class("Logit Lower", LOGITS - RADIUS), **by_class("logits_upper", LOGITS + RADIUS))
    again = read_intervals(logits)
    assert np.allclose(again.lower, found.lower)
    assert np.allclose(again.upper, found.upper)
    assert (again.lower <= found.lower + 1e-15).all()
    np.savez(tmp_path / "bounds.npz", **table(margin_lower=low, margin_upper=high))
    assert np.array_equal(read_intervals(tmp_path / "bounds.npz").lower, found.lower)
    words = {"prediction": [f"c{k}" for k in PREDICTED], "label": [f"c{k}" for k in LABELS]}
    named = {f"margin_lower_c{k}": low[:, k] for k in (3, 1, 0, 2)}
    assert np.allclose(read_intervals({**named, **words}).lower, found.lower)
    for moved in (LOGITS - RADIUS, LOGITS + RADIUS, LOGITS + RNG.uniform(-1, 1, LOGITS.shape) * RADIUS):
        powers = np.exp(moved - moved.max(axis=1, keepdims=True))
        own = np.take_along_axis(powers / powers.sum(axis=1, keepdims=True), PREDICTED[:, None], 1)[:, 0]
        assert ((found.lower <= own) & (own <= found.upper)).all()
        assert (moved.argmax(1) == PREDICTED)[found.certified].all()


def test_without_upper_bounds_confidences_reach_1_and_what_is_not_certified_says_nothing():
    low = margins(-1)
    kept = np.arange(300) > 9
    low[:10] = np.nan
    found = read_intervals(table(**by_class("margin_lower", low), certified=kept))
    assert (found.upper == 1).all()
    assert (found.lower[:10] == 0).all()
    assert not found.certified[:10].any()
    assert found.certified[10:].sum() == (np.where(np.isnan(low), np.inf, low)[10:].min(axis=1) > 2e-6).sum()


def test_two_classes_are_a_binary_score_whose_outcome_is_the_label():
    low = np.column_stack([np.full(4, np.nan), [1.0, -0.5, 2.0, 0.0]])
    found = read_intervals(
        {**by_class("margin_lower", low), "margin_upper_0": [9.0] * 4, "margin_upper_1": [3.0] * 4}
        | {"prediction": [0] * 4, "outcome": [0, 1, 0, 1]}
    )
    assert found.binary
    assert found.certified is None
    assert found.correct.tolist() == [0, 1, 0, 1]
    assert np.allclose(found.upper, 1 / (1 + np.exp(low[:, 1])), rtol=1e-5)
    assert np.allclose(found.lower, 1 / (1 + np.exp(3.0)), rtol=1e-5)
    right = read_intervals({**by_class("margin_lower", low), "prediction": [0] * 4, "correct": [1, 0, 1, 0]})
    assert right.correct.tolist() == [0, 1, 0, 1]


def test_certify_takes_them(tmp_path):
    found = certcal.certify(table(**by_class("margin_lower", margins(-1))))
    assert found.about["columns"]["margin_lower"] == [f"margin_lower_{k}" for k in range(4)]
    assert (
        found.at().summary.n_certified == read_intervals(table(**by_class("margin_lower", margins(-1)))).certified.sum()
    )
    assert "margin_lower 'margin_lower_0' … 'margin_lower_3', prediction 'prediction'" in found.description


LOW = by_class("margin_lower", np.where(np.isnan(margins(-1)), 0.0, margins(-1)))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({**LOW, "label": LABELS}, "no column of predicted classes was found; name it as prediction"),
        ({**LOW, "prediction": PREDICTED}, "no column of true classes was found; name it as label"),
        (table(**LOW, **by_class("logit_lower", LOGITS)), "bounds of margins and bounds of logits"),
        (table(**by_class("logit_lower", LOGITS)), r"none of the upper ones \(logit_upper_0, …\)"),
        (table(**by_class("margin_upper", LOGITS)), r"none of the lower ones \(margin_lower_0, …\)"),
        (table(**LOW, margin_upper_0=LABELS, margin_upper_1=LABELS), "not of the same classes"),
        ({**table(**LOW), "prediction": np.full(300, 4)}, "column 'prediction', row 1 is 4, and there are bounds"),
        ({**table(**LOW), "label": np.full(300, 1.5)}, "column 'label', row 1 is 1.5"),
        (table(margin_lower=LOGITS[:, :2].tolist()), "column 'prediction', row .* of 2 classes"),
        (table(margin_lower=LOGITS.tolist(), margin_upper=LOGITS[:, :2].tolist()), "has 2 entries where"),
        (
            table(**by_class("logit_lower", LOGITS + 1), **by_class("logit_upper", LOGITS)),
            "column 'logit_lower_0', row 1 is .*, with .* in column 'logit_upper_0'; are the two swapped",
        ),
        (
            table(**{**LOW, "margin_lower_2": [np.nan] * 300}),
            r"column 'margin_lower_2', row \d+ is NaN; fill it, with -inf",
        ),
        (table(**{**LOW, "margin_lower_2": [None] * 300}), r"column 'margin_lower_2', row \d+ is empty"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_column_and_row(given, said):
    with pytest.raises(InputError) as caught:
        read_intervals(given)
    assert re.search(said, str(caught.value)), str(caught.value)
