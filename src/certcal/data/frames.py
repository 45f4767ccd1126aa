"""Tables in memory: pandas and what looks like it, whatever offers the Arrow C stream protocol, and mappings.

None of the libraries is imported. A frame with ``iloc`` is read column by column, and only the columns that are asked
for: one that Arrow cannot hold is no obstacle while nobody names it. Its index stays out of the way: levels with a name
can be named as columns (``by="segment"``), and are never taken for anything by their name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from certcal._base.checks import InputError, to_numpy
from certcal.data.formats import (
    Kind,
    OpenTable,
    TableColumn,
    check_column_count,
    column_kind,
    schema_columns,
    schema_notes,
)

_NUMPY_KINDS: Mapping[str, Kind] = {"f": "number", "i": "number", "u": "number", "b": "boolean"}


class MemoryTable(OpenTable):
    """Columns in memory, read through Arrow without a copy where the library allows it."""

    def __init__(self, source: Any) -> None:
        from certcal.data.arrow import pa

        self.path = self.file = Path("table")
        self._made: dict[str, Any] = {}
        if _is_frame(source):
            columns, index, repeated = _frame_columns(source)
            check_column_count(self.path, len(columns) + len(index))
            self._values, self.rows = columns | index, len(source)
            kinds: dict[str, Kind] = dict.fromkeys(index, "index")
            kinds |= {name: self._kind(values) for name, values in columns.items()}
            self.columns = tuple(TableColumn(name, kinds[name]) for name in (*columns, *repeated, *index))
            return
        kind = type(source).__name__
        try:
            if isinstance(source, Mapping):
                named = cast("Mapping[Any, Any]", source).items()
                source = {str(name): as_column(values, str(name)) for name, values in named}
            table = pa.table(source)
        except InputError:
            raise
        except (TypeError, ValueError, pa.ArrowException) as error:
            raise InputError(f"a table cannot be made of this {kind} ({error})") from None
        self.columns = schema_columns(self.path, table.schema)
        self.metadata = schema_notes(table.schema)
        self._made = dict(zip(self.names, table.columns, strict=True))
        self.rows = table.num_rows

    def _kind(self, values: Any) -> Kind:
        known = _NUMPY_KINDS.get(getattr(values.dtype, "kind", "O"))
        if known is not None:
            return known
        try:
            return column_kind(as_column(values.iloc[:1000], "").type)
        except InputError:
            return "other"

    def _batches(self, columns: tuple[str, ...], size: int, numbers: frozenset[str]) -> Iterator[Any]:
        from certcal.data.arrow import pa

        for name in columns:
            if name not in self._made:
                self._made[name] = as_column(self._values[name], name)
        yield from pa.table([self._made[name] for name in columns], names=list(columns)).to_batches(size)


def is_table(source: Any) -> bool:
    """Whether something is a table in memory rather than a path or a single column."""
    stream = hasattr(source, "__arrow_c_stream__") and len(getattr(source, "shape", (0, 0))) == 2
    return isinstance(source, Mapping) or stream or _is_frame(source)


def collected(source: Any) -> Any:
    """A lazy frame of polars as a frame; anything else as it is."""
    return source.collect() if hasattr(source, "collect_schema") and hasattr(source, "collect") else source


def _is_frame(source: Any) -> bool:
    """Whether something has columns as pandas has them; its older versions do not speak Arrow's protocol."""
    return hasattr(source, "iloc") and hasattr(source, "columns") and hasattr(source, "index")


def _frame_columns(frame: Any) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Columns by name, named levels of the index that hide no column, and names that stand there again."""
    columns: dict[str, Any] = {}
    repeated: list[str] = []
    for place, name in enumerate(map(str, frame.columns)):
        if name in columns:
            repeated.append(name)
        else:
            columns[name] = frame.iloc[:, place]
    index = {
        str(name): frame.index.get_level_values(level).to_series()
        for level, name in enumerate(frame.index.names)
        if name is not None and str(name) not in columns
    }
    return columns, index, repeated


def as_column(values: Any, name: str) -> Any:
    """A pyarrow column; a tensor as an array, a matrix as a list per row, mixed values as text."""
    from certcal.data.arrow import pa

    if hasattr(values, "detach") or getattr(values, "ndim", 1) == 2:
        array = to_numpy(values, name)
        if array.ndim != 2 or array.shape[1] == 1:
            return pa.array(array.ravel())
        return pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), array.shape[1])
    attempts: tuple[Callable[[], Any], ...] = (
        lambda: pa.array(values),
        lambda: pa.array(to_numpy(values, name), from_pandas=True),  # sparse columns
        lambda: as_text([None if value != value else value for value in values]),
    )
    for attempt in attempts:
        try:
            return attempt()
        except (TypeError, ValueError, InputError, pa.ArrowException):
            continue
    kind = getattr(values, "dtype", None) or type(values).__name__
    raise InputError(f"column {name!r} holds {kind}, of which no numbers or texts can be made; name another column")


def as_text(values: list[Any]) -> Any:
    """Mixed numbers, true/false and texts as texts, which are cast by the same rule; anything else is refused."""
    from certcal.data.arrow import pa

    for value in values:
        if not isinstance(value, str | int | float | None):
            raise InputError(f"{type(value).__name__} is neither a number nor a text")
    plain = [str(value).lower() if isinstance(value, bool) else value for value in values]
    return pa.array([None if value is None else str(value) for value in plain])
