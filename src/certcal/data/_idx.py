"""idx files, in which MNIST and its relatives come: a header with type and shape, then the numbers, perhaps gzipped."""

from __future__ import annotations

import gzip
import math
import os
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError
from certcal.data._table import check_memory, reading
from certcal.data.formats import file_ends

_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
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
        dtype, shape, start = _header(file, stream)
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


def _header(file: Path, stream: IO[bytes] | gzip.GzipFile) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    """Type and shape of the array, and where it begins."""
    magic = stream.read(4)
    if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in _TYPES or not 1 <= magic[3] <= _MAX_AXES:
        raise InputError(
            f"{file}: this is not an idx file (it does not begin with two zeros, a type and a number of axes); "
            "check which file it is"
        )
    sizes = stream.read(4 * magic[3])
    if len(sizes) < 4 * magic[3]:
        raise InputError(f"{file}: this idx file is cut short (its header is not complete); copy it again")
    return np.dtype(_TYPES[magic[2]]), tuple(np.frombuffer(sizes, ">u4").tolist()), 4 + len(sizes)
