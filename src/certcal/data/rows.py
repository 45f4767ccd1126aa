"""Inputs that are read when they are asked for, so that nobody ever holds all of them."""

from __future__ import annotations

import math
import mmap
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal._base.durable import open_regular
from certcal.data.formats import CHUNK_NUMBERS, check_memory, damaged, reading
from certcal.data.npz import read_header

_AT_ONCE = 1 << 20  # rows of a few numbers that are read together, at most


class RowSource(Protocol):
    """Where inputs come from."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of inputs, then the shape of one."""
        ...

    @property
    def name(self) -> str:
        """What a complaint begins with, such as a path; empty for what was handed over in Python."""
        ...

    @property
    def portable(self) -> bool:
        """Whether a worker that sees the same files can read by itself: such a source travels, and others stay."""
        ...

    def read(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Inputs by their numbers: bytes are pixels k/255, other numbers are taken as they are."""
        ...


class Rows:
    """Inputs that are read when they are indexed, as float32: like an array of which nothing is in memory.

    A checksum of each row is kept from its first reading on. A row that is another when it is read again is refused:
    a file was changed, or a data set makes random crops.

    Parameters
    ----------
    source
        Where they come from.
    chosen
        Which of the source's inputs these are; by default all.

    Examples
    --------
    >>> rows = Rows(ArraySource(np.arange(6, dtype=np.uint8).reshape(3, 2)))
    >>> rows.shape, rows[1:].shape, rows[[2]] * 255
    ((3, 2), (2, 2), array([[4., 5.]], dtype=float32))
    """

    dtype = np.dtype(np.float32)

    def __init__(self, source: RowSource, chosen: range | None = None) -> None:
        self.source = source
        self.chosen = range(source.shape[0]) if chosen is None else chosen
        self.shape = (len(self.chosen), *source.shape[1:])
        check_shape(self.shape)
        self._marks = np.full(self.shape[0], -1, np.int64)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """What all of them would take in memory."""
        return self.dtype.itemsize * self.size

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: int | slice | Any) -> NDArray[np.float32]:
        own = np.arange(*rows.indices(len(self))) if isinstance(rows, slice) else np.arange(len(self))[rows]
        found = self._read(np.atleast_1d(own))
        return found[0] if own.ndim == 0 else found

    def _read(self, own: NDArray[np.int64]) -> NDArray[np.float32]:
        raw = self.source.read(self.chosen.start + self.chosen.step * own)
        raw = np.ascontiguousarray(raw)
        for number, row in zip(own.tolist(), raw, strict=True):
            mark = zlib.crc32(row.reshape(-1).view(np.uint8))
            if self._marks[number] not in (-1, mark):
                raise InputError(
                    f"{self.source.name or 'inputs'}: sample {self.chosen[number]} is not what it was when it was read "
                    "first; a file was changed, or a transform is random: give the data as it was, without augmentation"
                )
            self._marks[number] = mark
        return single_precision(raw, own, self.source.name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        where = Path(self.source.name or "inputs")
        check_memory(where, self.nbytes, "make the inputs smaller, or use fewer")
        whole = np.empty(self.shape, self.dtype)
        for first, block in blocks(self):
            whole[first : first + len(block)] = block
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def subset(self, kept: range) -> Rows:
        """Some of them."""
        return Rows(self.source, self.chosen[kept.start : kept.stop : kept.step])


def check_shape(shape: tuple[int, ...]) -> None:
    """Raise unless inputs may have this shape."""
    if len(shape) < 2:
        raise InputError(f"inputs has shape {shape}; pass one row (or one image) per sample, so at least two axes")
    if 0 in shape:
        raise InputError(f"inputs has shape {shape}, so there is nothing in it; pass at least one sample")


def single_precision(
    array: NDArray[Any], numbers: NDArray[np.int64] | None = None, name: str = "", *, copy: bool = False
) -> NDArray[np.float32]:
    """The numbers as float32: pixels as k/255, others rounded; an error where that is not finite."""
    if array.dtype == np.uint8:
        return np.divide(array, np.float32(255), dtype=np.float32, order="C")
    with np.errstate(over="ignore"):
        single = array.astype(np.float32, order="C", copy=copy)
    for first, block in blocks(single):
        bad = ~np.isfinite(block)
        if bad.any():
            row, *rest = map(int, np.argwhere(bad)[0])
            place = (first + row, *rest)
            shown = (first + row if numbers is None else int(numbers[first + row]), *rest)
            where = f"{name}: " if name else ""
            raise InputError(f"{where}inputs[{', '.join(map(str, shown))}] {'; '.join(complaint(array[place]))}")
    return single


def complaint(value: Any) -> tuple[str, str]:
    """What is wrong with a number that float32 cannot hold, and what to do."""
    if np.isfinite(value):
        return f"is {value:.9g}, too large for float32", "rescale the inputs"
    return f"is {value}", "drop the sample or repair it"


def blocks(inputs: NDArray[Any] | Rows) -> Iterator[tuple[int, NDArray[Any]]]:
    """Runs of rows, each with the number of rows before it, so that what is made on the way stays small."""
    rows = min(_AT_ONCE, max(1, CHUNK_NUMBERS * inputs.shape[0] // max(1, inputs.size)))
    return ((first, inputs[first : first + rows]) for first in range(0, inputs.shape[0], rows))


def hash_rows(block: NDArray[np.float32], first: int, totals: dict[int, Any]) -> None:
    """Add the bytes of a block, which begins with row ``first``, to each hash: those of its first so many rows.

    Examples
    --------
    >>> import hashlib
    >>> whole, half = hashlib.sha256(), hashlib.sha256()
    >>> hash_rows(np.zeros((4, 2), np.float32), 0, {4: whole, 2: half})
    >>> half.hexdigest() == hashlib.sha256(bytes(16)).hexdigest()
    True
    """
    plain = np.ascontiguousarray(block, "<f4")
    for rows, total in totals.items():
        if first < rows:
            total.update(plain[: rows - first].reshape(-1).view(np.uint8).data)


@dataclass(frozen=True, eq=False)
class ArraySource:
    """An array of this process, perhaps mapped from a file."""

    array: NDArray[Any]
    name: str = ""
    portable = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array."""
        return self.array.shape

    def read(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Rows by their numbers."""
        return self.array[rows]


@dataclass(frozen=True)
class FileSource:
    """An array that lies in a file row by row. Rows are read, not mapped: a file cut short is an error, not a crash."""

    path: Path
    offset: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    portable = True

    @property
    def name(self) -> str:
        """The path."""
        return str(self.path)

    def read(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Rows by their numbers; neighbours are read together."""
        found = np.empty((len(rows), *self.shape[1:]), self.dtype)
        flat = found.reshape(len(rows), -1).view(np.uint8)
        ends = np.flatnonzero(np.diff(rows) != 1) + 1
        with reading(self.path, "array"), open_regular(self.path) as stream:
            for some in np.split(np.arange(len(rows)), ends):
                stream.seek(self.offset + int(rows[some[0]]) * flat.shape[1])
                part = flat[some[0] : some[-1] + 1].reshape(-1)
                if stream.readinto(part.data) != part.size:
                    raise EOFError("an array is cut short")
        return found.astype(self.dtype.newbyteorder("="), copy=False)


def npy_source(path: Path, stream: IO[bytes] | None = None, begins: int = 0, size: int | None = None) -> RowSource:
    """The array of a .npy file, or of one inside another file from ``begins`` on, to be read row by row."""
    with reading(path, "array"):
        if stream is None:
            with open_regular(path) as own:
                return npy_source(path, own, 0, os.fstat(own.fileno()).st_size)
        stream.seek(begins)
        shape, dtype, by_column = read_header(stream)
        start = stream.tell() - begins
    if dtype.hasobject or dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise InputError(f"{path}: the array holds {dtype}, not numbers; save it as float32 or, for pixels, uint8")
    if size is not None and start + math.prod(shape) * dtype.itemsize != size:
        raise InputError(damaged(path, "array", ValueError(f"{size} bytes are not those of shape {shape}")))
    if by_column and len(shape) > 1:
        raise InputError(f"{path}: the array lies column by column; save it with numpy.ascontiguousarray")
    return FileSource(path.absolute(), begins + start, dtype, shape)


def mapped_source(array: np.memmap[Any, Any]) -> RowSource:
    """A memory map: as the file that it was made from, if that can be opened again, else as it is."""
    whole = isinstance(array.base, mmap.mmap) and array.flags.c_contiguous and array.filename is not None
    if not whole or array.dtype.kind not in "biuf" or array.mode == "c":  # what was changed in memory only
        return ArraySource(array)
    return FileSource(Path(str(array.filename)).absolute(), array.offset, array.dtype, array.shape)
