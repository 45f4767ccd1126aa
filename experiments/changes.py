"""How often does the interval for the change of a binned calibration error contain the population's change?

Rows are the same samples: scores z from Beta(2, 4), outcomes with P(y = 1 | z) = z, and two scores that are functions
of z, or of two halves of what is known. Beside the paired interval stand those that it is compared with: the difference
of two intervals that hold together, and the proven bounds of ``certcal.bounds.difference``.

    python experiments/changes.py [--samples 300 2000 8000] [--repeats 200] [--bounds]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtr

from certcal import Predictions
from certcal.bounds import difference
from certcal.metrics import measure
from certcal.metrics.differences import joint_interval, joint_level, paired_ece_interval, score_change

Floats = NDArray[np.float64]
LEVEL, BINS = 0.95, 15


@dataclass(frozen=True)
class Regime:
    """Draws the probability of outcome 1 and both scores; the change of the error in the population."""

    draw: Callable[[np.random.Generator, int], tuple[Floats, Floats, Floats]]

    @property
    def errors(self) -> tuple[float, float]:
        """Both errors, from four million draws of scores."""
        rate, *scores = self.draw(np.random.default_rng(99), 4_000_000)
        where = [np.minimum((each * BINS).astype(int), BINS - 1) for each in scores]
        sums = [np.bincount(k, rate - each, BINS) for k, each in zip(where, scores, strict=True)]
        return tuple(float(np.abs(each).sum()) / rate.size for each in sums)  # pyright: ignore[reportReturnType]


def _of_score(old: Callable[[Floats], Any], new: Callable[[Floats], Any], high: float = 1.0) -> Regime:
    def draw(rng: np.random.Generator, n: int) -> tuple[Floats, Floats, Floats]:
        z = high * rng.beta(2, 4, n)
        return z, np.clip(old(z), 0, 1), np.clip(new(z), 0, 1)

    return Regime(draw)


def _halves(rng: np.random.Generator, n: int) -> tuple[Floats, Floats, Floats]:
    x, y = rng.normal(size=(2, n))
    rate, *halves = (np.asarray(ndtr(each), np.float64) for each in (x + y, x / np.sqrt(2), y / np.sqrt(2)))
    return rate, halves[0], halves[1]


REGIMES = {
    "nearly the same, miscalibrated": _of_score(
        lambda z: expit(1.4 * logit(z)), lambda z: expit(1.42 * logit(z) + 0.01)
    ),
    "a map that works": _of_score(lambda z: z**1.255, lambda z: z),
    "a map that works, smaller": _of_score(lambda z: z**1.19, lambda z: z),
    "unrelated, calibrated": Regime(_halves),
    "too timid, too extreme": _of_score(lambda z: expit(0.8 * logit(z)), lambda z: expit(1.25 * logit(z))),
    "rare, in one bin": _of_score(lambda z: 1.5 * z, lambda z: z, 0.06),
}


def trial(regime: Regime, n: int, rng: np.random.Generator, bounds: bool) -> list[tuple[float, float]]:
    """Ends by pairing, by two intervals, of the log loss and, if asked, of the proven bounds."""
    rate, *scores = regime.draw(rng, n)
    y = (rng.random(n) < rate).astype(np.uint8)
    sides = [Predictions.from_scores(each, y) for each in scores]
    paired = paired_ece_interval(sides[0], sides[1], LEVEL, bins=BINS)
    rows = [measure(each, metrics="ece", bins=BINS, bootstrap=100, level=joint_level(LEVEL))["ece"] for each in sides]
    found = [paired, joint_interval(*rows), score_change(sides[0], sides[1], LEVEL, paired=True)[2]]
    ends = [(each.lower, each.upper) for each in found if each is not None]
    if bounds:
        binned = difference(scores[1], y, scores[0], y, BINS, 1 - LEVEL, names=("new", "old")).binned
        ends.append((float(binned.lower.value), float(binned.upper.value)))
    return ends


def table(samples: Iterable[int], repeats: int, bounds: bool) -> None:
    """Print a line per regime and number of samples."""
    print(
        f"{'regime':31} {'samples':>7}  error        covered  width / two intervals  excludes 0: paired  two  log loss"
    )
    for name, regime in REGIMES.items():
        old, new = regime.errors if regime.draw is not _halves else (0.0, 0.0)
        for n in samples:
            rng = np.random.default_rng(n)
            ends = np.array([trial(regime, n, rng, bounds) for _ in range(repeats)])
            lower, upper = ends[:, 0].T
            inside = float(np.mean((lower <= new - old) & (new - old <= upper)))
            widths = (ends[:, :, 1] - ends[:, :, 0]).mean(axis=0)
            shown = np.mean((ends[:, :, 0] > 0) | (ends[:, :, 1] < 0), axis=0)
            said = f"{name:31} {n:7,}  {old:.3f}→{new:.3f}  {inside:7.3f}  {widths[0]:.4f} / {widths[1]:.4f} = "
            said += f"{widths[0] / widths[1]:.2f}  {'':12}{shown[0]:.2f}  {shown[1]:.2f}  {shown[2]:.2f}"
            print(said + (f"  proven: width {widths[3]:.4f}, {shown[3]:.2f}" if bounds else ""), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, nargs="+", default=[300, 2000, 8000])
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--bounds", action="store_true", help="also the proven bounds, which take longer")
    asked = parser.parse_args()
    table(asked.samples, asked.repeats, asked.bounds)
