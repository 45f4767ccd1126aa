"""Fashion-MNIST, where it is at hand: 70,000 pictures of clothes, of 28 by 28 pixels and ten kinds."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from certcal._checks import InputError, whole_number
from certcal.data._idx_folder import read_idx_part
from certcal.data._split import Split

# Where Debian's package dataset-fashion-mnist has its files.
INSTALLED = Path("/usr/share/datasets/fashion-mnist")
_SHAPE = (28, 28)
_CLASSES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)


def fashion_mnist(folder: str | os.PathLike[str] | None = None, *, test: int = 10_000) -> Split:
    """Fashion-MNIST as images of shape (1, 28, 28), pixels k/255, split as its authors did.

    Nothing is downloaded. The four idx files, plain or gzipped, are those of Debian's package dataset-fashion-mnist,
    or in the folder that is given.

    Parameters
    ----------
    folder
        Where the files are, if not where Debian's package puts them.
    test
        How many of the 10,000 images to test on are wanted, from the first.

    Raises
    ------
    InputError
        If the files are not there, or are other files.

    Examples
    --------
    >>> fashion_mnist("no-such-folder")
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: no-such-folder: this folder does not exist; give one with the idx files of Fashion-MNIST
    """
    place = INSTALLED if folder is None else Path(folder)
    if not place.is_dir():
        if folder is None:
            raise InputError(
                "Fashion-MNIST is not installed; run: apt-get install dataset-fashion-mnist, or give a folder with its "
                "four idx files"
            )
        raise InputError(f"{place}: this folder does not exist; give one with the idx files of Fashion-MNIST")
    most = whole_number(test, 1, 2**31, "test", "pass how many images to test on, at least 1")
    read = partial(read_idx_part, place, sides=_SHAPE, classes=10, class_names=_CLASSES)
    return Split("fashion-mnist", "Fashion-MNIST", read("train"), read("test", most=most))
