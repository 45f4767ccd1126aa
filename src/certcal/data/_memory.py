"""A table that is already in memory: pandas, polars, pyarrow, a mapping of columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from certcal._checks import InputError
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
            self._table = pa.table(dict(source) if isinstance(source, Mapping) else source)  # pyright: ignore
        except (TypeError, ValueError, pa.ArrowException) as error:
            raise InputError(f"a table cannot be made of this {kind} ({error})") from None
        self.columns = schema_columns(self.path, self._table.schema)
        self.rows = self._table.num_rows

    def _batches(self, columns: tuple[str, ...], size: int, numbers: frozenset[str]) -> Iterator[Any]:
        yield from self._table.select(list(columns)).to_batches(max_chunksize=size)


def is_table(source: Any) -> bool:
    """Whether something is a table in memory rather than a path.

    Examples
    --------
    >>> is_table({"confidence": [0.9]}), is_table("scores.csv")
    (True, False)
    """
    return isinstance(source, Mapping) or hasattr(source, "__arrow_c_stream__")
