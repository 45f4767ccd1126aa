"""Fashion-MNIST, where it is at hand: 70,000 pictures of clothes, of 28 by 28 pixels and ten kinds."""

from __future__ import annotations

import os
from pathlib import Path

from certcal._checks import InputError, whole_number
from certcal.data._idx import read_idx
from certcal.data._inputs import Inputs
from certcal.data._split import Split

# Where Debian's package dataset-fashion-mnist has its files.
INSTALLED = Path("/usr/share/datasets/fashion-mnist")
_SHAPE = (28, 28)


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
    return Split("fashion-mnist", "Fashion-MNIST", _part(place, "train"), _part(place, "t10k", most))


def _part(folder: Path, name: str, most: int | None = None) -> Inputs:
    images, labels = _file(folder, f"{name}-images-idx3-ubyte"), _file(folder, f"{name}-labels-idx1-ubyte")
    pixels, classes = read_idx(images), read_idx(labels)
    if pixels.dtype != "u1" or pixels.shape[1:] != _SHAPE:
        raise InputError(f"{images}: this holds no images of 28 by 28 bytes; check which file it is")
    if classes.shape != pixels.shape[:1] or classes.dtype != "u1" or classes.max() > 9:
        raise InputError(f"{labels}: this holds no class from 0 to 9 for each image; check which file it is")
    return Inputs.from_arrays(pixels[:most, None], classes[:most])


def _file(folder: Path, name: str) -> Path:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise InputError(f"{folder}: there is no {name} or {name}.gz in this folder; copy the files of Fashion-MNIST there")
