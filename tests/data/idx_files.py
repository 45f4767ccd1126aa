"""A small set of idx files under the names of Fashion-MNIST."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

CODES = {"u1": 0x08, "i1": 0x09, ">i2": 0x0B, ">i4": 0x0C, ">f4": 0x0D, ">f8": 0x0E}


def idx(array: NDArray[Any], dtype: str = "u1") -> bytes:
    sizes = np.array(array.shape, ">u4").tobytes()
    return bytes([0, 0, CODES[dtype], array.ndim]) + sizes + array.astype(dtype).tobytes()


def write_clothes(folder: Path, train: int = 300, test: int = 40) -> None:
    """Images whose class is where their bright rows are; those to train on are gzipped, the others plain."""
    rng = np.random.default_rng(5)
    folder.mkdir(exist_ok=True)
    for name, n in (("train", train), ("t10k", test)):
        labels = np.arange(n, dtype=np.uint8) % 10
        images = rng.integers(0, 60, (n, 28, 28), np.uint8)
        rows = 2 * labels[:, None] + np.arange(4)
        images[np.arange(n)[:, None], rows] += 150
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            path = folder / f"{name}-{kind}-ubyte"
            if name == "train":
                path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(idx(array), 1))
            else:
                path.write_bytes(idx(array))
