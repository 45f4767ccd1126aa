"""Feather and Arrow IPC files."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from certcal.data._table import Table, reading, schema_columns

ipc: Any = import_module("pyarrow.ipc")


class FeatherTable(Table):
    """A Feather (version 2) or Arrow file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with reading(path, "Arrow file"), path.open("rb") as stream, ipc.open_file(stream) as file:
            self.columns = schema_columns(path, file.schema)
            self.rows = None

    def _batches(self, columns: tuple[str, ...], size: int, numbers: frozenset[str]) -> Iterator[Any]:
        with reading(self.path, "Arrow file"), self.path.open("rb") as stream, ipc.open_file(stream) as file:
            for index in range(file.num_record_batches):
                batch = file.get_batch(index).select(list(columns))
                batch.validate(full=True)  # offsets in this format come from the file as they are
                for start in range(0, batch.num_rows, size):
                    yield batch.slice(start, size)
