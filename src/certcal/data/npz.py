"""npz archives: arrays by name, never unpickled."""

from __future__ import annotations

import math
import struct
import sys
import zipfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal._base.durable import open_regular
from certcal.data.formats import Kind, OpenTable, TableColumn, check_column_count, check_memory, damaged, reading

_NPY = ".npy"
_READ_BYTES = 1 << 20
_NAME_LENGTHS = 26  # bytes before them in the local header of a member
_IN_PIECES = "write it as Parquet, which is read in pieces"


class NpzTable(OpenTable):
    """An npz archive. One-dimensional arrays are columns; two-dimensional ones are columns of lists."""

    def __init__(self, file: Path, path: Path) -> None:
        self.file, self.path = file, path
        columns: list[TableColumn] = []
        lengths: dict[str, int] = {}
        with _open_archive(file, path) as archive:
            names = _array_names(archive)
            check_column_count(path, len(names))
            for name in names:
                with archive.open(name + _NPY) as stream:
                    shape, dtype, _ = read_header(stream)
                columns.append(TableColumn(name, _array_kind(shape, dtype)))
                if columns[-1].kind != "other":
                    lengths[name] = shape[0]
        if not columns:
            raise InputError(f"{path}: the archive holds no arrays; save them with numpy.savez")
        self.columns = tuple(columns)
        self.rows = next(iter(lengths.values())) if len(set(lengths.values())) == 1 else None

    def _batches(self, columns: tuple[str, ...], size: int, numbers: frozenset[str]) -> Iterator[Any]:
        from certcal.data.arrow import pa

        with _open_archive(self.file, self.path) as archive:
            sizes = {name: self._check_column(archive, name) for name in columns}
            if len(set(sizes.values())) > 1:
                text = ", ".join(f"{name} has {count}" for name, count in sizes.items())
                raise InputError(f"{self.path}: lengths differ: {text}; save one entry per sample in each array")
            rows = next(iter(sizes.values()), 0)
            if size >= rows:  # all at once
                needed = sum(archive.getinfo(name + _NPY).file_size for name in columns)
                check_memory(self.path, needed, _IN_PIECES)
            parts = [self._row_blocks(archive, name, size) for name in columns]
            for some in zip(*parts, strict=True):
                yield pa.RecordBatch.from_arrays([_to_arrow(array) for array in some], names=list(columns))

    def _check_column(self, archive: zipfile.ZipFile, name: str) -> int:
        with archive.open(name + _NPY) as stream:
            shape, dtype, _ = read_header(stream)
        if _array_kind(shape, dtype) == "other" and not dtype.hasobject:
            raise InputError(
                f"{self.path}: array {name!r} has shape {shape} and type {dtype}; "
                "save numbers or text with one entry or one row per sample"
            )
        _check_member(archive, self.path, name)
        return shape[0]

    def _row_blocks(self, archive: zipfile.ZipFile, name: str, size: int) -> Iterator[NDArray[Any]]:
        with archive.open(name + _NPY) as stream:
            shape, dtype, by_column = read_header(stream)
            starts = range(0, shape[0], size)
            if len(starts) > 1 and not (by_column and math.prod(shape[1:]) > 1):
                for start in starts:
                    some = _read_rows(stream, (min(size, shape[0] - start), *shape[1:]), dtype)
                    _check_text(self.path, name, some)
                    yield _as_column(some)
                stream.read(1)  # beyond the end, where the checksum is compared
                return
        check_memory(self.path, math.prod(shape) * dtype.itemsize, _IN_PIECES, limit=self.memory)
        whole = _as_column(_read_member(archive, self.path, name))
        for start in starts:
            yield whole[start : start + size]


def _read_rows(stream: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    out = np.empty(math.prod(shape) * dtype.itemsize, np.uint8)
    filled = 0
    while filled < out.size:
        content = stream.read(min(_READ_BYTES, out.size - filled))
        if not content:
            raise EOFError("an array is cut short")
        out[filled : filled + len(content)] = np.frombuffer(content, np.uint8)
        filled += len(content)
    return out.view(dtype).reshape(shape)


def _as_column(array: NDArray[Any]) -> NDArray[Any]:
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def array_names(path: Path) -> list[str]:
    """What the arrays of an npz archive are called."""
    with _open_archive(path) as archive:
        return _array_names(archive)


def _array_names(archive: zipfile.ZipFile) -> list[str]:
    return [name.removesuffix(_NPY) for name in archive.namelist() if name.endswith(_NPY)]


def stored_array(path: Path, name: str) -> tuple[int, int] | None:
    """Where an array begins in the archive and its bytes, if it lies there as it is: neither packed nor by column."""
    with _open_archive(path) as archive:
        shape, dtype, by_column, _ = _check_member(archive, path, name)
        member = archive.getinfo(name + _NPY)
        if member.compress_type != zipfile.ZIP_STORED or dtype.kind not in "biuf" or (by_column and len(shape) > 1):
            return None
        with open_regular(path) as stream:
            stream.seek(member.header_offset + _NAME_LENGTHS)
            name_bytes, extra_bytes = struct.unpack("<HH", stream.read(4))
        return member.header_offset + _NAME_LENGTHS + 4 + name_bytes + extra_bytes, member.file_size


def read_arrays(path: Path, names: tuple[str, ...], missing: str, *, widen: str | None = None) -> dict[str, Any]:
    """Arrays of an npz archive by name, of any shape."""
    with _open_archive(path) as archive:
        there = _array_names(archive)
        for name in names:
            if name not in there:
                listed = ", ".join(map(repr, there[:20])) or "none"
                raise InputError(f"{path}: there is no array {name!r}; {missing}; the arrays are {listed}")
        needed = 0
        for name in names:
            needed += archive.getinfo(name + _NPY).file_size
            if name == widen:
                with archive.open(name + _NPY) as stream:
                    needed += 4 * math.prod(read_header(stream)[0])
        check_memory(path, needed, "read a part of it")
        return {name: _read_member(archive, path, name) for name in names}


def _read_member(archive: zipfile.ZipFile, path: Path, name: str) -> NDArray[Any]:
    """One array, after a look at its header: no objects, and no more than there is."""
    check_memory(path, _check_member(archive, path, name)[-1], _IN_PIECES)
    with archive.open(name + _NPY) as stream:
        array = np.lib.format.read_array(stream, allow_pickle=False)
    _check_text(path, name, array)
    return array


def _check_member(archive: zipfile.ZipFile, path: Path, name: str) -> tuple[tuple[int, ...], np.dtype[Any], bool, int]:
    """Header and bytes of an array. Refused: objects, entries without a size (any number fits a file), and lies."""
    with archive.open(name + _NPY) as stream:
        shape, dtype, by_column = read_header(stream)
        promised = stream.tell() + math.prod(shape) * dtype.itemsize
    if dtype.hasobject:
        raise InputError(
            f"{path}: array {name!r} holds Python objects, which certcal never unpickles; save it as numbers or text"
        )
    if dtype.itemsize == 0:
        raise InputError(f"{path}: array {name!r} has type {dtype}, whose entries have no size; save numbers or text")
    there = archive.getinfo(name + _NPY).file_size
    if promised != there:
        raise InputError(
            f"{path}: array {name!r} has {there} bytes where its header says {promised}; copy or write the file again"
        )
    return shape, dtype, by_column, promised


def _check_text(path: Path, name: str, array: NDArray[Any]) -> None:
    """Refuse characters that are none, on which Python fails in many ways."""
    if array.dtype.kind != "U" or array.size == 0:
        return
    native = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
    if int(native.reshape(-1).view(np.uint32).max()) > sys.maxunicode:
        raise InputError(f"{path}: array {name!r} holds text with characters beyond Unicode; write the file again")


@contextmanager
def _open_archive(file: Path, shown: Path | None = None) -> Generator[zipfile.ZipFile, None, None]:
    path = shown or file
    with reading(path, "npz archive"):
        try:
            with open_regular(file) as stream, zipfile.ZipFile(stream) as archive:
                yield archive
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
            raise InputError(damaged(path, "npz archive", error)) from error


def read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any], bool]:
    """Shape and type of an array in numpy's own form, and whether it lies column by column."""
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    try:
        shape, by_column, dtype = read(stream)
    except (MemoryError, RecursionError, SyntaxError, TokenError, TypeError) as error:  # it is parsed as Python
        raise ValueError("the header of an array is damaged") from error
    if not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(f"an array has shape {shape}")
    return shape, dtype, by_column


def _array_kind(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Kind:
    if dtype.kind == "U" and len(shape) == 1 and dtype.itemsize:
        return "text"
    if dtype.kind not in "biuf" or len(shape) not in (1, 2) or 0 in shape[1:]:
        return "other"
    if len(shape) == 2 and shape[1] != 1:
        return "list"
    return "boolean" if dtype.kind == "b" else "number"


def _to_arrow(array: NDArray[Any]) -> Any:
    from certcal.data.arrow import from_numpy, pa

    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    return pa.array(array.tolist()) if array.dtype.kind == "U" else from_numpy(array)
