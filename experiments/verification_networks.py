"""What do deterministic bounds certify about a small network's calibration, and smoothing at comparable radii?

LeNet is trained on Fashion-MNIST by four methods: on clean images, against ℓ∞ attacks, by interval bounds, and under
Gaussian noise. Every network is verified (IBP, CROWN) and attacked around the first test images; the last one is also
smoothed. A small network for digits stands beside them. Per radius: certified accuracy, the exact worst-case ECE over
all images, and what the attack reaches. Seconds are those of the processor, so that a busy machine does not count.

    python experiments/verification_networks.py --out models [--write-docs]   # resumes where it was stopped
    python experiments/verification_networks.py --out quick --quick           # few images, for a look

Needs Debian's package `dataset-fashion-mnist`, or --data FOLDER with its idx files.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _running import markdown, write_results
from _verification_train import SIGMA, trained, trained_on_digits

from certcal.data import Inputs, digits_images, fashion_mnist
from certcal.smoothing import certificates, sample
from certcal.verification import InputBox, verifier_of
from certcal.worst_case import calibration_error

NETWORKS = {
    "standard": "clean",
    "smoothadv": "adversarial, ℓ∞ 0.05",
    "ibp": "interval bounds, ℓ∞ 0.05",
    "gaussian": f"Gaussian noise, σ = {SIGMA:g}",
}
REGIONS = (("linf", 1 / 255), ("linf", 4 / 255), ("linf", 0.05), ("l2", 0.02), ("l2", 0.1), ("l2", 0.25), ("l2", 0.5))
# Neurons per sample and layer that are bounded by lines.
BUDGETS = {"IBP": 0, "CROWN, margins alone": 1, "CROWN": 1 << 30}
HEAD = ("set", "bounds", "certified accuracy", "certified", "worst ECE, certified", "worst ECE, all", "seconds")


def worst(lower: Any, upper: Any, correct: Any, certified: Any) -> tuple[str, str]:
    """The exact worst-case ECE of the certified samples, and of all, where the others may be anything."""
    if not certified.any():
        return "–", "100.0"
    found = calibration_error(lower, upper, correct.astype(np.uint8), certified=certified)
    every = found if found.all_samples is None else found.all_samples
    return f"{100 * found.value:.1f}", f"{100 * every.value:.1f}"


def line(name: str, bounds: str, found: Any, correct: Any, seconds: float) -> list[str]:
    """A row of the table."""
    kept = found.certified
    ends = np.where(kept, found.lower, 0.0), np.where(kept, found.upper, 1.0)
    shares = f"{100 * (kept & correct).mean():.1f}", f"{100 * kept.mean():.1f}"
    return [name, bounds, *shares, *worst(*ends, correct, kept), f"{seconds:.1f}"]


def verified(network: Any, images: Any, labels: Any) -> list[list[str]]:
    """Rows of one network: every region by every bound, and the attack."""
    verifier, rows = verifier_of(network), list[list[str]]()
    predicted = verifier.predict(images).argmax(1)
    correct, hopeless = predicted == labels, set[str]()
    for norm, radius in REGIONS:
        region = InputBox(radius, limits=(0, 1), norm=norm).on(images).region(0, len(images))
        certified = np.zeros(len(images), np.bool_)
        name = f"{'ℓ∞' if norm == 'linf' else 'ℓ2'} {radius:.3g}"
        for bounds, budget in BUDGETS.items():
            if bounds == "CROWN" and norm in hopeless:
                rows.append([name, bounds, "none at a smaller radius", "", "", "", ""])
                continue
            began = time.process_time()
            found = verifier.verify(region, predicted, budget=budget, attack=False)
            rows.append(line(name, bounds, found, correct, time.process_time() - began))
            certified = found.certified
            if bounds == "CROWN" and not certified.any():
                hopeless.add(norm)
        began = time.process_time()
        found = verifier.verify(region, predicted, budget=0, attack=True)
        shares = f"{100 * (~found.flipped & correct).mean():.1f}", f"{100 * (~found.flipped).mean():.1f}"
        # The region is connected, so every answer between two is reached; the class of certified images stays.
        reached, _ = worst(found.reached_lower, found.reached_upper, correct, certified)
        rows.append([name, "attack reaches", *shares, reached, "", f"{time.process_time() - began:.1f}"])
        print(*rows[-4:], sep="\n", flush=True)
    return rows


def smoothed(network: Any, images: Any, labels: Any, out: Path, draws: int) -> list[list[str]]:
    """Rows of the smoothed classifier at the ℓ2 radii."""
    from certcal.models import wrap

    began = time.process_time()
    run = sample(wrap(network), images, labels, sigma=SIGMA, n=draws, seed=0, out=out)
    seconds, rows = time.process_time() - began, list[list[str]]()
    for norm, radius in REGIONS:
        if norm == "l2":
            found = certificates(run.counts(), radius, confidence="tight")
            rows.append(line(f"ℓ2 {radius:.3g}", f"smoothing, n = {draws:,}", found, found.correct, seconds))
            print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Train, verify, smooth, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with the four idx files")
    parser.add_argument("--out", type=Path, required=True, help="folder that keeps the networks and the draws")
    parser.add_argument("--images", type=int, default=100, help="test images")
    parser.add_argument("--draws", type=int, default=2_000, help="noise samples per image")
    parser.add_argument("--quick", action="store_true", help="8 images, 1,000 draws")
    parser.add_argument("--write-docs", action="store_true")
    options = parser.parse_args()
    count, draws = (8, 1_000) if options.quick else (options.images, options.draws)
    torch.set_num_threads(1)
    split = fashion_mnist(options.data, test=count)
    data = Inputs.from_arrays(split.train.inputs[:30_000], split.train.labels[:30_000])
    images, labels = np.asarray(split.test.inputs[:]), np.asarray(split.test.labels)
    tables: list[str] = []

    def add(network: Any, about: str, images: Any, labels: Any, out: Path | None = None) -> None:
        rows = verified(network, images, labels)
        rows += [] if out is None else smoothed(network, images, labels, out, draws)
        with torch.no_grad():
            clean = (network(torch.tensor(images)).argmax(1).numpy() == labels).mean()
        tables.append(f"**{about}.** Clean accuracy {100 * clean:.1f} %.\n\n{markdown(HEAD, rows)}")

    small = digits_images()
    few = np.asarray(small.test.inputs[:count]), np.asarray(small.test.labels[:count])
    add(trained_on_digits(small.train, options.out), "Digits, trained clean", *few)
    for method, about in NETWORKS.items():
        out = options.out / f"run-{count}-{draws}" if method == "gaussian" else None
        add(trained(method, data, options.out), f"Trained: {about}", images, labels, out)
    page = "\n\n".join(tables)
    print(page)
    if options.write_docs:
        command = (
            f"python experiments/verification_networks.py --out models --images {count} --draws {draws} --write-docs"
        )
        write_results("verification-networks", command, page, "torch", "numpy")


if __name__ == "__main__":
    main()
