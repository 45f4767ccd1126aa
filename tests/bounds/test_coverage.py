"""Every bound on small samples from functions with a known error: it fails no more often than it says.

Scores are uniform, or have eight values with mass at 0 and 1 so that nearly all are tied. What these draws show are
biases; the deviations are far from used up by them. For two scores all samples are enumerated instead: few of them, and
then many at a level so small that the deviations are hardly larger than they must be.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from certcal.bounds import binned, binned_lower, bounded_variation, lipschitz, perturb, smooth
from certcal.claims import Bound
from certcal.lab.study import SYNTHETIC, Synthetic

DELTA = 0.1
N = 20
REPETITIONS = {"uniform": 400, "tied": 200}
WIDE = 0.25  # bandwidth of the perturbation
BINS = 5

Draw = tuple[np.ndarray, np.ndarray]


class Population(NamedTuple):
    """Points that scores fall on, all equally likely; many of them stand for a uniform distribution."""

    function: Synthetic
    points: np.ndarray
    repetitions: int

    def draws(self, seed: int, repetitions: int, n: int = N) -> Iterator[Draw]:
        rng = np.random.default_rng(seed)
        scores = rng.choice(self.points, (repetitions, n))
        outcomes = rng.random((repetitions, n)) < self.function.eta(scores)
        yield from zip(scores, outcomes.astype(np.uint8), strict=True)

    def true_error(self) -> float:
        return float(np.abs(self.points - self.function.eta(self.points)).mean())

    def binned_error(self) -> float:
        gaps = self.function.eta(self.points) - self.points
        bins = np.minimum((self.points * BINS).astype(int), BINS - 1)
        return float(np.abs(np.bincount(bins, gaps)).sum()) / self.points.size

    def perturbed_error(self) -> float:
        """Density and hits of the perturbed scores are sums over the points; the rest is an integral on a fine grid."""
        grid = (np.arange(4000) + 0.5) / 4000
        kernel = 1 / np.cosh((grid[:, None] - self.points) / WIDE)
        kernel /= kernel.mean(axis=0) * self.points.size
        return float(np.abs(grid * kernel.sum(axis=1) - kernel @ self.function.eta(self.points)).mean())


UNIFORM = (np.arange(1000) + 0.5) / 1000
TIED = np.arange(8) / 7
POPULATIONS = {
    f"{name}, {kind}": Population(each, points, REPETITIONS[kind])
    for name, each in SYNTHETIC.items()
    for kind, points in (("uniform", UNIFORM), ("tied", TIED))
}


def failures(found: list[float], true: float, side: str = "upper") -> int:
    """How often a bound is on the wrong side of the truth, beyond the rounding of the truth."""
    values = np.array(found)
    return int(np.count_nonzero(values < true - 1e-9 if side == "upper" else values > true + 1e-9))


@pytest.mark.parametrize("name", POPULATIONS)
def test_bounds_with_an_assumption_hold_on_small_samples(name: str) -> None:
    population = POPULATIONS[name]
    each, true = population.function, population.true_error()
    draws = list(population.draws(1, population.repetitions // 2))
    varying = [bounded_variation(*draw, DELTA, variation=each.variation).value for draw in draws]
    sloping = [lipschitz(*draw, each.lipschitz, DELTA).value for draw in draws]
    for values in (varying, sloping):
        assert failures(values, true) <= DELTA * len(values)
        assert np.mean(values) < 1


@pytest.mark.parametrize("name", POPULATIONS)
def test_bounds_on_the_binned_error_hold_on_small_samples(name: str) -> None:
    population = POPULATIONS[name]
    true = population.binned_error()
    upper = [binned(*draw, BINS, DELTA).value for draw in population.draws(2, population.repetitions // 2)]
    lower = [binned_lower(*draw, BINS, DELTA).value for draw in population.draws(3, population.repetitions // 4, 100)]
    assert failures(upper, true) <= DELTA * len(upper)
    assert failures(lower, true, "lower") <= DELTA * len(lower)
    assert np.mean(upper) < true + 0.5


@pytest.mark.parametrize("name", POPULATIONS)
def test_the_bound_for_perturbed_scores_holds_on_small_samples(name: str) -> None:
    population = POPULATIONS[name]
    true = population.perturbed_error()
    rng = np.random.default_rng(4)
    draws = [(perturb(s, WIDE, rng), y) for s, y in population.draws(4, population.repetitions)]
    values = [smooth(*draw, WIDE, DELTA, smoothing=0.4).value for draw in draws]
    assert failures(values, true) <= DELTA * len(values)
    assert np.mean(values) < 1
    chosen = [smooth(*draw, WIDE, DELTA).value for draw in draws[:100]]
    assert failures(chosen, true) <= DELTA * len(chosen)


CASES: dict[str, Callable[[np.ndarray, np.ndarray], Bound]] = {
    "bounded variation": lambda s, y: bounded_variation(s, y, DELTA),
    "Lipschitz": lambda s, y: lipschitz(s, y, 1.0, DELTA),
    "binned": lambda s, y: binned(s, y, 2, DELTA),
}


@pytest.mark.parametrize("case", CASES)
def test_with_mass_at_0_and_1_only_every_sample_of_fourteen_is_covered_often_enough(case: str) -> None:
    # A sample is how many of four pairs (score, outcome) it has, so its probability is multinomial: no simulation.
    n = 14
    counts = np.array(
        [(a, b, c, n - a - b - c) for a in range(n + 1) for b in range(n + 1 - a) for c in range(n + 1 - a - b)]
    )
    s, y = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0, 1, 0, 1])
    values = np.array([CASES[case](np.repeat(s, row), np.repeat(y, row)).value for row in counts])
    worst = 0.0
    for at_0 in (0.0, 0.2, 0.5, 0.9, 1.0):
        for eta in ((0.1, 0.9), (0.0, 0.5), (0.4, 0.6), (0.5, 0.5), (0.9, 0.1), (1.0, 0.0), (0.3, 0.3)):
            p = [at_0 * (1 - eta[0]), at_0 * eta[0], (1 - at_0) * (1 - eta[1]), (1 - at_0) * eta[1]]
            chance = stats.multinomial.pmf(counts, n, p)
            true = at_0 * eta[0] + (1 - at_0) * (1 - eta[1])
            worst = max(worst, float(chance[values < true - 1e-12].sum()))
    assert worst <= DELTA
    assert values.min() < 1


@pytest.mark.parametrize(
    "bound", [lambda s, y, d: bounded_variation(s, y, d), lambda s, y, d: lipschitz(s, y, 1.25, d)], ids=["BV", "slope"]
)
def test_where_scores_and_outcomes_both_vary_a_part_of_the_deviation_fails_too_often(
    bound: Callable[[np.ndarray, np.ndarray, float], Bound],
) -> None:
    """Score 0 with outcome 1 (its error is 1), or score 0.4 with a coin (its error is 0.1): shares 3/8 and 5/8."""
    n, delta, share, step = 2000, 1e-12, 0.375, 12
    true = share + (1 - share) * 0.1
    zeros = np.arange(n // 5, n // 2, step)

    def uncovered(zeros: int, part: float) -> int:
        """The most heads at which the bound, with a part of its deviation, is too small; -1 without any."""
        coins = n - zeros

        def covered(heads: int) -> bool:
            found = bound(np.repeat([0.0, 0.4], [zeros, coins]), np.arange(n) < zeros + heads, delta)
            return found.value - (1 - part) * found.terms["deviation"] >= true

        least = math.ceil(0.4 * coins)
        return bisect_left(range(coins), True, lo=least, key=covered) - 1 if not covered(least) else -1

    def log_rates(part: float) -> tuple[float, float]:
        """The logarithm of the probability of failing is between these: fewer heads fail if there are more zeros."""
        most = np.array([uncovered(k, part) for k in zeros])
        k = np.arange(zeros[0], zeros[-1])
        block = (k - zeros[0]) // step
        log = stats.binom.logpmf(k, n, share)
        tails = [np.logaddexp.reduce(log + stats.binom.logcdf(most[block + i], n - k, 0.5)) for i in (1, 0)]
        return float(tails[0]), float(np.logaddexp(tails[1], stats.binom.logcdf(zeros[0], n, share)))

    assert log_rates(1.0)[1] <= np.log(delta)
    assert log_rates(0.8)[0] > np.log(delta)
