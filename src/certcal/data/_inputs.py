"""Inputs of a model with their true classes: images or rows of features, checked, and known by a fingerprint."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, same_length, to_numpy
from certcal._checks import labels as class_labels
from certcal.data._table import CHUNK_NUMBERS

Scale = Literal["k/255", "other"]

# More classes than any classifier has: labels beyond this are identifiers.
MAX_CLASSES = 1_000_000

# The float32 nearest to k/255, for k from 0 to 255.
_PIXELS = np.arange(256, dtype=np.float32) / np.float32(255)


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
    class_names
        What the classes 0, 1, … are called, where the data says so; empty otherwise.

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
    class_names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.labels.size

    def __repr__(self) -> str:
        shape = tuple(self.inputs.shape[1:])
        return f"Inputs(n={len(self)}, shape={shape}, scale={self.scale!r}, fingerprint={self.fingerprint[:12]}…)"

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
            numbers are rounded to float32.
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
        certcal._checks.InputError: inputs[0, 1] is nan; drop the sample or repair it
        """
        array = _single_precision(to_numpy(inputs, "inputs"), copy)
        names = tuple(class_names)
        truth = class_labels(labels, len(names) or MAX_CLASSES)
        same_length(inputs=array.shape[0], labels=truth.size)
        array.flags.writeable = truth.flags.writeable = False
        return cls(array, truth, _scale(array), _fingerprint(array, truth), names)


def _single_precision(array: NDArray[Any], copy: bool) -> NDArray[np.float32]:
    """The numbers as float32: pixels as k/255, others rounded; an error where that is not finite."""
    if array.ndim < 2:
        raise InputError(
            f"inputs has shape {array.shape}; pass one row (or one image) per sample, so at least two axes"
        )
    if array.size == 0:
        raise InputError(f"inputs has shape {array.shape}, so there is nothing in it; pass at least one sample")
    if array.dtype == np.uint8:
        return np.divide(array, np.float32(255), dtype=np.float32, order="C")
    with np.errstate(over="ignore"):
        single = array.astype(np.float32, order="C", copy=copy)
    for first, block in _blocks(single):
        bad = ~np.isfinite(block)
        if bad.any():
            row, *rest = map(int, np.argwhere(bad)[0])
            place = (first + row, *rest)
            raise InputError(f"inputs[{', '.join(map(str, place))}] is {complaint(array[place])}")
    return single


def complaint(value: Any) -> str:
    """What is wrong with a number that float32 cannot hold, and what to do."""
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
