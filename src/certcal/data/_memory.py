"""A table that is already in memory: pandas, polars, pyarrow, a mapping of columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from certcal._checks import InputError, to_numpy
from certcal.data._table import Table, schema_columns


class MemoryTable(Table):
    """Columns in memory, read through Arrow without a copy where the library allows it.

    Examples
    --------
    >>> MemoryTable({"confidence": [0.9, 0.6], "correct": [1, 0]}).names
    ('confidence', 'correct')
    """

    def __init__(self, source: Any) -> None:
        from certcal.data.arrow import pa

        self.path, kind = Path("table"), type(source).__name__
        try:
            if isinstance(source, Mapping):
                named = cast("Mapping[Any, Any]", source).items()
                source = {name: _column(values, str(name)) for name, values in named}
            self._table = pa.table(source)  # pyright: ignore
        except InputError:
            raise
        except (TypeError, ValueError, pa.ArrowException) as error:
            raise InputError(f"a table cannot be made of this {kind} ({error})") from None
        self.columns = schema_columns(self.path, self._table.schema)
        self.rows = self._table.num_rows

    def _batches(self, columns: tuple[str, ...], size: int, numbers: frozenset[str]) -> Iterator[Any]:
        yield from self._table.select(list(columns)).to_batches(max_chunksize=size)


def _column(values: Any, name: str) -> Any:
    """A column; a tensor as an array, and a matrix, such as one of logits, as a list per row."""
    if not hasattr(values, "detach") and getattr(values, "ndim", 1) != 2:
        return values
    from certcal.data.arrow import pa

    array = to_numpy(values, name)
    if array.ndim != 2 or array.shape[1] == 1:
        return array.ravel()
    return pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), array.shape[1])


def is_table(source: Any) -> bool:
    """Whether something is a table in memory rather than a path.

    Examples
    --------
    >>> is_table({"confidence": [0.9]}), is_table("scores.csv")
    (True, False)
    """
    return isinstance(source, Mapping) or hasattr(source, "__arrow_c_stream__")
