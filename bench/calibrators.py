"""Fitting calibrators: a temperature against three peers, and certified isotonic regression against scikit-learn's.

Each library has a process of its own for temperatures; they take turns. Asserts ratios measured in this run.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
from ratios import Row, at_least, at_most, conclude

SIZES = ((100_000, 10), (50_000, 1000))
SAMPLES = 1_000_000
ROUNDS = 5
BUDGET = 15.0  # seconds after which a library takes no further turn

# Targets: times of the fastest peer in ours, log loss above the least of all, times of ours in scikit-learn's.
FASTER = 5
NEAR = 1e-9
ISOTONIC = 2

Fit = Callable[[], float]  # returns the inverse temperature


def ours(x: Any, y: Any) -> Fit:
    from certcal.calibrators import fit_temperature

    return lambda: 1 / fit_temperature(x, y)


def scikit_learn(x: Any, y: Any) -> Fit:
    """What ``CalibratedClassifierCV(method="temperature")`` fits once it has the logits."""
    from sklearn.calibration import _TemperatureScaling

    return lambda: float(_TemperatureScaling().fit(x, y).beta_)


def probmetrics(x: Any, y: Any) -> Fit:
    import torch
    from probmetrics.calibrators.temperature_scaling import TemperatureScalingCalibrator
    from probmetrics.distributions import CategoricalLogits

    logits, labels = CategoricalLogits(torch.from_numpy(x)), torch.from_numpy(y)

    def fit() -> float:
        calibrator = TemperatureScalingCalibrator()
        calibrator.fit_torch(logits, labels)
        return float(calibrator.invtemp_)

    return fit


def netcal(x: Any, y: Any) -> Fit:
    """Takes probabilities. They are in float64, because given float32 ones it returns a temperature of 1."""
    from netcal.scaling import TemperatureScaling

    p = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)

    def fit() -> float:
        calibrator = TemperatureScaling()
        calibrator.fit(p, y, tensorboard=False)
        return float(calibrator.temperature[0])

    return fit


LIBRARIES = {"certcal": ours, "scikit-learn": scikit_learn, "probmetrics": probmetrics, "netcal": netcal}


def serve(library: str, folder: Path, line: Any) -> None:
    """One library in its process: warm up, then fit whenever asked."""
    warnings.simplefilter("ignore")
    x, y = np.load(folder / "logits.npy"), np.load(folder / "labels.npy")
    with redirect_stdout(None):  # netcal says that the first rows lack some classes
        LIBRARIES[library](x[:2000], y[:2000])()  # imports, compilation, thread pools
    fit = LIBRARIES[library](x, y)
    line.send(None)
    while line.recv():
        start = time.perf_counter()
        inverse = fit()
        line.send((time.perf_counter() - start, inverse))


def take_turns(folder: Path) -> dict[str, tuple[float, float]]:
    """Least time and inverse temperature of every library."""
    context = multiprocessing.get_context("spawn")
    lines: dict[str, Any] = {}
    for library in LIBRARIES:
        lines[library], far = context.Pipe()
        context.Process(target=serve, args=(library, folder, far), daemon=True).start()
    for line in lines.values():
        line.recv()
    best, spent = {library: (float("inf"), 0.0) for library in lines}, dict.fromkeys(lines, 0.0)
    for _ in range(ROUNDS):
        for library, line in lines.items():
            if spent[library] < BUDGET:
                line.send(True)
                taken, inverse = line.recv()
                spent[library] += taken
                best[library] = min(best[library], (taken, inverse))
    for line in lines.values():
        line.send(False)
    return best


def make_logits(n: int, classes: int) -> tuple[Any, Any]:
    """Overconfident float32 logits: the largest one is right in a bit more than 60 % of the rows."""
    rng = np.random.default_rng(0)
    x = 3 * rng.standard_normal((n, classes), dtype=np.float32)
    return x, np.where(rng.random(n) < 0.6, x.argmax(axis=1), rng.integers(0, classes, n))


def log_loss(x: Any, y: Any, inverse: float) -> float:
    """Mean log loss at an inverse temperature, in float64."""
    total = 0.0
    for start in range(0, y.size, 5000):
        z = inverse * x[start : start + 5000].astype(np.float64)
        z -= z.max(axis=1, keepdims=True)
        total += float(np.sum(np.log(np.exp(z).sum(axis=1)) - z[np.arange(len(z)), y[start : start + 5000]]))
    return total / y.size


def temperatures(n: int, classes: int) -> list[Row]:
    """One size, all libraries."""
    x, y = make_logits(n, classes)
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "logits.npy", x)
        np.save(Path(folder) / "labels.npy", y)
        found = take_turns(Path(folder))
    losses = {library: log_loss(x, y, inverse) for library, (_, inverse) in found.items()}
    least = min(losses.values())
    print(f"temperature, n = {n:,}, {classes} classes, float32 logits")
    for library, (taken, inverse) in found.items():
        print(f"  {library:<13} {1000 * taken:9.1f} ms   T = {1 / inverse:.10f}   loss {losses[library] - least:.1e}")
    own = found.pop("certcal")[0]
    fastest = min(found, key=lambda library: found[library][0])
    name = f"temperature, n = {n:,}, K = {classes}"
    return [
        at_least(f"{name}: {fastest} (the fastest peer) / ours", found[fastest][0] / own, FASTER),
        at_most(f"{name}: log loss above the least of all", losses["certcal"] - least, NEAR),
    ]


def isotonic(tradeoff: float) -> list[Row]:
    """Certified isotonic regression and scikit-learn's on the points that it reduces to; they take turns."""
    from sklearn.isotonic import IsotonicRegression

    from certcal.calibrators import CertifiedIsotonic

    rng = np.random.default_rng(0)
    z = rng.random(SAMPLES)
    correct = rng.random(SAMPLES) < z**1.5
    width = 0.2 * rng.random(SAMPLES)
    lower, upper = np.maximum(z - width, 0), np.minimum(z + width, 1)
    places, outcomes = np.where(correct, lower, upper), correct.astype(np.float64)
    weights = np.full(SAMPLES, tradeoff)
    if tradeoff < 1:
        places, outcomes = np.concatenate([z, places]), np.concatenate([outcomes, outcomes])
        weights = np.concatenate([np.full(SAMPLES, 1 - tradeoff), weights])
    peer, own = IsotonicRegression(), CertifiedIsotonic(tradeoff)
    own.fit(lower[:1000], upper[:1000], correct[:1000], z[:1000])  # compiles
    best = [float("inf"), float("inf")]
    for _ in range(ROUNDS):
        for k, fit in enumerate(
            (
                lambda: own.fit(lower, upper, correct, None if tradeoff == 1 else z),
                lambda: peer.fit(places, outcomes, weights),
            )
        ):
            start = time.perf_counter()
            fit()
            best[k] = min(best[k], time.perf_counter() - start)
    apart = float(np.abs(own.transform(places) - peer.predict(places)).max())
    name = f"certified isotonic, N = 10⁶, λ = {tradeoff:g}"
    print(f"{name}: {best[0]:.3f} s; scikit-learn, {places.size:,} points: {best[1]:.3f} s; {apart:.1g} apart")
    return [
        at_most(f"{name} / scikit-learn on its points", best[0] / best[1], ISOTONIC),
        at_most(f"{name}: largest difference from scikit-learn", apart, 1e-9),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write-docs", action="store_true", help="also rewrite the table of the documentation")
    options = parser.parse_args()
    rows = [row for size in SIZES for row in temperatures(*size)]
    rows += [row for tradeoff in (1.0, 0.5) for row in isotonic(tradeoff)]
    return conclude(rows, "calibrators", options.write_docs)


if __name__ == "__main__":
    sys.exit(main())
