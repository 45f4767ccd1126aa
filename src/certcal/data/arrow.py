"""pyarrow: without its types, as NumPy and back, to files, and from Feather and Arrow files in pieces."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from certcal.data.formats import OpenTable, check_memory, reading, schema_columns

pa: Any = import_module("pyarrow")
compute: Any = import_module("pyarrow.compute")


def to_numpy(array: Any) -> NDArray[Any]:
    """View a column of numbers without missing values as NumPy; true/false is copied.

    pyarrow's own conversion imports pandas wherever that is installed, which takes longer than reading most tables.
    """
    if pa.types.is_boolean(array.type):
        return np.from_dlpack(array.cast(pa.uint8())).view(np.bool_)
    return np.from_dlpack(array)


def from_numpy(array: NDArray[Any]) -> Any:
    """View contiguous numbers as a column, and a matrix as a column of lists; true/false is copied."""
    flat = array.reshape(-1)
    plain = flat.view(np.uint8) if flat.dtype == np.bool_ else flat
    column = pa.Array.from_buffers(pa.from_numpy_dtype(plain.dtype), plain.size, [None, pa.py_buffer(plain)])
    column = column.cast(pa.bool_()) if flat.dtype == np.bool_ else column
    return column if array.ndim == 1 else pa.FixedSizeListArray.from_arrays(column, array.shape[1])


ipc: Any = import_module("pyarrow.ipc")

_MAGIC_BYTES = 8
_CONTINUATION = 0xFFFFFFFF
_DICTIONARY, _BATCH = 2, 3  # kinds of messages
_SMALLER = "write it in smaller batches (write_feather(…, chunksize=65536)) or as Parquet"


class FeatherTable(OpenTable):
    """A Feather (version 2) or Arrow file."""

    def __init__(self, file_path: Path, path: Path) -> None:
        self.file, self.path = file_path, path
        with reading(path, "Arrow file"), file_path.open("rb") as stream, ipc.open_file(stream) as file:
            self.columns = schema_columns(path, file.schema)
            promised, schema = file.num_record_batches, file.schema
        with reading(path, "Arrow file"), file_path.open("rb") as stream:
            stream.seek(_MAGIC_BYTES)
            if not ipc.open_stream(stream).schema.equals(schema):
                raise ValueError("its columns are not those of its footer")
            self.rows, batches, self._largest = 0, 0, 0
            for kind, rows, expanded in _message_sizes(stream):
                self._largest = max(self._largest, expanded)
                if kind == _BATCH:
                    batches, self.rows = batches + 1, self.rows + rows
            if batches != promised:
                raise ValueError(f"its footer lists {promised} record batches and there are {batches}")

    def _batches(self, columns: tuple[str, ...], size: int, numbers: frozenset[str]) -> Iterator[Any]:
        check_memory(self.path, self._largest, _SMALLER, limit=self.memory)
        with reading(self.path, "Arrow file"), self.file.open("rb") as stream:
            stream.seek(_MAGIC_BYTES)  # not by the footer: in the order of the messages whose sizes were checked
            with ipc.open_stream(stream) as file:
                for whole in file:
                    batch = whole.select(list(columns))
                    batch.validate(full=True)  # offsets in this format come from the file as they are
                    for start in range(0, batch.num_rows, size):
                        yield batch.slice(start, size)


def _message_sizes(stream: IO[bytes]) -> Iterator[tuple[int, int, int]]:
    """Kind, rows and bytes in memory of every message, from its description and without decompressing anything."""
    stream.seek(_MAGIC_BYTES)
    while True:
        (size,) = _Flatbuffer(stream.read(4)).numbers("<I", 0)
        if size == _CONTINUATION:
            (size,) = _Flatbuffer(stream.read(4)).numbers("<I", 0)
        if size == 0:
            return
        flat = _Flatbuffer(stream.read(size))
        start = stream.tell()
        message = flat.table(0)
        kind = flat.scalar("<B", message, 1)
        length = flat.scalar("<q", message, 3)
        if length < 0:
            raise ValueError("a message has a negative length")
        if kind in (_DICTIONARY, _BATCH):
            batch = flat.table(flat.place(message, 2))
            batch = flat.table(flat.place(batch, 1)) if kind == _DICTIONARY else batch
            yield kind, flat.scalar("<q", batch, 0), max(length, _bytes_in_memory(stream, flat, batch, start))
        stream.seek(start + length)


def _bytes_in_memory(stream: IO[bytes], flat: _Flatbuffer, batch: int, start: int) -> int:
    """Bytes of a batch's buffers, each of which says its own if it is compressed."""
    buffers = flat.place(batch, 2)
    if buffers == 0 or flat.place(batch, 3) == 0:
        return 0
    vector = buffers + flat.numbers("<I", buffers)[0]
    total = 0
    for index in range(flat.numbers("<I", vector)[0]):
        offset, length = flat.numbers("<qq", vector + 4 + 16 * index)
        if length > 0 <= offset:
            stream.seek(start + offset)
            total += max(length, *_Flatbuffer(stream.read(8)).numbers("<q", 0))
    return total


class _Flatbuffer:
    """The few things of a flatbuffer that the sizes of a message need; a place outside it is an error."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def numbers(self, form: str, place: int) -> tuple[int, ...]:
        if not 0 <= place <= len(self._content) - struct.calcsize(form):
            raise ValueError("a message is cut short or points outside itself")
        return struct.unpack_from(form, self._content, place)

    def table(self, place: int) -> int:
        return place + self.numbers("<I", place)[0]

    def place(self, table: int, field: int) -> int:
        described = table - self.numbers("<i", table)[0]
        slot = 4 + 2 * field
        if slot >= self.numbers("<H", described)[0]:
            return 0
        offset = self.numbers("<H", described + slot)[0]
        return table + offset if offset else 0

    def scalar(self, form: str, table: int, field: int) -> int:
        place = self.place(table, field)
        return self.numbers(form, place)[0] if place else 0
