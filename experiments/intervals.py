"""How often do the intervals of the metrics contain the population value?

Every population is a finite set of scores with the probability of outcome 1 at each, so that the value of every metric
in the population is known: it is the metric of the weighted set. Samples are drawn from it, and each metric's interval
either contains that value or lies below or above it. The table has the share of samples that are missed on each side.

    python experiments/intervals.py [--samples 30 100 500 2000] [--repeats 100] [--weighted | --heavy | --ideal]

With ``--ideal``, the ECE alone: both sides and the width, by how many times its noise floor the error is. The floor is
the mean ECE of so many samples of a calibrated model with the same scores; the ideal width is that of an interval that
is told the sign of every gap.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from certcal.binning import assign, equal_mass_edges
from certcal.claims import Interval
from certcal.metrics import METRICS, Evidence, MetricEntry, classwise_ece, ece, lp_ece
from certcal.metrics._intervals import BinNoise, bin_ends
from certcal.metrics.binned import sweep_table

Floats = NDArray[np.float64]
LEVEL, SLACK = 0.95, 0.02
POINTS = 1000


@dataclass(frozen=True, eq=False)
class Population:
    """Equally likely scores, how often each has outcome 1, and weights of the two outcomes."""

    scores: Floats
    rates: Floats
    weights: tuple[Floats, Floats] | None = None

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Floats, NDArray[np.uint8], Floats | None]:
        """Scores, outcomes and weights of n samples."""
        at = rng.integers(0, self.scores.size, n)
        outcome = (rng.random(n) < self.rates[at]).astype(np.uint8)
        weight = None if self.weights is None else np.where(outcome, self.weights[1][at], self.weights[0][at])
        return self.scores[at], outcome, weight

    @property
    def whole(self) -> tuple[Floats, NDArray[np.uint8], Floats]:
        """The population as weighted samples."""
        zeros, ones = self.weights or (np.ones_like(self.scores), np.ones_like(self.scores))
        outcome = np.repeat(np.array([0, 1], np.uint8), self.scores.size)
        weight = np.concatenate(((1 - self.rates) * zeros, self.rates * ones))
        return np.tile(self.scores, 2), outcome, weight


def _spread(power: float) -> Floats:
    """Points from 0 to 1, crowded at 0 for powers above 1."""
    return ((np.arange(POINTS) + 0.5) / POINTS) ** power


def _moved(scores: Floats, slope: float, shift: float) -> Floats:
    return 1 / (1 + np.exp(-(slope * np.log(scores / (1 - scores)) + shift)))


_U, _RARE, _SURE = _spread(1), 0.1 * _spread(3), 1 - 0.02 * _spread(2)
_TOP = 0.5 + 0.5 * _spread(0.5)
_FEW = np.arange(POINTS) % 100 == 0  # one sample in a hundred
_GRADES = 0.1 + 0.2 * np.floor(5 * _U)
POPULATIONS = {
    "calibrated": Population(_U, _U),
    "calibrated, one score": Population(np.full(POINTS, 0.4), np.full(POINTS, 0.4)),
    "calibrated, top label": Population(_TOP, _TOP),
    "slightly miscalibrated": Population(_U, _moved(_U, 0.85, 0.1)),
    "slightly overconfident, top label": Population(_TOP, _TOP - 0.03),
    "badly miscalibrated": Population(_U, _moved(_U, 0.4, -0.5)),
    "badly overconfident, top label": Population(_TOP, _TOP**3),
    "gaps of both signs": Population(_U, np.clip(_U + 0.15 * np.sign(np.sin(15 * np.pi * _U)), 0, 1)),
    "outcomes at random": Population(_U, np.full(POINTS, 0.5)),
    "rare, calibrated": Population(_RARE, _RARE),
    "rare, under-predicted": Population(_RARE, np.minimum(2.5 * _RARE, 1)),
    "rare, over-predicted": Population(_RARE, 0.3 * _RARE),
    "scores near 1, calibrated": Population(_SURE, _SURE),
    "scores near 1, overconfident": Population(_SURE, _SURE - 0.03),
    "scores near 0, never so rare": Population(0.001 * _U, np.full(POINTS, 0.02)),
    "rare, told apart": Population(np.where(_FEW, 0.5, 0.001), np.where(_FEW, 1.0, 0.0)),
    "rare, nearly told apart": Population(np.where(_FEW, 0.5, 0.01), np.where(_FEW, 0.8, 0.004)),
    "one decimal, calibrated": Population(_U.round(1), _U.round(1)),
    "five grades, miscalibrated": Population(_GRADES, _GRADES**1.5),
    "sure, and nearly never right": Population(np.full(POINTS, 0.9), np.full(POINTS, 0.02)),
}
# Rare samples that carry much of the weight and have other outcomes; a table may hold none of them.
HEAVY = {
    f"one in a hundred weighs {weight}": Population(
        _U, np.where(_FEW, 0.2 * _U, _U), (np.where(_FEW, weight, 1.0), np.where(_FEW, weight, 1.0))
    )
    for weight in (30, 100)
}
# Where some gaps are clear and others are not.
_BETA = betaincinv(0.7, 0.9, _U)
MIXED = {
    "logistic, slope 0.65": Population(_BETA, _moved(_BETA, 0.65, 0)),
    "overconfident, top label": Population(_TOP, _TOP**1.5),
    "half off by 0.15, half calibrated": Population(_U, np.where(_U < 0.5, _U + 0.15, _U)),
    "a fifth off by 0.2, the rest calibrated": Population(_U, np.where(_U < 0.2, _U + 0.2, _U)),
    "small gaps of both signs": Population(_U, np.clip(_U + 0.05 * np.sign(np.sin(15 * np.pi * _U)), 0, 1)),
}
# Metrics of scores and outcomes but those of medicine that fit a curve; with the settings of a row of fifteen bins and
# a fixed width for the densities.
SCORED = {
    name: entry
    for name, entry in METRICS.items()
    if (entry.reads in ("pair", "confidence", "correct") and entry.tasks != ("binary",))
    or name == "observed_expected_ratio"
}


def settings_of(entry: MetricEntry) -> dict[str, Any]:
    """The settings that the intervals are tried with."""
    return entry.settings(15 if entry.bins else None, "left") | ({"bandwidth": 0.05} if entry.name == "kde_ece" else {})


def truth(entry: MetricEntry, population: Population, known: float, sample: Any) -> float:
    """The population value that an interval is about; for some metrics it is that of the bins found in the sample."""
    z, c, w = population.whole
    if entry.name == "equal_mass_ece":
        return ece(z, c, edges=equal_mass_edges(sample[0], 15, sample_weight=sample[2]), sample_weight=w)
    if entry.name == "sweep_ece":
        return ece(z, c, edges=sweep_table(*sample).edges, sample_weight=w)
    if entry.name == "mce":
        edges = np.arange(16) / 15
        held = np.isin(assign(z, edges), assign(sample[0], edges)) & (w > 0)
        return lp_ece(z[held], c[held], p=math.inf, sample_weight=w[held])
    return known


def intervals(
    population: Population, n: int, repeats: int, names: Iterable[str] = SCORED, seed: int = 0, level: float = LEVEL
) -> Iterator[tuple[str, float, float, Interval]]:
    """Name, population value, estimate and interval, for every sample and metric that is defined on it."""
    rng = np.random.default_rng(seed)
    z, c, w = population.whole
    arrays = {"pair": (z, c), "confidence": (z,), "correct": (c,)}
    known: dict[str, float] = {}
    for name in names:
        entry = SCORED["lp_ece" if name == "debiased_ece" else name]  # noise is not subtracted from a population
        known[name] = entry.function(*arrays[entry.reads], sample_weight=w, **settings_of(entry))
    for _ in range(repeats):
        sample = population.draw(n, rng)
        given = {"pair": sample[:2], "confidence": sample[:1], "correct": sample[1:2]}
        evidence = {reads: Evidence.of(each, sample[2]) for reads, each in given.items()}
        for name in names:
            entry, settings = SCORED[name], settings_of(SCORED[name])
            value = entry.function(*given[entry.reads], sample_weight=sample[2], **settings)
            if math.isfinite(value):
                assert entry.interval is not None
                found = entry.interval.interval(evidence[entry.reads], value, level, settings)
                yield name, truth(entry, population, known[name], sample), value, found


def missed(found: Iterable[tuple[str, float, float, Interval]], shrink: float = 0.0) -> Mapping[str, Floats]:
    """Shares of samples whose interval lies above, and below, the population value, and the mean width.

    ``shrink`` moves both ends towards the estimate by this share of their distance.
    """
    counted: dict[str, list[tuple[bool, bool, float]]] = {}
    for name, value, estimate, each in found:
        lower, upper = (end + shrink * (estimate - end) for end in (each.lower, each.upper))
        close = 1e-9 * max(1.0, abs(value))  # exact sums and sums of floats differ by rounding
        counted.setdefault(name, []).append((value < lower - close, value > upper + close, upper - lower))
    return {name: np.mean(rows, axis=0) for name, rows in counted.items()}


# ---------------------------------------------------------------------------------------------------- against the ideal


def yardsticks(population: Population, n: int) -> tuple[float, float]:
    """The noise floor of the ECE in fifteen bins, and the width of an interval that is told every sign."""
    z, rates = population.scores, population.rates
    known, square = (
        ece(*population.whole[:2], sample_weight=population.whole[2]),
        (1 - rates) * z**2 + rates * (1 - z) ** 2,
    )
    noise = np.bincount(assign(z, np.arange(16) / 15), z * (1 - z), 15) / z.size
    ideal = 2 * NormalDist().inv_cdf((1 + LEVEL) / 2) * math.sqrt((float(square.mean()) - known**2) / n)
    return math.sqrt(2 / math.pi / n) * float(np.sqrt(noise).sum()), ideal


def print_by_floor(samples: Iterable[int], repeats: int) -> None:
    """The table of docs/intervals.md."""
    rows = list[tuple[float, float, float, float]]()
    for title, population in (POPULATIONS | MIXED).items():
        known = ece(*population.whole[:2], sample_weight=population.whole[2])
        for n in samples:
            floor, ideal = yardsticks(population, n)
            low, high, width = missed(intervals(population, n, repeats, ["ece"]))["ece"]
            rows.append((known / floor, low, high, width / ideal))
            times = "at {:.2f} of its floor: above {:.4f}  below {:.4f}  width {:.3f} of the ideal".format(*rows[-1])
            print(f"{title:40} n={n:<6} {times}", flush=True)
    print(
        "\n| error / floor | tables | truth below | truth above | coverage | width / ideal |\n|---|---|---|---|---|---|"
    )
    for least, most in pairwise((0.0, 1e-9, 0.5, 1.0, 2.0, 4.0, math.inf)):
        held = np.array([row for row in rows if least <= row[0] < most])
        if held.size:
            (_, low, high, width), cover = held.mean(axis=0), 100 * (1 - held[:, 1] - held[:, 2])
            ends = f"{held[:, 3].min():.2f} to {held[:, 3].max():.2f}"
            print(
                f"| {least:.1f} to {most:.1f} | {len(held)} × {repeats:,} | {100 * low:.1f} % | {100 * high:.1f} % "
                f"| {cover.mean():.1f} % ({cover.min():.1f} to {cover.max():.1f}) | {width:.2f} ({ends}) |"
            )
    for calibrated, each, clear, together in ((15, 1.0, 0, 0.0), (7, 1.0, 8, 1.5)):
        power = told_apart(calibrated, each, clear, together)
        more = calibrated * each + together * math.sqrt(clear)
        held = np.repeat([0.0, 100.0], [calibrated, clear])
        drawn = held + np.random.default_rng(1).normal(size=(2000, held.size))
        uppers = [gaussian_ends(gaps)[1] for gaps in drawn]
        print(
            f"{calibrated} of {held.size} bins calibrated: an error {more:.1f} standard errors larger is told apart in "
            f"{100 * power:.0f} %; our upper end is {np.median(uppers) - held.sum():.1f} larger"
        )


def gaussian_ends(gaps: Floats, tail: float = (1 - LEVEL) / 2) -> tuple[float, float]:
    """Both ends from gaps whose noise is standard normal."""
    scale, enough = np.ones(gaps.size), np.full(gaps.size, 100.0)
    return bin_ends(BinNoise(scale, gaps, scale, scale, scale, enough, enough), float(np.abs(gaps).sum()), tail)


def told_apart(calibrated: int, each: float, clear: int, together: float, repeats: int = 200_000) -> float:
    """How often the best test at 2.5 % sees that gaps are smaller: its power, in bins of equal Gaussian noise.

    Tested is that the gaps of the calibrated bins are ``each`` standard errors, of any sign, and the sum of the clear
    ones is ``together`` of its standard errors larger, where in truth the former are 0 and the latter is not larger.
    """
    rng = np.random.default_rng(0)
    noise, sum_noise = rng.normal(size=(repeats, calibrated)), rng.normal(size=repeats) * (clear > 0)

    def evidence_for(gap: float, more: float) -> Floats:
        drawn, total = noise + gap, sum_noise + more  # signs at random make the cosh; with them all 1 it is the same
        return np.log(np.cosh(each * drawn)).sum(axis=1) + together * total

    tested = float(np.quantile(evidence_for(each, together), (1 - LEVEL) / 2))
    return float(np.mean(evidence_for(0.0, 0.0) < tested))


# ------------------------------------------------------------------------------------------------------- class by class


def classwise_missed(n: int, repeats: int, temperature: float, seed: int = 0) -> tuple[float, float]:
    """The same for the classwise error of three classes whose probabilities are those of another temperature."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(3), POINTS)
    rates = p**temperature / (p**temperature).sum(axis=1, keepdims=True)
    known = classwise_ece(np.tile(p, (3, 1)), np.repeat(np.arange(3), POINTS), sample_weight=rates.T.ravel())
    rule = METRICS["classwise_ece"].interval
    assert rule is not None
    low = high = 0
    for _ in range(repeats):
        at = rng.integers(0, POINTS, n)
        labels = (rng.random(n)[:, None] > rates[at].cumsum(axis=1)[:, :2]).sum(axis=1)
        found = rule.interval(Evidence.of((p[at], labels), None), classwise_ece(p[at], labels), LEVEL, {"bins": 15})
        low, high = low + (known < found.lower), high + (known > found.upper)
    return low / repeats, high / repeats


def main() -> None:
    """Print the table; an error if an interval covers less than its level less two points, beyond chance."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, nargs="+", default=[30, 100, 500, 2000])
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--weighted", action="store_true", help="outcomes 1 weigh 0.5, outcomes 0 between 1 and 2")
    parser.add_argument("--heavy", action="store_true", help="rare samples of large weight instead; nothing is judged")
    parser.add_argument("--ideal", action="store_true", help="the ECE's width and both sides, by its noise floor")
    parser.add_argument("--metric", nargs="+", default=list(SCORED))
    options = parser.parse_args()
    if options.ideal:
        print_by_floor(options.samples, options.repeats)
        return
    allowed = 1 - LEVEL + SLACK
    allowed += 3 * math.sqrt(allowed * (1 - allowed) / options.repeats)
    worst: dict[tuple[str, int], tuple[float, str]] = {}
    for n in options.samples:
        for title, population in (HEAVY if options.heavy else POPULATIONS).items():
            if options.weighted:
                population = replace(population, weights=(1 + population.scores, np.full(POINTS, 0.5)))
            for name, (low, high, width) in missed(intervals(population, n, options.repeats, options.metric)).items():
                print(f"{title:36} n={n:<6} {name:28} above {low:.3f}  below {high:.3f}  width {width:.4f}", flush=True)
                worst[name, n] = max(worst.get((name, n), (0.0, "")), (low + high, title))
    print("\n| metric | " + " | ".join(f"n = {n}" for n in options.samples) + " |")
    print("|---" * (1 + len(options.samples)) + "|")
    for name in options.metric:
        cells = [f"{100 * (1 - worst[name, n][0]):.1f} % ({worst[name, n][1]})" for n in options.samples]
        print(f"| `{name}` | {' | '.join(cells)} |")
    bad = {key: share for key, (share, _) in worst.items() if share > allowed}
    assert options.heavy or not bad, f"below {LEVEL - SLACK:.0%}: {bad}"


if __name__ == "__main__":
    main()
