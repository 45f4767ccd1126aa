"""Inputs of a model with their true classes, in memory or read when they are needed, and parts of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, same_length, to_numpy
from certcal._base.checks import labels as class_labels
from certcal.data.rows import Rows, blocks, check_shape, hash_rows, mapped_source, single_precision

Scale = Literal["k/255", "other"]

# More classes than any classifier has: labels beyond this are identifiers.
MAX_CLASSES = 1_000_000

# The float32 nearest to k/255, for k from 0 to 255.
_PIXELS = np.arange(256, dtype=np.float32) / np.float32(255)


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
        """The same with all inputs in memory.

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


def check_part(part: Any) -> None:
    """Raise unless it is the name of a part, or None."""
    if part is not None and part not in PARTS:
        raise InputError(f"it is {part!r}", argument="part", remedy="pass 'train' or 'test'")


def read_part(readers: Readers, part: Part | None, source: Path) -> Inputs:
    """The part that is asked for; without asking, all there is, if it is not divided."""
    if part in readers:
        return readers[part]()
    there: list[Part] = [each for each in PARTS if each in readers]
    if part is None and len(there) == 1:
        return readers[there[0]]()
    if part is None:
        raise InputError(f"{source}: it has a training and a test part; ask for part='train' or part='test'")
    if not there:
        raise InputError(f"{source} has no training and test parts", argument="part", remedy="leave it out")
    only = there[0]
    raise InputError(
        f"{source} has no part {part!r}, only {only!r}", argument="part", remedy=f"ask for {only!r}, or leave it out"
    )
