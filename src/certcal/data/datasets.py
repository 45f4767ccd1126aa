"""Data sets of Python: whatever has a length and gives an input and its label by number, such as torch's."""

from __future__ import annotations

from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, to_numpy
from certcal.data.inputs import Inputs
from certcal.data.rows import Rows

_MAP_STYLE = "pass one that has a length and gives an input and its label by number (map-style)"
# Samplers that go through a whole data set, by name: torch is not imported for them.
_WHOLE = ("SequentialSampler", "RandomSampler")
_PLAIN = ("default_collate", "default_convert")


def is_named(source: str) -> bool:
    """Whether a text has the form module:name."""
    module, colon, name = source.partition(":")
    return bool(colon) and all(part.isidentifier() for part in (*module.split("."), *name.split(".")))


def is_dataset(source: Any) -> bool:
    """Whether it is a data set, or a loader or iterable that looks like one of torch."""
    return _is_indexed(source) or hasattr(source, "batch_sampler")


def _is_indexed(source: Any) -> bool:
    apart = isinstance(source, str | dict | np.ndarray)
    return not apart and hasattr(source, "__len__") and hasattr(source, "__getitem__")


def dataset_inputs(source: Any) -> Inputs:
    """The inputs of a data set or of a loader's."""
    return _inputs_of(_DatasetRows(_dataset_of(source)))


def named_dataset(name: str) -> Inputs:
    """The inputs of "module:name", a data set or a function that makes one."""
    return _inputs_of(_NamedDatasetRows(name))


def _inputs_of(items: _DatasetRows) -> Inputs:
    return Inputs.from_arrays(Rows(items), items.labels())


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
            raise InputError(f"data[{number}] is a {what}, not a pair of an input and its label")
        value, label = cast("tuple[Any, Any]", item)
        if hasattr(value, "getbands"):  # an image of Pillow's
            from certcal.data.image_folder import pixels_of

            value = pixels_of(value, f"data[{number}]")
        array = to_numpy(value, f"data[{number}]")
        kind = to_numpy(label, f"label of data[{number}]")
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
        makes = isinstance(found, type) or (callable(found) and not is_dataset(found))
        try:
            made = found() if makes else found
        except Exception as error:
            text = f"{type(error).__name__}: {error}".partition("\n")[0]
            raise InputError(f"{self.name} failed ({text}); it is called without arguments") from error
        if not is_dataset(made):
            raise InputError(f"{self.name} is no data set; {_MAP_STYLE}")
        return _dataset_of(made)
