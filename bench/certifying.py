"""Cost of asking: certificates from a run against the draws behind it, and sequential against fixed numbers of draws.

Prints tables and asserts ratios measured in this run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from ratios import Row, at_least, at_most, conclude
from sampling import SIGMA, images, lenet

from certcal.data import embedded_network
from certcal.models import wrap
from certcal.smoothing import CONFIDENCES, Counts, Run, certificates, decide, default_thresholds, sample

# The radii of the CIFAR-10 experiments in the paper on certified calibration (section 5.2).
RADII = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5)
SAMPLES = 10_000
DRAWS = 10_000
BUDGET = 100_000
ALPHA = 0.001
WIDTHS = (19, 8, 12, 18, 9, 13)


def varied_counts() -> Counts:
    """Histograms of 10,000 samples whose confidences follow Beta laws from hopeless to certain."""
    rng = np.random.default_rng(0)
    t = default_thresholds()
    cells = np.empty((SAMPLES, t.size + 1), np.int64)
    votes = np.empty(SAMPLES, np.int64)
    for i, (a, b) in enumerate(zip(rng.gamma(2, 6, SAMPLES) + 0.5, rng.gamma(1, 1, SAMPLES) + 0.2, strict=True)):
        drawn = rng.beta(a, b, DRAWS)
        where = np.searchsorted(t, drawn, side="right")
        cells[i] = np.bincount(where, minlength=t.size + 1)
        votes[i] = np.count_nonzero(drawn > 0.5)
    index = np.arange(SAMPLES)
    whole = np.full(SAMPLES, DRAWS)
    zero = np.zeros(SAMPLES, np.int64)
    return Counts(t, SIGMA, index, zero, zero, whole, votes, zero, cells)


def asking(folder: Path) -> list[Row]:
    """Certifying 10,000 samples at 12 radii / drawing 10,000 times for each of them on one core."""
    model, inputs = lenet(folder), images()
    labels = np.zeros(len(inputs), np.int64)
    sample(model, inputs, labels, sigma=SIGMA, n=100, out=folder / "first")  # compiles
    start = time.perf_counter()
    sample(model, inputs, labels, sigma=SIGMA, n=DRAWS, out=folder / "run")
    drawing = (time.perf_counter() - start) / len(inputs) * SAMPLES
    counts = varied_counts()
    print(f"drawing      {SAMPLES:,} x {DRAWS:,} draws of LeNet: {drawing:.0f} s, from {len(inputs)} samples")
    rows: list[Row] = []
    for kind in CONFIDENCES:
        start = time.perf_counter()
        for radius in RADII:
            certificates(counts, radius, alpha=ALPHA, confidence=kind)
        seconds = time.perf_counter() - start
        print(f"certifying   {kind:<10} {seconds:6.2f} s for {len(RADII)} radii")
        rows.append(at_most(f"{kind}: certifying 12 radii / drawing n = 10⁴", seconds / drawing, 0.01))
    return rows


def sequential(folder: Path, samples: int) -> list[Row]:
    """Draws for a decision at a radius, as needed / always 100,000, and whether the verdicts are the same."""
    network = embedded_network()
    model = wrap(network.classifier)
    inputs, labels = network.test.inputs[:samples], network.test.labels[:samples]
    run: Run = sample(model, inputs, labels, sigma=network.sigma, n=BUDGET, out=folder / "demo", batch=2000)
    counts, rows = run.counts(), list[Row]()
    print("\nradius   decided above   below   undecided   fixed: at least   differ   mean draws")
    for share in (0.5, 1.0, 2.0):
        radius = share * network.sigma
        made = decide(model, inputs, labels, sigma=network.sigma, radius=radius, budget=BUDGET, alpha=ALPHA, batch=2000)
        # All of alpha for the prediction, as in the sequential decision.
        fixed = np.nan_to_num(radii_at(counts), nan=-1.0) >= radius
        verdict = made.decision
        yes, no = verdict == "above", verdict == "below"
        differ = int(np.count_nonzero(yes != fixed))
        saved = BUDGET / float(np.mean(made.draws))
        numbers = (yes.sum(), no.sum(), (~yes & ~no).sum(), fixed.sum(), differ, round(float(np.mean(made.draws))))
        print(f"{radius:6.3f}" + "".join(f"{number:{width}d}" for number, width in zip(numbers, WIDTHS, strict=True)))
        rows.append(at_least(f"R = {share:g} σ: 10⁵ draws / draws until decided", saved, 5))
        rows.append(at_most(f"R = {share:g} σ: samples with another verdict than at 10⁵", differ, 0))
    return rows


def radii_at(counts: Counts) -> np.ndarray:
    """Clopper-Pearson radii with the whole level for the prediction."""
    from certcal.smoothing._certificates import certified_radii

    return certified_radii(counts, ALPHA)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=300, help="digits for the sequential part")
    parser.add_argument("--write-docs", action="store_true", help="also rewrite the table of the documentation")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = asking(Path(folder)) + sequential(Path(folder), options.samples)
    return conclude(rows, "certifying", options.write_docs)


if __name__ == "__main__":
    sys.exit(main())
