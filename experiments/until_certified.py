"""How many draws a claim takes on Fashion-MNIST: drawn until it is certified, or by the smallest fixed design.

Needs Debian's package `dataset-fashion-mnist` (or --data FOLDER with its idx files). LeNet is trained with noise; test
images 200 to 399 and seed 1 were not used to tune the allocation. For each limit it prints the draws of
`certcal.sample_until`, the fixed design that it estimates for the same claim, and the smallest multiple of 250 draws
with which certificates of a fixed design really reach the limit on whatever they certify (same alpha, family-wise).
With --write-docs the table goes into docs/smoothing.md.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch
from tightness import train

from certcal.data import fashion_mnist
from certcal.models import export_onnx, load
from certcal.smoothing import Counts, Sampler, certificates, sample_until

ASKED = {0.25: (0.30, 0.27, 0.25, 0.235), 0.5: (0.35, 0.30, 0.28, 0.26)}
ALPHA, SIGMA, SEED, BLOCK = 0.001, 0.5, 1, 250
PAGE = Path(__file__).parent.parent / "docs" / "smoothing.md"


class Fixed:
    """Fixed designs of all multiples of 250 draws, from one set of draws."""

    def __init__(self, sampler: Sampler, inputs: np.ndarray, labels: np.ndarray, n: int) -> None:
        index = np.arange(len(labels))
        self.predicted = sampler.select(inputs, index, 100).votes.argmax(axis=1).astype(np.int64)
        blocks = [sampler.count(inputs, index, self.predicted, start, start + BLOCK) for start in range(0, n, BLOCK)]
        self.votes = np.cumsum([block.votes for block in blocks], axis=0)
        self.histograms = np.cumsum([block.histogram.astype(np.int32) for block in blocks], axis=0)
        self.index, self.labels, self.thresholds = index, labels, sampler.thresholds

    def smallest(self, radius: float, limit: float) -> str:
        """Draws per image, and how many images they certify."""
        for k in range(1, len(self.votes) + 1):
            n = k * BLOCK
            about = self.index, self.labels, self.predicted, np.full(self.index.size, n), self.votes[k - 1]
            seen = 0 * self.index, self.histograms[k - 1].astype(np.int64)
            found = certificates(Counts(self.thresholds, SIGMA, *about, *seen), radius, ALPHA, "tangent", True)
            if found.n_certified and found.claim().value <= limit:
                return f"{n:,} ({found.n_certified})"
        return f"more than {len(self.votes) * BLOCK:,}"


def main() -> None:
    """Train, draw, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with the four idx files")
    parser.add_argument("--out", type=Path, help="folder that keeps the network (default: temporary)")
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--most", type=int, default=10_000, help="draws per image of the largest fixed design")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--write-docs", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = fashion_mnist(options.data, test=200 + options.images)
    keep = tempfile.TemporaryDirectory() if options.out is None else None
    out = Path(keep.name) if keep else options.out
    file = out / "lenet.onnx"
    if not file.exists():
        export_onnx(train(data.train.inputs, data.train.labels, SIGMA, options.epochs), file)
    model, inputs, labels = load(file), data.test.inputs[200:], data.test.labels[200:]
    fixed = Fixed(Sampler(model, sigma=SIGMA, seed=SEED), inputs, labels, options.most)
    lines = [
        "| R | limit | outcome | draws per image | certified (open) | fixed, same claim | fixed, limit alone |",
        "|---|---|---|---|---|---|---|",
    ]
    for radius, limits in ASKED.items():
        for limit in limits:
            asked = {"sigma": SIGMA, "radius": radius, "n": 30_000, "alpha": ALPHA, "seed": SEED}
            found = sample_until(model, inputs, labels, f"ece <= {limit}", **asked)
            each, one = found.total / len(found), found.certificates
            same = "" if not found else "more than 30,000" if found.fixed is None else f"{found.fixed:,}"
            known = f"{one.n_certified} ({found.n_open})"
            cells = (radius, f"{limit:g}", found.outcome, f"{each:,.0f}", known, same, fixed.smallest(radius, limit))
            lines.append("| " + " | ".join(map(str, cells)) + " |")
            print(lines[-1], flush=True)
    if options.write_docs:
        text = PAGE.read_text()
        start, stop = (text.index(mark) for mark in ("<!-- until -->", "<!-- /until -->"))
        PAGE.write_text(text[:start] + "<!-- until -->\n" + "\n".join(lines) + "\n" + text[stop:])


if __name__ == "__main__":
    main()
