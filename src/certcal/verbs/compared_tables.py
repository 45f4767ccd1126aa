"""The two tables of a comparison: what was read of each, and which rows are the same sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from certcal._base.checks import InputError
from certcal._base.json import PlainValues
from certcal._base.text import counted, plain_name
from certcal.data import load_table, open_table
from certcal.data.columns import agree_beyond_chance, sample_keys
from certcal.data.schema import IDENTIFIER
from certcal.predictions import Predictions

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Pairing(PlainValues, keys="by why key only_old only_new suggested?"):
    """Which rows of two tables are the same sample."""

    by: str | None
    """"key", "order", "row" of one table, or None when rows are not paired."""
    why: str
    """How it was decided, for people."""
    key: str | None = None
    """The column of the key."""
    only_old: int = 0
    only_new: int = 0
    """Number of rows that only one table has; they are left out of everything."""
    suggested: str | None = None
    """Where rows are not paired: a column that says each value once in both tables, with values in common."""


@dataclass(frozen=True, eq=False)
class ComparedPredictions:
    """A table to compare, with its predictions and groups."""

    data: Any
    name: str
    predictions: Predictions
    groups: NDArray[Any] | None
    about: Mapping[str, Any]
    description: str
    rows: NDArray[np.int64] | None = None  # of the table, where some were left out

    @property
    def truth(self) -> NDArray[Any] | None:
        """What was true of each row, where it is known: answers of one sample share it."""
        task = self.predictions.task
        return {"binary": self.predictions.correct, "multiclass": self.predictions.labels}.get(task)

    def columns(self) -> list[str]:
        """Names of the columns; predictions have none."""
        return [] if isinstance(self.data, Predictions) else list(open_table(self.data).names)

    def keys(self, column: str, *, required: bool) -> list[str] | None:
        """What the column says of each row that counts."""
        found = sample_keys(self.data, column, required=required)
        return found if found is None or self.rows is None else [found[place] for place in self.rows]

    def select(self, rows: NDArray[np.int64]) -> ComparedPredictions:
        """Some rows, in an order."""
        groups = None if self.groups is None else self.groups[rows]
        return replace(self, predictions=self.predictions.select(rows), groups=groups)


def read_side(
    data: Any, columns: Mapping[str, Any] | None, by: Any, name: str | None, called: str, *, of_one: bool
) -> ComparedPredictions:
    """What was given as one of two tables, by its name or, of a table in memory, as it is called."""
    if isinstance(data, Predictions):
        if isinstance(by, str):
            reason = "predictions have no columns"
            raise InputError(reason, argument="by", remedy="give the group of each sample, or compare tables")
        groups = None if by is None else np.asarray(list(by)).astype(str)
        if groups is not None and groups.size != len(data):
            raise InputError(f"it has {groups.size} entries for {len(data)} samples; give one each", argument="by")
        about = {"task": data.task, "kind": data.kind, "classes": data.classes}
        return ComparedPredictions(data, name or called, data, groups, about, counted(len(data), "sample"))
    if by is not None and not isinstance(by, str):
        raise InputError("groups of tables are a column; give its name", argument="by")
    loaded = load_table(data, columns, by=by or ())
    groups = loaded.group_of_each
    if any(each.cuts for each in loaded.groupings):
        reason = f"{by!r} has many numbers or dates, which two tables would cut in different places"
        raise InputError(reason, argument="by", remedy="write a column of groups")
    predictions = loaded.predictions
    about = {"task": predictions.task, "kind": loaded.layout.kind, "columns": loaded.layout.to_dict()}
    about |= {"table": str(loaded.path)} if of_one else {}
    shown = name or (called if of_one or str(loaded.path) == "table" else str(loaded.path))
    said = f"{counted(len(predictions), 'sample')}; {loaded.layout.description}"
    return ComparedPredictions(data, shown, predictions, groups, about, said, loaded.rows)


def two_scores(score: Any) -> tuple[str, str] | None:
    """The names of the old and the new column of scores; None where it is one column, or values."""
    if not isinstance(score, list | tuple) or not all(isinstance(name, str) for name in cast("list[Any]", score)):
        return None
    names = cast("list[str]", score)
    if len(names) != 2 or names[0] == names[1]:
        reason = (
            f"{counted(len(names), 'column')} cannot be compared" if len(names) != 2 else "it is twice the same column"
        )
        raise InputError(reason, argument="score", remedy="name two: the old and the new score")
    return names[0], names[1]


def pair_columns(sides: list[ComparedPredictions]) -> tuple[list[ComparedPredictions], Pairing]:
    """The rows that have both of two scores of one table."""
    old, new = (np.arange(len(side.predictions), dtype=np.int64) if side.rows is None else side.rows for side in sides)
    both: NDArray[np.int64] = np.intersect1d(old, new)
    if not both.size:
        raise InputError("no row has both", argument="score", remedy="name two columns of the same rows")
    kept = [side.select(np.searchsorted(own, both)) for side, own in zip(sides, (old, new), strict=True)]
    why = "both scores stand in the same rows"
    return kept, Pairing("row", why, None, int(old.size - both.size), int(new.size - both.size))


def pair_rows(
    sides: list[ComparedPredictions], key: str | None, pair: str
) -> tuple[list[ComparedPredictions], Pairing]:
    """The rows that count, in one order where they are paired."""
    if key is not None and pair != "key":
        raise InputError("a key pairs the rows already", argument="pair", remedy="leave one of the two out")
    if pair == "none":
        return sides, Pairing(None, "rows are not paired, as asked")
    if pair == "order":
        _refuse_different_labels(sides, None)
        return sides, Pairing("order", "rows are paired by their order, as asked")
    column, apart = None, False
    if any(isinstance(side.data, Predictions) for side in sides):
        if key is not None:
            raise InputError("predictions have no columns", argument="key", remedy="compare tables, or pair by order")
    elif (column := key or _shared_identifier(sides)) is not None:
        keys = [side.keys(column, required=key is not None) for side in sides]
        if keys[0] is not None and keys[1] is not None:
            apart = key is None and set(keys[0]).isdisjoint(keys[1])
            if not apart:
                return _by_key(sides, column, keys[0], keys[1])
    old, new = (side.truth for side in sides)
    agree = old is not None and new is not None and agree_beyond_chance(old, new)
    if apart and agree:
        reason = f"no value of {column!r} is in both tables, and what was true agrees in every row"
        raise InputError(reason, argument="pair", remedy="give order if the rows are the same samples, or else none")
    if agree:
        return sides, Pairing("order", "rows are paired by their order, since what was true agrees in every row")
    why = "no column is called id or sample" if column is None else f"{column!r} is not unique in both tables"
    why = f"rows are not paired: {f'no value of {column!r} is in both tables' if apart else why}"
    other = None if any(isinstance(side.data, Predictions) for side in sides) else _possible_key(sides, column)
    return sides, Pairing(None, why, suggested=other)


# Of so many pairs the outcomes are equal where a column says which sample a row is.
_AGREE = 0.999


def _possible_key(sides: list[ComparedPredictions], other_than: str | None) -> str | None:
    """A column of no other use, unique in both tables, most of whose values are in both and stand for one outcome."""
    used = {str(name) for side in sides for name in side.about.get("columns", {}).values()} | {other_than}
    theirs = set(sides[1].columns())
    for name in sides[0].columns():
        if name not in theirs or name in used:
            continue
        one, other = (side.keys(name, required=False) for side in sides)
        if one is None or other is None:
            continue
        place = {value: row for row, value in enumerate(one)}
        rows = [(place[value], row) for row, value in enumerate(other) if value in place]
        if 2 * len(rows) >= min(len(one), len(other)) > 1 and _agree(sides, np.array(rows)):
            return name
    return None


def _agree(sides: list[ComparedPredictions], rows: NDArray[np.int64]) -> bool:
    """Whether pairs of rows have one truth, but for errors: rows of one sample have, row numbers of two tables not."""
    old, new = (side.truth for side in sides)
    return old is None or new is None or float(np.mean(np.equal(old[rows[:, 0]], new[rows[:, 1]]))) >= _AGREE


def _shared_identifier(sides: list[ComparedPredictions]) -> str | None:
    """A column that both have and that is called as identifiers are."""
    theirs = set(sides[1].columns())
    shared = [name for name in sides[0].columns() if name in theirs]
    return next((name for word in IDENTIFIER for name in shared if plain_name(name) == word), None)


def _by_key(
    sides: list[ComparedPredictions], column: str, old: list[str], new: list[str]
) -> tuple[list[ComparedPredictions], Pairing]:
    place = {value: row for row, value in enumerate(old)}
    rows = np.array([(place[value], row) for row, value in enumerate(new) if value in place], np.int64).reshape(-1, 2)
    if not rows.size:
        reason = f"{sides[0].name} and {sides[1].name} have no value of {column!r} in common"
        raise InputError(reason, argument="key", remedy="name another column, or give no key")
    both = [side.select(rows[:, place]) for place, side in enumerate(sides)]
    _refuse_different_labels(both, (column, rows, new))
    why = f"rows are paired by {column!r}"
    return both, Pairing("key", why, column, len(old) - len(rows), len(new) - len(rows))


def _refuse_different_labels(
    sides: list[ComparedPredictions], key: tuple[str, NDArray[np.int64], list[str]] | None
) -> None:
    sizes = [len(side.predictions) for side in sides]
    if sizes[0] != sizes[1]:
        reason = f"{sides[0].name} has {counted(sizes[0], 'row')} and {sides[1].name} {sizes[1]:,}"
        raise InputError(reason, argument="pair", remedy="pair by a key, or not at all")
    old, new = (side.truth for side in sides)
    if old is None or new is None or np.array_equal(old, new):
        return
    first = int(np.flatnonzero(old != new)[0])
    rows, sample = (first, first), "the same row"
    if key is not None:
        rows, sample = key[1][first], f"{key[0]} {key[2][int(key[1][first][1])]!r}"
    raise InputError(
        f"{sides[1].name} has outcome {new[first]} in row {rows[1] + 1} where {sides[0].name} has {old[first]} in row "
        f"{rows[0] + 1}, for {sample}; correct one of them, or do not pair the rows"
    )
