"""Parquet: read by column and in pieces, so a file may be larger than memory."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from certcal.data.formats import OpenTable, check_memory, reading, schema_columns, schema_notes

parquet: Any = import_module("pyarrow.parquet")

# Pages are decompressed whole. How large they are is not said, but honest ones are not compressed more than this.
_HONEST_RATIO = 100


class ParquetTable(OpenTable):
    """A Parquet file."""

    def __init__(self, file_path: Path, path: Path) -> None:
        self.file, self.path = file_path, path
        with reading(path, "Parquet file"), parquet.ParquetFile(str(file_path)) as file:
            self.columns = schema_columns(path, file.schema_arrow)
            self.rows = int(file.metadata.num_rows)
            self.metadata = schema_notes(file.schema_arrow)

    def _batches(self, columns: tuple[str, ...], size: int, numbers: frozenset[str]) -> Iterator[Any]:
        # Read through a small buffer: without it a row group, which may be the whole file, is loaded first.
        options: dict[str, Any] = {"pre_buffer": False, "buffer_size": 1 << 20}
        if self.encode_text:
            kinds = {column.name: column.kind for column in self.columns}
            options["read_dictionary"] = [name for name in columns if kinds[name] == "text"]
        with reading(self.path, "Parquet file"), parquet.ParquetFile(str(self.file), **options) as file:
            largest = _largest_row_group(file, self.file.stat().st_size)
            check_memory(self.path, largest, "write smaller row groups", limit=self.memory)
            for batch in file.iter_batches(batch_size=size, columns=list(columns)):
                yield batch.select(list(columns))


def _largest_row_group(file: Any, size: int) -> int:
    """Bytes of the largest row group that is compressed more than pages of usual size are.

    Only totals are asked for: pyarrow aborts the process when a damaged file is asked about its columns.
    """
    groups = file.metadata
    totals = [groups.row_group(index).total_byte_size for index in range(groups.num_row_groups)]
    return max((total for total in totals if total > _HONEST_RATIO * size), default=0)
