"""Binary files of images: idx, as MNIST and its relatives come, CIFAR's, and SVHN's."""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, whole_number
from certcal._base.durable import open_regular
from certcal.data.formats import check_memory, file_ends, reading
from certcal.data.inputs import PARTS, Inputs, Part, Readers, Split

_IDX_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_MAX_AXES = 8

# No gzip stream expands by more than this.
_MOST_EXPANSION = 1032


def read_idx(path: str | os.PathLike[str]) -> NDArray[Any]:
    r"""Read the array of an idx file, plain or gzipped.

    The file is treated as hostile: type and shape are checked against the size of the file before memory is asked for,
    and it must hold exactly as many numbers as its header says.

    Parameters
    ----------
    path
        The file, for example ``t10k-images-idx3-ubyte.gz``.

    Returns
    -------
    array
        In this machine's byte order. Give images and labels to :meth:`Inputs.from_arrays` together.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "labels-idx1-ubyte"
    >>> _ = path.write_bytes(b"\0\0\x08\x01" + b"\0\0\0\x03" + bytes([7, 2, 1]))
    >>> read_idx(path)
    array([7, 2, 1], dtype=uint8)
    >>> folder.cleanup()
    """
    file = Path(path)
    head, _ = file_ends(file)
    zipped = head[:2] == b"\x1f\x8b"
    size = file.stat().st_size
    with reading(file, "idx file"), gzip.open(file) if zipped else file.open("rb") as stream:
        dtype, shape, start = _idx_header(file, stream)
        needed = math.prod(shape) * dtype.itemsize
        if needed == 0:
            raise InputError(f"{file}: the array has shape {shape}, so there is nothing in it; use another file")
        if start + needed > (_MOST_EXPANSION * size if zipped else size):
            raise InputError(
                f"{file}: the header says {needed} bytes of numbers, more than the file can hold; copy it again"
            )
        check_memory(file, needed, "use a machine with more, or a part of the file")
        content = stream.read(needed)
        if len(content) < needed or stream.read(1):
            raise InputError(
                f"{file}: the file does not end after the {needed} bytes of numbers that its header says; copy it again"
            )
    return np.frombuffer(content, dtype).reshape(shape).astype(dtype.newbyteorder("="))


def _idx_header(file: Path, stream: IO[bytes] | gzip.GzipFile) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    magic = stream.read(4)
    if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in _IDX_TYPES or not 1 <= magic[3] <= _MAX_AXES:
        raise InputError(
            f"{file}: this is not an idx file (it does not begin with two zeros, a type and a number of axes); "
            "check which file it is"
        )
    sizes = stream.read(4 * magic[3])
    if len(sizes) < 4 * magic[3]:
        raise InputError(f"{file}: this idx file is cut short (its header is not complete); copy it again")
    return np.dtype(_IDX_TYPES[magic[2]]), tuple(np.frombuffer(sizes, ">u4").tolist()), 4 + len(sizes)


_IDX_PREFIXES: dict[Part, tuple[str, ...]] = {"train": ("train",), "test": ("t10k", "test")}
_IDX_AXES = {"images": 3, "labels": 1}
_IdxKind = Literal["images", "labels"]


def idx_parts(folder: Path) -> Readers:
    """How to read the parts of a folder of idx files; nothing where there are none."""
    return {
        part: partial(read_idx_part, folder, part)
        for part in PARTS
        if any(_find_idx(folder, part, kind) for kind in ("images", "labels"))
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
    images, labels = _idx_file(folder, part, "images"), _idx_file(folder, part, "labels")
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


def _find_idx(folder: Path, part: Part, kind: _IdxKind) -> Path | None:
    names = [f"{start}-{kind}{mark}idx{_IDX_AXES[kind]}-ubyte" for start in _IDX_PREFIXES[part] for mark in "-."]
    files = (folder / f"{name}{ending}" for name in names for ending in ("", ".gz"))
    return next((file for file in files if file.is_file()), None)


def _idx_file(folder: Path, part: Part, kind: _IdxKind) -> Path:
    file = _find_idx(folder, part, kind)
    if file is None:
        name = f"{_IDX_PREFIXES[part][0]}-{kind}-idx{_IDX_AXES[kind]}-ubyte"
        raise InputError(f"{folder}: there is no {name} or {name}.gz in this folder; copy it there")
    return file


# Where Debian's package dataset-fashion-mnist has its files.
INSTALLED = Path("/usr/share/datasets/fashion-mnist")
_FASHION_SIDES = (28, 28)
_FASHION_CLASSES = (
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
    certcal.InputError: no-such-folder: this folder does not exist; give one with the idx files of Fashion-MNIST
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
    read = partial(read_idx_part, place, sides=_FASHION_SIDES, classes=10, class_names=_FASHION_CLASSES)
    return Split("fashion-mnist", "Fashion-MNIST", read("train"), read("test", most=most))


_CIFAR_SHAPE = (3, 32, 32)
_CIFAR_PIXELS = 3 * 32 * 32


@dataclass(frozen=True)
class _Cifar:
    title: str
    files: dict[Part, tuple[str, ...]]
    classes: tuple[int, ...]
    pickles: tuple[str, ...]
    folders: tuple[str, str]

    @property
    def record(self) -> int:
        return len(self.classes) + _CIFAR_PIXELS


_CIFARS = (
    _Cifar(
        "CIFAR-10",
        {"train": tuple(f"data_batch_{k}.bin" for k in range(1, 6)), "test": ("test_batch.bin",)},
        (10,),
        ("data_batch_1", "test_batch"),
        ("cifar-10-batches-bin", "cifar-10-batches-py"),
    ),
    _Cifar(
        "CIFAR-100",
        {"train": ("train.bin",), "test": ("test.bin",)},
        (20, 100),
        ("train", "test", "meta"),
        ("cifar-100-binary", "cifar-100-python"),
    ),
)


def cifar_parts(folder: Path) -> Readers:
    """How to read the parts of a folder of CIFAR's binary files, or of the one around it; nothing where none are."""
    for layout in _CIFARS:
        binary, python = (folder / name for name in layout.folders)
        if binary.is_dir():
            return cifar_parts(binary)
        readers: Readers = {
            part: partial(_read_cifar, folder, layout, part)
            for part in PARTS
            if any((folder / name).is_file() for name in layout.files[part])
        }
        if readers:
            return readers
        if python.is_dir() or all((folder / name).is_file() for name in layout.pickles):
            raise InputError(
                f"{folder}: the files of {layout.title} for Python are pickles, which can run code and are never "
                f"loaded; get the binary version, {layout.title.lower()}-binary.tar.gz"
            )
    return {}


def _read_cifar(folder: Path, layout: _Cifar, part: Part) -> Inputs:
    files = [folder / name for name in layout.files[part]]
    missing = next((file for file in files if not file.exists()), None)
    if missing is not None:
        raise InputError(
            f"{missing}: there is no such file, but the part of {layout.title} to {part} on is {len(files)} files "
            f"({files[0].name} to {files[-1].name}); copy all of them there"
        )
    counts = [_cifar_count(file, layout) for file in files]
    check_memory(folder, 5 * sum(counts) * _CIFAR_PIXELS, "use a machine with more")
    pixels = np.empty((sum(counts), *_CIFAR_SHAPE), np.uint8)
    truth = np.empty(sum(counts), np.int64)
    end = 0
    for file, count in zip(files, counts, strict=True):
        records = _cifar_records(file, layout, count)
        end += count
        truth[end - count : end] = records[:, len(layout.classes) - 1]
        pixels[end - count : end] = records[:, len(layout.classes) :].reshape(-1, *_CIFAR_SHAPE)
    return Inputs.from_arrays(pixels, truth)


def _cifar_count(file: Path, layout: _Cifar) -> int:
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


def _cifar_records(file: Path, layout: _Cifar, count: int) -> NDArray[np.uint8]:
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


_SVHN_FILES: dict[Part, str] = {"train": "train_32x32.mat", "test": "test_32x32.mat"}


def svhn_parts(folder: Path) -> Readers:
    """How to read the parts of a folder of SVHN's files; nothing where there are none."""
    return {part: partial(read_svhn, folder / name) for part, name in _SVHN_FILES.items() if (folder / name).is_file()}


def read_svhn(file: Path) -> Inputs:
    """A file of cropped digits: X (32, 32, 3, N) bytes, and y, where 10 is the digit 0."""
    file_ends(file)
    with reading(file, "MATLAB file"), open_regular(file) as stream:
        check_memory(file, os.fstat(stream.fileno()).st_size, "use a machine with more")
        try:
            found = dict(_matlab_arrays(file, stream.read()))
        except struct.error:
            raise EOFError("an array is cut short") from None
    pixels, digits = found.get("X"), found.get("y")
    if pixels is None or digits is None or pixels.dtype != "u1" or pixels.shape[:3] != (32, 32, 3) or pixels.ndim != 4:
        raise InputError(
            f"{file}: this holds no images X of 32 by 32 by 3 bytes with their digits y, as SVHN's files do; "
            "save other data with numpy.savez(path, inputs=…, labels=…)"
        )
    digits = digits.reshape(-1)
    bad = ~np.isin(digits, np.arange(1, 11))
    if bad.any() or digits.size != pixels.shape[3]:
        place = int(np.argmax(bad))
        said = f"image {place + 1} has class {digits[place]}" if bad.any() else f"there are {digits.size} digits"
        raise InputError(f"{file}: {said}, and SVHN has a class from 1 to 10 for each image; copy the file again")
    check_memory(file, 6 * pixels.size, "use a machine with more")
    return Inputs.from_arrays(pixels.transpose(3, 2, 0, 1), digits.astype(np.int64) % 10, tuple("0123456789"))


# Of version 5: types of what follows a tag. SciPy's reader crashes on damaged files, so it is not used.
_MATLAB_MATRIX, _MATLAB_COMPRESSED = 14, 15
_MATLAB_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_MATLAB_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}


def _matlab_arrays(file: Path, content: bytes) -> Iterator[tuple[str, NDArray[Any]]]:
    order = {b"IM": "<", b"MI": ">"}.get(content[126:128])
    if order is None:
        raise ValueError("it is not of MATLAB's version 5")
    place = 128
    while place < len(content):
        kind, size = struct.unpack_from(f"{order}II", content, place)
        place += 8 + size
        if place > len(content):
            raise EOFError("it is cut short")
        body = memoryview(content)[place - size : place]
        if kind == _MATLAB_COMPRESSED:
            packed = zlib.decompressobj()
            kind, size = struct.unpack(f"{order}II", packed.decompress(body, 8))
            if size > _MOST_EXPANSION * len(body):
                raise ValueError("it says more numbers than it can hold")
            check_memory(file, len(content) + 6 * size, "use a machine with more")
            body = memoryview(packed.decompress(packed.unconsumed_tail, size + 1))
            if not packed.eof or len(body) != size:
                raise ValueError("a compressed array is damaged")
        if kind == _MATLAB_MATRIX:
            yield from _matlab_array(body, order)


def _matlab_array(body: memoryview, order: str) -> Iterator[tuple[str, NDArray[Any]]]:
    """Name and numbers of one array; nothing for what is no array of real numbers."""
    parts: list[tuple[int, memoryview]] = []
    place = 0
    while place < len(body) and len(parts) < 4:
        kind, size = struct.unpack_from(f"{order}II", body, place)
        start, end = place + 8, place + 8 + -(-size // 8) * 8
        if kind >> 16:  # up to four bytes, in the tag itself
            kind, size, start, end = kind & 0xFFFF, kind >> 16, place + 4, place + 8
        if start + size > min(end, len(body)):
            raise EOFError("an array is cut short")
        parts.append((kind, body[start : start + size]))
        place = end
    if len(parts) < 4:
        return
    (_, flags), (_, sides), (_, name), (kind, numbers) = parts
    wanted = _MATLAB_CLASSES.get(struct.unpack_from(f"{order}I", flags)[0] & 0xFF)
    if wanted is None or kind not in _MATLAB_NUMBERS:
        return
    stored = np.dtype(f"{order}{_MATLAB_NUMBERS[kind]}")
    shape = tuple(np.frombuffer(sides, f"{order}i4").tolist())
    if min(shape, default=0) < 1 or math.prod(shape) * stored.itemsize != len(numbers):
        raise ValueError(f"an array of shape {shape} has {len(numbers)} bytes")
    array = np.frombuffer(numbers, stored).reshape(shape, order="F")
    with np.errstate(invalid="ignore"):
        yield bytes(name).decode("latin-1"), array.astype(np.dtype(wanted), copy=False)
