"""Data to train or to test on, by name, from disk or from memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from certcal._checks import InputError
from certcal.data._embedded import digits_images
from certcal.data._fashion import fashion_mnist
from certcal.data._input_files import input_parts, read_inputs
from certcal.data._inputs import Inputs
from certcal.data._parts import check_part
from certcal.data._split import Parts, Split

_NAMED: dict[str, Callable[[], Split]] = {"digits": digits_images, "fashion-mnist": fashion_mnist}


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
    if source in _NAMED:
        return _NAMED[str(source)]()
    path = Path(source)
    readers = input_parts(path)
    if "train" not in readers and None not in readers:
        raise InputError(f"{path}: there is only a part to test on; add one to train on")
    name = path.resolve().name or str(path)
    if "train" not in readers or "test" not in readers:
        return Parts(name, name, readers["train" if "train" in readers else None](), None)
    train, test = readers["train"](), readers["test"]()
    if train.inputs.shape[1:] != test.inputs.shape[1:]:
        raise InputError(
            f"{path}: samples to train on have shape {train.inputs.shape[1:]} and those to test on "
            f"{test.inputs.shape[1:]}; make them alike"
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
    there: Any = ("train", "test") if source in _NAMED else input_parts(Path(source))
    chosen: Any = part if part is not None else next((each for each in ("test", "train") if each in there), None)
    if source in _NAMED:
        split = _NAMED[source]()
        return (split.train if chosen == "train" else split.test), chosen
    return read_inputs(source, part=chosen), chosen


def _pair(source: Any) -> Inputs:
    try:
        inputs, labels = source
    except (TypeError, ValueError):
        what = type(source).__name__
        raise InputError(f"data is a {what}; pass inputs and labels as a pair of arrays, a file or a name") from None
    return Inputs.from_arrays(inputs, labels)
