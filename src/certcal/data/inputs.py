"""Inputs of a model with their true classes: in memory, or read when asked for so that nobody ever holds them all."""

from __future__ import annotations

import hashlib
import math
import mmap
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, same_length, to_numpy
from certcal._base.checks import labels as class_labels
from certcal._base.durable import open_regular
from certcal.data.formats import CHUNK_NUMBERS, check_memory, damaged, reading
from certcal.data.npz import read_header

Scale = Literal["k/255", "other"]

# More classes than any classifier has: labels beyond this are identifiers.
MAX_CLASSES = 1_000_000

# The float32 nearest to k/255, for k from 0 to 255.
_PIXELS = np.arange(256, dtype=np.float32) / np.float32(255)
_AT_ONCE = 1 << 20  # rows of a few numbers that are read together, at most


@dataclass(frozen=True, eq=False)
class Inputs:
    """Inputs of a model and their true classes. Arrays cannot be written to, so the fingerprint stays true.

    Examples
    --------
    >>> data = Inputs.from_arrays(np.array([[[0, 255]], [[51, 102]]], np.uint8), [1, 0])
    >>> len(data), data.inputs.shape, data.inputs.dtype, data.scale
    (2, (2, 1, 2), dtype('float32'), 'k/255')
    """

    # One entry per sample along the first axis: a C-contiguous array, or Rows, which are read when they are indexed
    # (data.inputs[:10]) and are never all in memory.
    inputs: NDArray[np.float32] | Rows
    labels: NDArray[np.int64]  # true classes from 0
    class_names: tuple[str, ...] = ()  # what the classes 0, 1, … are called, where the data says so

    def __len__(self) -> int:
        return self.labels.size

    def __repr__(self) -> str:
        shape = tuple(self.inputs.shape[1:])
        if isinstance(self.inputs, Rows):
            return f"Inputs(n={len(self)}, shape={shape}, from {self.inputs.source.name or 'a data set'})"
        return f"Inputs(n={len(self)}, shape={shape}, scale={self.scale!r}, fingerprint={self.fingerprint[:12]}…)"

    @property
    def scale(self) -> Scale:
        """What the numbers are.

        "k/255" when every number is the float32 nearest to one of 0/255, 1/255, …, 255/255, as of 8-bit images; "other"
        otherwise.
        """
        return self._scale_and_fingerprint[0]

    @property
    def fingerprint(self) -> str:
        """SHA-256, in hexadecimal, of the shapes, types and bytes (little-endian) of inputs and labels."""
        return self._scale_and_fingerprint[1]

    @cached_property
    def _scale_and_fingerprint(self) -> tuple[Scale, str]:
        total, pixels = hashlib.sha256(f"<f4 {self.inputs.shape}\n".encode()), True
        for first, block in blocks(self.inputs):
            hash_rows(block, first, {len(self): total})
            pixels = pixels and _are_pixels(block)
        plain = np.ascontiguousarray(self.labels, "<i8")
        total.update(f"<i8 {plain.shape}\n".encode())
        total.update(plain.view(np.uint8).data)
        return "k/255" if pixels else "other", total.hexdigest()

    def in_memory(self) -> Inputs:
        """Inputs all of which are in memory.

        Examples
        --------
        >>> Inputs.from_arrays([[0.5]], [0]).in_memory().inputs
        array([[0.5]], dtype=float32)
        """
        if not isinstance(self.inputs, Rows):
            return self
        array = np.asarray(self.inputs)
        array.flags.writeable = False
        return Inputs(array, self.labels, self.class_names)

    def subset(self, *, every: int = 1, limit: int | None = None) -> Inputs:
        """Samples 0, every, 2·every, …, the first ``limit`` of them; with the names of all classes.

        Examples
        --------
        >>> Inputs.from_arrays(np.arange(10.0).reshape(5, 2), [0, 1, 2, 3, 4]).subset(every=2, limit=2).labels
        array([0, 2])
        """
        kept = range(0, len(self), every)[:limit]
        if len(kept) == len(self):
            return self
        rows = slice(kept.start, kept.stop, kept.step)
        if isinstance(self.inputs, Rows):
            return Inputs(self.inputs.subset(kept), _read_only_copy(self.labels[rows]), self.class_names)
        return Inputs(_read_only_copy(self.inputs[rows]), _read_only_copy(self.labels[rows]), self.class_names)

    @property
    def box(self) -> tuple[float, float] | None:
        """Smallest and largest value that such an input may have: 0 and 1 for pixels k/255, otherwise unknown.

        Examples
        --------
        >>> Inputs.from_arrays(np.array([[0, 255]], np.uint8), [0]).box, Inputs.from_arrays([[0.5, 3.0]], [0]).box
        ((0.0, 1.0), None)
        """
        return (0.0, 1.0) if self.scale == "k/255" else None

    @classmethod
    def from_arrays(cls, inputs: Any, labels: Any, class_names: Sequence[str] = (), *, copy: bool = True) -> Inputs:
        """Check arrays and take a copy of them.

        Parameters
        ----------
        inputs
            One entry per sample along the first axis, finite numbers. uint8 is taken as pixels: k becomes k/255. Other
            numbers are rounded to float32. A memory map is not copied, but read as it is needed.
        labels
            True classes, whole numbers from 0.
        class_names
            What they are called, if they have names: one for each class.
        copy
            False for arrays that nobody else will change: those of the right type are then taken as they are.

        Examples
        --------
        >>> Inputs.from_arrays([[0.5, np.nan]], [0])
        Traceback (most recent call last):
            ...
        certcal.InputError: inputs[0, 1] is nan; drop the sample or repair it
        """
        if isinstance(inputs, np.memmap):
            inputs = Rows(mapped_source(inputs))  # pyright: ignore[reportUnknownArgumentType]
        if not isinstance(inputs, Rows):
            array = to_numpy(inputs, "inputs")
            check_shape(array.shape)
            inputs = single_precision(array, copy=copy)
            inputs.flags.writeable = False
        names = tuple(class_names)
        truth = class_labels(labels, len(names) or MAX_CLASSES)
        same_length(inputs=inputs.shape[0], labels=truth.size)
        truth.flags.writeable = False
        return cls(inputs, truth, names)


def _read_only_copy(some: NDArray[Any]) -> NDArray[Any]:
    own = np.array(some, order="C")
    own.flags.writeable = False
    return own


def _are_pixels(block: NDArray[np.float32]) -> bool:
    """Whether every number is one of the 256 that 8-bit pixels become."""
    if block.min() < 0 or block.max() > 1:
        return False
    return bool((_PIXELS[np.rint(block * np.float32(255)).astype(np.uint8)] == block).all())


@dataclass(frozen=True, eq=False)
class Parts:
    """Inputs to train on, and perhaps others to test on.

    Examples
    --------
    >>> Parts("rows", "Some rows", Inputs.from_arrays([[0.5, 1.5, 2.5]], [0]), None).description
    'Some rows: 1 samples of 3 features to train on'
    """

    name: str
    title: str  # what the data is called in a sentence
    train: Inputs
    test: Inputs | None

    @property
    def description(self) -> str:
        """One sentence: the data and the split."""
        sizes = list(map(str, self.train.inputs.shape[1:]))
        what = f"images of {' by '.join(sizes[-2:])}" if len(sizes) > 1 else f"samples of {sizes[0]} features"
        others = "" if self.test is None else f", {len(self.test):,} others to test on"
        return f"{self.title}: {len(self.train):,} {what} to train on{others}"


@dataclass(frozen=True, eq=False)
class Split(Parts):
    """:class:`Parts` of which both are there.

    Examples
    --------
    >>> part = Inputs.from_arrays([[[[0.0, 1.0]]]], [0])
    >>> Split("dots", "Two dots", part, part).description
    'Two dots: 1 images of 1 by 2 to train on, 1 others to test on'
    """

    test: Inputs


Part = Literal["train", "test"]
PARTS: tuple[Part, ...] = ("train", "test")

# How to read each part that a source has; under None what is not divided.
Readers = dict[Part | None, Callable[[], Inputs]]


def check_split(split: Any) -> None:
    """Raise unless it is the name of a part, or None."""
    if split is not None and split not in PARTS:
        raise InputError(f"it is {split!r}", argument="split", remedy="pass 'train' or 'test'")


def read_part(readers: Readers, part: Part | None, source: Path) -> Inputs:
    """The part that is asked for; without asking, all there is, if it is not divided."""
    if part in readers:
        return readers[part]()
    there: list[Part] = [each for each in PARTS if each in readers]
    if part is None and len(there) == 1:
        return readers[there[0]]()
    if part is None:
        raise InputError(f"{source}: it has a training and a test part; ask for split='train' or split='test'")
    if not there:
        raise InputError(f"{source} has no training and test parts", argument="split", remedy="leave it out")
    only = there[0]
    raise InputError(
        f"{source} has no part {part!r}, only {only!r}", argument="split", remedy=f"ask for {only!r}, or leave it out"
    )


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
    """Add the bytes of a block, which begins with row ``first``, to each hash: those of its first so many rows."""
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
