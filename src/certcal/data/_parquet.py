"""Parquet: read by column and in pieces, so a file may be larger than memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from certcal.data._table import Table, reading, schema_columns

parquet: Any = import_module("pyarrow.parquet")


class ParquetTable(Table):
    """A Parquet file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with reading(path, "Parquet file"), parquet.ParquetFile(str(path)) as file:
            self.columns = schema_columns(path, file.schema_arrow)
            self.rows = int(file.metadata.num_rows)
            notes: Mapping[bytes, bytes] = file.schema_arrow.metadata or {}
            self.metadata = {key.decode(errors="replace"): text.decode(errors="replace") for key, text in notes.items()}

    def _batches(self, columns: tuple[str, ...], size: int, numbers: frozenset[str]) -> Iterator[Any]:
        # Read through a small buffer: without it a row group, which may be the whole file, is loaded first.
        options = {"pre_buffer": False, "buffer_size": 1 << 20}
        with reading(self.path, "Parquet file"), parquet.ParquetFile(str(self.path), **options) as file:
            for batch in file.iter_batches(batch_size=size, columns=list(columns)):
                yield batch.select(list(columns))
