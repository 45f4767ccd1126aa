"""Columns of a record batch as NumPy arrays, cast by one rule for every format and command.

- An outcome is 1 or 0: true/false, a number equal to 1 or 0, or a text that is such a number ("1", "1.0",
  "1.000000000000000000e+00") or a word for it ("true", "yes"), in any case. Two other values are outcomes where it is
  said which of them counts as 1.
- A class is a whole number or a name. 3, 3.0, "3", "3.0" and "3.000000000000000000e+00" are one class; other texts are
  names as they stand, but for spaces around them. A number with a fraction is no class.
- A number is a number, or a text that is one; floats keep their type.

What is missing or of another kind is refused with column, row, value and remedy. Rows are counted from 1, the way
people count the rows of a table below its header.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, correctness
from certcal._base.outcomes import WRITTEN, TwoOutcomes, class_name, outcome
from certcal.data.arrow import compute, from_numpy, pa, to_numpy
from certcal.data.formats import column_kind
from certcal.data.pieces import CellError

# Distinct values of a column of classes; more than this is an identifier or a number, not a class.
MAX_CLASSES = 1_000_000

# Spellings of two classes that no other classes have.
_SPELLED = frozenset({"0", "1", "false", "true", "no", "yes"})
_COMPARE = "if it is a class, name the column of the predicted class (prediction) to compare with"
_ANOTHER = "repair or drop the row, or name another column"


def _is_fraction(value: Any) -> bool:
    """Whether a value is a number that is not whole, so no class."""
    if isinstance(value, str):
        value = float(value) if WRITTEN.fullmatch(value.strip()) else 0.0
    return isinstance(value, float) and not value.is_integer()


class Codes:
    """Numbers for the distinct values of one or several columns, the same across record batches."""

    def __init__(
        self, column: str = "", *, missing: str | None = None, limit: int = MAX_CLASSES, of_classes: bool = False
    ) -> None:
        self.column = column
        self.missing = missing
        self.limit = limit
        self.of_classes = of_classes  # so that numbers with a fraction are refused
        self._codes: dict[str, int] = {}

    @property
    def names(self) -> list[str]:
        """The distinct values, in order of appearance."""
        return list(self._codes)

    def add(self, array: Any, first_row: int) -> NDArray[np.int64]:
        """Codes of a column's values."""
        if self.missing is None:
            refuse_missing(array, self.column, first_row)
        try:
            values, positions = distinct(array)
        except pa.ArrowNotImplementedError:
            raise CellError(
                self.column, None, f"holds values of type {array.type}", "name a column of numbers or text"
            ) from None
        for index, value in enumerate(values if self.of_classes else ()):
            if _is_fraction(value):
                _refuse(
                    positions == index, self.column, first_row, f"is {value}, no class", "use whole numbers or names"
                )
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


def equal_classes(classes: Codes, truth: tuple[str, Any], prediction: tuple[str, Any], first_row: int) -> Any:
    """Where two columns, given by name and values, hold the same class."""
    codes: list[NDArray[np.int64]] = []
    for classes.column, array in (truth, prediction):
        codes.append(classes.add(array, first_row))
    # 1, true and yes are one class where there are no others.
    if all(name.lower() in _SPELLED for name in classes.names):
        said = np.array([outcome(name) or 0 for name in classes.names], np.int64)
        codes = [said[each] for each in codes]
    return codes[0] == codes[1]


def distinct(array: Any) -> tuple[list[Any], NDArray[Any]]:
    """Distinct values (None for missing) and, per row, which of them."""
    if pa.types.is_dictionary(array.type):  # not decoded: a long text that is often repeated would take all memory
        encoded = compute.dictionary_encode(array.indices, null_encoding="encode")
        words = array.dictionary
        words = words.cast(pa.large_string()) if pa.types.is_string_view(words.type) else words  # views: no take yet
        values = words.take(encoded.dictionary)
    else:
        encoded = compute.dictionary_encode(array, null_encoding="encode")
        values = encoded.dictionary
    try:
        return values.to_pylist(), to_numpy(encoded.indices)
    except UnicodeDecodeError:
        raise InputError("a text in the table is not UTF-8; write the file again") from None


def _refuse(bad: NDArray[np.bool_], column: str, first_row: int, reason: str, remedy: str) -> NoReturn:
    """Raise about the first bad row."""
    raise CellError(column, first_row + int(np.argmax(bad)) + 1, reason, remedy)


def refuse_missing(array: Any, column: str, first_row: int) -> None:
    """Raise at the first missing value."""
    if array.null_count:
        row = first_row + 1 + int(compute.index(compute.is_null(array), pa.scalar(True)).as_py())
        raise CellError(column, row, "is empty", "fill it or drop the row")


def numbers(array: Any, column: str, first_row: int) -> NDArray[Any]:
    """A column of numbers; floats keep their type, text is parsed."""
    kind = column_kind(array.type)
    if pa.types.is_null(array.type):
        raise CellError(column, first_row + 1, "is empty", "fill it or drop the row")
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    refuse_missing(array, column, first_row)
    if kind == "text":
        return _parsed(array, column, first_row)
    if kind not in ("number", "boolean"):
        raise CellError(column, None, f"holds {array.type}, not numbers", "name another column")
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
                raise CellError(column, first_row + index + 1, f"is {text[:80]!r}, not a number", _ANOTHER) from None
        raise CellError(column, None, "holds text that is not a number", "convert it") from None


def numbers_within(
    array: Any, column: str, first_row: int, inside: Callable[[NDArray[Any]], Any], what: str, remedies: tuple[str, ...]
) -> NDArray[Any]:
    """A column of numbers all of which are inside; else an error, with a remedy for NaN and one for the others."""
    found = numbers(array, column, first_row)
    bad = ~inside(found)
    if bad.any():
        value = found[np.argmax(bad)]
        lost = bool(np.isnan(value))
        _refuse(bad, column, first_row, f"is {value:.9g}{'' if lost else f', {what}'}", remedies[0 if lost else -1])
    return found


def unit_interval(array: Any, column: str, first_row: int, what: str, remedies: tuple[str, ...]) -> NDArray[Any]:
    """A column of numbers from 0 to 1, such as ends of intervals, as floats."""
    if column_kind(array.type) == "boolean":
        raise CellError(column, None, f"holds true/false, not {what}", "name another column")
    found = numbers_within(array, column, first_row, lambda all_: (all_ >= 0) & (all_ <= 1), "outside [0, 1]", remedies)
    return found if found.dtype.kind == "f" else found.astype(np.float64)


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
        reason = "holds one value per row, not a list with one number per class"
        remedy = "give all the columns separated by commas, or name a binary score as score"
        raise CellError(column, None, reason, remedy)
    refuse_missing(array, column, first_row)
    lengths = to_numpy(compute.list_value_length(array))
    bad = lengths != lengths[0]
    if bad.any():
        reason = f"has {lengths[np.argmax(bad)]} entries where row {first_row + 1} has {lengths[0]}"
        _refuse(bad, column, first_row, reason, "every row needs one number per class")
    entries = array.flatten()
    if entries.null_count:
        index = int(compute.index(compute.is_null(entries), pa.scalar(True)).as_py())
        row = first_row + index // int(lengths[0]) + 1
        raise CellError(column, row, "has an empty entry", "fill it or drop the row")
    return numbers(entries, column, first_row).reshape(len(array), int(lengths[0]))


def without_gaps(array: Any, needed: NDArray[np.bool_] | None, instead: float) -> Any:
    """The column with what is empty in rows that do not need it filled in; what is there stays and is checked."""
    if needed is None or needed.all():
        return array
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    gaps = compute.and_(compute.is_null(array, nan_is_null=True), from_numpy(~needed))
    if not compute.any(gaps).as_py():
        return array
    if pa.types.is_null(array.type):
        array = array.cast(pa.float64())
    return compute.if_else(gaps, pa.scalar(str(int(instead))).cast(array.type), array)


def outcomes(
    array: Any, column: str, first_row: int, remedy: str = _COMPARE, two: TwoOutcomes | None = None
) -> NDArray[np.uint8]:
    """A column of outcomes as 1 and 0; ``two`` knows the value that counts as 1, and what to do about others."""
    if column_kind(array.type) != "text" and (two is None or two.positive is None):
        values = numbers(array, column, first_row)
        try:
            return correctness(values)
        except InputError:
            bad = (values != 0) & (values != 1)
            reason = f"is {values[np.argmax(bad)]:.9g}, neither 0 nor 1"
            roles: tuple[str, ...] = ()
            if two is not None:
                said, remedy, roles = two.refusal(np.unique(values).tolist())
                reason = f"is {values[np.argmax(bad)]:.9g}, {said}"
            raise CellError(column, first_row + int(np.argmax(bad)) + 1, reason, remedy, roles) from None
    refuse_missing(array, column, first_row)
    values, positions = distinct(array)
    codes = (two or TwoOutcomes()).codes(values)
    if None in codes:
        index = codes.index(None)
        reason, roles = "neither 0/1 nor true/false", ()
        if two is not None:
            reason, remedy, roles = two.refusal(values)
        row = first_row + int(np.argmax(positions == index)) + 1
        raise CellError(column, row, f"is {str(values[index])[:80]!r}, {reason}", remedy, roles)
    return np.array(codes, np.uint8)[positions]


def class_numbers(
    array: Any, column: str, first_row: int, classes: tuple[str, ...] | None, *, is_ordered: bool
) -> NDArray[Any]:
    """A column of true classes as positions in ``classes``; numbers stay as they are when the order is known."""
    kind = column_kind(array.type)
    if kind == "number" and is_ordered:
        return numbers(array, column, first_row)
    refuse_missing(array, column, first_row)
    if kind not in ("number", "boolean", "text"):
        raise CellError(column, None, f"holds {array.type}, not classes", "name another column")
    values, positions = distinct(array)
    table = np.empty(len(values), np.int64)
    exact, alike = _places(classes or (), str), _places(classes or (), str.casefold)
    for index, value in enumerate(values):
        code = _class_number(class_name(value), exact, alike, is_ordered)
        if code is None:
            reason, remedy = _expected(classes)
            _refuse(positions == index, column, first_row, f"is {str(value)[:80]!r}, {reason}", remedy)
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
    if is_ordered and name.lower() in ("true", "false"):  # of two classes, the second is what is true
        return int(name.lower() == "true")
    return None


def _expected(classes: tuple[str, ...] | None) -> tuple[str, str]:
    if classes is None:
        return "not a class number", "use whole numbers from 0"
    shown = ", ".join(classes[:10]) + (f", … ({len(classes)} in all)" if len(classes) > 10 else "")
    return (
        f"which is none of the classes that the columns are named after ({shown})",
        "rename the columns, or give them in class order, separated by commas",
    )
