"""Slow, obvious versions of what is fast in the room: every pair of rows is looked at."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations


def complete(x: Sequence[float], y: Sequence[float]) -> list[tuple[float, float]]:
    """The rows that both columns have."""
    return [(a, b) for a, b in zip(x, y, strict=True) if not (math.isnan(a) or math.isnan(b))]


def kendall(x: Sequence[float], y: Sequence[float]) -> float:
    """Concordant minus discordant pairs over the root of the product of the pairs that are not tied."""
    score = in_x = in_y = 0
    for (a, b), (c, d) in combinations(complete(x, y), 2):
        across, up = (a > c) - (a < c), (b > d) - (b < d)
        score += across * up
        in_x += across != 0
        in_y += up != 0
    return score / math.sqrt(in_x * in_y) if in_x and in_y else math.nan


def mean_ranks(values: Sequence[float]) -> list[Fraction]:
    """One more than the number of smaller values, and half of the other equal ones."""
    return [
        1 + sum(other < value for other in values) + Fraction(sum(other == value for other in values) - 1, 2)
        for value in values
    ]


def spearman(x: Sequence[float], y: Sequence[float]) -> float:
    """Pearson's correlation of the ranks."""
    rows = complete(x, y)
    if len(rows) < 2:
        return math.nan
    u, v = (mean_ranks(column) for column in zip(*rows, strict=True))
    middle = Fraction(len(rows) + 1, 2)
    product = sum((a - middle) * (b - middle) for a, b in zip(u, v, strict=True))
    squares = sum((a - middle) ** 2 for a in u) * sum((b - middle) ** 2 for b in v)
    return float(product) / math.sqrt(squares) if squares else math.nan
