"""Slow twins of the weights in training for the average certified radius: by bisection, from sums of binomials."""

from __future__ import annotations

import math
from statistics import NormalDist


def binomial_bound(count: int, draws: int, alpha: float) -> float:
    """The probability at which so many successes or more have the chance alpha."""
    if count == 0:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(100):
        p = (low + high) / 2
        chance = sum(math.comb(draws, k) * p**k * (1 - p) ** (draws - k) for k in range(count, draws + 1))
        low, high = (p, high) if chance < alpha else (low, p)
    return low


def radius_weight(count: int, draws: int, alpha: float, floor: float) -> float:
    """The weight of one sample."""
    bound = binomial_bound(count, draws, alpha)
    if bound <= floor:
        return 1.0
    return NormalDist().inv_cdf(bound) / NormalDist().inv_cdf(floor)
