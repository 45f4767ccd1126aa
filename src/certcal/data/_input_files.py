"""Inputs of a model from files and folders."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from certcal._checks import InputError
from certcal._checks import labels as class_labels
from certcal.data._inputs import MAX_CLASSES, Inputs, complaint
from certcal.data._layout import Resolver
from certcal.data._parts import PARTS, Part, Readers, check_part, chosen
from certcal.data._pieces import Arrays, Groups, gather, in_file, pieces
from certcal.data._table import CHUNK_NUMBERS, CHUNK_ROWS, Table, check_memory
from certcal.data.formats import file_ends, open_table

_LABEL = ("label", "labels")
_SAVE = "save both with numpy.savez(path, inputs=…, labels=…)"


def read_inputs(path: str | os.PathLike[str], *, label: str | None = None, part: Part | None = None) -> Inputs:
    r"""Read inputs of a model with their labels from npz, Parquet, CSV or Arrow, or from a folder of images.

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
        The column (or array) of labels, when it is not called label or labels.
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
    if os.path.isdir(path):
        from certcal.data._cifar import cifar_parts
        from certcal.data._idx_folder import idx_parts
        from certcal.data._image_folder import image_parts

        if label is not None:
            raise InputError(f"{path}: a folder has no column {label!r}; leave label out")
        return idx_parts(path) or cifar_parts(path) or image_parts(path)
    head, _ = file_ends(path)
    if path.name.lower().endswith(".npy"):
        raise InputError(f"{path}: a .npy file holds one array, without labels; {_SAVE}")
    if path.name.lower().endswith(".npz") and head[:2] == b"PK":
        return _archive_parts(path, label or "labels")
    return {None: partial(_of_table, path, label)}


def _archive_parts(path: Path, label: str) -> Readers:
    from certcal.data._npz import array_names

    there = array_names(path)
    readers: Readers = {
        part: partial(_of_archive, path, f"{part}_inputs", f"{part}_{label}")
        for part in PARTS
        if f"{part}_inputs" in there
    }
    if "inputs" in there or not readers:
        readers[None] = partial(_of_archive, path, "inputs", label)
    return readers


def _of_archive(path: Path, inputs: str, labels: str) -> Inputs:
    from certcal.data._npz import read_arrays

    missing = f"the arrays {inputs} and {labels} are needed; save both with numpy.savez(path, {inputs}=…, {labels}=…)"
    arrays = read_arrays(path, (inputs, labels), missing, widen=inputs)
    with in_file(path):
        return Inputs.from_arrays(arrays[inputs], arrays[labels], copy=False)


def _of_table(path: Path, label: str | None) -> Inputs:
    table = open_table(path)
    with in_file(path):
        return _features(table, label)


def _features(table: Table, given: str | None) -> Inputs:
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
    return Inputs.from_arrays(arrays["inputs"], arrays["labels"], copy=False)


def _piece(batch: Any, features: tuple[str, ...], label: str, first_row: int) -> Arrays:
    """Checked arrays of one record batch; complaints name column and row."""
    from certcal.data import _values

    matrix = _values.matrix([batch.column(name) for name in features], features, first_row)
    with np.errstate(over="ignore"):
        inputs = matrix.astype(np.float32)
    bad = ~np.isfinite(inputs)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise InputError(f"column {features[column]!r}, row {first_row + row + 1} is {complaint(matrix[row, column])}")
    labels = _values.class_numbers(batch.column(label), label, first_row, None, is_ordered=True)
    try:
        return {"inputs": inputs, "labels": class_labels(labels, MAX_CLASSES)}
    except InputError as error:
        place, _, rest = str(error).removeprefix("labels[").partition("]")
        raise InputError(f"column {label!r}, row {first_row + int(place) + 1}{rest}") from None
