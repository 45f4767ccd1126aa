"""What samples are grouped by: columns and crossings of them, numbers cut at quintiles and dates into periods.

A column of at most 20 different numbers has a group for each, one with more is cut into five parts of about equal size,
between different values. Dates are days where there are at most 24, else months, quarters or years, the finest of
which there are at most 24. Words, and what is missing, are groups of their own. The cuts do not look at outcomes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal._base.json import PlainValues
from certcal._base.outcomes import class_name
from certcal.data.pieces import MAX_GROUPS, MISSING_GROUP, Arrays, natural_order
from certcal.data.schema import Resolver, TableColumn
from certcal.predictions import Predictions

if TYPE_CHECKING:
    from certcal.data.values import Batch, ColumnValues

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

_MOST_VALUES, _PARTS, _MOST_PERIODS = 20, 5, 24
# Different numbers of a column of a table that is read in pieces.
_MOST_COUNTED = 1_000_000
_NUMBER = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?")
_ISO = re.compile(r"([0-9]{4})-([0-9]{2})(?:-([0-9]{2})(?:[T ][0-9:.,+\-Zz ]*)?)?")
_POINTS = re.compile(r"([0-9]{1,2})\.([0-9]{1,2})\.([0-9]{4})()")
_PERIODS: Mapping[str, Callable[[date], str]] = {
    "months": lambda day: f"{day:%Y-%m}",
    "quarters": lambda day: f"{day.year:04}-Q{(day.month + 2) // 3}",
    "years": lambda day: f"{day.year:04}",
}


class GroupRows(NamedTuple):
    """Which rows are one group."""

    name: str
    by: str
    """What was asked: a column, or a crossing such as "product*channel"."""
    where: Mapping[str, str]
    """Its value of each column."""
    rows: NDArray[np.int64]

    def inside(self, rows: NDArray[np.int64]) -> GroupRows:
        """The same group among some rows, by their places there."""
        return self._replace(rows=np.flatnonzero(np.isin(rows, self.rows)))


class PredictionGroup(NamedTuple):
    """The samples of one group."""

    name: str
    predictions: Predictions
    by: str
    where: Mapping[str, str]
    rows: NDArray[np.int64]


@dataclass(frozen=True)
class GroupingColumns(PlainValues, keys="by columns cuts? left_out? time"):
    """One thing that samples are grouped by, and how its columns were cut."""

    by: str
    columns: tuple[str, ...]
    cuts: tuple[str, ...] = ()
    """Such as "'age' is cut at its quintiles: 18–29, 30–41, …"."""
    time: bool = False
    """Whether its groups are periods, one after the other."""
    left_out: tuple[str, ...] = ()
    """Groups all of whose samples have weight 0, of which nothing can be said."""


@dataclass(frozen=True, eq=False)
class Cut:
    """The groups of a column: where ranges of numbers start, and the place of each word among the names."""

    names: tuple[str, ...]
    starts: Floats
    places: Codes
    said: str = ""
    time: bool = False
    of_starts: Codes | None = None
    """The group that begins at each start, -1 for none; None where each is one."""

    def codes(self, numbers: Floats, words: Codes) -> Codes:
        """The place of each sample's group among the names; -1 for none."""
        found = np.searchsorted(self.starts, numbers, side="right") - 1
        if self.of_starts is not None:
            found = np.append(self.of_starts, -1)[found]
        return np.where(words >= 0, np.append(self.places, 0)[words], found)


@dataclass(frozen=True)
class GroupColumn:
    """The groups of a column, kept for values that come later."""

    name: str
    names: tuple[str, ...]
    """Of the groups: ranges of numbers by their starts, then words and single numbers."""
    starts: tuple[float, ...] = ()
    """Where ranges start; the first holds whatever is below the second, the last whatever is above it."""

    @property
    def words(self) -> tuple[str, ...]:
        """The names that are values, and not ranges."""
        return self.names[len(self.starts) :]

    @property
    def numbers(self) -> dict[float, int]:
        """Single numbers that are groups, with their places."""
        known = ((place, name) for place, name in enumerate(self.names) if place >= len(self.starts))
        found = {float(name): place for place, name in known if _NUMBER.fullmatch(name)}
        return {value: place for value, place in found.items() if class_name(value) == self.names[place]}

    def cut(self, words: Iterable[str], *, days: bool) -> Cut:
        """How other values fall into these groups: words as they were read, and numbers, perhaps those of days."""
        places = {name: place for place, name in enumerate(self.names) if place >= len(self.starts)}
        truth = {name.lower(): place for name, place in places.items() if name.lower() in ("true", "false")}
        of_words = np.array([places.get(word, truth.get(word.lower(), -1)) for word in words], np.int64)
        if self.starts and not days:
            return Cut(self.names, np.array([-math.inf, *self.starts[1:]]), of_words)
        numbers = {} if days else self.numbers
        values = np.array(sorted(numbers))
        starts = np.stack([values, np.nextafter(values, math.inf)], axis=1).ravel()
        of_starts = [each for value in values.tolist() for each in (numbers[value], -1)]
        return Cut(self.names, starts, of_words, of_starts=np.array(of_starts, np.int64))


@dataclass(frozen=True)
class GroupRule:
    """What makes the groups of one grouping: columns, whose places make one number."""

    by: str
    columns: tuple[GroupColumn, ...]

    def where(self, code: int) -> dict[str, str]:
        """The value of each column of a group by its number."""
        found: dict[str, str] = {}
        for column in reversed(self.columns):
            found[column.name] = column.names[code % len(column.names)]
            code //= len(column.names)
        return dict(reversed(found.items()))


@dataclass(eq=False)
class _ColumnRead:
    """What was read of a column: numbers, or days as numbers, with how often each is there; and words."""

    name: str
    typed: bool
    days: bool | None = None
    words: dict[str, int] = field(default_factory=dict[str, int])
    values: Floats = field(default_factory=lambda: np.empty(0))
    counts: Codes = field(default_factory=lambda: np.empty(0, np.int64))

    def read(self, cells: ColumnValues) -> tuple[Floats, Codes]:
        """Numbers, and the place of each word; of a number that is -1, of a word the number is not one."""
        from certcal.data.arrow import compute, pa, to_numpy

        kind, types = cells.array.type, pa.types
        days = types.is_date(kind) or types.is_timestamp(kind)
        if days or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
            array = cells.array.cast(pa.date32(), safe=False).cast(pa.int32()) if days else cells.array
            array = compute.fill_null(array.cast(pa.float64(), safe=False), math.nan)
            self.days, numbers = days, to_numpy(array)
            missing = np.isnan(numbers)
            return numbers, np.where(missing, self._word(MISSING_GROUP) if missing.any() else 0, -1)
        try:
            values, positions = cells.distinct()
        except pa.ArrowNotImplementedError:
            cells.refuse(None, f"holds values of type {kind}", "name a column of numbers or text")
        if (reader := cells.reader) is not None and not self.typed:
            values = [
                reader.written_plainly(self.name, each.strip()) if isinstance(each, str) else each for each in values
            ]
        table = [self._number_or_word(value) for value in values]
        if len(self.words) > MAX_GROUPS:
            raise InputError(f"column {self.name!r} has more than {MAX_GROUPS} distinct values; choose another column")
        numbers = np.array([number for number, _ in table], np.float64)[positions]
        return numbers, np.array([word for _, word in table], np.int64)[positions]

    def _number_or_word(self, value: Any) -> tuple[float, int]:
        text = MISSING_GROUP if value is None else class_name(value)
        found = None if isinstance(value, bool) or value is None else self._number(value, text)
        return (math.nan, self._word(text)) if found is None else (found, -1)

    def _number(self, value: Any, text: str) -> float | None:
        day = _day_of(text) if isinstance(value, str | date) else None
        plain = isinstance(value, int | float) or (not self.typed and _NUMBER.fullmatch(text) is not None)
        number = float(text) if plain else None
        if self.days is None and (day is not None or number is not None):
            self.days = day is not None
        return day if self.days else number

    def _word(self, text: str) -> int:
        return self.words.setdefault(text, len(self.words))

    def count(self, numbers: Floats, most: int | None = None) -> None:
        new, counts = np.unique(numbers[~np.isnan(numbers)], return_counts=True)
        values, places = np.unique(np.concatenate((self.values, new)), return_inverse=True)
        self.counts = np.bincount(places, np.concatenate((self.counts, counts))).astype(np.int64)
        self.values = values
        if most is not None and values.size > most:
            reason = f"column {self.name!r} has more than {most:,} different numbers, and the table is read in pieces"
            raise InputError(reason, argument="by", remedy="round them, or allow more memory")

    def cut(self) -> Cut:
        starts, names, said = self.values, [class_name(value) for value in self.values.tolist()], ""
        if self.days:
            starts, names, said = self._periods()
        elif starts.size > _MOST_VALUES:
            starts, names = _quantiles(starts, self.counts)
            said = f"{self.name!r} is cut at its quintiles: {', '.join(names)}"
        known = list(self.words)
        order = natural_order(known)
        places = len(names) + np.argsort(np.array(order, np.int64)) if order else np.empty(0, np.int64)
        return Cut((*names, *(known[place] for place in order)), starts, places, said, bool(self.days))

    def _periods(self) -> tuple[Floats, list[str], str]:
        days = [_EPOCH + timedelta(days=each) for each in self.values.tolist()]
        if all(day.day == 1 for day in days) and len(days) <= _MOST_PERIODS:
            return self.values, [_PERIODS["months"](day) for day in days], ""
        if len(days) <= _MOST_PERIODS:
            return self.values, [day.isoformat() for day in days], ""
        unit, told = next(
            (unit, told)
            for unit, told in ((unit, [of(day) for day in days]) for unit, of in _PERIODS.items())
            if len(set(told)) <= _MOST_PERIODS or unit == "years"
        )
        names = list(dict.fromkeys(told))
        firsts = self.values[[told.index(name) for name in names]]
        return firsts, names, f"{self.name!r} is cut into {unit}: {names[0]} to {names[-1]}"


_EPOCH = date(1970, 1, 1)


def _day_of(text: str) -> float | None:
    """Days since 1970 of a date such as 2024-01-31, 2024-01 or 31.01.2024; None for anything else."""
    if found := _ISO.fullmatch(text):
        year, month, day = found.groups()
    elif found := _POINTS.fullmatch(text):
        day, month, year, _ = found.groups()
    else:
        return None
    with suppress(ValueError):
        return float((date(int(year), int(month), int(day or 1)) - _EPOCH).days)
    return None


def _quantiles(values: Floats, counts: Codes) -> tuple[Floats, list[str]]:
    """Where parts of about equal size start, and what they are called; equal values stay together."""
    ends = np.cumsum(counts)
    targets = ends[-1] * np.arange(1, _PARTS) / _PARTS
    places = 1 + np.abs(ends[:-1] - targets[:, None]).argmin(axis=1)
    starts = np.unique(np.concatenate(([0], places)))
    lasts = np.append(starts[1:], values.size) - 1
    low, high = values[starts], values[lasts]
    tried = (
        [[_number_text(end, digits) for end in ends] for ends in zip(low, high, strict=True)] for digits in range(3, 18)
    )
    texts = next(each for each in tried if all(one[1] != two[0] for one, two in pairwise(each)))
    dash = " to " if low[0] < 0 else "–"
    return low, [one if one == two else f"{one}{dash}{two}" for one, two in texts]


def _number_text(value: float, digits: int) -> str:
    return class_name(float(value)) if float(value).is_integer() else f"{value:.{digits}g}"


class Groupings:
    """What the rows of a table are grouped by: each of several columns or crossings, such as "product*channel".

    What is a column as it stands is no crossing. ``rules`` are those of groups that were cut before.
    """

    def __init__(
        self, asked: Sequence[str], table: Sequence[TableColumn], rules: Sequence[GroupRule] | None = None
    ) -> None:
        kinds = {column.name: column.kind for column in table}

        def column(name: str) -> str:
            parts = [part.strip() for part in name.split(",")]
            if name not in kinds and len(parts) > 1 and kinds.keys() >= set(parts):
                reason = f"there is no column {name!r}, and {' and '.join(map(repr, parts))} are {len(parts)}"
                remedy = f"cross them as {'*'.join(parts)!r}, or give each"
                raise InputError(reason, argument="by", remedy=remedy, add={"by": parts})
            return Resolver(table, {"by": name}).column("by")

        def crossing(by: str) -> tuple[str, tuple[str, ...]]:
            factors = [by] if by in kinds or "*" not in by else [column(part.strip()) for part in by.split("*")]
            names = tuple(dict.fromkeys(factors))
            return by if len(names) == len(factors) else "*".join(names), names

        self.known = None if rules is None else {each.name: each for rule in rules for each in rule.columns}
        if rules is not None:
            lost = next((name for name in self.known or () if name not in kinds), None)
            if lost is not None:
                listing = Resolver(table, {}).listing(lost)
                raise InputError(f"the map needs the column {lost!r}, which names groups{listing}")
            self.crossed = {rule.by: tuple(each.name for each in rule.columns) for rule in rules}
        else:
            self.crossed = dict(map(crossing, asked))
        self.asked = tuple(self.crossed)
        self.columns = tuple(dict.fromkeys(column(name) for names in self.crossed.values() for name in names))
        self._read = {name: _ColumnRead(name, kinds[name] != "unknown") for name in self.columns}
        self._cuts: dict[str, Cut] = {}
        self._left_out = set[int]()

    def add(self, batch: Batch) -> Arrays:
        """What a batch has in these columns, as arrays."""
        found: Arrays = {}
        for name, column in self._read.items():
            found[f"by {name}"], found[f"word {name}"] = column.read(batch[name])
        return found

    def count(self, arrays: Arrays, *, in_pieces: bool = False) -> None:
        """Note the numbers that are there, before anything is cut."""
        for name, column in self._read.items():
            column.count(arrays[f"by {name}"], _MOST_COUNTED if in_pieces else None)

    def cut(self) -> None:
        """Cut all columns by what was read of them, or as they were cut before."""
        if self.known is None:
            self._cuts = {name: column.cut() for name, column in self._read.items()}
        else:
            known = self.known
            self._cuts = {name: known[name].cut(read.words, days=bool(read.days)) for name, read in self._read.items()}

    @property
    def rules(self) -> tuple[GroupRule, ...]:
        """How later values are put into the same groups; dates cannot be, as those to come are in none of them."""
        for name, column in self._read.items():
            if column.days:
                reason = f"{name!r} holds dates, and a map cannot know those to come"
                raise InputError(reason, argument="by", remedy="group by another column, or judge one common map")
        return tuple(GroupRule(by, tuple(map(self._column, names))) for by, names in self.crossed.items())

    def _column(self, name: str) -> GroupColumn:
        cut = self._cuts[name]
        return GroupColumn(name, cut.names, tuple(cut.starts.tolist()) if cut.said else ())

    def codes(self, arrays: Arrays) -> Codes:
        """A number for the group of each sample, by grouping; groups of different groupings have different ones."""
        return self.codes_by_rule(arrays) + np.array(self._firsts(), np.int64)[:, None]

    def codes_by_rule(self, arrays: Arrays) -> Codes:
        """The number of each sample's group in its grouping; -1 for one that was not there when it was cut."""
        found: list[Codes] = []
        for names in self.crossed.values():
            code = np.zeros(arrays[f"by {names[0]}"].size, np.int64)
            for name in names:
                cut = self._cuts[name]
                own = cut.codes(arrays[f"by {name}"], arrays[f"word {name}"])
                code = np.where((code < 0) | (own < 0), -1, code * len(cut.names) + own)
            found.append(code)
        return np.stack(found)

    def _firsts(self) -> list[int]:
        sizes = [math.prod(len(self._cuts[name].names) for name in names) for names in self.crossed.values()]
        return [sum(sizes[:place]) for place in range(len(sizes))]

    def named(self, code: int) -> tuple[str, str, dict[str, str]]:
        """The name of a group, what it is a group of, and its value of each column."""
        place = int(np.searchsorted(self._firsts(), code, side="right")) - 1
        by, rest = self.asked[place], code - self._firsts()[place]
        where: dict[str, str] = {}
        for name in reversed(self.crossed[by]):
            names = self._cuts[name].names
            where[name] = names[rest % len(names)]
            rest //= len(names)
        where = dict(reversed(where.items()))
        name = "*".join(where.values())
        return name if len(self.asked) == 1 else f"{by}={name}", by, where

    def members(self, codes: Codes, weight: Floats | None = None) -> Iterator[GroupRows]:
        """The groups that have rows, and not only such without weight."""
        for by, own in zip(self.asked, codes, strict=True):
            present = np.unique(own)
            if present.size > MAX_GROUPS:
                reason = f"{by!r} makes {present.size:,} groups, more than {MAX_GROUPS}"
                raise InputError(reason, argument="by", remedy="cross fewer columns")
            for code in present.tolist():
                name, _, where = self.named(code)
                rows = np.flatnonzero(own == code)
                if weight is not None and not weight[rows].any():
                    self.leave_out([code])
                    continue
                yield GroupRows(name, by, where, rows)

    def split(self, predictions: Predictions, codes: Codes) -> Iterator[PredictionGroup]:
        """The groups that have rows, with their predictions."""
        for name, by, where, rows in self.members(codes, predictions.sample_weight):
            yield PredictionGroup(name, predictions.select(rows), by, where, rows)

    def leave_out(self, codes: Iterable[int]) -> None:
        """Note groups of which nothing can be said, as none of their samples has weight."""
        self._left_out |= set(codes)

    @property
    def described(self) -> tuple[GroupingColumns, ...]:
        """What each of them is made of, how it was cut, and what is left out."""
        left_out = [self.named(code) for code in sorted(self._left_out)]
        return tuple(
            GroupingColumns(
                by,
                names,
                tuple(filter(None, (self._cuts[name].said for name in names))),
                len(names) == 1 and self._cuts[by].time,
                tuple(name for name, own, _ in left_out if own == by),
            )
            for by, names in self.crossed.items()
        )
