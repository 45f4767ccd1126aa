"""Tables of studies below and beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError
from certcal.study._table import KEYS, ORIGIN, STATE, StudyTable


def stack(tables: Sequence[StudyTable]) -> StudyTable:
    """Tables below each other; a column that one does not have is empty in its rows.

    Examples
    --------
    >>> one, two = StudyTable.of({"model": ["a"], "depth": [3]}), StudyTable.of({"model": ["b"], "accuracy": [0.5]})
    >>> both = stack([one, two])
    >>> both["depth"].tolist(), both["accuracy"].tolist()
    ([3.0, nan], [nan, 0.5])
    """
    names = list(dict.fromkeys(name for table in tables for name in table.columns))
    columns = {name: [value for table in tables for value in _or_empty(table, name)] for name in names}
    settings: Mapping[str, Any] = tables[0].settings
    return StudyTable.of(columns, settings if all(table.settings == settings for table in tables) else None)


@dataclass(frozen=True, eq=False)
class Joined:
    """A table with columns of another one, and what did not fit.

    Attributes
    ----------
    table
        The rows of the first table, in their order.
    added, left_out
        Columns of the other one that were taken, and those that the first has itself.
    matched, unmatched
        Rows of the first table that found their row in the other, and those that did not and are empty there.
    unused
        Rows of the other table that nothing asked for.
    """

    table: StudyTable
    added: tuple[str, ...]
    left_out: tuple[str, ...]
    matched: int
    unmatched: int
    unused: int


def join(
    table: StudyTable,
    other: StudyTable,
    on: Sequence[str] = ("model", "data"),
    *,
    columns: Sequence[str] | None = None,
    same_cells: bool = False,
) -> Joined:
    """Add columns of another table: sizes from NATS-Bench, robustness from Jung et al. (2023).

    Parameters
    ----------
    table
        Keeps its rows, their order and its own columns.
    other
        Has at most one row for each combination of ``on``; failed rows are not used.
    on
        Columns of text in both tables that say which rows belong together.
    columns
        Columns to add; by default all that the table does not have.
    same_cells
        Whether a cell may take the numbers of another that NAS-Bench-201 counts as the same, as tables that hold only
        the 6,466 different ones need.

    Examples
    --------
    >>> table = StudyTable.of({"model": ["a", "b"], "accuracy": [0.8, 0.9]})
    >>> sizes = StudyTable.of({"model": ["b", "c"], "params": [10, 20]})
    >>> joined = join(table, sizes, on=["model"])
    >>> joined.table["params"].tolist(), joined.matched, joined.unmatched, joined.unused
    ([nan, 10.0], 1, 1, 1)
    """
    if not on or any(name not in KEYS and table[name].dtype != object for name in on):
        raise InputError(f"on is {list(on)}; name columns of text that both tables have")
    usable = other.where()
    places: dict[tuple[str, ...], int] = {}
    for place, key in enumerate(_keys(usable, on, same_cells)):
        if places.setdefault(key, place) != place and not same_cells:
            shown = ", ".join(f"{name} {part!r}" for name, part in zip(on, key, strict=True))
            raise InputError(f"other has two rows of {shown}; choose one, for example other.where(split=…)")
    found = [places.get(key, -1) for key in _keys(table, on, same_cells)]
    own = {*KEYS, *STATE, *ORIGIN, *on}
    wanted = [name for name in usable.columns if name not in own] if columns is None else list(columns)
    added = [name for name in wanted if name not in table]
    if columns is not None and len(added) < len(wanted):
        twice = next(name for name in wanted if name in table)
        raise InputError(f"columns has {twice!r}, which the table has itself; rename it in one of the two")
    rows = np.array(found, np.intp)
    fresh = {name: _taken(usable[name], rows) for name in added}
    whole = StudyTable.of({**table.columns, **fresh}, table.settings)
    matched = int(np.count_nonzero(rows >= 0))
    unused = len(usable) - len({place for place in found if place >= 0})
    left = tuple(name for name in wanted if name in table)
    return Joined(whole, tuple(added), left, matched, len(table) - matched, unused)


def _or_empty(table: StudyTable, name: str) -> Sequence[Any]:
    return table[name].tolist() if name in table else [None] * len(table)


def _taken(values: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[Any]:
    """Values of some rows; empty where the row is -1."""
    empty: Any = "" if values.dtype == object else np.nan
    return np.append(values, np.array([empty], values.dtype))[rows]


def _keys(table: StudyTable, on: Sequence[str], same_cells: bool) -> list[tuple[str, ...]]:
    parts = [table[name].tolist() for name in on]
    if same_cells and "model" in on:
        parts[list(on).index("model")] = [_published(name) for name in table["model"].tolist()]
    return list(zip(*parts, strict=True))


def _published(name: str) -> str:
    from certcal.study._spaces import Cell, TopologySpace

    return Cell.parse(name).published if name in TopologySpace() else name
