"""The casting rule: one value is the same outcome and class wherever it is written; and pieces put together."""

import json
import pickle
from decimal import Decimal, InvalidOperation
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certcal import InputError
from certcal.data import read_inputs, read_intervals, read_predictions
from certcal.data.pieces import CellError, gather, in_file
from certcal.data.values import class_name, outcome

WORDS = {1: ("1", "true", "t", "yes", "y", "correct", "right"), 0: ("0", "false", "f", "no", "n", "incorrect", "wrong")}


def naive_outcome(value):
    text = str(value).strip().lower()
    for number, words in WORDS.items():
        if text in words:
            return number
    try:
        exact = Decimal(text)
    except InvalidOperation:
        return None
    return int(exact) if exact in (0, 1) else None


@st.composite
def spelled(draw, number):
    """A value for 0 or 1, as people and programs write it."""
    plain = [number, float(number), bool(number), f"{number:.18e}", f"{number:.1f}", f"{number}.", f"+{number}"]
    word = draw(st.sampled_from([*plain, *WORDS[number], f"{number:e}"]))
    if not isinstance(word, str):
        return word
    cased = "".join(draw(st.sampled_from([letter.lower(), letter.upper()])) for letter in word)
    return draw(st.sampled_from(["", " "])) + cased + draw(st.sampled_from(["", " "]))


OUTCOMES = st.lists(
    st.sampled_from([0, 1]).flatmap(lambda n: st.tuples(st.just(n), spelled(n))), min_size=1, max_size=12
)


@given(OUTCOMES, st.sampled_from(["csv", "jsonl", "parquet", "memory", "typed"]))
def test_an_outcome_is_the_same_however_it_is_written(tmp_path_factory, pairs, form):
    expected, written = [number for number, _ in pairs], [value for _, value in pairs]
    folder = tmp_path_factory.mktemp("outcomes")
    columns = {"confidence": [0.5] * len(pairs), "correct": [str(value) for value in written]}
    if form == "csv":
        table = folder / "table.csv"
        table.write_text("confidence,correct\n" + "".join(f"0.5,{value}\n" for value in written))
    elif form == "jsonl":
        table = folder / "table.jsonl"
        table.write_text("".join(json.dumps({"confidence": 0.5, "correct": value}) + "\n" for value in written))
    elif form == "parquet":
        table = folder / "table.parquet"
        pq.write_table(pa.table(columns), table)
    else:
        kind = type(next((value for value in written if not isinstance(value, str)), True))
        table = columns if form == "memory" else {**columns, "correct": [kind(number) for number in expected]}
    assert read_predictions(table).correct.tolist() == expected
    ends = {"lower": "confidence", "upper": "confidence"}
    assert read_intervals(table, ends).correct.tolist() == expected


@settings(max_examples=150)
@given(st.one_of(st.text(max_size=8), st.integers(-3, 3).map(str), st.sampled_from([0, 1]).flatmap(spelled)))
def test_what_is_no_outcome_is_none_for_the_naive_rule_either(value):
    assert outcome(value) == (None if "_" in str(value) else naive_outcome(value))


@given(st.integers(-(2**53) + 1, 2**53 - 1))
def test_a_whole_number_is_one_class_in_every_form(number):
    forms = [number, float(number), str(number), f"{number}.0", f"{number}.", f" {number} ", f"{float(number):.18e}"]
    assert {class_name(form) for form in forms} == {str(number)}


@given(st.text(alphabet=st.characters(categories=("L", "Zs", "P")), min_size=1))
def test_names_stay_as_they_are_but_for_spaces(name):
    assert class_name(name) == name.strip()
    assert class_name(class_name(name)) == class_name(name)


@pytest.mark.parametrize("value", [0.5, "0.5", "5.000000000000000000e-01", float("nan"), float("inf")])
def test_a_number_with_a_fraction_is_no_class(value):
    table = {"confidence": [0.5, 0.5], "prediction": ["1", "1"], "label": [type(value)(1), value]}
    with pytest.raises(InputError, match=r"^table: column 'label', row 2 is .*, no class; use whole numbers or names$"):
        read_predictions(table)
    ends = {**table, "lower": [0.1, 0.1], "upper": [0.2, 0.2]}
    with pytest.raises(InputError, match=r"^table: column 'label', row 2 is .*, no class"):
        read_intervals(ends)


def test_groups_may_be_any_numbers():
    table = {"lower": [0.1, 0.1], "upper": [0.2, 0.2], "correct": [1, 0], "group": [0.5, 1.0]}
    assert [each.name for each in read_intervals(table, by=["group"]).groups] == ["0.5", "1"]


@pytest.mark.parametrize("labels", [[True, False], ["true", "False"], ["1.000000000000000000e+00", "0"], [1.0, 0.0]])
def test_true_is_the_second_of_two_classes(tmp_path, labels):
    table = {"prob_0": [0.25, 0.5], "prob_1": [0.75, 0.5], "label": labels}
    assert read_predictions(table).labels.tolist() == [1, 0]
    pq.write_table(pa.table({"height": [0.5, 1.5], "label": labels}), tmp_path / "rows.parquet")
    assert read_inputs(tmp_path / "rows.parquet").labels.tolist() == [1, 0]


def test_an_error_about_a_value_is_data_and_travels_between_processes():
    with pytest.raises(CellError) as caught:
        read_predictions({"confidence": [0.5, 0.5], "correct": ["yes", "perhaps"]})
    error = caught.value
    assert (error.column, error.row, error.argument) == ("correct", 2, None)
    assert error.remedy == "if it is a class, name the column of the predicted class (prediction) to compare with"
    assert str(error) == f"{error.reason}; {error.remedy}"
    copied = pickle.loads(pickle.dumps(error))
    assert (type(copied), str(copied)) == (InputError, str(error))


@pytest.mark.parametrize("rows", [None, 5, 9])
def test_pieces_are_put_together_in_order_and_told(rows):
    told = []
    parts = [{"a": np.array([1.0, 2, 3]), "b": np.eye(3)}, {"a": np.array([4.0, 5]), "b": np.ones((2, 3))}]
    arrays = gather(iter(parts), rows, told.append)
    assert arrays["a"].tolist() == [1, 2, 3, 4, 5]
    np.testing.assert_array_equal(arrays["b"], np.vstack([np.eye(3), np.ones((2, 3))]))
    assert told == [3, 2]


def test_a_single_piece_is_not_copied():
    whole = np.arange(4)
    assert gather([{"a": whole}], 4)["a"] is whole


@pytest.mark.parametrize(
    ("parts", "rows", "message"),
    [
        ([], 3, "the table has no rows; it needs at least one"),
        ([{"a": np.ones(2)}, {"a": np.ones(2)}], 3, "there are more than the 3 rows that it says it has"),
        ([{"a": np.ones((1, 2))}, {"a": np.ones((1, 3))}], 5, "row 2 has 3 entries where row 1 has 2"),
    ],
)
def test_pieces_that_do_not_make_a_table_are_refused(parts, rows, message):
    with pytest.raises(InputError, match=message):
        gather(parts, rows)


@pytest.mark.parametrize("text", ["no rows", "t.csv: no rows"])
def test_a_complaint_names_the_file_once(text):
    with pytest.raises(InputError, match=r"^t\.csv: no rows$"), in_file(Path("t.csv")):
        raise InputError(text)


@pytest.mark.parametrize(
    ("prediction", "label"),
    [
        (["True", "False", "True"], ["1", "0", "0"]),
        (pa.array([True, False, True]), pa.array([1, 0, 0])),
        (pa.array([True, False, True]), ["True", "False", "False"]),
        (["yes", "no", "yes"], pa.array([1.0, 0.0, 0.0])),
    ],
)
def test_a_prediction_and_a_label_spelt_differently_are_one_class(prediction, label):
    found = read_predictions({"confidence": [0.9, 0.8, 0.7], "prediction": prediction, "label": label})
    assert found.correct.tolist() == [1, 1, 0]


def test_letters_are_no_spelling_of_numbers():
    found = read_predictions({"confidence": [0.9, 0.8], "prediction": ["t", "y"], "label": ["1", "y"]})
    assert found.correct.tolist() == [0, 1]


def test_a_column_of_records_holds_no_classes(tmp_path):
    line = json.dumps({"confidence": 0.9, "prediction": {"a": 1}, "label": {"a": 1}})
    (tmp_path / "nested.jsonl").write_text(f"{line}\n")
    with pytest.raises(InputError, match=r"column 'label' holds values of type struct<a: int64>; name a column"):
        read_predictions(tmp_path / "nested.jsonl")
