"""How tight each certificate is on Fashion-MNIST: LeNet trained with noise, sampled once, certified in every way.

Needs Debian's package `dataset-fashion-mnist` (or --data FOLDER with its idx files). Trains a few epochs, draws
n = 10^4 per image, and prints the exact worst-case calibration error per radius for every kind of certificate, beside
the limit of infinitely many draws, estimated by extending the same run.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from torch import nn

from certcal.data import fashion_mnist
from certcal.models import export_onnx, load
from certcal.models.networks import LeNet
from certcal.smoothing import CONFIDENCES, Counts, certificates, pooled_claim, sample
from certcal.worst_case import certify

RADII = (0.25, 0.5, 0.75, 1.0)
ALPHA = 0.001


def train(inputs: NDArray[np.float32], labels: NDArray[np.int64], sigma: float, epochs: int) -> LeNet:
    """LeNet on noisy images: Adam, one cycle, batches of 250, new noise in every epoch."""
    network = LeNet(mean=0.286, std=0.353).train()
    generator = torch.Generator().manual_seed(0)
    x, y = torch.tensor(inputs), torch.tensor(labels)
    steps = epochs * (len(x) // 250)
    optimizer = torch.optim.Adam(network.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    for epoch in range(epochs):
        total = 0.0
        for rows in torch.randperm(len(x), generator=generator).split(250):
            noisy = x[rows] + sigma * torch.randn(x[rows].shape, generator=generator)
            loss = nn.functional.cross_entropy(network(noisy), y[rows])
            optimizer.zero_grad()
            loss.backward()  # pyright: ignore[reportUnknownMemberType]
            optimizer.step()
            schedule.step()
            total += float(loss.detach()) * len(rows)
        print(f"epoch {epoch + 1} of {epochs}: loss {total / len(x):.4f}", flush=True)
    return network.eval()


def limit(counts: Counts, radius: float) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """The intervals if the shares that were seen were the probabilities themselves: no confidence level at all."""
    shift = radius / counts.sigma
    t = np.concatenate([[0.0], counts.thresholds, [1.0]])
    tail = np.cumsum(counts.histogram[:, ::-1], axis=1)[:, ::-1] / counts.draws[:, None]
    lower = ndtr(ndtri(tail[:, 1:]) - shift) @ np.diff(t[:-1])
    upper = ndtr(ndtri(tail) + shift) @ np.diff(t)
    certified = counts.votes / counts.draws >= ndtr(shift)
    return np.where(certified, lower, 0.0), np.where(certified, np.minimum(upper, 1.0), 1.0), certified


def table(counts: Counts, more: Counts) -> dict[str, list[tuple[float, float, float]]]:
    """Per kind and radius: exact calibration error of the certified, of all samples, and the mean interval width."""
    rows: dict[str, list[tuple[float, float, float]]] = {}
    for kind in CONFIDENCES:
        rows[kind] = []
        for radius in RADII:
            made = certificates(counts, radius, alpha=ALPHA, confidence=kind)
            error = made.summary()["calibration_error"]
            assert error.worst is not None
            assert made.mean_width is not None
            rows[kind].append((error.worst.value, error.worst_all.value, made.mean_width))
    rows["n = ∞"] = []
    correct = (more.label == more.predicted).astype(np.uint8)
    for radius in RADII:
        lower, upper, certified = limit(more, radius)
        error = certify(lower, upper, correct, certified=certified)["calibration_error"]
        assert error.worst is not None
        rows["n = ∞"].append((error.worst.value, error.worst_all.value, float(np.mean((upper - lower)[certified]))))
    return rows


def claims(counts: Counts) -> dict[str, list[float]]:
    """Per radius: what can be claimed of the whole data set with probability 1 - ALPHA, in each of three ways."""
    return {
        "tangent, failing certificates counted": [
            certificates(counts, radius, ALPHA, "tangent").claim_of_intervals().value for radius in RADII
        ],
        "tangent, familywise": [
            certificates(counts, radius, ALPHA, "tangent", familywise=True).claim().value for radius in RADII
        ],
        "noise averaged over the samples": [pooled_claim(counts, radius, ALPHA).value for radius in RADII],
    }


def cell(error: float, everyone: float, width: float) -> str:
    """Three numbers of one radius."""
    return f"{error:.3f} / {everyone:.3f} ({width:.3f})"


def main() -> None:
    """Train, draw, certify, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with the four idx files")
    parser.add_argument("--out", type=Path, help="folder that keeps the network and the runs (default: temporary)")
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--limit-draws", type=int, default=100_000, help="draws behind the row n = ∞")
    parser.add_argument("--sigma", type=float, default=0.5)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    data = fashion_mnist(options.data, test=options.images)
    keep = tempfile.TemporaryDirectory() if options.out is None else None
    out = Path(keep.name) if keep else options.out
    out.mkdir(parents=True, exist_ok=True)

    file = out / "lenet.onnx"
    if not file.exists():
        export_onnx(train(data.train.inputs, data.train.labels, options.sigma, options.epochs), file)
    inputs, labels = data.test.inputs, data.test.labels
    settings = {"sigma": options.sigma, "seed": 0, "workers": options.workers}
    start = time.perf_counter()
    counts = sample(load(file), inputs, labels, n=options.draws, out=out / "run", **settings).counts()
    print(f"{len(counts) * options.draws:,} draws in {time.perf_counter() - start:.0f} s (none if they were there)")
    more = sample(load(file), inputs, labels, n=options.limit_draws, out=out / "more", **settings).counts()
    start = time.perf_counter()
    rows = table(counts, more)
    print(f"certified in every way in {time.perf_counter() - start:.1f} s")

    lines = [
        f"| certificate | {' | '.join(f'R = {radius}' for radius in RADII)} |",
        f"|---|{'---|' * len(RADII)}",
        *(f"| {kind} | {' | '.join(cell(*numbers) for numbers in cells)} |" for kind, cells in rows.items()),
    ]
    print("\n".join(lines))
    for column, radius in enumerate(RADII):
        best = rows["n = ∞"][column][2]
        widths = {kind: cells[column][2] for kind, cells in rows.items()}
        assert widths["standard"] > widths["cdf"] > widths["tight"] > widths["tangent"] > best, (radius, widths)
        closed = 1 - (widths["tangent"] - best) / (widths["tight"] - best)
        print(f"R = {radius}: the tangent certificate closes {closed:.0%} of the width between tight and n = ∞")
    claimed = claims(counts) | {f"{name}, n = {options.limit_draws:,}": row for name, row in claims(more).items()}
    limits = [each[0] for each in rows["n = ∞"]]
    told = [f"| claim | {' | '.join(f'R = {radius}' for radius in RADII)} |", lines[1]]
    told += [f"| {name} | {' | '.join(f'{value:.3f}' for value in values)} |" for name, values in claimed.items()]
    told.append(f"| n = ∞ | {' | '.join(f'{value:.3f}' for value in limits)} |")
    print("\n".join(told))
    for column, radius in enumerate(RADII):
        by_count, by_family, averaged = (values[column] for values in list(claimed.values())[:3])
        assert averaged < min(by_count, by_family), radius
        published = rows["cdf"][column][0]
        way = (published - averaged) / (published - limits[column])
        print(f"R = {radius}: the averaged claim is {way:.0%} of the way from the worst case of cdf to n = ∞")
    if keep:
        keep.cleanup()


if __name__ == "__main__":
    main()
