"""Features of a table as float64, with what is missing, for models that look at columns rather than at images."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, same_length, to_numpy
from certcal._base.checks import labels as class_labels
from certcal.data.formats import OpenTable, check_memory, open_table
from certcal.data.inputs import MAX_CLASSES, Inputs, complaint
from certcal.data.layout import resolve_feature_columns
from certcal.data.pieces import Arrays, gather, in_file, pieces
from certcal.data.schema import ROLES, Layout

if TYPE_CHECKING:
    from certcal.data.values import Batch, ColumnValues

# Every other column is a feature: one called y beside a label is one, too.
LABEL = (("label", "labels"), *ROLES["label"].names)
_LABEL_OR_OUTCOME = (*LABEL, *ROLES["outcome"].names)
# Names that libraries give to columns without one.
_AUTOMATIC = re.compile(r"(f|Column_|)(\d+)")


@dataclass(frozen=True, eq=False)
class Features:
    """A row of numbers per sample, and its true class."""

    values: NDArray[np.float64]  # NaN where a value is missing
    labels: NDArray[np.int64]  # from 0
    names: tuple[str, ...] = ()  # of the features; empty where they have none
    columns: Mapping[str, NDArray[np.float64]] = field(default_factory=dict[str, Any])  # those that are no features

    def __len__(self) -> int:
        return self.labels.size

    def subset(self, *, every: int = 1, limit: int | None = None) -> Features:
        """Samples 0, every, 2·every, …, the first ``limit`` of them."""
        rows = slice(0, len(self) if limit is None else min(len(self), every * limit), every)
        columns = {name: values[rows] for name, values in self.columns.items()}
        return Features(self.values[rows], self.labels[rows], self.names, columns)

    def in_order(self, names: Sequence[str]) -> Features | None:
        """The features in the order of a model's names; None where one of both has none, and columns go by position.

        Parameters
        ----------
        names
            The features that the model was fitted on; those that a library made up are no names.

        Examples
        --------
        >>> found = read_features({"age": [31.0], "income": [10], "label": [0]}).in_order(["income", "age"])
        >>> found.names, found.values.tolist()
        (('income', 'age'), [[10.0, 31.0]])
        """
        wanted = tuple(names)
        if not (wanted and self.names):
            return None
        # LightGBM writes underscores for the spaces of names.
        joined = tuple(re.sub(r"\s", "_", name) for name in self.names)
        for own in (self.names, joined):
            if sorted(own) == sorted(wanted) and len(set(own)) == len(own):
                order = [own.index(name) for name in wanted]
                values = np.ascontiguousarray(self.values[:, order])
                return Features(values, self.labels, tuple(self.names[place] for place in order), self.columns)
        matches = [_AUTOMATIC.fullmatch(name) for name in wanted]
        if all(each is not None and int(each[2]) == place for place, each in enumerate(matches)):
            return None
        pairs = zip(self.names, joined, strict=True)
        several = {
            "missing": set(wanted).difference(self.names, joined),
            "unexpected": {name for name, other in pairs if not {name, other} & set(wanted)},
        }
        told = [f"{what}: {_first_names(sorted(some))}" for what, some in several.items() if some]
        twice = sorted({name for name in self.names if self.names.count(name) > 1})
        told += [f"twice: {_first_names(twice)}"] if twice else []
        reason = f"the columns are not the features that the model was fitted on ({'; '.join(told)})"
        raise InputError(reason, argument="data", remedy="name the columns as they were then, in any order")


def read_features(source: Any, *, label: str | None = None, beside: Sequence[str] = ()) -> Features:
    """Features and labels from a table, or from a pair of both in memory.

    Parameters
    ----------
    source
        A file or a table in memory, of which one column holds the labels and every other is a feature; or a pair of
        features (an array, or a table with names) and labels; or :class:`Inputs`. Empty cells and NaN are missing.
    label
        The column of labels, where its name does not say it (label, labels, y_true, target, …).
    beside
        Columns that are no features and are kept beside them.

    Examples
    --------
    >>> found = read_features({"age": [31.0, None], "income": [10, 20], "label": [0, 1]})
    >>> found.names, found.values.tolist(), found.labels.tolist()
    (('age', 'income'), [[31.0, 10.0], [nan, 20.0]], [0, 1])
    """
    if isinstance(source, Features):
        return source
    if isinstance(source, Inputs):
        inputs = source.in_memory()
        return Features(np.asarray(inputs.inputs, np.float64).reshape(len(inputs), -1), inputs.labels)
    if isinstance(source, tuple | list) and len(cast("tuple[Any, ...]", source)) == 2:
        return _features_of_pair(*cast("tuple[Any, Any]", source), tuple(beside))
    if isinstance(source, str | os.PathLike) and str(cast("Any", source)).lower().endswith(".npz"):
        from certcal.data.opening import open_inputs

        return read_features(open_inputs(source).inputs)
    if hasattr(cast("Any", source), "__array__") and not is_table(source):
        raise InputError("features stand beside their labels", argument="data", remedy="pass both, as (X, y)")
    return _features_of_table(source, label, tuple(beside))


def is_table(source: Any) -> bool:
    """Whether features have columns with names: in a file that is no archive of arrays, or in memory."""
    if isinstance(source, str | os.PathLike):
        path = Path(cast("str", source))
        return path.is_file() and path.suffix.lower() != ".npz"
    pair = isinstance(source, tuple | list) and len(cast("list[Any]", source)) == 2
    given = cast("Any", cast("list[Any]", source)[0] if pair else source)
    return isinstance(given, Mapping) or hasattr(given, "columns") or hasattr(given, "__arrow_c_stream__")


def _first_names(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:8])) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _features_of_pair(features: Any, labels: Any, beside: tuple[str, ...]) -> Features:
    names = tuple(map(str, getattr(features, "columns", ())))
    array = to_numpy(features, "data")
    if array.ndim != 2 or array.dtype.kind not in "biuf" or not array.size:
        reason = f"the features have shape {array.shape} and type {array.dtype}"
        raise InputError(reason, argument="data", remedy="pass numbers, a row per sample and a column per feature")
    values = np.array(array, np.float64)
    _refuse_infinite(values, names)
    truth = class_labels(labels, MAX_CLASSES)
    same_length(features=values.shape[0], labels=truth.size)
    for name in beside:
        if name not in names:
            raise InputError(f"there is no column {name!r} beside the features", argument="data", remedy="add it")
    kept = [place for place in range(values.shape[1]) if not names or names[place] not in beside]
    columns = {name: values[:, names.index(name)] for name in beside}
    return Features(np.ascontiguousarray(values[:, kept]), truth, tuple(names[k] for k in kept if names), columns)


def _refuse_infinite(values: NDArray[np.float64], names: Sequence[str]) -> None:
    bad = np.isinf(values)
    if bad.any():
        row, column = map(int, np.argwhere(bad)[0])
        where = f"column {names[column]!r}" if names else f"feature {column}"
        raise InputError(f"{where} of sample {row} is infinite; drop the sample or repair it", argument="data")


def _features_of_table(source: Any, given: str | None, beside: tuple[str, ...]) -> Features:
    from certcal.data.values import matrix

    def filled(cells: ColumnValues) -> ColumnValues:
        from certcal.data.arrow import compute, pa

        array, types = cells.array, pa.types
        if types.is_floating(array.type) or types.is_integer(array.type) or types.is_boolean(array.type):
            return replace(cells, array=compute.fill_null(array.cast(pa.float64()), float("nan")))
        missing = pa.nulls(len(array), pa.float64()).fill_null(np.nan)
        return replace(cells, array=missing) if types.is_null(array.type) else cells

    def numbers(columns: Sequence[ColumnValues]) -> NDArray[np.float64]:
        return matrix([filled(cells) for cells in columns]).astype(np.float64, copy=False)

    table = open_table(source)
    with in_file(table.path):
        remedy = "give the codes that the model was fitted on"
        layout = resolve_feature_columns(table.columns, given, _LABEL_OR_OUTCOME, remedy, beside)
        found, labels = _read_labelled(table, layout, numbers, np.float64)
        _refuse_infinite(found, layout.numbers)
        names = layout.families["features"].columns
        more = {name: found[:, len(names) + k] for k, name in enumerate(beside)}
        return Features(np.ascontiguousarray(found[:, : len(names)]), labels, names, more)


def table_inputs(path: Path, label: str | None) -> Inputs:
    """Inputs from a table, of which every column but the labels is a feature; nothing may be missing."""
    from certcal.data.values import matrix

    def numbers(columns: Sequence[ColumnValues]) -> NDArray[np.float32]:
        whole = matrix(columns)
        with np.errstate(over="ignore"):
            inputs = whole.astype(np.float32)
        bad = ~np.isfinite(inputs)
        if bad.any():
            row, column = map(int, np.argwhere(bad)[0])
            columns[column].refuse(row, *complaint(whole[row, column]))
        return inputs

    table = open_table(path)
    with in_file(table.path):
        remedy = "drop it: every column but the label is a feature"
        layout = resolve_feature_columns(table.columns, label, LABEL, remedy)
        return Inputs.from_arrays(*_read_labelled(table, layout, numbers, np.float32), copy=False)


def _read_labelled(
    table: OpenTable, layout: Layout, numbers: Callable[[Sequence[ColumnValues]], NDArray[Any]], dtype: type[Any]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    width, label = len(layout.numbers), str(layout.roles["label"])
    if table.rows is not None:
        check_memory(table.path, np.dtype(dtype).itemsize * table.rows * width, "read a part of the table")

    def convert(batch: Batch) -> Arrays:
        return {"numbers": numbers([batch[name] for name in layout.numbers]), "labels": _label_cells(batch[label])}

    arrays = gather(pieces(table, layout, convert, width=width), table.rows)
    return arrays["numbers"], arrays["labels"]


def _label_cells(cells: ColumnValues) -> NDArray[np.int64]:
    labels = cells.class_numbers(None, is_ordered=True)
    bad = ~((labels >= 0) & (labels < MAX_CLASSES) & (np.floor(labels) == labels))
    if bad.any():
        remedy = f"labels are whole numbers from 0 to {MAX_CLASSES - 1}"
        cells.refuse(bad, f"is {labels[np.argmax(bad)]}", remedy)
    return labels.astype(np.int64)
