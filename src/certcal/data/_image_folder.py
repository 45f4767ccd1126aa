"""Folders of pictures: one sub-folder for each class, perhaps below one folder to train on and one to test on."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from itertools import islice, zip_longest
from pathlib import Path

import numpy as np

from certcal._checks import InputError
from certcal.data._inputs import MAX_CLASSES, Inputs
from certcal.data._parts import PARTS, Part, Readers

_PART_NAMES: dict[Part, tuple[str, ...]] = {"train": ("train",), "test": ("test", "val")}
_ALL_PART_NAMES = {name for names in _PART_NAMES.values() for name in names}
_ENDINGS = (".png", ".jpg", ".jpeg")
# What systems leave behind in folders; with names that begin with a dot, it is passed over.
_LITTER = {"Thumbs.db", "desktop.ini", "__MACOSX"}
_MOST_FILES = 100_000_000


def image_parts(folder: Path) -> Readers:
    """How to read the parts of a folder of pictures."""
    inside = _folders_in(folder)
    if not inside:
        raise InputError(
            f"{folder}: this folder holds no data; it needs idx files (train-images-idx3-ubyte, …), the binary files "
            "of CIFAR (data_batch_1.bin, …), or one sub-folder of PNG or JPEG files for each class"
        )
    named = [name for name in inside if name in _ALL_PART_NAMES]
    others = [name for name in inside if name not in _ALL_PART_NAMES]
    deep = [name for name in named if _folders_in(folder / name)]
    if not named or (others and not deep):
        return {None: partial(_read, folder)}  # a class may be called train
    if others:
        raise InputError(
            f"{folder}: {deep[0]!r} holds folders, so it is a part of the data, and {others[0]!r} beside it is none; "
            "give a folder with nothing but train, test and val, or one with the classes"
        )
    places: dict[Part, Path | None] = {part: _first(folder, _PART_NAMES[part], named) for part in PARTS}
    readers: Readers = {}
    for part, place in places.items():
        if place is not None:
            readers[part] = partial(_read, place, places["train"])
    return readers


def _first(folder: Path, names: tuple[str, ...], there: list[str]) -> Path | None:
    return next((folder / name for name in names if name in there), None)


def _read(place: Path, numbering: Path | None = None) -> Inputs:
    """Pictures of one part. The folders of ``numbering``, in order, are the classes, so that all parts agree."""
    from certcal.data._pictures import read_pictures

    found = _folders_in(place)
    if not found:
        raise InputError(f"{place}: this folder holds no sub-folders; put the pictures into one for each class")
    known = found if numbering in (None, place) else _folders_in(numbering)
    number = {name: index for index, name in enumerate(known)}
    members: list[list[tuple[int, Path]]] = []
    for name in found:
        if name not in number:
            raise InputError(f"{place / name}: {numbering} has no class {name!r}; rename the folder, or add one there")
        members.append([(number[name], picture) for picture in _pictures_in(place / name)])
    # The first of every class, then the second of every class: so the first few samples are not all of one class.
    ordered = [each for row in zip_longest(*members) for each in row if each is not None]
    labels = np.array([label for label, _ in ordered], np.int64)
    return Inputs.from_arrays(read_pictures([picture for _, picture in ordered], place), labels, known)


def _pictures_in(folder: Path) -> list[Path]:
    names = _entries(folder, lambda entry: True, _MOST_FILES)
    for name in names:
        if not name.lower().endswith(_ENDINGS):
            raise InputError(f"{folder / name}: this is neither a PNG nor a JPEG file; convert it, or take it away")
    if not names:
        raise InputError(f"{folder}: there is no picture of this class; take the folder away, or put PNG or JPEG there")
    return [folder / name for name in names]


def _folders_in(folder: Path) -> list[str]:
    return _entries(folder, lambda entry: entry.is_dir(), MAX_CLASSES)


def _entries(folder: Path, wanted: Callable[[os.DirEntry[str]], bool], most: int) -> list[str]:
    """Sorted names of what is wanted in a folder, without litter. Links are followed."""
    try:
        with os.scandir(folder) as entries:
            visible = (each for each in entries if not each.name.startswith(".") and each.name not in _LITTER)
            names = sorted(each.name for each in islice((each for each in visible if wanted(each)), most + 1))
    except OSError as error:
        raise InputError(
            f"{folder}: this folder cannot be read ({error.strerror or error}); check its permissions"
        ) from error
    if len(names) > most:
        raise InputError(f"{folder}: there are more than {most} entries in this folder; check which one it is")
    return names
