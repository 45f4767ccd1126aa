"""Inputs of a model with their true classes: images or rows of features, checked, and known by a fingerprint."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, same_length, to_numpy
from certcal._checks import labels as class_labels
from certcal.data._layout import Resolver
from certcal.data._open import file_ends, open_table
from certcal.data._pieces import Arrays, Groups, gather, in_file, pieces
from certcal.data._table import CHUNK_NUMBERS, CHUNK_ROWS, Table, check_memory

Scale = Literal["k/255", "other"]

# More classes than any classifier has: labels beyond this are identifiers.
MAX_CLASSES = 1_000_000

# The float32 nearest to k/255, for k from 0 to 255.
_PIXELS = np.arange(256, dtype=np.float32) / np.float32(255)

_LABEL = ("label", "labels")
_SAVE = "save both with numpy.savez(path, inputs=…, labels=…)"


@dataclass(frozen=True, eq=False)
class Inputs:
    """Inputs of a model and their true classes. The arrays cannot be written to, so the fingerprint stays true.

    Attributes
    ----------
    inputs
        float32, C-contiguous, one entry per sample along the first axis.
    labels
        True classes from 0, int64.
    scale
        "k/255" when every number is the float32 nearest to one of 0/255, 1/255, …, 255/255, as of 8-bit images;
        "other" otherwise.
    fingerprint
        SHA-256, in hexadecimal, of the shapes, types and bytes (little-endian) of both arrays.

    Examples
    --------
    >>> data = Inputs.from_arrays(np.array([[[0, 255]], [[51, 102]]], np.uint8), [1, 0])
    >>> len(data), data.inputs.shape, data.inputs.dtype, data.scale
    (2, (2, 1, 2), dtype('float32'), 'k/255')
    """

    inputs: NDArray[np.float32]
    labels: NDArray[np.int64]
    scale: Scale
    fingerprint: str

    def __len__(self) -> int:
        return self.labels.size

    def __repr__(self) -> str:
        shape = tuple(self.inputs.shape[1:])
        return f"Inputs(n={len(self)}, shape={shape}, scale={self.scale!r}, fingerprint={self.fingerprint[:12]}…)"

    @classmethod
    def from_arrays(cls, inputs: Any, labels: Any) -> Inputs:
        """Check arrays and take a copy of them.

        Parameters
        ----------
        inputs
            One entry per sample along the first axis, finite numbers. uint8 is taken as pixels: k becomes k/255. Other
            numbers are rounded to float32.
        labels
            True classes, whole numbers from 0.

        Examples
        --------
        >>> Inputs.from_arrays([[0.5, np.nan]], [0])
        Traceback (most recent call last):
            ...
        certcal._checks.InputError: inputs[0, 1] is nan; drop the sample or repair it
        """
        return cls._checked(inputs, labels, copy=True)

    @classmethod
    def _checked(cls, inputs: Any, labels: Any, *, copy: bool = False) -> Inputs:
        array = _single_precision(to_numpy(inputs, "inputs"), copy)
        truth = class_labels(labels, MAX_CLASSES)
        same_length(inputs=array.shape[0], labels=truth.size)
        array.flags.writeable = truth.flags.writeable = False
        return cls(array, truth, _scale(array), _fingerprint(array, truth))


def read_inputs(path: str | os.PathLike[str], *, label: str | None = None) -> Inputs:
    r"""Read inputs of a model with their labels from npz, Parquet, CSV or Arrow.

    An npz archive holds the arrays ``inputs`` (one entry per sample along the first axis; uint8 is taken as pixels, k
    as k/255) and ``labels``. In a table one column holds the labels, and every other column is a feature, in the order
    of the file and as it is. The file is treated as hostile: nothing is unpickled, and sizes are checked before memory
    is asked for.

    Parameters
    ----------
    path
        The file.
    label
        The column (or array) of labels, when it is not called label or labels.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "features.csv"
    >>> _ = path.write_text("height,label,width\n1.5,0,2\n2.5,1,3\n")
    >>> data = read_inputs(path)
    >>> data.inputs.tolist(), data.labels.tolist()
    ([[1.5, 2.0], [2.5, 3.0]], [0, 1])
    >>> folder.cleanup()
    """
    file = Path(path)
    head, _ = file_ends(file)
    if file.name.lower().endswith(".npy"):
        raise InputError(f"{file}: a .npy file holds one array, without labels; {_SAVE}")
    if file.name.lower().endswith(".npz") and head[:2] == b"PK":
        from certcal.data._npz import read_arrays

        names = ("inputs", label or "labels")
        arrays = read_arrays(file, names, f"the arrays inputs and labels are needed; {_SAVE}", widen="inputs")
        with in_file(file):
            return Inputs._checked(arrays["inputs"], arrays[names[1]])  # pyright: ignore[reportPrivateUsage]
    table = open_table(file)
    with in_file(file):
        return _of_table(table, label)


def _of_table(table: Table, given: str | None) -> Inputs:
    resolver = Resolver(list(table.columns), {} if given is None else {"label": given})
    label = resolver.optional("label", _LABEL)
    if label is None:
        raise InputError(f"no column of true classes was found; call it label{resolver.listing(*_LABEL)}")
    columns = {column.name: column.kind for column in table.columns if column.name != label}
    if not columns:
        raise InputError(f"there is no column beside {label!r}; the other columns are the features")
    for name, kind in columns.items():
        if kind not in ("number", "boolean", "unknown"):
            raise InputError(
                f"column {name!r} does not hold numbers; drop it, since every column beside the label is a feature"
            )
    features = tuple(columns)
    if table.rows is not None:
        check_memory(table.path, 4 * table.rows * len(features), "read a part of the table")

    def piece(batch: Any, first_row: int) -> Arrays:
        return _piece(batch, features, label, first_row)

    size = max(1, min(CHUNK_ROWS, CHUNK_NUMBERS // len(features)))
    batches = table.chunks((*features, label), size, numbers=features)
    arrays = gather(pieces(batches, piece, Groups(None)), table.rows)
    return Inputs._checked(arrays["inputs"], arrays["labels"])  # pyright: ignore[reportPrivateUsage]


def _piece(batch: Any, features: tuple[str, ...], label: str, first_row: int) -> Arrays:
    """Checked arrays of one record batch; complaints name column and row."""
    from certcal.data import _values

    matrix = _values.matrix([batch.column(name) for name in features], features, first_row)
    with np.errstate(over="ignore"):
        inputs = matrix.astype(np.float32)
    bad = ~np.isfinite(inputs)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise InputError(f"column {features[column]!r}, row {first_row + row + 1} is {_complaint(matrix[row, column])}")
    labels = _values.class_numbers(batch.column(label), label, first_row, None, is_ordered=True)
    try:
        return {"inputs": inputs, "labels": class_labels(labels, MAX_CLASSES)}
    except InputError as error:
        place, _, rest = str(error).removeprefix("labels[").partition("]")
        raise InputError(f"column {label!r}, row {first_row + int(place) + 1}{rest}") from None


def _single_precision(array: NDArray[Any], copy: bool) -> NDArray[np.float32]:
    """The numbers as float32: pixels as k/255, others rounded; an error where that is not finite."""
    if array.ndim < 2:
        raise InputError(
            f"inputs has shape {array.shape}; pass one row (or one image) per sample, so at least two axes"
        )
    if array.size == 0:
        raise InputError(f"inputs has shape {array.shape}, so there is nothing in it; pass at least one sample")
    if array.dtype == np.uint8:
        return np.take(_PIXELS, array)
    with np.errstate(over="ignore"):
        single = array.astype(np.float32, order="C", copy=copy)
    for first, block in _blocks(single):
        bad = ~np.isfinite(block)
        if bad.any():
            row, *rest = map(int, np.argwhere(bad)[0])
            place = (first + row, *rest)
            raise InputError(f"inputs[{', '.join(map(str, place))}] is {_complaint(array[place])}")
    return single


def _complaint(value: Any) -> str:
    if np.isfinite(value):
        return f"{value:.9g}, too large for float32; rescale the inputs"
    return f"{value}; drop the sample or repair it"


def _scale(inputs: NDArray[np.float32]) -> Scale:
    """Whether every number is one of the 256 that 8-bit pixels become."""
    for _, block in _blocks(inputs):
        if block.min() < 0 or block.max() > 1:
            return "other"
        nearest = np.rint(block * np.float32(255)).astype(np.uint8)
        if (_PIXELS[nearest] != block).any():
            return "other"
    return "k/255"


def _blocks(array: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Runs of rows, each with the number of rows before it, so that what is made on the way stays small."""
    rows = max(1, CHUNK_NUMBERS * array.shape[0] // array.size)
    return ((first, array[first : first + rows]) for first in range(0, array.shape[0], rows))


def _fingerprint(*arrays: NDArray[Any]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        stored = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        digest.update(f"{stored.dtype.str} {stored.shape}\n".encode())
        digest.update(stored.data.cast("B"))
    return digest.hexdigest()
