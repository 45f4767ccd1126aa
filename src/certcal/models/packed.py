"""A model's files as bytes, for machines that do not have them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from certcal._files import read_bytes
from certcal.models._load import load
from certcal.models.protocol import Model, Outputs, Source

_LARGEST = 2**40
_FILES = (".onnx", ".safetensors")


@dataclass(frozen=True, eq=False)
class PackedSource:
    """What a machine without the files of a model needs to load it."""

    name: str
    outputs: Outputs
    files: dict[str, NDArray[np.uint8]]
    named: bool = False

    def load(self) -> Model:
        """The model, from a folder that is removed as soon as it is read."""
        with TemporaryDirectory(prefix="certcal-") as folder:
            for name, data in self.files.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                data.tofile(path)
            first = Path(folder) / next(iter(self.files))
            if self.named:
                return load(self.name, self.outputs, weights=first)
            return load(first, self.outputs)


def pack(source: Source) -> Source | PackedSource:
    """A source with the bytes of its files; one that is a name without weights stays a name."""
    path = Path(source.weights or source.name)
    if source.weights is None and path.suffix.lower() not in _FILES:
        return source
    data = read_bytes(path, _LARGEST, "a model")
    files = {path.name: np.frombuffer(data, np.uint8)}
    if source.weights is None and path.suffix.lower() == ".onnx":
        from certcal.models._onnx_files import external_files, parse

        for file in external_files(parse(data, path), path):
            files[str(file.relative_to(path.parent))] = np.fromfile(file, np.uint8)
    return PackedSource(source.name, source.outputs, files, named=source.weights is not None)
