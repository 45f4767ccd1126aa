"""Folders with the idx files of MNIST and its relatives: images and labels, to train and to test on."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal

from certcal._checks import InputError
from certcal.data._idx import read_idx
from certcal.data._inputs import Inputs
from certcal.data._parts import PARTS, Part, Readers
from certcal.data._table import check_memory

_BEGINNINGS: dict[Part, tuple[str, ...]] = {"train": ("train",), "test": ("t10k", "test")}
_AXES = {"images": 3, "labels": 1}
_Kind = Literal["images", "labels"]


def idx_parts(folder: Path) -> Readers:
    """How to read the parts of a folder of idx files; nothing where there are none."""
    return {
        part: partial(read_idx_part, folder, part)
        for part in PARTS
        if any(_find(folder, part, kind) for kind in ("images", "labels"))
    }


def read_idx_part(
    folder: Path,
    part: Part,
    *,
    sides: tuple[int, int] | None = None,
    classes: int = 256,
    class_names: tuple[str, ...] = (),
    most: int | None = None,
) -> Inputs:
    """One part of a folder of idx files, as images with one channel."""
    images, labels = _file(folder, part, "images"), _file(folder, part, "labels")
    pixels, truth = read_idx(images), read_idx(labels)
    if pixels.dtype != "u1" or pixels.ndim != 3 or (sides is not None and pixels.shape[1:] != sides):
        size = "" if sides is None else f"{sides[0]} by {sides[1]} "
        raise InputError(f"{images}: this holds no images of {size}bytes; check which file it is")
    if truth.shape != pixels.shape[:1] or truth.dtype != "u1" or truth.max() >= classes:
        raise InputError(
            f"{labels}: this holds no class from 0 to {classes - 1} for each image; check which file it is"
        )
    kept = pixels[:most, None]
    check_memory(images, pixels.nbytes + 4 * kept.size, "use a machine with more")
    return Inputs.from_arrays(kept, truth[:most], class_names)


def _find(folder: Path, part: Part, kind: _Kind) -> Path | None:
    names = [f"{start}-{kind}{mark}idx{_AXES[kind]}-ubyte" for start in _BEGINNINGS[part] for mark in "-."]
    files = (folder / f"{name}{ending}" for name in names for ending in ("", ".gz"))
    return next((file for file in files if file.is_file()), None)


def _file(folder: Path, part: Part, kind: _Kind) -> Path:
    found = _find(folder, part, kind)
    if found is None:
        name = f"{_BEGINNINGS[part][0]}-{kind}-idx{_AXES[kind]}-ubyte"
        raise InputError(f"{folder}: there is no {name} or {name}.gz in this folder; copy it there")
    return found
