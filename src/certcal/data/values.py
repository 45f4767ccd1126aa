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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, correctness
from certcal._base.outcomes import WRITTEN, TwoOutcomes, class_name, outcome
from certcal.data.arrow import compute, from_numpy, pa, to_numpy
from certcal.data.formats import column_kind
from certcal.data.pieces import CellError
from certcal.data.reading import CellReader
from certcal.data.schema import Family

# Distinct values of a column of classes; more than this is an identifier or a number, not a class.
MAX_CLASSES = 1_000_000

# Spellings of two classes that no other classes have.
_SPELLED = frozenset({"0", "1", "false", "true", "no", "yes"})
_COMPARE = "if it is a class, name the column of the predicted class (prediction) to compare with"
_PER_CLASS = "every row needs one number per class"


@dataclass(frozen=True)
class Batch:
    """Rows of a table: a record batch of pyarrow, and how many rows precede it."""

    rows: Any
    first_row: int
    reader: CellReader | None = None  # what knows how texts are numbers; None where only plain ones are
    kept: NDArray[np.int64] | None = None  # which rows these are, where others were left out

    def __getitem__(self, column: str) -> ColumnValues:
        return ColumnValues(self.rows.column(column), column, self.first_row, self.reader, self.kept)

    def family(self, family: Family) -> NDArray[Any]:
        """A number per class: several columns, or one of lists."""
        found = self[family.columns[0]].lists() if family.is_list else matrix([self[name] for name in family.columns])
        return found if self.reader is None else self.reader.family(found, family.columns)


@dataclass(frozen=True)
class ColumnValues:
    """Values of a column in some rows of a table."""

    array: Any
    column: str
    first_row: int
    reader: CellReader | None = None
    kept: NDArray[np.int64] | None = None

    def refuse(
        self,
        bad: NDArray[np.bool_] | int | None,
        reason: str,
        remedy: str,
        roles: Sequence[str] = (),
        add: Mapping[str, Any] | None = None,
    ) -> NoReturn:
        """Raise about the first bad row, the row with a number, or all of the column."""
        place = int(np.argmax(bad)) if isinstance(bad, np.ndarray) else bad
        place = place if place is None or self.kept is None else int(self.kept[place])
        raise CellError(self.column, None if place is None else self.first_row + place + 1, reason, remedy, roles, add)

    def text(self, rows: NDArray[np.bool_]) -> str:
        """The first of some texts."""
        return str(self.array[int(np.argmax(rows))].as_py())[:80]

    def refuse_missing(self) -> None:
        """Raise at the first missing value."""
        if self.array.null_count:
            self._refuse_empty(_first_null(self.array))

    def _refuse_empty(self, place: int) -> NoReturn:
        add = {} if self.reader is None or not self.reader.lenient else {"missing": "drop"}
        self.refuse(place, "is empty", "fill it or drop the row", add=add)

    def filled(self, needed: NDArray[np.bool_] | None, instead: float) -> ColumnValues:
        """Fill in what is empty in rows that do not need it; what is there stays and is checked."""
        array = self.array
        if needed is None or needed.all():
            return self
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        gaps = compute.and_(compute.is_null(array, nan_is_null=True), from_numpy(~needed))
        if not compute.any(gaps).as_py():
            return replace(self, array=array)
        if pa.types.is_null(array.type):
            array = array.cast(pa.float64())
        return replace(self, array=compute.if_else(gaps, pa.scalar(str(int(instead))).cast(array.type), array))

    def numbers(self) -> NDArray[Any]:
        """Numbers; floats keep their type, text is parsed."""
        array, kind = self.array, column_kind(self.array.type)
        if pa.types.is_null(array.type):
            self._refuse_empty(0)
        if pa.types.is_dictionary(array.type):
            return replace(self, array=array.dictionary_decode()).numbers()
        self.refuse_missing()
        if kind == "text":
            return (CellReader(lenient=False) if self.reader is None else self.reader).numbers(self)
        if kind not in ("number", "boolean"):
            self.refuse(None, f"holds {array.type}, not numbers", "name another column")
        return to_numpy(array.cast(pa.float64()) if pa.types.is_decimal(array.type) else array)

    def numbers_within(
        self, inside: Callable[[NDArray[Any]], Any], what: str, remedies: tuple[str, ...]
    ) -> NDArray[Any]:
        """Numbers all of which are inside; else an error, with a remedy for NaN and one for the others."""
        result = self.numbers()
        bad = ~inside(result)
        if bad.any():
            value = result[np.argmax(bad)]
            lost = bool(np.isnan(value))
            self.refuse(bad, f"is {value:.9g}{'' if lost else f', {what}'}", remedies[0 if lost else -1])
        return result

    def unit_interval(self, what: str, remedies: tuple[str, ...]) -> NDArray[Any]:
        """Numbers from 0 to 1, such as ends of intervals, as floats."""
        if column_kind(self.array.type) == "boolean":
            self.refuse(None, f"holds true/false, not {what}", "name another column")
        found = self.numbers_within(lambda all_: (all_ >= 0) & (all_ <= 1), "outside [0, 1]", remedies)
        return found if found.dtype.kind == "f" else found.astype(np.float64)

    def lists(self) -> NDArray[Any]:
        """Equally long lists as a matrix."""
        if column_kind(self.array.type) != "list":
            reason = "holds one value per row, not a list with one number per class"
            self.refuse(None, reason, "give all the columns separated by commas, or name a binary score as score")
        self.refuse_missing()
        lengths = to_numpy(compute.list_value_length(self.array))
        bad = lengths != lengths[0]
        if bad.any():
            there = f"has {lengths[np.argmax(bad)]} entries where row {self.first_row + 1} has {lengths[0]}"
            self.refuse(bad, there, _PER_CLASS)
        entries = replace(self, array=self.array.flatten())
        if entries.array.null_count:
            self.refuse(_first_null(entries.array) // int(lengths[0]), "has an empty entry", "fill it or drop the row")
        return entries.numbers().reshape(len(self.array), int(lengths[0]))

    def outcomes(self, remedy: str = _COMPARE, two: TwoOutcomes | None = None) -> NDArray[np.uint8]:
        """Outcomes as 1 and 0; ``two`` knows the value that counts as 1, and what to do about others."""
        if column_kind(self.array.type) != "text" and (two is None or two.positive is None):
            values = self.numbers()
            try:
                return correctness(values)
            except InputError:
                bad = (values != 0) & (values != 1)
                said, roles, add = "neither 0 nor 1", tuple[str, ...](), dict[str, str]()
                if two is not None:
                    found, counts = np.unique(values, return_counts=True)
                    said, remedy, roles = two.refusal(found.tolist())
                    add = two.offer(found.tolist(), counts.tolist())
                self.refuse(bad, f"is {values[np.argmax(bad)]:.9g}, {said}", remedy, roles, add)
        self.refuse_missing()
        values, positions = self.distinct()
        codes = (two or TwoOutcomes()).codes(values)
        if None in codes:
            index = codes.index(None)
            said, roles, add = "neither 0/1 nor true/false", tuple[str, ...](), dict[str, str]()
            if two is not None:
                said, remedy, roles = two.refusal(values)
                add = two.offer(values, np.bincount(positions).tolist())
            self.refuse(positions == index, f"is {str(values[index])[:80]!r}, {said}", remedy, roles, add)
        return np.array(codes, np.uint8)[positions]

    def class_numbers(self, classes: tuple[str, ...] | None, *, is_ordered: bool) -> NDArray[Any]:
        """True classes as positions in ``classes``; numbers stay as they are when the order is known."""
        kind = column_kind(self.array.type)
        if kind == "number" and is_ordered:
            return self.numbers()
        self.refuse_missing()
        if kind not in ("number", "boolean", "text"):
            self.refuse(None, f"holds {self.array.type}, not classes", "name another column")
        values, positions = self.distinct()
        table = np.empty(len(values), np.int64)
        exact, alike = _places_of_classes(classes or (), str), _places_of_classes(classes or (), str.casefold)
        for index, value in enumerate(values):
            code = _class_number(class_name(value), exact, alike, is_ordered)
            if code is None:
                reason, remedy = _expected_classes(classes)
                self.refuse(positions == index, f"is {str(value)[:80]!r}, {reason}", remedy)
            table[index] = code
        return table[positions]

    def distinct(self) -> tuple[list[Any], NDArray[Any]]:
        """Distinct values (None for missing) and, per row, which of them."""
        array = self.array
        if pa.types.is_dictionary(array.type):  # not decoded: a long text that is often repeated would take all memory
            encoded = compute.dictionary_encode(array.indices, null_encoding="encode")
            words = array.dictionary
            words = words.cast(pa.large_string()) if pa.types.is_string_view(words.type) else words  # no take of views
            values = words.take(encoded.dictionary)
        else:
            encoded = compute.dictionary_encode(array, null_encoding="encode")
            values = encoded.dictionary
        try:
            return values.to_pylist(), to_numpy(encoded.indices)
        except UnicodeDecodeError:
            raise InputError("a text in the table is not UTF-8; write the file again") from None


def matrix(columns: Sequence[ColumnValues]) -> NDArray[Any]:
    """Several columns of numbers as the columns of one matrix."""
    parts = [cells.numbers() for cells in columns]
    dtype = np.result_type(*parts)
    out = np.empty((parts[0].size, len(parts)), dtype if dtype.kind == "f" else np.float64)
    for index, part in enumerate(parts):
        out[:, index] = part
    return out


class Codes:
    """Numbers for the distinct values of one or several columns, the same across record batches."""

    def __init__(self, *, limit: int = MAX_CLASSES, of_classes: bool = False) -> None:
        self.limit = limit
        self.of_classes = of_classes  # so that numbers with a fraction are refused
        self._codes: dict[str, int] = {}

    @property
    def names(self) -> list[str]:
        """The distinct values, in order of appearance."""
        return list(self._codes)

    def add(self, cells: ColumnValues) -> NDArray[np.int64]:
        """Codes of a column's values."""
        cells.refuse_missing()
        try:
            values, positions = cells.distinct()
        except pa.ArrowNotImplementedError:
            cells.refuse(None, f"holds values of type {cells.array.type}", "name a column of numbers or text")
        for index, value in enumerate(values if self.of_classes else ()):
            if _is_fraction(value):
                cells.refuse(positions == index, f"is {value}, no class", "use whole numbers or names")
        names = [class_name(value) for value in values]
        table = np.array([self._codes.setdefault(name, len(self._codes)) for name in names], np.int64)
        if len(self._codes) > self.limit:
            reason = f"column {cells.column!r} has more than {self.limit} distinct values; choose another column"
            raise InputError(reason)
        return table[positions] if table.size else np.empty(0, np.int64)


def equal_classes(classes: Codes, truth: ColumnValues, prediction: ColumnValues) -> NDArray[np.bool_]:
    """Where two columns hold the same class."""
    codes = [classes.add(truth), classes.add(prediction)]
    # 1, true and yes are one class where there are no others.
    if all(name.lower() in _SPELLED for name in classes.names):
        said = np.array([outcome(name) or 0 for name in classes.names], np.int64)
        codes = [said[each] for each in codes]
    return codes[0] == codes[1]


def _first_null(array: Any) -> int:
    return int(compute.index(compute.is_null(array), pa.scalar(True)).as_py())


def _is_fraction(value: Any) -> bool:
    if isinstance(value, str):
        value = float(value) if WRITTEN.fullmatch(value.strip()) else 0.0
    return isinstance(value, float) and not value.is_integer()


def _places_of_classes(classes: tuple[str, ...], form: Callable[[str], str]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for index, name in enumerate(classes):
        places.setdefault(form(name), []).append(index)
    return places


def _class_number(name: str, exact: dict[str, list[int]], alike: dict[str, list[int]], is_ordered: bool) -> int | None:
    places = exact.get(name) or alike.get(name.casefold(), [])
    if len(places) == 1:
        return places[0]
    if is_ordered and re.fullmatch(r"[+-]?[0-9]{1,18}", name):
        return int(name)
    if is_ordered and name.lower() in ("true", "false"):  # of two classes, the second is what is true
        return int(name.lower() == "true")
    return None


def _expected_classes(classes: tuple[str, ...] | None) -> tuple[str, str]:
    if classes is None:
        return "not a class number", "use whole numbers from 0"
    shown = ", ".join(classes[:10]) + (f", … ({len(classes)} in all)" if len(classes) > 10 else "")
    return (
        f"which is none of the classes that the columns are named after ({shown})",
        "rename the columns, or give them in class order, separated by commas",
    )
