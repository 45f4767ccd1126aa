"""Data to train on, by name or from disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from certcal._checks import InputError
from certcal.data._embedded import digits_images
from certcal.data._fashion import fashion_mnist
from certcal.data._input_files import input_parts
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
