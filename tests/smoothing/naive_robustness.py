"""Slow and obvious versions of the robustness numbers, in whole numbers and fractions where that is possible."""

import math
from collections.abc import Callable, Mapping, Sequence
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


def steps(alive: Mapping[int, float], p: float, draws: int) -> dict[int, float]:
    """Chances of each number of votes after some more draws, one by one."""
    now = dict(alive)
    for _ in range(draws):
        after: dict[int, float] = {}
        for k, chance in now.items():
            after[k] = after.get(k, 0.0) + chance * (1 - p)
            after[k + 1] = after.get(k + 1, 0.0) + chance * p
        now = after
    return now


def walk(p: float, rule: Mapping[int, tuple[int, int]]) -> dict[str, float]:
    """Exact probabilities of each verdict when votes have probability p.

    ``rule`` has, for each look, the most votes for "below" and the fewest for "above".
    """
    alive, before, ends = {0: 1.0}, 0, {"above": 0.0, "below": 0.0}
    for n, (below, above) in rule.items():
        alive, before = steps(alive, p, n - before), n
        ends["below"] += sum(chance for k, chance in alive.items() if k <= below)
        ends["above"] += sum(chance for k, chance in alive.items() if k >= above)
        alive = {k: chance for k, chance in alive.items() if below < k < above}
    return ends


def boundaries(p0: float, looks: Sequence[int], alpha: float, alpha_below: float) -> dict[int, tuple[int, int]]:
    """The closest boundaries that spend no more than an even share of the levels; of alpha, half is for the last."""
    rule: dict[int, tuple[int, int]] = {}
    alive, before, spent_below, spent_above = {0: 1.0}, 0, 0.0, 0.0
    for j, n in enumerate(looks, 1):
        part = j / len(looks)
        allowed = alpha if part == 1 else alpha * part / 2
        alive, before = steps(alive, p0, n - before), n
        low = {b: spent_below + sum(chance for k, chance in alive.items() if k <= b) for b in range(-1, n + 1)}
        high = {a: spent_above + sum(chance for k, chance in alive.items() if k >= a) for a in range(n + 2)}
        below = max(b for b, chance in low.items() if chance <= alpha_below * part)
        above = min(a for a, chance in high.items() if chance <= allowed)
        rule[n], spent_below, spent_above = (below, above), low[below], high[above]
        alive = {k: chance for k, chance in alive.items() if below < k < above}
    return rule


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
