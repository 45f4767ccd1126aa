"""Inputs of a model with their true classes: in memory, by name, from files and folders."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, same_length, to_numpy
from certcal._checks import labels as class_labels
from certcal.data.formats import CHUNK_NUMBERS, check_memory, file_ends, local_file, open_table
from certcal.data.pieces import Arrays, CellError, fingerprint_of, gather, in_file, pieces
from certcal.data.roles import ROLES, Resolver

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
        return cls(array, truth, _scale(array), fingerprint_of(array, truth), names)


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
            raise InputError(f"inputs[{', '.join(map(str, place))}] {'; '.join(_complaint(array[place]))}")
    return single


def _complaint(value: Any) -> tuple[str, str]:
    """What is wrong with a number that float32 cannot hold, and what to do."""
    if np.isfinite(value):
        return f"is {value:.9g}, too large for float32", "rescale the inputs"
    return f"is {value}", "drop the sample or repair it"


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


@dataclass(frozen=True, eq=False)
class Parts:
    """Inputs to train on, and perhaps others to test on.

    Attributes
    ----------
    name
        A short name.
    title
        What the data is called in a sentence.
    train, test
        The two parts; ``test`` is None where there is nothing to test on.

    Examples
    --------
    >>> Parts("rows", "Some rows", Inputs.from_arrays([[0.5, 1.5, 2.5]], [0]), None).description
    'Some rows: 1 samples of 3 features to train on'
    """

    name: str
    title: str
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
        raise InputError(f"part is {part!r}; pass 'train' or 'test'")


def chosen(readers: Readers, part: Part | None, source: Path) -> Inputs:
    """The part that is asked for; without asking, all there is, if it is not divided."""
    if part in readers:
        return readers[part]()
    there: list[Part] = [each for each in PARTS if each in readers]
    if part is None and len(there) == 1:
        return readers[there[0]]()
    if part is None:
        raise InputError(f"{source}: it has a training and a test part; ask for part='train' or part='test'")
    if not there:
        raise InputError(f"{source}: it has no training and test parts; leave part out")
    only = there[0]
    raise InputError(f"{source}: it has no part {part!r}, only {only!r}; ask for part={only!r}, or for none")


# Every other column is a feature: one called y beside a label is one, too.
_LABEL = (("label", "labels"), *ROLES["label"].names)
_SAVE = "save both with numpy.savez(path, inputs=…, labels=…)"


def read_inputs(path: str | os.PathLike[str], *, label: str | None = None, part: Part | None = None) -> Inputs:
    r"""Read inputs of a model with their labels from npz, from a table, or from a folder of images.

    An npz archive holds the arrays ``inputs`` (one entry per sample along the first axis; uint8 is taken as pixels, k
    as k/255) and ``labels``, or ``train_inputs``, ``train_labels``, ``test_inputs`` and ``test_labels``. In a table one
    column holds the labels, and every other column is a feature, in the order of the file and as it is.

    A folder holds one of these, and gives images of shape (channels, height, width) with pixels k/255:

    - idx files, as MNIST and its relatives come: ``train-images-idx3-ubyte``, ``train-labels-idx1-ubyte``, and
      ``t10k-…`` or ``test-…``, plain or gzipped;
    - the binary files of CIFAR-10 (``data_batch_1.bin``, …, ``test_batch.bin``) or CIFAR-100 (``train.bin``,
      ``test.bin``; the fine labels);
    - one sub-folder of PNG or JPEG files for each class, all of one size, all grey or all RGB. The classes 0, 1, … are
      the sorted names of the sub-folders, which ``class_names`` of the result lists. They may lie below ``train`` and
      ``test`` (or ``val``, where there is no ``test``), and then those below ``train`` count. First comes the first
      file of every class, then the second. Hidden files are passed over, links are followed. Needs the extra
      ``certcal[images]``.

    Everything is treated as hostile: nothing is unpickled, and sizes are checked before memory is asked for.

    Parameters
    ----------
    path
        The file or folder.
    label
        The column (or array) of labels, when its name does not say it (label, labels, y_true, target, …).
    part
        ``"train"`` or ``"test"``: needed where both are there.

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
    check_part(part)
    return chosen(input_parts(Path(path), label), part, Path(path))


def input_parts(path: Path, label: str | None = None) -> Readers:
    """How to read each of the parts that a file or folder has."""
    path = local_file(path)
    if os.path.isdir(path):
        from certcal.data.image_files import cifar_parts, idx_parts
        from certcal.data.image_folder import image_parts

        if label is not None:
            raise InputError(f"{path}: a folder has no column {label!r}; leave label out")
        return idx_parts(path) or cifar_parts(path) or image_parts(path)
    head, _ = file_ends(path)
    if path.name.lower().endswith(".npy"):
        raise InputError(f"{path}: a .npy file holds one array, without labels; {_SAVE}")
    if path.name.lower().endswith(".npz") and head[:2] == b"PK":
        return _archive_parts(path, label)
    return {None: partial(_of_table, path, label)}


def _archive_parts(path: Path, label: str | None) -> Readers:
    from certcal.data.npz import array_names

    there = array_names(path)
    parts: list[tuple[Part | None, str]] = [(part, f"{part}_") for part in PARTS if f"{part}_inputs" in there]
    if "inputs" in there or not parts:
        parts.append((None, ""))
    readers: Readers = {}
    for part, prefix in parts:
        arrays = [name.removeprefix(prefix) for name in there if name.startswith(prefix)]
        with in_file(path):
            found = label or Resolver(arrays, {}).pick("label", _LABEL) or "labels"
        readers[part] = partial(_of_archive, path, f"{prefix}inputs", f"{prefix}{found}")
    return readers


def _of_archive(path: Path, inputs: str, labels: str) -> Inputs:
    from certcal.data.npz import read_arrays

    missing = f"the arrays {inputs} and {labels} are needed; save both with numpy.savez(path, {inputs}=…, {labels}=…)"
    arrays = read_arrays(path, (inputs, labels), missing, widen=inputs)
    with in_file(path):
        return Inputs.from_arrays(arrays[inputs], arrays[labels], copy=False)


def _of_table(path: Path, given: str | None) -> Inputs:
    table = open_table(path)
    with in_file(table.path):
        resolver = Resolver(table.columns, {} if given is None else {"label": given})
        label = resolver.optional("label", _LABEL)
        if label is None:
            raise InputError(f"no column of true classes was found; name it label{resolver.listing('label')}")
        columns = {column.name: column.kind for column in table.columns if column.name != label}
        if not columns:
            raise InputError(f"there is no column but {label!r}; the other columns are the features")
        for name, kind in columns.items():
            if kind not in ("number", "boolean", "unknown"):
                raise CellError(name, None, "does not hold numbers", "drop it: every column but the label is a feature")
        features = tuple(columns)
        if table.rows is not None:
            check_memory(table.path, 4 * table.rows * len(features), "read a part of the table")

        def convert(batch: Any, first_row: int) -> Arrays:
            return _piece(batch, features, label, first_row)

        parts = pieces(table, (*features, label), convert, numbers=features, width=len(features))
        arrays = gather(parts, table.rows)
        return Inputs.from_arrays(arrays["inputs"], arrays["labels"], copy=False)


def _piece(batch: Any, features: tuple[str, ...], label: str, first_row: int) -> Arrays:
    """Checked arrays of one record batch; complaints name column and row."""
    from certcal.data import values

    matrix = values.matrix([batch.column(name) for name in features], features, first_row)
    with np.errstate(over="ignore"):
        inputs = matrix.astype(np.float32)
    bad = ~np.isfinite(inputs)
    if bad.any():
        row, column = map(int, np.argwhere(bad)[0])
        raise CellError(features[column], first_row + row + 1, *_complaint(matrix[row, column]))
    labels = values.class_numbers(batch.column(label), label, first_row, None, is_ordered=True)
    bad = ~((labels >= 0) & (labels < MAX_CLASSES) & (np.floor(labels) == labels))
    if bad.any():
        place = int(np.argmax(bad))
        remedy = f"labels are whole numbers from 0 to {MAX_CLASSES - 1}"
        raise CellError(label, first_row + place + 1, f"is {labels[place]}", remedy)
    return {"inputs": inputs, "labels": labels.astype(np.int64)}


NAMED = ("digits", "fashion-mnist")


def _named(name: str) -> Split:
    from certcal.data.bundled import digits_images
    from certcal.data.image_files import fashion_mnist

    return digits_images() if name == "digits" else fashion_mnist()


def read_split(source: str | os.PathLike[str]) -> Parts:
    """Data to train on, and what there is to test on.

    Parameters
    ----------
    source
        ``"digits"`` (see :func:`digits_images`), ``"fashion-mnist"`` (see :func:`fashion_mnist`), or a file or folder
        as :func:`read_inputs` takes; a folder called digits is ``"./digits"``.

    Returns
    -------
    Parts
        Whose ``test`` is None for a file or folder that is not divided, all of which is to train on.

    Examples
    --------
    >>> read_split("digits").description
    "scikit-learn's handwritten digits: 898 images of 8 by 8 to train on, 899 others to test on"
    """
    if source in NAMED:
        return _named(str(source))
    path = Path(source)
    readers = input_parts(path)
    if "train" not in readers and None not in readers:
        raise InputError(f"{path}: there is no training data, only a test part; add a training part")
    name = path.resolve().name or str(path)
    if "train" not in readers or "test" not in readers:
        return Parts(name, name, readers["train" if "train" in readers else None](), None)
    train, test = readers["train"](), readers["test"]()
    if train.inputs.shape[1:] != test.inputs.shape[1:]:
        raise InputError(
            f"{path}: training samples have shape {train.inputs.shape[1:]} and test samples "
            f"{test.inputs.shape[1:]}; give them the same shape"
        )
    return Split(name, name, train, test)


@dataclass(frozen=True, eq=False)
class OpenedInputs:
    """Inputs, what they are called, and of data in two parts which one they are."""

    inputs: Inputs
    name: str
    part: str | None


def open_inputs(source: Any, *, part: Any = None, limit: int | None = None) -> OpenedInputs:
    """Inputs that a model is tried on, from whatever there is.

    Parameters
    ----------
    source
        :class:`Inputs`, a pair of arrays (inputs and labels), a name or a path as :func:`read_split` takes.
    part
        "train" or "test" of data in two parts; by default the one to test on.
    limit
        Only the first so many.

    Examples
    --------
    >>> opened = open_inputs("digits", limit=10)
    >>> len(opened.inputs), opened.name, opened.part
    (10, 'digits', 'test')
    """
    check_part(part)
    if isinstance(source, str | os.PathLike):
        name = str(Path(source)) if isinstance(source, os.PathLike) else source  # pyright: ignore
        found, part = _read(name, part)
    else:
        if part is not None:
            raise InputError("it is for data by name or from files", argument="part", remedy="leave it out")
        name, found = "data", source if isinstance(source, Inputs) else _pair(source)
    if limit is not None and limit > len(found):
        raise InputError(
            f"it is {limit}, but {name} holds {len(found)} samples", argument="limit", remedy="give at most that"
        )
    if limit is not None:
        found = first_of(found, limit)
    return OpenedInputs(found, name, part)


def first_of(inputs: Inputs, limit: int) -> Inputs:
    """The first samples, with the names of all classes."""
    if limit >= len(inputs):
        return inputs
    return Inputs.from_arrays(inputs.inputs[:limit], inputs.labels[:limit], inputs.class_names)


def _read(source: str, part: Any) -> tuple[Inputs, Any]:
    readers: Any = dict.fromkeys(PARTS) if source in NAMED else input_parts(Path(source))
    part = next((each for each in ("test", "train") if each in readers), None) if part is None else part
    if source in NAMED:
        return getattr(_named(source), part), part
    return chosen(readers, part, Path(source)), part


def _pair(source: Any) -> Inputs:
    try:
        inputs, labels = source
    except (TypeError, ValueError):
        what = type(source).__name__
        raise InputError(f"data is a {what}; pass inputs and labels as a pair of arrays, a file or a name") from None
    return Inputs.from_arrays(inputs, labels)
