"""The binary files of CIFAR-10 and CIFAR-100: records of one or two bytes of classes and 3 × 32 × 32 of pixels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError
from certcal._durable import open_regular
from certcal.data._inputs import Inputs
from certcal.data._parts import PARTS, Part, Readers
from certcal.data._table import check_memory, reading
from certcal.data.formats import file_ends

_SHAPE = (3, 32, 32)
_PIXELS = 3 * 32 * 32


@dataclass(frozen=True)
class _Layout:
    """How one of the two comes."""

    title: str
    files: dict[Part, tuple[str, ...]]
    classes: tuple[int, ...]
    pickles: tuple[str, ...]

    @property
    def record(self) -> int:
        """Bytes per image."""
        return len(self.classes) + _PIXELS


_LAYOUTS = (
    _Layout(
        "CIFAR-10",
        {"train": tuple(f"data_batch_{k}.bin" for k in range(1, 6)), "test": ("test_batch.bin",)},
        (10,),
        ("data_batch_1", "test_batch"),
    ),
    _Layout("CIFAR-100", {"train": ("train.bin",), "test": ("test.bin",)}, (20, 100), ("train", "test", "meta")),
)


def cifar_parts(folder: Path) -> Readers:
    """How to read the parts of a folder of CIFAR's binary files; nothing where there are none."""
    for layout in _LAYOUTS:
        readers: Readers = {
            part: partial(_read, folder, layout, part)
            for part in PARTS
            if any((folder / name).is_file() for name in layout.files[part])
        }
        if readers:
            return readers
        if all((folder / name).is_file() for name in layout.pickles):
            raise InputError(
                f"{folder}: the files of {layout.title} for Python are pickles, which can run code and are never "
                f"loaded; get the binary version, {layout.title.lower()}-binary.tar.gz"
            )
    return {}


def _read(folder: Path, layout: _Layout, part: Part) -> Inputs:
    files = [folder / name for name in layout.files[part]]
    missing = next((file for file in files if not file.exists()), None)
    if missing is not None:
        raise InputError(
            f"{missing}: there is no such file, but the part of {layout.title} to {part} on is {len(files)} files "
            f"({files[0].name} to {files[-1].name}); copy all of them there"
        )
    counts = [_records(file, layout) for file in files]
    check_memory(folder, 5 * sum(counts) * _PIXELS, "use a machine with more")
    pixels = np.empty((sum(counts), *_SHAPE), np.uint8)
    truth = np.empty(sum(counts), np.int64)
    end = 0
    for file, count in zip(files, counts, strict=True):
        records = _content(file, layout, count)
        end += count
        truth[end - count : end] = records[:, len(layout.classes) - 1]
        pixels[end - count : end] = records[:, len(layout.classes) :].reshape(-1, *_SHAPE)
    return Inputs.from_arrays(pixels, truth)


def _records(file: Path, layout: _Layout) -> int:
    """How many images a file holds, by its size."""
    file_ends(file)
    with reading(file, "CIFAR file"):
        size = file.stat().st_size
    if size % layout.record:
        raise InputError(
            f"{file}: {size} bytes are no whole number of images of {layout.title} ({layout.record} bytes each); "
            "copy it again"
        )
    return size // layout.record


def _content(file: Path, layout: _Layout, count: int) -> NDArray[np.uint8]:
    with reading(file, "CIFAR file"), open_regular(file) as stream:
        content = stream.read(count * layout.record)
    if len(content) != count * layout.record:
        raise InputError(f"{file}: the file became shorter while it was read; try again")
    records = np.frombuffer(content, np.uint8).reshape(count, layout.record)
    for place, classes in enumerate(layout.classes):
        bad = records[:, place] >= classes
        if bad.any():
            index = int(np.argmax(bad))
            raise InputError(
                f"{file}: image {index + 1} has class {records[index, place]}, and {layout.title} has classes from 0 "
                f"to {classes - 1}; check which file it is, or copy it again"
            )
    return records
