"""PNG and JPEG files as arrays of bytes, read with Pillow."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError
from certcal.data._table import check_memory, damaged
from certcal.data.formats import file_ends

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


def read_pictures(files: Sequence[Path], folder: Path) -> NDArray[np.uint8]:
    """Pictures of one size and kind, as stored (a camera's note how to turn them is not followed).

    What a file's header says is compared with the first picture, and with the memory of the machine, before anything
    is decoded.
    """
    library = _pillow()
    with _opened(library, files[0]) as first:
        mode, (width, height) = first.mode, first.size
    shape = (len(files), _CHANNELS[mode], height, width)
    check_memory(folder, 5 * shape[0] * shape[1] * shape[2] * shape[3], "make the pictures smaller, or use fewer")
    pictures = np.empty(shape, np.uint8)
    for place, file in zip(pictures, files, strict=True):
        with _opened(library, file) as picture:
            if (picture.mode, picture.size) != (mode, (width, height)):
                raise InputError(
                    f"{file}: this picture is {_told(picture.mode, picture.size)}, and {files[0].name} is "
                    f"{_told(mode, (width, height))}; make all pictures alike"
                )
            pixels = np.asarray(picture, np.uint8)
        place[...] = pixels if mode == "L" else pixels.transpose(2, 0, 1)
    return pictures


def _told(mode: str, size: tuple[int, int]) -> str:
    return f"{_KINDS[mode]}, {size[0]} by {size[1]}"


@contextmanager
def _opened(library: Any, file: Path) -> Generator[Any, None, None]:
    """A picture of which only the header has been read; every failure until it is closed is one sentence."""
    head, _ = file_ends(file)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about notes in a file that do not change its pixels
            warnings.simplefilter("error", library.DecompressionBombWarning)
            with library.open(file, formats=("PNG", "JPEG")) as picture:
                _check_kind(picture, file, head)
                yield picture
    except InputError:
        raise
    except Exception as error:  # decoders fail in many ways
        raise InputError(damaged(file, "picture", error)) from error


def _check_kind(picture: Any, file: Path, head: bytes) -> None:
    what = None if picture.mode in _CHANNELS else _OTHER_MODES.get(picture.mode, f"is of the kind {picture.mode}")
    if what is None and "transparency" in picture.info:
        what = "has a transparent colour"
    if what is None and head == _PNG and _png_depth(file) > 8:
        what = "has more than 8 bits per channel"
    if what is not None:
        raise InputError(f"{file}: this picture {what}; save it as grey or RGB with 8 bits per channel")


def _png_depth(file: Path) -> int:
    """Bits per channel: Pillow drops those beyond eight without a word."""
    with file.open("rb") as stream:
        return stream.read(25)[-1]


def _pillow() -> Any:
    try:
        return import_module("PIL.Image")
    except ImportError as error:
        raise InputError("pictures need Pillow; run: pip install 'certcal[images]'") from error
