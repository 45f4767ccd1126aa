"""Memory that processes share: one mapped file with tensors of known places in it."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from certcal._checks import InputError

_ALIGNED = 64
_SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Layout:
    """Shapes and types of tensors that lie one after the other.

    Attributes
    ----------
    entries
        Shape and type of each.

    Examples
    --------
    >>> Layout.of([torch.zeros(3), torch.zeros(2, 2)]).size
    80
    """

    entries: tuple[tuple[tuple[int, ...], torch.dtype], ...]

    @classmethod
    def of(cls, tensors: Sequence[Tensor]) -> Layout:
        """That of some tensors."""
        return cls(tuple((tuple(tensor.shape), tensor.dtype) for tensor in tensors))

    @property
    def size(self) -> int:
        """Bytes in all."""
        return max((stop for _, stop in self._places()), default=0)

    def mapped(self, path: str) -> list[Tensor]:
        """The tensors in a file, which all processes that map it share."""
        whole = torch.from_file(path, shared=True, size=self.size, dtype=torch.uint8)
        return [
            whole[start:stop].view(dtype).reshape(shape)
            for (start, stop), (shape, dtype) in zip(self._places(), self.entries, strict=True)
        ]

    def _places(self) -> Iterator[tuple[int, int]]:
        start = 0
        for shape, dtype in self.entries:
            stop = start + math.prod(shape) * dtype.itemsize
            yield start, stop
            start = -(-stop // _ALIGNED) * _ALIGNED


def new_file(size: int) -> str:
    """A file of a size, in memory where there is enough; whoever maps it keeps it when its name is removed."""
    folder = tempfile.gettempdir()
    for place in (_SHARED_MEMORY, Path(folder)):
        if place.is_dir() and os.access(place, os.W_OK) and shutil.disk_usage(place).free > 2 * size:
            descriptor, path = tempfile.mkstemp(prefix="certcal-", dir=place)
            with os.fdopen(descriptor, "wb") as stream:
                stream.truncate(max(size, 1))
            return path
    raise InputError(
        f"{folder}: has no room for the {size} bytes that workers share; make room, set TMPDIR to another folder, or "
        "pass workers=1"
    )
