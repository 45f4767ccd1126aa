"""Folders of PNG and JPEG files: one sub-folder for each class."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError
from certcal.data.formats import check_memory, damaged, file_ends
from certcal.data.inputs import MAX_CLASSES, PARTS, Inputs, Part, Readers

_PART_NAMES: dict[Part, tuple[str, ...]] = {"train": ("train",), "test": ("test", "val")}
_ALL_PART_NAMES = {name for names in _PART_NAMES.values() for name in names}
_ENDINGS = (".png", ".jpg", ".jpeg")
# What systems leave behind in folders; with names that begin with a dot, it is passed over.
_LITTER = {"Thumbs.db", "desktop.ini", "__MACOSX"}
_MOST_FILES = 100_000_000


def image_parts(folder: Path) -> Readers:
    """How to read the parts of a folder of images."""
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
    places: dict[Part, Path | None] = {
        part: next((folder / name for name in _PART_NAMES[part] if name in named), None) for part in PARTS
    }
    readers: Readers = {}
    for part, place in places.items():
        if place is not None:
            readers[part] = partial(_read, place, places["train"])
    return readers


def _read(place: Path, numbering: Path | None = None) -> Inputs:
    """Images of one part. The folders of ``numbering``, in order, are the classes, so that all parts agree."""
    found = _folders_in(place)
    if not found:
        raise InputError(f"{place}: this folder holds no sub-folders; put the images into one for each class")
    known = found if numbering in (None, place) else _folders_in(numbering)
    number = {name: index for index, name in enumerate(known)}
    members: list[list[tuple[int, Path]]] = []
    for name in found:
        if name not in number:
            raise InputError(f"{place / name}: {numbering} has no class {name!r}; rename the folder, or add one there")
        members.append([(number[name], image) for image in _images_in(place / name)])
    # The first of every class, then the second of every class: so the first few samples are not all of one class.
    ordered = [each for row in zip_longest(*members) for each in row if each is not None]
    labels = np.array([label for label, _ in ordered], np.int64)
    return Inputs.from_arrays(read_images([image for _, image in ordered], place), labels, known)


def _images_in(folder: Path) -> list[Path]:
    names = _entries(folder, lambda entry: True, _MOST_FILES)
    for name in names:
        if not name.lower().endswith(_ENDINGS):
            raise InputError(f"{folder / name}: this is neither a PNG nor a JPEG file; convert it, or take it away")
    if not names:
        raise InputError(f"{folder}: there is no image of this class; take the folder away, or put PNG or JPEG there")
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


_CHANNELS = {"L": 1, "RGB": 3}
_KINDS = {"L": "grey", "RGB": "colour"}
_PNG = b"\x89PNG"
_OTHER_MODES = {
    "1": "is black and white, one bit per pixel",
    "P": "has a palette",
    "PA": "has a palette",
    "LA": "has an alpha channel",
    "RGBA": "has an alpha channel",
    "CMYK": "is for printing (CMYK)",
    "I": "has more than 8 bits per channel",
    "I;16": "has more than 8 bits per channel",
}


def read_images(files: Sequence[Path], folder: Path) -> NDArray[np.uint8]:
    """Images of one size and kind, as stored (a camera's note how to turn them is not followed).

    What a file's header says is compared with the first image, and with the memory of the machine, before anything
    is decoded.
    """
    library = _pillow()
    with _opened(library, files[0]) as first:
        mode, (width, height) = first.mode, first.size
    shape = (len(files), _CHANNELS[mode], height, width)
    check_memory(folder, 5 * shape[0] * shape[1] * shape[2] * shape[3], "make the images smaller, or use fewer")
    images = np.empty(shape, np.uint8)
    for place, file in zip(images, files, strict=True):
        with _opened(library, file) as image:
            if (image.mode, image.size) != (mode, (width, height)):
                raise InputError(
                    f"{file}: this image is {_told(image.mode, image.size)}, and {files[0].name} is "
                    f"{_told(mode, (width, height))}; make all images alike"
                )
            pixels = np.asarray(image, np.uint8)
        place[...] = pixels if mode == "L" else pixels.transpose(2, 0, 1)
    return images


def _told(mode: str, size: tuple[int, int]) -> str:
    return f"{_KINDS[mode]}, {size[0]} by {size[1]}"


@contextmanager
def _opened(library: Any, file: Path) -> Generator[Any, None, None]:
    """A image of which only the header has been read; every failure until it is closed is one sentence."""
    head, _ = file_ends(file)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about notes in a file that do not change its pixels
            warnings.simplefilter("error", library.DecompressionBombWarning)
            with library.open(file, formats=("PNG", "JPEG")) as image:
                _check_kind(image, file, head)
                yield image
    except InputError:
        raise
    except Exception as error:  # decoders fail in many ways
        raise InputError(damaged(file, "image", error)) from error


def _check_kind(image: Any, file: Path, head: bytes) -> None:
    what = None if image.mode in _CHANNELS else _OTHER_MODES.get(image.mode, f"is of the kind {image.mode}")
    if what is None and "transparency" in image.info:
        what = "has a transparent colour"
    if what is None and head == _PNG and _png_depth(file) > 8:
        what = "has more than 8 bits per channel"
    if what is not None:
        raise InputError(f"{file}: this image {what}; save it as grey or RGB with 8 bits per channel")


def _png_depth(file: Path) -> int:
    """Bits per channel: Pillow drops those beyond eight without a word."""
    with file.open("rb") as stream:
        return stream.read(25)[-1]


def _pillow() -> Any:
    try:
        return import_module("PIL.Image")
    except ImportError as error:
        raise InputError("images need Pillow; run: pip install 'certcal[images]'") from error
