"""Columns as a file, to be written in one piece."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError


def columns_as_bytes(columns: Mapping[str, Any], ending: str, metadata: Mapping[str, str] | None = None) -> bytes:
    r"""The content of a Parquet or CSV file.

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
    from certcal.data._pyarrow import pa

    table = pa.table(
        {name: values if isinstance(values, pa.ChunkedArray) else _column(values) for name, values in columns.items()}
    )
    stream = io.BytesIO()
    if ending == ".parquet":
        from certcal.data._parquet import parquet

        parquet.write_table(table.replace_schema_metadata(dict(metadata)) if metadata else table, stream)
    elif ending == ".csv":
        import_module("pyarrow.csv").write_csv(table, stream)
    else:
        raise InputError(f"files called {ending} are not written; choose .parquet or .csv")
    return stream.getvalue()


def _column(values: NDArray[Any] | Sequence[str]) -> Any:
    from certcal.data._pyarrow import from_numpy, pa

    return from_numpy(np.ascontiguousarray(values)) if isinstance(values, np.ndarray) else pa.array(list(values))
