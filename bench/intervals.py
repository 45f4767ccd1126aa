"""How often do intervals of the ECE that are called 95 % contain the ECE of the population? Ours, and those of peers.

Each library has its defaults, 15 bins of equal width in all of them. Tables of scores and outcomes are drawn from
populations of 1,000 equally likely scores whose rates, and so whose ECE, are known. Prints a table and asserts ours.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from importlib.metadata import version

import calibstats
import numpy as np
from numpy.typing import NDArray
from probcal import metrics as probcal
from ratios import PAGE
from tables import markdown, write_page

import certcal

Floats = NDArray[np.float64]
Ends = tuple[float, float]
LEVEL, SIZE, BINS = 0.95, 1_000, 15


def of_certcal(p: Floats, y: Floats) -> Ends:
    spread = certcal.measure(y, p, metrics="ece", bins=BINS, progress=False)["ece"].interval
    assert spread is not None
    return spread.lower, spread.upper


def of_probcal(p: Floats, y: Floats) -> Ends:
    found = probcal.evaluate(y, p, metrics=("ece",))
    return float(found.ci_low[0]), float(found.ci_high[0])


def of_calibstats(p: Floats, y: Floats) -> Ends:
    return calibstats.bootstrap_ci(p, y, calibstats.ece).ci


LIBRARIES: dict[str, Callable[[Floats, Floats], Ends]] = {
    "certcal": of_certcal,
    "probcal": of_probcal,
    "calibstats": of_calibstats,
}
SCORES = (np.arange(1000) + 0.5) / 1000


def moved(slope: float, shift: float) -> Floats:
    """The rates of scores whose log-odds are off by a line."""
    return 1 / (1 + np.exp(-(slope * np.log(SCORES / (1 - SCORES)) + shift)))


POPULATIONS = {
    "calibrated": SCORES,
    "slightly miscalibrated": moved(0.85, 0.1),
    "scores too extreme": moved(0.6, 0),
    "badly miscalibrated": moved(0.4, -0.5),
}


def ece_of(rates: Floats) -> float:
    """That of a whole population."""
    held = np.minimum((SCORES * BINS).astype(int), BINS - 1)
    return float(np.abs(np.bincount(held, rates - SCORES, BINS)).sum() / SCORES.size)


def coverage(rates: Floats, repeats: int) -> dict[str, tuple[float, float]]:
    """By library, the share of tables whose interval contains the population's ECE, and the mean width."""
    rng, known = np.random.default_rng(0), ece_of(rates)
    found: dict[str, list[tuple[float, float]]] = {library: [] for library in LIBRARIES}
    for _ in range(repeats):
        at = rng.integers(0, SCORES.size, SIZE)
        y = (rng.random(SIZE) < rates[at]).astype(float)
        for library, interval in LIBRARIES.items():
            lower, upper = interval(SCORES[at], y)
            found[library].append((lower <= known <= upper, upper - lower))
    return {library: tuple(np.mean(each, axis=0).tolist()) for library, each in found.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--write-docs", action="store_true", help="also rewrite the table of the documentation")
    options = parser.parse_args()
    allowed = LEVEL - 3 * math.sqrt(LEVEL * (1 - LEVEL) / options.repeats)
    cells, good = [], True
    for name, rates in POPULATIONS.items():
        found = coverage(rates, options.repeats)
        good &= found["certcal"][0] >= allowed
        texts = [f"{100 * share:.1f} % ({width:.3f} wide)" for share, width in found.values()]
        cells.append([name, f"{ece_of(rates):.4f}", *texts])
        print(*cells[-1], sep="   ", flush=True)
    print(f"{'ok  ' if good else 'MISS'}  certcal covers in {100 * allowed:.1f} % of {options.repeats} tables or more")
    if options.write_docs:
        heads = ["population", "its ECE", *(f"{library} {version(library)}" for library in LIBRARIES)]
        write_page(PAGE, "coverage", markdown(heads, cells))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
