"""The table of a study: one row per model, data set and split; and tables below and beside each other."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError, shortened
from certcal._base.files import path_of
from certcal._base.notebook import Card, CardTable, NotebookCard
from certcal._base.text import did_you_mean

Stage = Literal["pre", "post"]

# Columns that every table has. A row that failed says why, and has no measurements.
KEYS = ("model", "data", "split")
STATE = ("status", "reason")
ORIGIN = ("source", "source_bytes", "source_changed")
SIZES = ("n", "n_validation", "classes")
SUMMARY = ("accuracy", "temperature")
AUROC = "auroc_"
OK, FAILED = "ok", "failed"

# Columns of text. When a file was changed is counted in nanoseconds, which a float cannot keep.
TEXTS = (*KEYS, *STATE, "source", "source_changed")
_OWN = {*KEYS, *STATE, *ORIGIN, *SIZES, *SUMMARY}
_MOST_NAMED = 20
# What a file says about itself, beside the settings of the study. The promise: every later certcal reads the tables of
# every earlier one, with the same numbers. The version goes up when an older certcal would misread a table; one with a
# version above its own is refused with the advice to upgrade, and is never read in part.
_KEY, _VERSION = "certcal.study", 1


@dataclass(frozen=True)
class MeasuredColumn:
    """What a column of measurements holds: a metric before or after temperature scaling, and its number of bins.

    Examples
    --------
    >>> MeasuredColumn.parse("post_equal_mass_ece_15")
    MeasuredColumn(stage='post', metric='equal_mass_ece', bins=15)
    >>> str(MeasuredColumn("pre", "ks_error")), MeasuredColumn.parse("accuracy")
    ('pre_ks_error', None)
    """

    stage: Stage
    metric: str
    bins: int | None = None

    def __str__(self) -> str:
        return f"{self.stage}_{self.metric}" + ("" if self.bins is None else f"_{self.bins}")

    @classmethod
    def parse(cls, name: str) -> MeasuredColumn | None:
        """What a column's name says, or None if it is not the name of a measurement."""
        from certcal.lab.study._battery import BINNED, UNBINNED

        stage, _, rest = name.partition("_")
        if stage not in ("pre", "post"):
            return None
        metric, _, bins = rest.rpartition("_")
        if metric in BINNED and bins.isdecimal():
            return cls(stage, metric, int(bins))
        return cls(stage, rest) if rest in UNBINNED else None


def is_own(name: str) -> bool:
    """Whether a column of this name is made by measuring, and not given with the models."""
    return name in _OWN or name.startswith(AUROC) or MeasuredColumn.parse(name) is not None


@dataclass(frozen=True, eq=False)
class StudyTable(NotebookCard):
    """Measurements of many models on one or more data sets.

    Examples
    --------
    >>> table = StudyTable.of({"model": ["a", "b"], "data": ["digits"] * 2, "pre_ece_15": [0.1, 0.2], "depth": [2, 3]})
    >>> len(table), table.datasets, [str(name) for name in table.measurements], table.given
    (2, ['digits'], ['pre_ece_15'], ['depth'])
    """

    columns: Mapping[str, NDArray[Any]]
    """Arrays of one length by name: texts as objects, numbers as float64, NaN where there is none. ``n`` counts the
    samples that a row was measured on, ``n_validation`` those that its temperature was fitted on."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """How the measurements were made (bins, validation share, seed), as far as that is known."""

    @classmethod
    def of(cls, columns: Mapping[str, Any], settings: Mapping[str, Any] | None = None) -> StudyTable:
        """A table of columns; ``model`` is needed, the other keys are filled in."""
        if "model" not in columns:
            raise InputError("columns has no 'model'; name the models, one entry per row")
        found: dict[str, NDArray[Any]] = {}
        length = len(columns["model"])
        for name, values in columns.items():
            if len(values) != length:
                raise InputError(
                    f"columns[{name!r}] has {len(values)} entries and 'model' has {length}; pass equally many"
                )
            found[name] = _array(name, values)
        filled = {"data": "data", "split": "test", "status": OK, "reason": ""}
        rest = {name: np.full(length, value, object) for name, value in filled.items() if name not in found}
        order = [*KEYS, *(name for name in found if name not in (*KEYS, *STATE)), *STATE]
        found |= rest
        table = cls({name: found[name] for name in order}, dict(settings or {}))
        seen: set[tuple[str, str, str]] = set()
        for row, key in enumerate(table.row_keys):
            if key in seen:
                model, data, split = key
                raise InputError(
                    f"row {row} is the second one of model {model!r} on {data!r} ({split!r}); keep one of them, "
                    "or tell them apart by split"
                )
            seen.add(key)
        return table

    def __len__(self) -> int:
        return len(self.columns["model"])

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self.columns:
            hint = did_you_mean(name, self.columns, f"it has {self.has}")
            raise InputError(f"the table has no column {name!r}; {hint}")
        return self.columns[name]

    @property
    def row_keys(self) -> Iterator[tuple[str, str, str]]:
        """Model, data set and split of every row."""
        return zip(*(self[name].tolist() for name in KEYS), strict=True)

    @property
    def models(self) -> list[str]:
        """Names of the models, in the order of their first rows."""
        return list(dict.fromkeys(self["model"].tolist()))

    @property
    def datasets(self) -> list[str]:
        """Names of the data sets, in the order of their first rows."""
        return list(dict.fromkeys(self["data"].tolist()))

    @property
    def splits(self) -> list[str]:
        """Names of the splits, in the order of their first rows."""
        return list(dict.fromkeys(self["split"].tolist()))

    @property
    def measurements(self) -> list[MeasuredColumn]:
        """What was measured, in the order of the columns."""
        return [found for name in self.columns if (found := MeasuredColumn.parse(name)) is not None]

    @property
    def given(self) -> list[str]:
        """Columns that came with the models: sizes, architectures, robustness."""
        return [name for name in self.columns if not is_own(name)]

    @property
    def failures(self) -> Iterator[tuple[str, str, str, str]]:
        """Model, data set, split and reason of every row that failed."""
        for row in np.flatnonzero(self["status"] != OK).tolist():
            yield self["model"][row], self["data"][row], self["split"][row], self["reason"][row]

    def select(self, rows: Any) -> StudyTable:
        """The table of some rows: a mask or their numbers."""
        return StudyTable({name: values[rows] for name, values in self.columns.items()}, self.settings)

    def where(self, *, data: str | None = None, split: str | None = None) -> StudyTable:
        """The rows of a data set and a split that did not fail."""
        chosen = self["status"] == OK
        for key, value, known in (("data", data, self.datasets), ("split", split, self.splits)):
            if value is not None:
                if value not in known:
                    raise InputError(f"{key} is {value!r}; the table has {', '.join(map(repr, known))}")
                chosen &= self[key] == value
        return self.select(chosen)

    def numbers(self, names: Sequence[str]) -> NDArray[np.float64]:
        """Columns of numbers side by side, one row per row of the table."""
        for name in names:
            if self[name].dtype == object:
                raise InputError(f"column {name!r} holds text; name a column of numbers")
        return np.column_stack([self[name] for name in names]) if names else np.empty((len(self), 0))

    def across(self, name: str, split: str | None = None) -> tuple[list[str], list[str], NDArray[np.float64]]:
        """Models, data sets, and one column as a model × data set matrix, NaN where there is no such row."""
        table = self.where(split=split)
        if len(table.splits) > 1:
            raise InputError(f"split is not given, and the table has {', '.join(map(repr, table.splits))}; choose one")
        rows = {model: row for row, model in enumerate(table.models)}
        places = {data: place for place, data in enumerate(table.datasets)}
        values = np.full((len(rows), len(places)), np.nan)
        values[[rows[m] for m in table["model"].tolist()], [places[d] for d in table["data"].tolist()]] = table[name]
        return list(rows), list(places), values

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the table as Parquet: to a temporary name first, so that a file is there whole or not at all."""
        from certcal._base.durable import write_durably

        write_durably(Path(path), self.to_parquet())

    def to_parquet(self) -> bytes:
        """The content of the file that :meth:`write` writes; the same for the same table."""
        from certcal.data.arrow import from_numpy, pa
        from certcal.data.parquet import parquet

        texts = [name for name, values in self.columns.items() if values.dtype == object]
        arrays = [
            _text_column(name, values) if name in texts else from_numpy(np.ascontiguousarray(values, np.float64))
            for name, values in self.columns.items()
        ]
        table = pa.Table.from_arrays(arrays, names=list(self.columns))
        table = table.replace_schema_metadata(
            {_KEY: json.dumps({"version": _VERSION, **self.settings}, sort_keys=True)}
        )
        sink = pa.BufferOutputStream()
        parquet.write_table(table, sink, use_dictionary=texts)
        return sink.getvalue().to_pybytes()

    @classmethod
    def read(cls, path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> StudyTable:
        """Read a table that :meth:`write` wrote, or only some of its columns beside the keys."""
        from certcal.data import open_table

        file = path_of(path)
        if file.is_dir():
            raise InputError(f"{file}: this is a folder; measure its predictions first, with certcal study measure")
        table = open_table(file)
        if not file.name.endswith((".parquet", ".pq")) or "model" not in table.names:
            raise InputError(
                f"{file}: this is not the table of a study (a Parquet file with a column 'model'); "
                "make one with certcal study measure"
            )
        chosen = [name for name in table.names if columns is None or name in (*KEYS, *STATE) or name in columns]
        if table.rows == 0:
            raise InputError(f"{file}: the table has no rows; measure some models")
        found = table.read(chosen)
        try:
            return cls.of({name: _values(found[name]) for name in chosen}, _settings_of(table.metadata))
        except InputError as error:
            raise InputError(f"{file}: {error}") from None

    def __repr__(self) -> str:
        counts = ", ".join(f"{thing}={count}" for thing, count in self._counts())
        return f"StudyTable({counts})".replace("data sets", "datasets")

    def card(self) -> Card:
        """What a notebook shows."""
        facts = [(thing, f"{count:,}") for thing, count in self._counts()]
        return Card(tables=(CardTable(facts, caption="Table of a study"),))

    @property
    def has(self) -> str:
        """The names of the columns in a sentence: those that came with the models first, of measurements the number."""
        measured = len(self.measurements)
        others = [*self.given, *(name for name in self.columns if is_own(name) and MeasuredColumn.parse(name) is None)]
        more = f" and {len(others) - _MOST_NAMED:,} more" if len(others) > _MOST_NAMED else ""
        such = f"{measured:,} measurements such as" if measured > 1 else "1 measurement,"
        end = f", and {such} {self.measurements[0]}" if measured else ""
        return ", ".join(others[:_MOST_NAMED]) + more + end

    def _counts(self) -> list[tuple[str, int]]:
        failed = int(np.count_nonzero(self["status"] != OK))
        counts = [("rows", len(self)), ("models", len(self.models)), ("data sets", len(self.datasets))]
        return [*counts, ("measurements", len(self.measurements)), *([("failed", failed)] if failed else [])]


@names_wrong_types
def stack(tables: Sequence[StudyTable]) -> StudyTable:
    """Tables below each other; a column that one does not have is empty in its rows.

    Examples
    --------
    >>> one, two = StudyTable.of({"model": ["a"], "depth": [3]}), StudyTable.of({"model": ["b"], "accuracy": [0.5]})
    >>> both = stack([one, two])
    >>> both["depth"].tolist(), both["accuracy"].tolist()
    ([3.0, nan], [nan, 0.5])
    """
    if len(tables) == 0:
        raise InputError("tables is empty; pass at least one table")
    names = list(dict.fromkeys(name for table in tables for name in table.columns))
    columns = {
        name: [value for table in tables for value in (table[name].tolist() if name in table else [None] * len(table))]
        for name in names
    }
    settings = tables[0].settings
    return StudyTable.of(columns, settings if all(table.settings == settings for table in tables) else None)


@dataclass(frozen=True, eq=False)
class Joined:
    """A table with columns of another one, and what did not fit."""

    table: StudyTable
    """The rows of the first table, in their order."""
    added: tuple[str, ...]
    left_out: tuple[str, ...]
    """Columns of the other one that were taken, and those that the first has itself."""
    matched: int
    unmatched: int
    """Rows of the first table that found their row in the other, and those that did not and are empty there."""
    unused: int
    """Rows of the other table that nothing asked for."""


@names_wrong_types
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
    if len(on) == 0 or any(name not in KEYS and table[name].dtype != object for name in on):
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
    fresh = {name: _rows_or_empty(usable[name], rows) for name in added}
    whole = StudyTable.of({**table.columns, **fresh}, table.settings)
    matched = int(np.count_nonzero(rows >= 0))
    unused = len(usable) - len({place for place in found if place >= 0})
    left = tuple(name for name in wanted if name in table)
    return Joined(whole, tuple(added), left, matched, len(table) - matched, unused)


def _settings_of(notes: Mapping[str, str]) -> dict[str, Any]:
    """Settings of the measurement as stored in a file; empty if there are none, or not in our form."""
    import msgspec

    try:
        settings = msgspec.json.decode(notes.get(_KEY, "{}"), type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return {}
    version = settings.pop("version", _VERSION)
    if type(version) is not int or version < 1:
        return {}
    if version > _VERSION:
        raise InputError(
            f"a newer certcal wrote this table (version {version}, and this one reads up to {_VERSION}); upgrade "
            "certcal"
        )
    return settings


def _text_column(name: str, values: NDArray[Any]) -> Any:
    """A column (pyarrow) of text; pyarrow's own conversion would load pandas."""
    from certcal.data.arrow import pa

    try:
        encoded = [value.encode() for value in values.tolist()]
    except UnicodeEncodeError as error:
        raise InputError(f"column {name!r} holds {error.object!r}, which is not Unicode; rename it") from None
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(encoded), buffers).cast(pa.string())


def _values(column: Any) -> Any:
    """A column (pyarrow) as floats or as a list; pyarrow's own conversion would load pandas."""
    from certcal.data.arrow import pa, to_numpy

    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
        return column.to_pylist()
    whole = pa.concat_arrays(column.cast(pa.float64(), safe=False).chunks or [pa.array([], pa.float64())])
    return whole.to_pylist() if whole.null_count else to_numpy(whole)


def _array(name: str, values: Any) -> NDArray[Any]:
    """Text as objects, numbers as float64; a column is text if any of its entries is."""
    kind: Any = getattr(values, "dtype", None)
    if name not in TEXTS and isinstance(kind, np.dtype) and kind.kind in "fiub":
        return np.asarray(values, np.float64)
    entries: list[Any] = list(values)
    row = next((row for row, entry in enumerate(entries) if isinstance(entry, str)), None)
    if row is not None and name not in TEXTS and is_own(name):
        raise InputError(
            f"column {name!r} holds text in row {row} ({shortened(entries[row])}); it must hold numbers: repair "
            "or drop it"
        )
    if name in TEXTS or row is not None:
        text = np.empty(len(entries), object)
        text[:] = ["" if entry is None or entry != entry else str(entry) for entry in entries]
        return text
    try:
        return np.array([np.nan if entry is None else float(entry) for entry in entries], np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"columns[{name!r}] holds neither numbers nor text only; pass one of the two") from None


def _rows_or_empty(values: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[Any]:
    """Values of some rows; empty where the row is -1."""
    empty: Any = "" if values.dtype == object else np.nan
    return np.append(values, np.array([empty], values.dtype))[rows]


def _keys(table: StudyTable, on: Sequence[str], same_cells: bool) -> list[tuple[str, ...]]:
    from certcal.lab.study._spaces import Cell, TopologySpace

    parts, space = [table[name].tolist() for name in on], TopologySpace()
    if same_cells and "model" in on:
        names = table["model"].tolist()
        parts[list(on).index("model")] = [Cell.parse(each).published if each in space else each for each in names]
    return list(zip(*parts, strict=True))
