"""Inputs of a model from whatever there is: by name, from files and folders, from data sets of Python."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, to_numpy
from certcal._base.durable import open_regular
from certcal._base.signature import Spec, check_setting, counted_from_one
from certcal.data.features import LABEL, table_inputs
from certcal.data.formats import file_ends, local_file
from certcal.data.inputs import PARTS, Inputs, Part, Parts, Readers, Rows, Split, check_split, npy_source, read_part
from certcal.data.pieces import in_file
from certcal.data.schema import Resolver

_SAVE = "give the folder of inputs.npy and labels.npy, or save both with numpy.savez(path, inputs=…, labels=…)"


# Arrays of an archive from this many bytes on are read row by row, where they are not compressed.
HELD = 1 << 28

_MAP_STYLE = "pass one that has a length and gives an input and its label by number (map-style)"
_JOIN = "join the batches: pass (numpy.concatenate([x for x, _ in data]), numpy.concatenate([y for _, y in data]))"
# Samplers that go through a whole data set, by name: torch is not imported for them.
_WHOLE = ("SequentialSampler", "RandomSampler")
_PLAIN = ("default_collate", "default_convert")


@dataclass(frozen=True)
class DataSettings:
    """Which samples of the data are used, and how images of a folder are prepared.

    Examples
    --------
    >>> DataSettings(every=20, resize=256, crop=224)
    DataSettings(every=20, resize=256, crop=224, split=None)
    """

    every: int = 1
    resize: int | None = None
    crop: int | None = None
    split: Part | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "every", check_setting("every", self.every, Spec("", "whole", least=1, most=10**9)))
        for name in ("resize", "crop"):
            object.__setattr__(self, name, counted_from_one(name, getattr(self, name), 1 << 14))
        if self.resize is not None and self.crop is not None and self.crop > self.resize:
            reason = f"it is {self.crop}, more than the {self.resize} pixels of the resized shorter side"
            raise InputError(reason, argument="crop", remedy="crop at most that")


def read_inputs(
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    split: Part | None = None,
    resize: int | None = None,
    crop: int | None = None,
) -> Inputs:
    r"""Read inputs of a model with their labels into memory: from npz, from a table, or from a folder of images.

    An npz archive holds the arrays ``inputs`` (one entry per sample along the first axis; uint8 is taken as pixels, k
    as k/255) and ``labels``, or ``train_inputs``, ``train_labels``, ``test_inputs`` and ``test_labels``. In a table one
    column holds the labels, and every other column is a feature, in the order of the file and as it is.

    A folder holds ``inputs.npy`` and ``labels.npy`` (or ``train_inputs.npy``, …), which mean the same as in an archive,
    or one of these, which give images of shape (channels, height, width) with pixels k/255:

    - idx files, as MNIST and its relatives come: ``train-images-idx3-ubyte``, ``train-labels-idx1-ubyte``, and
      ``t10k-…`` or ``test-…``, plain or gzipped;
    - the binary files of CIFAR-10 (``data_batch_1.bin``, …, ``test_batch.bin``) or CIFAR-100 (``train.bin``,
      ``test.bin``; the fine labels);
    - SVHN's ``train_32x32.mat`` and ``test_32x32.mat``; class 10 is the digit 0 (one such file may be given as well);
    - one sub-folder of PNG or JPEG files for each class, all of one size unless ``resize`` and ``crop`` are given. They
      are grey if all of them are, else RGB. The classes 0, 1, … are the sorted names of the sub-folders, which
      ``class_names`` of the result lists. They may lie below ``train`` and ``test`` (or ``val``, where there is no
      ``test``), and then those below ``train`` count. First comes the first file of every class, then the second.
      Hidden files are passed over, links are followed. Needs the extra ``certcal[images]``.

    Everything is treated as hostile: nothing is unpickled, and sizes are checked before memory is asked for.

    Parameters
    ----------
    path
        The file or folder.
    label
        The column (or array) of labels, when its name does not say it (label, labels, y_true, target, …).
    split
        ``"train"`` or ``"test"``: needed where both are there.
    resize, crop
        For folders of images: pixels of the shorter side, resized as torchvision's ``Resize`` does, and of the centre
        that is kept. Given either, palettes and CMYK become RGB as well.

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
    check_split(split)
    how = DataSettings(resize=resize, crop=crop)
    return read_part(input_parts(Path(path), label, how), split, Path(path)).in_memory()


def input_parts(path: Path, label: str | None = None, how: DataSettings = DataSettings()) -> Readers:  # noqa: B008
    """How to read each of the parts that a file or folder has."""
    path = local_file(path)
    if os.path.isdir(path):
        from certcal.data.image_files import cifar_parts, idx_parts, svhn_parts
        from certcal.data.image_folder import image_parts

        if label is not None:
            raise InputError(f"{path}: a folder has no column {label!r}; leave label out")
        arrays = _npy_parts(path) or idx_parts(path) or cifar_parts(path) or svhn_parts(path)
        if not arrays:
            return image_parts(path, how.resize, how.crop)
        _refuse_preparing(how)
        return arrays
    _refuse_preparing(how)
    head, _ = file_ends(path)
    if path.name.lower().endswith(".npy"):
        raise InputError(f"{path}: a .npy file holds one array, without labels; {_SAVE}")
    if path.name.lower().endswith(".mat"):
        from certcal.data.image_files import read_svhn

        return {None: partial(read_svhn, path)}
    if path.name.lower().endswith(".npz") and head[:2] == b"PK":
        return _archive_parts(path, label)
    return {None: partial(table_inputs, path, label)}


def _refuse_preparing(how: DataSettings) -> None:
    for name in ("resize", "crop"):
        if getattr(how, name) is not None:
            raise InputError("it is for folders of PNG or JPEG files", argument=name, remedy="leave it out")


def _npy_parts(folder: Path) -> Readers:
    names: list[tuple[Part | None, str]] = [(None, ""), *((part, f"{part}_") for part in PARTS)]
    return {
        part: partial(_read_npy_folder, folder, name) for part, name in names if (folder / f"{name}inputs.npy").exists()
    }


def _read_npy_folder(folder: Path, prefix: str) -> Inputs:
    labels = folder / f"{prefix}labels.npy"
    if not labels.exists():
        raise InputError(f"{folder}: there is {prefix}inputs.npy and no {labels.name}; save the labels beside it")
    truth = npy_source(labels)
    with in_file(labels):
        if len(truth.shape) != 1:
            raise InputError(f"labels has shape {truth.shape}; pass one value per sample")
        inputs = Rows(npy_source(folder / f"{prefix}inputs.npy"))
        return Inputs.from_arrays(inputs, truth.read(np.arange(truth.shape[0])))


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
            found = label or Resolver(arrays, {}).pick("label", LABEL) or "labels"
        readers[part] = partial(_read_archive, path, f"{prefix}inputs", f"{prefix}{found}")
    return readers


def _read_archive(path: Path, inputs: str, labels: str) -> Inputs:
    from certcal.data.npz import read_arrays, stored_array

    missing = f"the arrays {inputs} and {labels} are needed; save both with numpy.savez(path, {inputs}=…, {labels}=…)"
    large = path.stat().st_size > HELD and stored_array(path, inputs)
    if large:
        truth = read_arrays(path, (labels,), missing)[labels]
        with open_regular(path) as stream, in_file(path):
            return Inputs.from_arrays(Rows(npy_source(path, stream, *large)), truth)
    arrays = read_arrays(path, (inputs, labels), missing, widen=inputs)
    with in_file(path):
        return Inputs.from_arrays(arrays[inputs], arrays[labels], copy=False)


NAMED = ("digits", "fashion-mnist")


def _named_split(name: str) -> Split:
    from certcal.data.bundled import digits_images
    from certcal.data.image_files import fashion_mnist

    return digits_images() if name == "digits" else fashion_mnist()


def read_split(
    source: str | os.PathLike[str], *, resize: int | None = None, crop: int | None = None, in_memory: bool = True
) -> Parts:
    """Data to train on, and what there is to test on.

    Parameters
    ----------
    source
        ``"digits"`` (see :func:`digits_images`), ``"fashion-mnist"`` (see :func:`fashion_mnist`), or a file or folder
        as :func:`read_inputs` takes; a folder called digits is ``"./digits"``.
    resize, crop
        As for :func:`read_inputs`.
    in_memory
        False for inputs that are read when they are needed, where their source allows it.

    Returns
    -------
    Parts
        Whose ``test`` is None for a file or folder that is not divided, all of which is to train on.

    Examples
    --------
    >>> read_split("digits").description
    "scikit-learn's handwritten digits: 898 images of 8 by 8 to train on, 899 others to test on"
    """
    how, text = DataSettings(resize=resize, crop=crop), str(source)
    readers = _readers(text, how)
    if source in NAMED:
        return _named_split(text)
    name = text if _is_python_name(text) else Path(source).resolve().name or text
    if "train" not in readers and None not in readers:
        raise InputError(f"{Path(source)}: there is no training data, only a test part; add a training part")
    parts = ("train", "test") if readers.keys() >= set(PARTS) else ("train" if "train" in readers else None,)
    train, *others = (inputs.in_memory() if in_memory else inputs for inputs in (readers[part]() for part in parts))
    if not others:
        return Parts(name, name, train, None)
    if train.inputs.shape[1:] != others[0].inputs.shape[1:]:
        raise InputError(
            f"{Path(source)}: training samples have shape {train.inputs.shape[1:]} and test samples "
            f"{others[0].inputs.shape[1:]}; give them the same shape"
        )
    return Split(name, name, train, others[0])


def _readers(source: str, how: DataSettings) -> Readers:
    """How to read each part of data by name, of a file or of a folder."""
    if source not in NAMED and not _is_python_name(source):
        return input_parts(Path(source), how=how)
    _refuse_preparing(how)
    if _is_python_name(source):
        return {None: lambda: _inputs_of_rows(_NamedDatasetRows(source))}
    return {"train": lambda: _named_split(source).train, "test": lambda: _named_split(source).test}


@dataclass(frozen=True, eq=False)
class OpenedInputs:
    """Inputs, what they are called, and how they were chosen and prepared."""

    inputs: Inputs
    name: str
    settings: DataSettings = DataSettings()


def open_inputs(
    source: Any,
    *,
    split: Any = None,
    limit: int | None = None,
    every: int = 1,
    resize: int | None = None,
    crop: int | None = None,
) -> OpenedInputs:
    """Inputs that a model is tried on, from whatever there is; large ones are read when they are needed.

    Parameters
    ----------
    source
        :class:`Inputs`, a pair of arrays (inputs and labels), a name or a path as :func:`read_split` takes, a data set
        (whatever has a length and gives an input and its label by number, such as torch's ``Dataset``), a torch
        ``DataLoader`` of one, or "module:name" of a data set or of a function that makes one.

        Data sets are read in their own order. Of a loader only its data set is used: its order, batches and workers
        are not. One whose sampler chooses among the samples, or whose ``collate_fn`` is its own, is refused.
    split
        "train" or "test" of data in two parts; by default the one to test on.
    limit
        Only the first so many.
    every
        Only samples 0, every, 2·every, …, before the limit.
    resize, crop
        As for :func:`read_inputs`.

    Examples
    --------
    >>> opened = open_inputs("digits", limit=10, every=20)
    >>> len(opened.inputs), opened.name, opened.settings.split, opened.settings.every
    (10, 'digits', 'test', 20)
    >>> open_inputs([([0.5, 0.25], 1), ([0.0, 1.0], 0), ([1.0, 1.0], 1)]).inputs.labels
    array([1, 0, 1])
    """
    check_split(split)
    how = DataSettings(every=every, resize=resize, crop=crop)
    if isinstance(source, str | os.PathLike):
        name = str(Path(source)) if isinstance(source, os.PathLike) else source  # pyright: ignore
        readers = _readers(name, how)
        if split is None:
            split = next((each for each in ("test", "train") if each in readers), None)
        found = read_part(readers, split, Path(name))
    else:
        if split is not None:
            raise InputError("it is for data by name or from files", argument="split", remedy="leave it out")
        _refuse_preparing(how)
        name, found = "data", _inputs_of(source)
    there = -(-len(found) // every)
    if limit is not None and limit > there:
        chosen = "" if every == 1 else f" (every {every} of {len(found)})"
        raise InputError(
            f"it is {limit}, but {name} holds {there} samples{chosen}", argument="limit", remedy="give at most that"
        )
    return OpenedInputs(found.subset(every=how.every, limit=limit), name, replace(how, split=split))


def _inputs_of(source: Any) -> Inputs:
    if isinstance(source, Inputs):
        return source
    if isinstance(source, tuple | list) and len(cast("tuple[Any, ...]", source)) == 2:
        inputs, labels = cast("tuple[Any, Any]", source)
        if any(hasattr(each, "batch_sampler") for each in (inputs, labels)):
            raise InputError("data is a pair of loaders", remedy="pass one of them")
        if _is_batch(inputs) and _is_batch(labels):
            raise InputError("data is a list of batches", remedy=_JOIN)
        return Inputs.from_arrays(inputs, labels)
    if _is_dataset(source):
        return _inputs_of_rows(_DatasetRows(_dataset_of(source)))
    what = type(cast("object", source)).__name__
    raise InputError(
        f"data is a {what}; pass inputs and labels as a pair of arrays, a file, a name, or a data set that has a "
        "length and gives an input and its label by number"
    )


def _is_batch(item: Any) -> bool:
    pair: tuple[Any, ...] = tuple(cast("Any", item)) if isinstance(item, tuple | list) else ()
    return len(pair) == 2 and getattr(pair[1], "ndim", 0) == 1 and getattr(pair[0], "ndim", 0) > 1


def _is_python_name(source: str) -> bool:
    module, colon, name = source.partition(":")
    return bool(colon) and all(part.isidentifier() for part in (*module.split("."), *name.split(".")))


def _is_dataset(source: Any) -> bool:
    return _is_indexed(source) or hasattr(source, "batch_sampler")


def _is_indexed(source: Any) -> bool:
    apart = isinstance(source, str | dict | np.ndarray)
    return not apart and hasattr(source, "__len__") and hasattr(source, "__getitem__")


def _inputs_of_rows(rows: _DatasetRows) -> Inputs:
    return Inputs.from_arrays(Rows(rows), rows.labels())


def _dataset_of(source: Any) -> Any:
    """The data set itself; of a loader its data set, if the loader gives all of it as it is."""
    if not hasattr(source, "batch_sampler"):
        return source
    sampler, collate = getattr(source, "sampler", None), getattr(source, "collate_fn", None)
    batches = type(source.batch_sampler).__name__
    if not _is_indexed(source.dataset):
        raise InputError(f"the data set of this loader has no numbered samples; {_MAP_STYLE}")
    whole = type(sampler).__name__ in _WHOLE and not getattr(sampler, "replacement", False)
    number = getattr(sampler, "num_samples", None) or len(source.dataset)
    if not whole or number != len(source.dataset) or batches not in ("BatchSampler", "NoneType"):
        chooses = type(sampler).__name__ if not whole else batches
        raise InputError(
            f"the loader's {chooses} chooses among the samples of its data set, and samples are numbered as the data "
            "set has them; pass the data set, or torch.utils.data.Subset of it"
        )
    if getattr(collate, "__name__", "") not in _PLAIN:
        raise InputError(
            "the loader has a collate_fn of its own, and inputs are read one by one; do what it does in the data set"
        )
    return source.dataset


class _DatasetRows:
    name, portable = "", False
    _labels: NDArray[np.int64] | None = None

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @cached_property
    def _shape(self) -> tuple[int, ...]:
        count = len(self.dataset)
        return (count, *self._item(0)[0].shape) if count else (0, 0)

    def labels(self) -> NDArray[np.int64]:
        """The true classes: as the data set lists them, else from its items, which are then read once more."""
        listed = getattr(self.dataset, "targets", None)
        if listed is not None and getattr(self.dataset, "target_transform", None) is None:
            found = to_numpy(listed, "targets")
            if found.shape == self.shape[:1] and found.dtype.kind in "iu":
                self._labels = found.astype(np.int64)
        if self._labels is None:
            self._labels = np.array([self._item(number)[1] for number in range(self.shape[0])], np.int64)
        return self._labels.copy()

    def read(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Inputs by their numbers, one after the other: a data set need not bear threads."""
        items = [self._item(number) for number in rows.tolist()]
        for number, (value, label) in zip(rows.tolist(), items, strict=True):
            if value.shape != self.shape[1:]:
                raise InputError(
                    f"data[{number}] has shape {value.shape} and data[0] {self.shape[1:]}; give all inputs one shape, "
                    "for example by a transform that resizes and crops"
                )
            if self._labels is not None and label != self._labels[number]:
                raise InputError(
                    f"data[{number}] has label {label}, and it was {self._labels[number]} at first; a data set must "
                    "always give the same label"
                )
        if not items:
            return np.empty((0, *self.shape[1:]), np.float32)
        return np.stack([value for value, _ in items])

    def _item(self, number: int) -> tuple[NDArray[Any], int]:
        try:
            item = self.dataset[number]
        except InputError:
            raise
        except Exception as error:
            text = str(error).strip().partition("\n")[0]
            raise InputError(f"data[{number}] failed ({type(error).__name__}: {text}); mend the data set") from error
        if not isinstance(item, tuple | list) or len(cast("tuple[Any, ...]", item)) != 2:
            what = type(cast("object", item)).__name__
            reason = f"data[{number}] is a {what}, not a pair of an input and its label"
            raise InputError(reason, remedy="pass inputs and labels as (X, y), or a data set of such pairs")
        value, label = cast("tuple[Any, Any]", item)
        if hasattr(value, "getbands"):  # an image of Pillow's
            from certcal.data.image_folder import pixels_of

            value = pixels_of(value, f"data[{number}]")
        array = to_numpy(value, f"data[{number}]")
        kind = to_numpy(label, f"label of data[{number}]")
        if array.shape[:1] == (kind.size,) and kind.size > 1:
            raise InputError(f"data[{number}] is a batch of {kind.size}", remedy=_JOIN)
        if kind.size != 1 or kind.dtype.kind not in "biu" or int(kind.reshape(-1)[0]) < 0:
            raise InputError(f"data[{number}] has label {label!r}; labels are whole numbers from 0")
        return array, int(kind.reshape(-1)[0])


class _NamedDatasetRows(_DatasetRows):
    """A data set that any process with the same files can make again."""

    portable = True

    def __init__(self, name: str) -> None:
        self.name = name

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name, "_labels": self._labels}

    @cached_property
    def dataset(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        from certcal.models import find_named

        found: Any = find_named(self.name)
        makes = isinstance(found, type) or (callable(found) and not _is_dataset(found))
        try:
            made = found() if makes else found
        except Exception as error:
            text = f"{type(error).__name__}: {error}".partition("\n")[0]
            raise InputError(f"{self.name} failed ({text}); it is called without arguments") from error
        if not _is_dataset(made):
            raise InputError(f"{self.name} is no data set; {_MAP_STYLE}")
        return _dataset_of(made)
