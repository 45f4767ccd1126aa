"""Certificates written down slowly, from the draws themselves, and classifiers whose worst cases are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import mpmath
import numpy as np
from scipy import optimize, stats

from certcal.smoothing import Certificates, Counts

ROWS = 1000
ENDS = ("lower", "upper")
ALPHA = 0.2  # large, so that failures are to be expected and can be counted


def h(p: float, r: float) -> float:
    """Least probability of an event of probability p when the noise moves by r."""
    if p <= 0 or p >= 1:
        return float(p >= 1)
    return float(stats.norm.cdf(stats.norm.ppf(p) - r))


def limit(k: int, n: int, level: float) -> float:
    return float(stats.beta.ppf(level, k, n - k + 1)) if k else 0.0


def allowed(level: float, rows: int = ROWS) -> int:
    """Failures that more than once in a million times are not exceeded when each has probability ``level``."""
    return int(stats.binom.ppf(1 - 1e-6, rows, level))


def failures(
    found: Certificates, worst: tuple[np.ndarray, np.ndarray], true_radii: np.ndarray | None = None
) -> tuple[int, ...]:
    """How many certified samples have a wrong lower end, a wrong upper end, a wrong radius, anything wrong."""
    low = found.certified & (found.lower > worst[0])
    high = found.certified & (found.upper < worst[1])
    radius = found.radii > true_radii if true_radii is not None else np.zeros(len(found), np.bool_)
    return tuple(int(np.count_nonzero(each)) for each in (low, high, radius, low | high | radius))


# ------------------------------------------------------------------------------------------------ to fifty digits


def probit(p: mpmath.mpf) -> mpmath.mpf:
    """Φ⁻¹(p) to the working precision: Newton's steps, on the side where p keeps its digits."""
    x = mpmath.mpf(float(stats.norm.ppf(float(p))))
    for _ in range(3):
        x -= (mpmath.ncdf(x) - p if x < 0 else (1 - p) - mpmath.ncdf(-x)) / mpmath.npdf(x)
    return x


def exact_end(
    histogram: np.ndarray, thresholds: list[mpmath.mpf], survival: Callable[[int], mpmath.mpf], r: mpmath.mpf
) -> mpmath.mpf:
    """Σ_j (t_j - t_{j-1}) h(S(t_j)), where the band at a threshold is ``survival`` of the draws at or above it."""
    total, before = mpmath.mpf(0), mpmath.mpf(0)
    for t, above in zip(thresholds, np.cumsum(histogram[::-1])[::-1][1:], strict=True):
        p = survival(int(above))
        moved = p if r == 0 or p in (0, 1) else mpmath.ncdf(probit(p) - r)
        total, before = total + (t - before) * moved, t
    return total


# ------------------------------------------------------------------------------- one lower end, from draws in any order


def lower_end(kind: str, draws: np.ndarray, thresholds: np.ndarray, r: float, level: float, key: int) -> float:
    """The lower end of an interval; for the upper one pass 1 - draws and 1 - thresholds, reversed."""
    n = len(draws)
    below = np.array([max([0.0, *thresholds[thresholds <= x]]) for x in draws])  # rounded down to the grid
    if kind == "standard":  # of the mean itself
        return h(max(draws.mean() - np.sqrt(np.log(1 / level) / (2 * n)), 0), r)
    if kind == "bernstein":
        log = np.log(3 / level)
        return h(max(below.mean() - np.sqrt(2 * below.var() * log / n) - 3 * log / n, 0), r)
    if kind == "tangent":
        return tangent_end(below, thresholds, r, level, key)
    total, before = 0.0, 0.0
    for t in thresholds:
        k = int(np.count_nonzero(below >= t))
        if kind == "cdf":
            survival = max(k / n - np.sqrt(np.log(1 / level) / (2 * n)), 0)
        else:
            survival = limit(k, n, level / len(thresholds))
        total += (t - before) * h(survival, r)
        before = t
    return total


def tangent_end(below: np.ndarray, thresholds: np.ndarray, r: float, level: float, key: int) -> float:
    cells = np.searchsorted(thresholds, below, side="right")
    histogram = np.bincount(cells, minlength=len(thresholds) + 1)
    past, *parts = dealt([int(k) for k in histogram], key)
    widths, nats = np.diff(thresholds, prepend=0.0), np.log(1 / level)
    bets = []
    for part in parts:
        prior = 0.003
        survival = (np.cumsum(past[::-1])[::-1][1:] + prior) / (past.sum() + 2 * prior)
        q = np.array([refuted_survival(s, 0.75 * nats / len(below)) for s in survival])
        slope = np.exp(r * stats.norm.ppf(q) - r * r / 2) if r > 0 else np.ones(len(q))
        offset = float(widths @ (np.array([h(each, r) for each in q]) - q * slope))
        worth = np.concatenate(([0.0], np.cumsum(widths * slope)))
        mean = float((widths * slope) @ q)
        mass = -np.diff(np.concatenate(([1.0], survival, [0.0])))
        best = optimize.minimize_scalar(
            lambda theta, mass=mass, worth=worth, mean=mean: -(mass @ np.log(1 - theta + theta * worth / mean)),
            bounds=(0, 1 - 1e-9),
            method="bounded",
            options={"xatol": 1e-8},
        )
        bets.append((part, float(best.x), worth, offset))
        past = past + part

    def excess(value: float) -> float:
        return sum(
            float(part @ np.log(1 - theta + theta * worth / (value - offset))) for part, theta, worth, offset in bets
        ) - float(nats)

    if excess(1e-9) < 0:
        return 0.0
    return float(optimize.brentq(excess, 1e-9, 1.0)) if excess(1.0) < 0 else 1.0


def dealt(histogram: list[int], key: int, parts: int = 8) -> list[np.ndarray]:
    """Draws dealt out by coins, one at a time: heads stay for the earlier parts, tails go to the last one left."""
    words = split_mix(key)
    left, later = list(histogram), []
    for _ in range(parts):
        stay = []
        for count in left:
            bits = [(word >> place) & 1 for word in (next(words) for _ in range(0, count, 64)) for place in range(64)]
            stay.append(sum(bits[:count]))
        later.append(np.array(left) - np.array(stay))
        left = stay
    return [np.array(left), *later[::-1]]


def split_mix(key: int) -> Iterator[int]:
    """SplitMix64 from a state that is itself mixed from the key."""
    golden = 0x9E3779B97F4A7C15
    state = mix_bits((key + golden) % 2**64)
    while True:
        state = (state + golden) % 2**64
        yield mix_bits(state)


def mix_bits(state: int) -> int:
    word = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
    return word ^ (word >> 31)


def coin_key(seed: int, sample: int) -> int:
    """What the coins of a sample are keyed by."""
    return (mix_bits(seed) + sample) % 2**64


def refuted_survival(p: float, nats: float) -> float:
    def gap(q: float) -> float:
        return p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q)) - nats

    return 0.0 if gap(1e-300) < 0 else float(optimize.brentq(gap, 1e-300, p, xtol=1e-15))


# -------------------------------------------------------------------------------- classifiers with known worst cases


def just_below(thresholds: np.ndarray) -> np.ndarray:
    """The largest value in each cell of a histogram."""
    return np.append(np.nextafter(thresholds, 0), 1.0)


@dataclass(frozen=True)
class HalfSpaces:
    """Base confidences that climb to ``values[i]`` where the first coordinate passes boundary i, one row per sample.

    ``survival[i]`` is the probability that noise at the input is past boundary i, ``start`` the confidence before the
    first. A perturbation of r standard deviations along that coordinate moves all boundaries by r, and none is worse:
    so the smoothed confidence ranges over exactly [start + Σ steps · Φ(Φ⁻¹(survival) - r), start + Σ steps ·
    Φ(Φ⁻¹(survival) + r)], steps being what values climb by.
    """

    values: np.ndarray
    survival: np.ndarray
    start: float = 0.0

    @property
    def steps(self) -> np.ndarray:
        return np.diff(self.values, axis=1, prepend=self.start)

    def worst(self, r: float) -> tuple[np.ndarray, np.ndarray]:
        score = stats.norm.ppf(self.survival)
        return (
            self.start + (self.steps * stats.norm.cdf(score - r)).sum(1),
            self.start + (self.steps * stats.norm.cdf(score + r)).sum(1),
        )

    def counts(self, n: int, thresholds: np.ndarray, rng: np.random.Generator, sigma: float = 1.0) -> Counts:
        """Draws on a grid; class A is predicted past the first boundary."""
        ones, zeros = np.ones((len(self.values), 1)), np.zeros((len(self.values), 1))
        values = np.concatenate([self.start * ones, self.values], axis=1)
        shares = -np.diff(np.concatenate([ones, self.survival, zeros], axis=1), axis=1)
        cells = np.searchsorted(thresholds, values, side="right")
        histogram = np.zeros((len(values), len(thresholds) + 1), np.int64)
        votes = np.zeros(len(values), np.int64)
        for i, p in enumerate(np.maximum(shares, 0)):
            drawn = rng.multinomial(n, p / p.sum())
            np.add.at(histogram[i], cells[i], drawn)
            votes[i] = n - drawn[0]
        row = np.ones(len(values), np.int64)
        return Counts(thresholds, sigma, np.cumsum(row) - 1, row, row, n * row, votes, 0 * row, histogram)

    @classmethod
    def random(
        cls, rng: np.random.Generator, rows: int, thresholds: np.ndarray, end: str = "lower", steps: int = 3
    ) -> HalfSpaces:
        """Values where rounding loses nothing at one end of an interval, and survival often near 1.

        At the lower end X is rounded down to a threshold, at the upper end up to just below the next one, or to 1.
        """
        places = np.stack([np.sort(rng.choice(len(thresholds), steps, replace=False)) for _ in range(rows)])
        first = stats.norm.cdf(rng.uniform(0.3, 3.5, (rows, 1)))
        later = np.cumprod(np.concatenate([first, rng.beta(3, 0.5, (rows, steps - 1))], axis=1), axis=1)
        if end == "lower":
            return cls(thresholds[places], later)
        return cls(just_below(thresholds)[places + 1], later, float(just_below(thresholds)[0]))


@dataclass(frozen=True)
class Balls:
    """Confidence ``inside`` within a ball around a centre, ``outside`` elsewhere, in ``dimension`` dimensions.

    Noise at distance d from the centre is in the ball of radius ρ with the probability that a non-central χ² variable
    is below ρ²/σ². It falls with the distance, so the worst perturbations go straight away from the centre or to it.
    """

    inside: np.ndarray
    outside: np.ndarray
    distance: np.ndarray
    size: np.ndarray
    dimension: int

    def share(self, distance: np.ndarray) -> np.ndarray:
        near = stats.ncx2.cdf(self.size**2, self.dimension, np.maximum(distance, 1e-6) ** 2)
        return np.asarray(near)

    def worst(self, r: float) -> tuple[np.ndarray, np.ndarray]:
        ends = [self.share(self.distance + r), self.share(np.maximum(self.distance - r, 0))]
        low, high = (self.outside + (self.inside - self.outside) * p for p in ends)
        return low, high

    def counts(self, n: int, thresholds: np.ndarray, rng: np.random.Generator) -> Counts:
        p = self.share(self.distance)
        rows = len(p)
        where = np.searchsorted(thresholds, np.stack([self.outside, self.inside]), side="right")
        histogram = np.zeros((rows, len(thresholds) + 1), np.int64)
        votes = rng.binomial(n, p)
        np.add.at(histogram, (np.arange(rows), where[1]), votes)
        np.add.at(histogram, (np.arange(rows), where[0]), n - votes)
        row = np.ones(rows, np.int64)
        return Counts(thresholds, 1.0, np.arange(rows), row, row, n * row, votes, 0 * row, histogram)

    @classmethod
    def random(cls, rng: np.random.Generator, rows: int, thresholds: np.ndarray, end: str = "lower") -> Balls:
        """Values where rounding loses nothing at one end; see :meth:`HalfSpaces.random`."""
        values = thresholds if end == "lower" else just_below(thresholds)
        inside = rng.choice(values[len(values) // 2 :], rows)
        outside = rng.choice(values[: len(values) // 2], rows)
        return cls(inside, outside, rng.uniform(0, 2, rows), rng.uniform(3.5, 6, rows), dimension=5)
