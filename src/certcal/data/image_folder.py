"""Folders of PNG and JPEG files: one sub-folder for each class; decoded when they are asked for."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal._base.threads import thread_count
from certcal.data.formats import damaged, file_ends
from certcal.data.inputs import MAX_CLASSES, PARTS, Inputs, Part, Readers, Rows

_PART_NAMES: dict[Part, tuple[str, ...]] = {"train": ("train",), "test": ("test", "val")}
_ALL_PART_NAMES = {name for names in _PART_NAMES.values() for name in names}
_ENDINGS = (".png", ".jpg", ".jpeg")
# What systems leave behind in folders; with names that begin with a dot, it is passed over.
_SYSTEM_FILES = {"Thumbs.db", "desktop.ini", "__MACOSX"}
_MOST_FILES = 100_000_000


def image_parts(folder: Path, resize: int | None = None, crop: int | None = None) -> Readers:
    """How to read the parts of a folder of images."""
    read = partial(_read_part, resize=resize, crop=crop)
    inside = _folders_in(folder)
    if not inside:
        raise InputError(
            f"{folder}: this folder holds no data; it needs idx files (train-images-idx3-ubyte, …), the binary files "
            "of CIFAR (data_batch_1.bin, …), SVHN's train_32x32.mat, inputs.npy and labels.npy, or one sub-folder of "
            "PNG or JPEG files for each class"
        )
    named = [name for name in inside if name in _ALL_PART_NAMES]
    others = [name for name in inside if name not in _ALL_PART_NAMES]
    deep = [name for name in named if _folders_in(folder / name)]
    if not named or (others and not deep):
        return {None: partial(read, folder)}  # a class may be called train
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
            readers[part] = partial(read, place, places["train"])
    return readers


def _read_part(place: Path, numbering: Path | None = None, *, resize: int | None, crop: int | None) -> Inputs:
    """Images of one part. The folders of ``numbering``, in order, are the classes, so that all parts agree."""
    found = _folders_in(place)
    if not found:
        raise InputError(f"{place}: this folder holds no sub-folders; put the images into one for each class")
    known = found if numbering in (None, place) else _folders_in(numbering)
    number = {name: index for index, name in enumerate(known)}
    members: list[list[tuple[int, str]]] = []
    for name in found:
        if name not in number:
            raise InputError(f"{place / name}: {numbering} has no class {name!r}; rename the folder, or add one there")
        members.append([(number[name], f"{name}/{image}") for image in _images_in(place / name)])
    # The first of every class, then the second of every class: so the first few samples are not all of one class.
    ordered = [each for row in zip_longest(*members) for each in row if each is not None]
    labels = np.array([label for label, _ in ordered], np.int64)
    return Inputs.from_arrays(Rows(ImageFiles.of(place, [image for _, image in ordered], resize, crop)), labels, known)


def _images_in(folder: Path) -> list[str]:
    names = _wanted_entries(folder, lambda entry: True, _MOST_FILES)
    for name in names:
        if not name.lower().endswith(_ENDINGS):
            raise InputError(f"{folder / name}: this is neither a PNG nor a JPEG file; convert it, or take it away")
    if not names:
        raise InputError(f"{folder}: there is no image of this class; take the folder away, or put PNG or JPEG there")
    return names


def _folders_in(folder: Path) -> list[str]:
    return _wanted_entries(folder, lambda entry: entry.is_dir(), MAX_CLASSES)


def _wanted_entries(folder: Path, wanted: Callable[[os.DirEntry[str]], bool], most: int) -> list[str]:
    """Sorted names of what is wanted in a folder, without litter. Links are followed."""
    try:
        with os.scandir(folder) as entries:
            visible = (each for each in entries if not each.name.startswith(".") and each.name not in _SYSTEM_FILES)
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


# What Pillow turns into RGB as torchvision's loader does, where images are prepared anyway.
_CONVERTED = ("1", "P", "CMYK")


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """Images of one size and kind, as stored (a camera's note how to turn them is not followed), or prepared.

    What a file's header says is compared with the first image, or with what it would become, before it is decoded.
    """

    folder: Path
    names: list[str]
    mode: str
    size: tuple[int, int]
    resize: int | None
    crop: int | None
    portable = True

    @classmethod
    def of(cls, folder: Path, names: list[str], resize: int | None, crop: int | None) -> ImageFiles:
        """Images by their names; they are grey if all of them are."""
        folder = folder.absolute()  # workers may be elsewhere
        found = cls(folder, names, "L", (0, 0), resize, crop)
        with _pillow_warnings():
            first, size = found._kind_and_size(names[0])
            grey = first == "L" and all(found._kind_and_size(name)[0] == "L" for name in names[1:])
        return cls(folder, names, "L" if grey else "RGB", size, resize, crop)

    @property
    def name(self) -> str:
        """The folder."""
        return str(self.folder)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of images, channels, height, width."""
        return len(self.names), _CHANNELS[self.mode], self.size[1], self.size[0]

    def read(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Images by their numbers, decoded by as many threads as there are cores."""
        pixels = np.empty((len(rows), *self.shape[1:]), np.uint8)
        with _pillow_warnings(), ThreadPoolExecutor(thread_count()) as pool:
            for place, image in enumerate(pool.map(self._pixels, [self.names[row] for row in rows.tolist()])):
                pixels[place] = image
        return pixels

    def _kind_and_size(self, name: str) -> tuple[str, tuple[int, int]]:
        """Kind and size that an image will have, from its header."""
        with _open_image(self.folder / name, self._is_resized) as image:
            grey = image.mode in ("L", "1")
            return "L" if grey else "RGB", self._sides(name, image.size)[-1]

    @property
    def _is_resized(self) -> bool:
        return self.resize is not None or self.crop is not None

    def _sides(self, name: str, size: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
        """Width and height after resizing, and after cropping as well: rounded as torchvision does."""
        scaled = size
        if self.resize is not None:
            short = min(size)
            width, height = (self.resize if side == short else int(self.resize * side / short) for side in size)
            scaled = (width, height)
            if scaled[0] * scaled[1] > _MOST_PIXELS:
                raise InputError(
                    f"{self.folder / name}: this image of {_size_phrase(size)} becomes {_size_phrase(scaled)}; "
                    "take it away"
                )
        if self.crop is None:
            return scaled, scaled
        if min(scaled) < self.crop:
            raise InputError(
                f"{self.folder / name}: this image is {_size_phrase(scaled)}, smaller than the crop of {self.crop}",
                remedy="resize the images to at least that",
                roles=("resize",),
            )
        return scaled, (self.crop, self.crop)

    def _pixels(self, name: str) -> NDArray[np.uint8]:
        file = self.folder / name
        with _open_image(file, self._is_resized) as image:
            scaled, size = self._sides(name, image.size)
            kind = "L" if image.mode in ("L", "1") else "RGB"
            if size != self.size or (self.mode, kind) == ("L", "RGB"):
                remedy, roles = _REMEDY[self._is_resized]
                if self._is_resized and kind != self.mode:
                    remedy, roles = "make all images alike", ()
                first = _kind_phrase(self.mode, self.size)
                raise InputError(
                    f"{file}: this image is {_kind_phrase(kind, size)}, and {Path(self.names[0]).name} is {first}",
                    remedy=remedy,
                    roles=roles,
                )
            if image.mode != self.mode:
                image = image.convert(self.mode)
            if scaled != image.size:
                image = image.resize(scaled, _pillow().Resampling.BILINEAR)
            if size != scaled:
                left, top = (round((full - kept) / 2.0) for full, kept in zip(scaled, size, strict=True))
                image = image.crop((left, top, left + size[0], top + size[1]))
            return pixels_of(image, str(file))


def pixels_of(image: Any, name: str) -> NDArray[np.uint8]:
    """Bytes of an image of Pillow's, channels first."""
    if image.mode not in _CHANNELS:
        what = _OTHER_MODES.get(image.mode, f"is of the kind {image.mode}")
        raise InputError(f"{name}: this image {what}; convert it to grey or RGB")
    pixels = np.asarray(image, np.uint8)
    return pixels[None] if image.mode == "L" else pixels.transpose(2, 0, 1)


_REMEDY = {
    False: ("make all images alike, or set {resize} and {crop}, such as 256 and 224", ("resize", "crop")),
    True: ("also crop them, so that all have one size", ("crop",)),
}
_MOST_PIXELS = 1 << 26


def _kind_phrase(mode: str, size: tuple[int, int]) -> str:
    return f"{_KINDS[mode]}, {_size_phrase(size)}"


def _size_phrase(size: tuple[int, int]) -> str:
    return f"{size[0]} by {size[1]}"


@contextmanager
def _pillow_warnings() -> Generator[None, None, None]:
    """Say nothing about notes in a file that do not change its pixels; what would fill the memory is an error.

    For all threads, and so around them: filters of warnings belong to the process.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", _pillow().DecompressionBombWarning)
        yield


@contextmanager
def _open_image(file: Path, prepared: bool) -> Generator[Any, None, None]:
    """An image of which only the header has been read; every failure until it is closed is one sentence."""
    head, _ = file_ends(file)
    try:
        with _pillow().open(file, formats=("PNG", "JPEG")) as image:
            _check_kind(image, file, head, prepared)
            yield image
    except InputError:
        raise
    except Exception as error:  # decoders fail in many ways
        raise InputError(damaged(file, "image", error)) from error


def _check_kind(image: Any, file: Path, head: bytes, prepared: bool) -> None:
    usable = image.mode in _CHANNELS or (prepared and image.mode in _CONVERTED)
    what = None if usable else _OTHER_MODES.get(image.mode, f"is of the kind {image.mode}")
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
