"""Columns as a file, to be written in one piece."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError
from certcal._csv import plain_cell


def columns_as_bytes(columns: Mapping[str, Any], ending: str, metadata: Mapping[str, str] | None = None) -> bytes:
    r"""The content of a Parquet or CSV file.

    In CSV, texts that a spreadsheet would run or that control a terminal are made plain; Parquet keeps them.

    Parameters
    ----------
    columns
        Equally long, by name: numbers, texts, or a column of pyarrow. A matrix becomes a column of lists, in Parquet.
    ending
        ".parquet" or ".csv".
    metadata
        Texts that a Parquet file keeps; a CSV file cannot.

    Examples
    --------
    >>> columns_as_bytes({"sample": ["a", "b"], "confidence": np.array([0.1, 1 / 3])}, ".csv").decode()
    '"sample","confidence"\n"a",0.1\n"b",0.3333333333333333\n'
    """
    from certcal.data.arrow import pa

    table = columns_as_table(columns, metadata)
    stream = io.BytesIO()
    if ending == ".parquet":
        from certcal.data.parquet import parquet

        parquet.write_table(table, stream)
    elif ending == ".csv":
        names = [_heading(name) for name in table.column_names]
        plain = pa.table([_plain(column) for column in table.columns], names=names)
        import_module("pyarrow.csv").write_csv(plain, stream)
    else:
        raise InputError(f"files called {ending} are not written; choose .parquet or .csv")
    return stream.getvalue()


def columns_as_table(columns: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> Any:
    """The same as a pyarrow Table."""
    from certcal.data.arrow import pa

    table = pa.table(
        {name: values if isinstance(values, pa.ChunkedArray) else _column(values) for name, values in columns.items()}
    )
    return table.replace_schema_metadata(dict(metadata)) if metadata else table


def _column(values: NDArray[Any] | Sequence[str]) -> Any:
    from certcal.data.arrow import from_numpy, pa

    return from_numpy(np.ascontiguousarray(values)) if isinstance(values, np.ndarray) else pa.array(list(values))


def _plain(column: Any) -> Any:
    """A column for CSV."""
    from certcal.data.arrow import pa

    one = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    kinds += (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
    if not any(of_kind(one.type) for of_kind in kinds):
        return column
    raw: list[bytes | None] = one.cast(pa.large_binary()).to_pylist()  # what is not UTF-8 is written as its bytes
    texts = [None if text is None else text.decode("utf-8", "backslashreplace") for text in raw]
    return pa.array([plain_cell(text) for text in texts], pa.large_string())


def _heading(name: str) -> str:
    """A name for CSV; a class in it as labels have it, or else they would not be found among the columns again."""
    return f"prob_{plain_cell(name[5:])}" if name.startswith("prob_") else plain_cell(name)
