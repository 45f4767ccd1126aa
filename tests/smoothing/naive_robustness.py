"""Slow and obvious versions of the robustness numbers, in whole numbers and fractions where that is possible."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from statistics import NormalDist

NORMAL = NormalDist()


def tail(k: int, n: int, p: Fraction) -> Fraction:
    """P(Binomial(n, p) >= k), exactly."""
    a, b = p.numerator, p.denominator
    return Fraction(sum(math.comb(n, j) * a**j * (b - a) ** (n - j) for j in range(k, n + 1)), b**n)


@cache
def smallest_votes(p: float, n: int, alpha: float) -> int:
    for k in range(n + 1):
        if tail(k, n, Fraction(p)) <= Fraction(alpha):
            return k
    return n + 1


@cache
def lower_bound(k: int, n: int, alpha: float) -> float:
    """Clopper–Pearson by bisection on the exact tail."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        if tail(k, n, Fraction(middle)) <= Fraction(alpha):
            low = middle
        else:
            high = middle
    return low


def radius(k: int, n: int, sigma: float, alpha: float) -> float | None:
    """Certified radius, None for an abstention."""
    p = lower_bound(k, n, alpha)
    return sigma * NORMAL.inv_cdf(p) if p >= 0.5 else None


def certified_accuracy(radii: Sequence[float | None], correct: Sequence[int], at: float) -> Fraction:
    hits = sum(1 for r, c in zip(radii, correct, strict=True) if r is not None and c and r >= at)
    return Fraction(hits, len(correct))


def survival(votes: Sequence[int], draws: int, correct: Sequence[int], p: Fraction) -> Fraction:
    """Share of samples with p_A >= p."""
    hits = sum(1 for k, c in zip(votes, correct, strict=True) if c and Fraction(k, draws) >= p)
    return Fraction(hits, len(correct))


def verdict(a: Callable[[Fraction], Fraction], b: Callable[[Fraction], Fraction], grid: int) -> tuple[str, bool]:
    """Dominance of two curves P(p_A >= p), looked at on every multiple of 1 / grid from 1/2 to 1."""
    points = [Fraction(i, grid) for i in range(grid // 2, grid + 1)]
    signs = [(a(p) > b(p)) - (a(p) < b(p)) for p in points]
    if all(sign == 0 for sign in signs):
        return "equal", False
    if min(signs) >= 0:
        return "first", min(signs) > 0
    if max(signs) <= 0:
        return "second", max(signs) < 0
    return "neither", False


def e_value(votes: Sequence[int], p0: Fraction) -> Fraction:
    """Betting one vote after the other: the odds of the Krichevsky–Trofimov predictor against p0, exactly."""
    wealth, k = Fraction(1), 0
    for n, vote in enumerate(votes):
        believed = (k + Fraction(1, 2)) / (n + 1)
        wealth *= believed / p0 if vote else (1 - believed) / (1 - p0)
        k += vote
    return wealth


def walk(
    p: float, budget: int, decided: Callable[[int, int], str | None], value: Callable[[int, int], float]
) -> tuple[dict[str, float], float]:
    """Exact probabilities of each verdict when votes have probability p, and the mean value where the walk ends.

    Dynamic programming over (k, n): at every n the probability of each k of the walks that are not decided yet.
    """
    alive = {0: 1.0}
    ends: dict[str, float] = {}
    mean = 0.0
    for n in range(1, budget + 1):
        after: dict[int, float] = {}
        for k, chance in alive.items():
            after[k] = after.get(k, 0.0) + chance * (1 - p)
            after[k + 1] = after.get(k + 1, 0.0) + chance * p
        alive = {}
        for k, chance in after.items():
            said = decided(k, n)
            if said is None:
                alive[k] = chance
            else:
                ends[said] = ends.get(said, 0.0) + chance
                mean += chance * value(k, n)
    mean += sum(chance * value(k, budget) for k, chance in alive.items())
    return ends, mean


def beyond_chance(pairs: Sequence[tuple[Fraction, Fraction]], level: Fraction, grid: int) -> set[tuple[int, Fraction]]:
    """Who is ahead (0 or 1) at which p, by sign tests on multiples of 1 / grid: up from 1/2, up and down from 0.9."""
    points = [Fraction(i, grid) for i in range(grid // 2, grid + 1)]
    beginning = points.index(Fraction(9, 10))
    orders = [points, points[beginning:], points[beginning::-1]]
    found: set[tuple[int, Fraction]] = set()
    for side in (0, 1):
        for order in orders:
            for p in order:
                alone = sum(1 for pair in pairs if pair[side] >= p > pair[1 - side])
                other = sum(1 for pair in pairs if pair[1 - side] >= p > pair[side])
                if alone == 0 or tail(alone, alone + other, Fraction(1, 2)) > level / 5:
                    break
                found.add((side, p))
    return found
