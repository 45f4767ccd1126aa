"""Pieces of a table: put together in order, with no more rows than promised."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from certcal import InputError
from certcal.data.pieces import gather, in_file


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
