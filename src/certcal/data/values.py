"""Columns of a record batch as NumPy arrays. What is missing or no number is reported with column, row and value.

Rows are counted from 1, the way people count the rows of a table below its header.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError
from certcal.data.arrow import compute, pa, to_numpy
from certcal.data.formats import column_kind

# Distinct values of a column of classes; more than this is an identifier or a number, not a class.
MAX_CLASSES = 1_000_000

_TRUE = frozenset({"1", "true", "t", "yes", "y", "correct", "right"})
_FALSE = frozenset({"0", "false", "f", "no", "n", "incorrect", "wrong"})

# How numpy.savetxt writes every number. Without a point and a signed exponent it may be a name.
_SCIENTIFIC = re.compile(r"[+-]?[0-9]\.[0-9]+[eE][+-][0-9]{2,3}")


class Codes:
    """Numbers for the distinct values of one or several columns, the same across record batches.

    Examples
    --------
    >>> codes = Codes("animal", missing="(missing)")
    >>> codes.add(pa.array(["cat", "dog", None, "cat"]), 0).tolist(), codes.names
    ([0, 1, 2, 0], ['cat', 'dog', '(missing)'])
    """

    def __init__(self, column: str, *, missing: str | None = None, limit: int = MAX_CLASSES) -> None:
        self.column = column
        self.missing = missing
        self.limit = limit
        self._codes: dict[str, int] = {}

    @property
    def names(self) -> list[str]:
        """The distinct values, in order of appearance."""
        return list(self._codes)

    def add(self, array: Any, first_row: int) -> NDArray[np.int64]:
        """Codes of a column's values."""
        if self.missing is None:
            refuse_missing(array, self.column, first_row)
        values, positions = distinct(array)
        table = np.array([self._code(value) for value in values], np.int64)
        return table[positions] if table.size else np.empty(0, np.int64)

    def _code(self, value: Any) -> int:
        name = str(self.missing) if value is None else class_name(value)
        code = self._codes.setdefault(name, len(self._codes))
        if code >= self.limit:
            raise InputError(
                f"column {self.column!r} has more than {self.limit} distinct values; choose another column"
            )
        return code


def distinct(array: Any) -> tuple[list[Any], NDArray[Any]]:
    """Distinct values (None for missing) and, per row, which of them."""
    if pa.types.is_dictionary(array.type):  # not decoded: a long text that is often repeated would take all memory
        encoded = compute.dictionary_encode(array.indices, null_encoding="encode")
        values = array.dictionary.take(encoded.dictionary)
    else:
        encoded = compute.dictionary_encode(array, null_encoding="encode")
        values = encoded.dictionary
    try:
        return values.to_pylist(), to_numpy(encoded.indices)
    except UnicodeDecodeError:
        raise InputError("a text in the table is not UTF-8; write the file again") from None


def class_name(value: Any) -> str:
    """A class as text, so that 3, 3.0, "3" and numpy.savetxt's "3.000000000000000000e+00" are one class.

    Examples
    --------
    >>> class_name(3), class_name(3.0), class_name("3.0"), class_name(" cat "), class_name(True)
    ('3', '3', '3', 'cat', 'true')
    >>> class_name("1.200000000000000000e+01"), class_name("1.5e+00"), class_name("1e5")
    ('12', '1.5e+00', '1e5')
    """
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value).strip()
    if _SCIENTIFIC.fullmatch(text) and abs(float(text)) < 2**53 and float(text).is_integer():
        return str(int(float(text)))
    return text.partition(".")[0] if re.fullmatch(r"[+-]?[0-9]+\.0*", text) else text


def refuse_missing(array: Any, column: str, first_row: int) -> None:
    """Raise at the first missing value."""
    if array.null_count:
        row = first_row + 1 + int(compute.index(compute.is_null(array), pa.scalar(True)).as_py())
        raise InputError(f"column {column!r}, row {row} is empty; fill it or drop the row")


def numbers(array: Any, column: str, first_row: int) -> NDArray[Any]:
    """A column of numbers; floats keep their type, text is parsed."""
    kind = column_kind(array.type)
    if pa.types.is_null(array.type):
        raise InputError(f"column {column!r}, row {first_row + 1} is empty; fill it or drop the row")
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    refuse_missing(array, column, first_row)
    if kind == "text":
        return _parsed(array, column, first_row)
    if kind not in ("number", "boolean"):
        raise InputError(f"column {column!r} holds {array.type}, not numbers; name another column")
    if pa.types.is_decimal(array.type):
        array = array.cast(pa.float64())
    return to_numpy(array)


def _parsed(array: Any, column: str, first_row: int) -> NDArray[np.float64]:
    try:
        return to_numpy(array.cast(pa.float64()))
    except pa.ArrowInvalid:
        for index, text in enumerate(array.to_pylist()):
            try:
                float(text)
            except ValueError:
                raise InputError(
                    f"column {column!r}, row {first_row + index + 1} is {text[:80]!r}, not a number; "
                    "repair or drop the row, or name another column"
                ) from None
        raise InputError(f"column {column!r} holds text that is not a number; convert it") from None


def matrix(arrays: list[Any], columns: tuple[str, ...], first_row: int) -> NDArray[Any]:
    """Several columns of numbers as the columns of one matrix."""
    parts = [numbers(array, column, first_row) for array, column in zip(arrays, columns, strict=True)]
    dtype = np.result_type(*parts)
    out = np.empty((len(arrays[0]), len(parts)), dtype if dtype.kind == "f" else np.float64)
    for index, part in enumerate(parts):
        out[:, index] = part
    return out


def list_matrix(array: Any, column: str, first_row: int) -> NDArray[Any]:
    """A column of equally long lists as a matrix."""
    if column_kind(array.type) != "list":
        raise InputError(
            f"column {column!r} holds one value per row, not a list with one number per class; "
            "give all the columns separated by commas, or name a binary score as confidence"
        )
    refuse_missing(array, column, first_row)
    lengths = to_numpy(compute.list_value_length(array))
    if (lengths != lengths[0]).any():
        index = int(np.argmax(lengths != lengths[0]))
        raise InputError(
            f"column {column!r}, row {first_row + index + 1} has {lengths[index]} entries where row {first_row + 1} "
            f"has {lengths[0]}; every row needs one number per class"
        )
    entries = array.flatten()
    if entries.null_count:
        index = int(compute.index(compute.is_null(entries), pa.scalar(True)).as_py())
        row = first_row + index // int(lengths[0]) + 1
        raise InputError(f"column {column!r}, row {row} has an empty entry; fill it or drop the row")
    return numbers(entries, column, first_row).reshape(len(array), int(lengths[0]))


def outcomes(array: Any, column: str, first_row: int) -> NDArray[Any]:
    """A column of 0/1 or true/false; whether numbers are 0 or 1 is checked later."""
    if column_kind(array.type) != "text":
        return numbers(array, column, first_row)
    refuse_missing(array, column, first_row)
    values, positions = distinct(array)
    table = np.zeros(len(values), np.uint8)
    for index, value in enumerate(values):
        word = class_name(value).lower()
        if word not in _TRUE | _FALSE:
            row = first_row + int(np.argmax(positions == index)) + 1
            raise InputError(
                f"column {column!r}, row {row} is {str(value)[:80]!r}, neither 0/1 nor true/false; "
                "if it is a class, name the column of the predicted class (prediction) to compare with"
            )
        table[index] = word in _TRUE
    return table[positions]


def class_numbers(
    array: Any, column: str, first_row: int, classes: tuple[str, ...] | None, *, is_ordered: bool
) -> NDArray[Any]:
    """A column of true classes as positions in ``classes``; numbers stay as they are when the order is known."""
    kind = column_kind(array.type)
    if kind == "number" and is_ordered:
        return numbers(array, column, first_row)
    refuse_missing(array, column, first_row)
    if kind not in ("number", "boolean", "text"):
        raise InputError(f"column {column!r} holds {array.type}, not classes; name another column")
    values, positions = distinct(array)
    table = np.empty(len(values), np.int64)
    exact, alike = _places(classes or (), str), _places(classes or (), str.casefold)
    for index, value in enumerate(values):
        code = _class_number(class_name(value), exact, alike, is_ordered)
        if code is None:
            row = first_row + int(np.argmax(positions == index)) + 1
            raise InputError(f"column {column!r}, row {row} is {str(value)[:80]!r}, {_expected(classes)}")
        table[index] = code
    return table[positions]


def _places(classes: tuple[str, ...], form: Callable[[str], str]) -> dict[str, list[int]]:
    """Where each class is, by a form of its name."""
    found: dict[str, list[int]] = {}
    for index, name in enumerate(classes):
        found.setdefault(form(name), []).append(index)
    return found


def _class_number(name: str, exact: dict[str, list[int]], alike: dict[str, list[int]], is_ordered: bool) -> int | None:
    places = exact.get(name) or alike.get(name.casefold(), [])
    if len(places) == 1:
        return places[0]
    if is_ordered and re.fullmatch(r"[+-]?[0-9]{1,18}", name):
        return int(name)
    return None


def _expected(classes: tuple[str, ...] | None) -> str:
    if classes is None:
        return "not a class number; use whole numbers from 0"
    shown = ", ".join(classes[:10]) + (f", … ({len(classes)} in all)" if len(classes) > 10 else "")
    return (
        f"which is none of the classes that the columns are named after ({shown}); "
        "rename the columns, or give them in class order, separated by commas"
    )
