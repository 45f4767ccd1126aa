"""Predictions: three ways in, checked once, nothing guessed."""

import dataclasses

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import certcal
from certcal import InputError, Predictions
from certcal._base.checks import LogitsWarning

PROBABILITIES = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.2, 0.5, 0.3]])
LABELS = np.array([0, 2, 0])

matrices = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 30), st.integers(2, 6)), elements=st.floats(-40, 40, allow_subnormal=False)
)


@pytest.mark.parametrize(
    "convert",
    [
        *(np.asarray, np.asfortranarray, np.ndarray.tolist, pd.DataFrame, pl.DataFrame, torch.tensor),
        lambda matrix: torch.tensor(matrix, requires_grad=True),
    ],
)
def test_any_kind_of_array_gives_the_same_predictions(convert):
    predictions = Predictions.from_probabilities(
        convert(PROBABILITIES), convert(LABELS) if convert is torch.tensor else LABELS
    )
    np.testing.assert_array_equal(predictions.confidence, [0.7, 0.6, 0.5])
    np.testing.assert_array_equal(predictions.correct, [1, 1, 0])
    assert predictions.correct.dtype == np.uint8
    assert predictions.labels is not None
    assert predictions.labels.dtype == np.int64


@pytest.mark.parametrize(
    "column", [[0.25, 0.5], pd.Series([0.25, 0.5], index=[9, 7]), pl.Series([0.25, 0.5]), torch.tensor([0.25, 0.5])]
)
def test_columns_of_any_library_are_confidences(column):
    predictions = Predictions.from_confidence(column, pd.Series([True, False]))
    np.testing.assert_array_equal(predictions.confidence, [0.25, 0.5])
    np.testing.assert_array_equal(predictions.correct, [1, 0])


def test_guessing_is_refused_with_the_four_ways_in():
    with pytest.raises(InputError, match=r"from_scores.*from_confidence.*from_probabilities.*from_logits"):
        Predictions(PROBABILITIES, LABELS)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_confidence_keeps_the_type_whose_edges_it_lies_on(dtype):
    matrix = np.array([[0.7, 0.3], [0.1, 0.9]], dtype)
    predictions = Predictions.from_probabilities(matrix, [0, 1])
    assert predictions.confidence.dtype == dtype
    np.testing.assert_array_equal(predictions.confidence, np.array([0.7, 0.9], dtype))
    assert Predictions.from_confidence(matrix[:, 0], [1, 0]).confidence.dtype == dtype
    assert Predictions.from_probabilities(torch.from_numpy(matrix), [0, 1]).confidence.dtype == dtype


def test_the_first_of_tied_classes_is_predicted():
    assert Predictions.from_probabilities([[0.4, 0.4, 0.2]], [0]).correct.tolist() == [1]
    assert Predictions.from_probabilities([[0.4, 0.4, 0.2]], [1]).correct.tolist() == [0]
    assert Predictions.from_logits([[5.0, 5.0]], [1]).correct.tolist() == [0]


def test_a_probability_above_one_by_rounding_is_a_confidence_of_one():
    predictions = Predictions.from_probabilities(np.array([[1 + 1e-7, 0.0]]), [0])
    assert predictions.confidence.tolist() == [1.0]


def test_rows_that_sum_to_one_only_roughly_are_accepted_and_others_refused():
    assert len(Predictions.from_probabilities([[0.7 + 3e-7, 0.3]], [0])) == 1
    with pytest.raises(InputError, match=r"probabilities\[1\] sums to 1\.4"):
        Predictions.from_probabilities([[0.5, 0.5], [0.7, 0.7]], [0, 0])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Predictions.from_logits([[0.0, 1.0]], [0, 1]), r"lengths differ: logits has 1, labels has 2"),
        (lambda: Predictions.from_scores([0.2, 1.2], [0, 1]), r"scores\[1\] is 1\.2, outside"),
        (lambda: Predictions.from_scores([0.2], [0, 1]), r"lengths differ: scores has 1, outcomes has 2"),
        (lambda: Predictions.from_scores([0.2], [2]), r"outcomes\[0\] is 2, neither 0 nor 1; .*\(positive\)"),
        (lambda: Predictions.from_scores([0.2], []), r"outcomes is empty"),
        (
            lambda: Predictions.from_scores([0.2] * 2, ["paid", "default"]),
            r"outcomes\[0\] is 'paid', neither 0/1 nor true/false; name .* 'paid' or 'default', as positive",
        ),
        (
            lambda: Predictions.from_scores([0.2] * 3, ["a", "b", "c"], positive="a"),
            r"outcomes\[1\] is 'b', and an outcome has two values, not 3 \('a', 'b', 'c'\)",
        ),
        (
            lambda: Predictions.from_scores([0.2] * 2, ["paid", "default"], positive="defualt"),
            r"outcomes\[0\] is 'paid', and none is 'defualt'; did you mean 'default'\?",
        ),
        (lambda: Predictions.from_scores([0.2] * 2, ["yes", None]), r"outcomes\[1\] is missing; drop the sample"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_place_and_the_remedy(build, message):
    with pytest.raises(InputError, match=message):
        build()


@given(matrices, st.randoms(use_true_random=False))
def test_softmax_is_a_distribution_and_does_not_change_when_a_row_is_shifted(logits, random):
    labels = [random.randrange(logits.shape[1]) for _ in range(logits.shape[0])]
    predictions = Predictions.from_logits(logits, labels)
    assert predictions.probabilities is not None
    np.testing.assert_allclose(predictions.probabilities.sum(axis=1), 1, rtol=0, atol=1e-14)
    shifted = Predictions.from_logits(logits + 8.0, labels)
    np.testing.assert_allclose(shifted.confidence, predictions.confidence, rtol=1e-12)
    direct = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(predictions.probabilities, direct, rtol=1e-12)


def test_logits_of_any_size_give_finite_probabilities():
    predictions = Predictions.from_logits(np.array([[1e308, -1e308], [-3e38, 3e38]]), [0, 0])
    assert predictions.confidence.tolist() == [1.0, 1.0]
    assert predictions.correct.tolist() == [1, 0]


def test_softmax_of_single_precision_is_the_double_one_rounded():
    logits = np.linspace(-20, 20, 3000, dtype=np.float32).reshape(1000, 3)
    labels = np.zeros(1000, int)
    single = Predictions.from_logits(logits, labels)
    double = Predictions.from_logits(logits.astype(np.float64), labels)
    assert single.confidence.dtype == np.float32
    np.testing.assert_array_equal(single.probabilities, np.float32(double.probabilities))


@given(matrices)
def test_blocks_do_not_change_the_result(logits):
    from certcal import predictions as module

    labels = np.zeros(logits.shape[0], int)
    whole = Predictions.from_logits(logits, labels)
    step = module._BLOCK_ENTRIES
    try:
        module._BLOCK_ENTRIES = 3
        pieces = Predictions.from_logits(logits, labels)
    finally:
        module._BLOCK_ENTRIES = step
    np.testing.assert_array_equal(whole.confidence, pieces.confidence)
    np.testing.assert_array_equal(whole.correct, pieces.correct)


def test_arrays_are_viewed_not_copied_and_read_only():
    confidence, correct = np.array([0.2, 0.9]), np.array([0, 1], np.uint8)
    predictions = Predictions.from_confidence(confidence, correct)
    assert np.shares_memory(predictions.confidence, confidence)
    assert np.shares_memory(predictions.correct, correct)
    with pytest.raises(ValueError, match="read-only"):
        predictions.confidence[0] = 1
    confidence[0] = 0.3  # the caller's own array stays the caller's
    matrix = np.array([[0.5, 0.5]])
    assert np.shares_memory(Predictions.from_probabilities(matrix, [0]).probabilities, matrix)


def test_predictions_are_frozen():
    predictions = Predictions.from_confidence([0.5], [1])
    with pytest.raises(dataclasses.FrozenInstanceError):
        predictions.kind = "logits"  # pyright: ignore


def test_repr_says_what_it_holds():
    assert repr(Predictions.from_probabilities(PROBABILITIES, LABELS)) == (
        "Predictions(n=3, classes=3, kind='probabilities', accuracy=0.667)"
    )
    weighted = Predictions.from_confidence([0.5, 0.5], [1, 0], [3, 1])
    assert repr(weighted) == "Predictions(n=2, kind='confidence', accuracy=0.75, weighted=True)"


@pytest.mark.parametrize(
    "rows", [[True, False, True], [0, 2], np.array([0, -1]), slice(None, None, 2), pd.Series([True, False, True])]
)
def test_select_picks_the_same_rows_of_every_array(rows):
    predictions = Predictions.from_logits(np.log(PROBABILITIES), LABELS, [1.0, 2.0, 3.0]).select(rows)
    assert predictions.kind == "logits"
    assert predictions.labels.tolist() == [0, 0]
    assert predictions.sample_weight.tolist() == [1.0, 3.0]
    assert predictions.logits.shape == predictions.probabilities.shape == (2, 3)
    assert predictions.correct.tolist() == [1, 0]
    assert not predictions.confidence.flags.writeable


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([False, False, False], r"picks no samples"),
        ([], r"picks no samples"),
        (slice(5, None), r"picks no samples"),
        ([True, False], r"lengths differ: predictions has 3, mask_or_index has 2"),
        ([0, 3], r"mask_or_index\[1\] is 3, outside the 3 samples"),
        ([0.5, 1.0], r"neither true/false per sample nor whole numbers"),
        ([[0, 1]], r"neither true/false per sample nor whole numbers"),
        ([1], r"only samples of weight 0"),
    ],
)
def test_select_refuses_what_it_cannot_pick(rows, message):
    predictions = Predictions.from_confidence([0.1, 0.2, 0.3], [0, 1, 1], [1.0, 0.0, 1.0])
    with pytest.raises(InputError, match=message):
        predictions.select(rows)


@pytest.mark.parametrize(
    ("outcomes", "positive"),
    [
        ([1, 0, 0], None),
        ([True, False, False], None),
        (["yes", "no", "No"], None),
        (["default", "paid", "paid"], "Default"),
        ([2, 1, 1], 2),
        ([2.0, 1.0, 1.0], "2"),
        ([0, 1, 1], "0"),
        (np.array(["b", "a", "a"], dtype=object), "b"),
        (torch.tensor([1, 0, 0]), None),
        (torch.tensor([0, 1, 1]), 0),
    ],
)
def test_an_outcome_is_one_of_two_values_of_which_one_counts_as_1(outcomes, positive):
    found = Predictions.from_scores([0.9, 0.2, 0.1], outcomes, positive=positive)
    assert (found.task, found.kind, found.correct.tolist()) == ("binary", "score", [1, 0, 0])
    assert found.select([0, 1]).task == "binary"


def test_each_way_in_says_what_the_task_is():
    assert Predictions.from_confidence([0.5], [1]).task == "top-label"
    assert Predictions.from_probabilities([[0.5, 0.5]], [1]).task == "multiclass"
    assert Predictions.from_logits([[0.5, 1.5]], [1]).task == "multiclass"


def test_probabilities_that_are_called_logits_get_a_warning_and_a_line_in_what_is_assumed() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(50, 3))
    rows = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = rng.integers(0, 3, 50)
    with pytest.warns(
        LogitsWarning, match="look like probabilities, of which another softmax is taken; if they are, use"
    ):
        doubtful = Predictions.from_logits(rows.astype(np.float32), labels)
    line = "what is read as logits are logits, although every row lies in [0, 1] and sums to 1"
    assert line in doubtful.doubts[0]
    assert line in certcal.measure(doubtful).description
    assert line in certcal.recalibrate(doubtful, method="platt").notes[-1]
    bounded = certcal.bound(doubtful)
    assert line in bounded.description
    assert line in bounded["binned"].assumptions[-1]
    for fine in (logits, 2 * rows, np.vstack([rows, [[0.5, 0.5, 0.1]]]), rows - 1e-3):  # one row is enough
        assert Predictions.from_logits(fine[-50:], labels).doubts == ()
    assert Predictions.from_probabilities(rows, labels).doubts == ()
