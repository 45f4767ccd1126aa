"""How the cells of a table are read: what was asked for, what was recognised, and which rows were left out."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal._base.outcomes import TwoOutcomes
from certcal._base.signature import Spec, check_setting
from certcal._base.text import counted
from certcal.data.decimals import NAMES, OTHER, Marks, common_mark, thousands_pattern
from certcal.data.schema import READING, Layout

if TYPE_CHECKING:
    from certcal.data.values import Batch, ColumnValues

# What a spreadsheet shows of a number: digits with points, commas and spaces among them, perhaps a percent sign.
DRESSED = re.compile(r"[-+]?[0-9.,\s]*[0-9][0-9.,\s]*%?")
# From this on, a column without negative values and above 100 holds percentages; smaller ones may be log-odds.
_SURELY_PERCENT = 10.0
_SPECS = {
    "decimal": Spec("", "word", choices=(".", ",")),
    "percent": Spec("", "flag"),
    "encoding": Spec("", "text"),
    "missing": Spec("", "word", choices=("drop",)),
    "skip": Spec("", "whole", least=0, most=1000),
    "sheet": Spec("", "text"),
}


@dataclass(frozen=True)
class Reading:
    """How a table is to be read, where it does not say so itself."""

    decimal: str | None = None
    percent: bool | None = None
    encoding: str | None = None
    missing: str | None = None
    skip: int | None = None
    sheet: str | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any] | None) -> Reading:
        """What is asked for among columns by role."""
        known: Mapping[str, Any] = given if isinstance(given, Mapping) else {}  # else refused where columns are found
        asked: dict[str, Any] = {name: value for name, value in known.items() if name in READING and value is not None}
        if isinstance(skip := asked.get("skip"), str) and skip.strip().isdecimal():
            asked["skip"] = int(skip)
        asked = {name: check_setting(name, value, _SPECS[name]) for name, value in asked.items()}
        try:
            codecs.lookup(asked.get("encoding", "utf-8"))
        except (LookupError, ValueError):
            reason = f"there is no encoding {asked['encoding']!r}"
            raise InputError(reason, argument="encoding", remedy="give one such as cp1252 or utf-16") from None
        return cls(**asked)


# How the last row of a spreadsheet may begin.
TOTALS = r"(grand |sub)?(total|sum|summe|gesamt|insgesamt|somme|suma|totaal)"


@dataclass(eq=False)
class CellReader:
    """Turns texts into numbers and leaves out rows, and remembers what it did: the same rule for all pieces."""

    how: Reading = Reading()
    decimal: str | None = None  # "," where a comma between digits cannot be anything else
    lenient: bool = True  # whether rows may be left out, which some readers cannot do
    notes: list[str] = field(default_factory=list[str])
    marks: Mapping[str, Marks] = field(default_factory=dict[str, Marks])  # what the first rows say
    _marks: dict[str, Marks] = field(default_factory=dict[str, Marks])
    _applied: dict[str, str] = field(default_factory=dict[str, str])
    _signed: dict[str, bool] = field(default_factory=dict[str, bool])
    _left_out: dict[str, int] = field(default_factory=dict[str, int])
    _gone: list[NDArray[np.int64]] = field(default_factory=list[NDArray[np.int64]])

    def restart(self) -> None:
        """Forget which rows were left out: the table is read from its beginning."""
        self._left_out, self._gone = {}, []

    def numbers(self, cells: ColumnValues) -> NDArray[np.float64]:
        """Texts as numbers: with percent signs, decimal commas, and marks between thousands."""
        from certcal.data.arrow import compute, pa, to_numpy

        texts = compute.utf8_trim_whitespace(cells.array)
        signs = to_numpy(compute.ends_with(texts, "%"))
        if (signs.size and signs.any() != signs.all()) or signs.any() != self._signed.get(cells.column, signs.any()):
            other = signs != self._signed.get(cells.column, True)
            there = (
                "a percent sign, which others lack" if signs[np.argmax(other)] else "no percent sign, as others have"
            )
            text = cells.text(other)
            totals = re.match(TOTALS, text.strip(), re.IGNORECASE)
            remedy = self.remedy(text)[0] if totals else "write all numbers in one way"
            cells.refuse(other, f"is {text!r}, with {there}", remedy)
        self._signed[cells.column] = bool(signs.any())
        plain = compute.replace_substring_regex(texts, r"\s*%$", "")
        plain = self._with_decimal_points(cells, plain, self.how.decimal or self._decimal_mark(cells, texts))
        try:
            found: NDArray[Any] = to_numpy(plain.cast(pa.float64()))
        except pa.ArrowInvalid:
            self._refuse_text(cells, plain.to_pylist())
        if self._signed[cells.column]:
            self._say(f"{cells.column!r} has percent signs and was divided by 100")
            return found / 100
        return found

    def _with_decimal_points(self, cells: ColumnValues, plain: Any, decimal: str | None) -> Any:
        """Texts without marks between thousands, and with points for decimal commas."""
        from certcal.data.arrow import compute, to_numpy

        if decimal is None:
            return plain
        grouped = compute.match_substring_regex(plain, thousands_pattern(decimal))
        if to_numpy(grouped).any():
            plain = compute.if_else(grouped, compute.replace_substring(plain, OTHER[decimal], ""), plain)
            self._say(f"{cells.column!r} has {NAMES[OTHER[decimal]]}s between thousands")
        if decimal == "." or not to_numpy(compute.match_substring_regex(plain, "[.,]")).any():
            return plain
        points = to_numpy(compute.match_substring(plain, "."))
        if points.any() and self.how.decimal:
            cells.refuse(points, f"is {cells.text(points)!r}, with a point", "leave {decimal} out", ("decimal",))
        if points.any():
            reason = f"is {cells.text(points)!r}, with a point, where others have decimal commas"
            cells.refuse(points, reason, "write all numbers in one way")
        self._say(f"{cells.column!r} has decimal commas")
        return compute.replace_substring(plain, ",", ".")

    def _decimal_mark(self, cells: ColumnValues, texts: Any) -> str | None:
        """The decimal mark of a column, one for all its pieces; None where nothing tells."""
        found = self._mark_of_piece(cells, texts) if self.lenient else None
        if found is not None and self._applied.setdefault(cells.column, found) != found:
            cells.refuse(None, "has numbers with decimal points and others with commas", "write all in one way")
        return found

    def _mark_of_piece(self, cells: ColumnValues, texts: Any) -> str | None:
        """The decimal mark by the column's own numbers so far, or else by those of other columns."""
        seen = self._marks.setdefault(cells.column, self.marks.get(cells.column, Marks()).copy())
        common = common_mark(self.marks)
        # Other columns tell of points where commas are between columns, and elsewhere of decimal commas; not against
        # what is usual there: a point may be that of a time or a date.
        usual = self.decimal or "."
        if not seen.decimal and common != {usual}:
            seen.add(texts.to_pylist())
        if len(seen.decimal or seen.doubtful) > 1:
            cells.refuse(None, "has numbers with decimal points and others with commas", "write all in one way")
        if seen.decimal == {","} and self.decimal is None:
            return None  # beside commas between columns, that one is decimal is for the user to say
        if seen.decimal:
            return next(iter(seen.decimal))
        if common == {usual}:
            return usual
        if not seen.doubtful:
            return None
        ((mark, text),) = seen.doubtful.items()
        if mark == "," and self.decimal is None:
            return "." if seen.whole else None
        if seen.whole or common:
            others = "others are whole numbers" if seen.whole else "other columns have other marks"
            where = np.array([each == text for each in texts.to_pylist()])
            cells.refuse(
                where if where.any() else None,
                f"is {text!r}, and {others}: the {NAMES[mark]} may be decimal or separate thousands",
                f"give {{decimal}} {mark} if it is decimal, and {{decimal}} {OTHER[mark]} if not",
                ("decimal",),
                {"decimal": OTHER[mark]},
            )
        if mark == "." and self.decimal:
            self._say(f"{cells.column!r} has points, which were taken for decimal ones")
        return mark

    def written_plainly(self, column: str, text: str) -> str:
        """A number as programs write it, where the first rows tell how those of its column are written."""
        own = self.marks[column].decimal if column in self.marks else set[str]()
        known = {self.how.decimal} if self.how.decimal else own or common_mark(self.marks)
        seen = self.marks.get(column, Marks())
        if len(known) != 1 and seen.whole and seen.doubtful and self.lenient:
            mark, doubted = next(iter(seen.doubtful.items()))
            reason = f"column {column!r} has {doubted!r} beside whole numbers: the {NAMES[mark]} may be decimal or not"
            raise InputError(reason, remedy="say which mark is decimal", add={"decimal": OTHER[mark]})
        if len(known) != 1 or not re.fullmatch(r"[-+]?[0-9.,]+", text):
            return text
        (decimal,) = known
        if re.fullmatch(thousands_pattern(decimal), text):
            self._say(f"{column!r} has {NAMES[OTHER[decimal]]}s between thousands")
            text = text.replace(OTHER[decimal], "")
        return text if decimal == "." or "." in text else text.replace(",", ".")

    def _refuse_text(self, cells: ColumnValues, texts: Sequence[str]) -> NoReturn:
        for place, text in enumerate(texts):
            try:
                float(text)
            except ValueError:
                cells.refuse(place, f"is {text[:80]!r}, not a number", *self.remedy(text, cells.column))
        cells.refuse(None, "holds text that is not a number", "convert it")

    def remedy(self, text: str, column: str = "") -> tuple[str, tuple[str, ...], Mapping[str, Any]]:
        """What to do about a text that is no number: remedy, roles, and what to add."""
        undecided = self.how.decimal is None and self.lenient
        if re.fullmatch(thousands_pattern("."), text.strip()) and undecided:
            return "if the comma separates thousands, and the point is decimal, say so", (), {"decimal": "."}
        if re.fullmatch(r"[-+]?[0-9]*,[0-9]+", text.strip()) and undecided:
            if column in self.marks and "." in self.marks[column].decimal:
                return "others have decimal points: write all numbers in one way", (), {}
            return "if the comma is a decimal comma, say so", (), {"decimal": ","}
        if re.match(TOTALS, text.strip(), re.IGNORECASE):
            return "it looks like a row of totals: delete it", (), {}
        return "repair or drop the row, or name another column", (), {}

    def scores(self, cells: ColumnValues) -> NDArray[Any]:
        """Numbers that are probabilities, divided by 100 where that was asked for."""
        found = cells.numbers()
        return found / 100 if self._divides(cells.column) else found

    def family(self, found: NDArray[Any], columns: Sequence[str]) -> NDArray[Any]:
        """Numbers per class, divided by 100 where that was asked for."""
        return found / 100 if any(map(self._divides, columns)) else found

    def _divides(self, column: str) -> bool:
        if not self.how.percent or self._signed.get(column):
            return False
        self._say(f"{column!r} was divided by 100, as asked")
        return True

    def recognised(self, scores: NDArray[Any], layout: Layout) -> NDArray[Any]:
        """All scores of a table: those that plainly are percentages divided by 100, which is said."""
        if layout.kind == "logits" or self.how.percent is not None or not scores.size or not scores.max() > 1:
            return scores
        most = scores.max()
        sums = scores.sum(axis=1) if scores.ndim == 2 else np.array([100.0])
        if np.count_nonzero(scores > 1) == 1 < scores.size // 10:
            return scores  # one among many is no percentage, but perhaps a total
        if not (scores.min() >= 0 and _SURELY_PERCENT < most <= 100 and np.all(np.abs(sums - 100) <= 1)):
            return scores
        what = repr(layout.get(layout.kind)) if layout.family is None else layout.family.description
        self._say(f"{what} lies between {scores.min():g} and {most:g}, was taken for percent and divided by 100")
        return scores / 100

    def keep(self, batch: Batch, layout: Layout, two: TwoOutcomes | None) -> NDArray[np.bool_] | None:
        """Which rows of a piece count; None for all of them."""
        from certcal.data.arrow import compute, pa, to_numpy

        reasons: dict[str, NDArray[np.bool_]] = {}
        if self.how.missing == "drop":
            gone = np.zeros(batch.rows.num_rows, np.bool_)
            for name in layout.columns:
                array = batch.rows.column(name)
                array = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
                gone |= to_numpy(compute.is_null(array, nan_is_null=True))
            reasons["with an empty cell"] = gone
        outcome = layout.get("outcome")
        if two is not None and layout.negative and outcome is not None:
            values, positions = batch[outcome].distinct()
            for place, code in enumerate(two.codes(values)):
                if code is None and values[place] is not None:
                    reasons[f"with outcome {str(values[place]).strip()[:80]!r}"] = positions == place
        left_out = np.zeros(batch.rows.num_rows, np.bool_)
        for reason, rows in reasons.items():
            if count := int((rows & ~left_out).sum()):
                self._left_out[reason] = self._left_out.get(reason, 0) + count
                left_out |= rows
        if not left_out.any():
            return None
        self._gone.append(batch.first_row + np.flatnonzero(left_out))
        return ~left_out

    def positions(self, n: int) -> NDArray[np.int64] | None:
        """Where the n rows that count stand in the table; None where all rows do."""
        return np.delete(np.arange(n + sum(map(len, self._gone))), np.concatenate(self._gone)) if self._gone else None

    def said(self) -> tuple[str, ...]:
        """What was read how, in clauses."""
        left_out = [f"{count:,} {reason}" for reason, count in self._left_out.items()]
        total = counted(sum(self._left_out.values()), "row")
        return (*self.notes, *([f"{total} left out ({', '.join(left_out)})"] if left_out else ()))

    def _say(self, clause: str) -> None:
        if clause not in self.notes:
            self.notes.append(clause)


def header_row(rows: Sequence[Sequence[str]]) -> int:
    """Which of the first rows that are not blank has the names of the columns: above it may be titles.

    Examples
    --------
    >>> header_row([["Default report"], ["May", "2024"], ["id", "pd", "default"], ["1", "0.2", "0"]])
    2
    >>> header_row([["pd", "default"], ["0.2", "0"]]), header_row([["0.2", "0"], ["0.3"]])
    (0, 0)
    """
    for place, (names, values) in enumerate(pairwise(rows)):
        fits = len(names) == len(values)
        words = [name.strip() for name in names]
        named = all(words) and not any(map(DRESSED.fullmatch, words))
        if place == 0 and fits and (len(names) == 1 or named):
            return 0
        if fits and len(names) > 1 and named and any(DRESSED.fullmatch(value.strip()) for value in values):
            return place
    return 0
