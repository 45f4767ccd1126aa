"""Slow and obvious twins of what the bounds compute."""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np


def denoised(weight: list[int], total: list[int], price: float) -> np.ndarray:
    """Total variation denoising by the active set of its dual, solved exactly over all sign patterns for small n.

    A solution is described by what the differences do: fall, stay or rise. For each of the 3^(n-1) patterns the flat
    pieces have known values; the pattern is right when these values fall and rise as it says and the dual variables of
    the differences that stay are at most the price.
    """
    n, p = len(weight), Fraction(price)
    for pattern in _patterns(n - 1):
        values = [Fraction(0)] * n
        start = 0
        while start < n:
            stop = start + 1
            while stop < n and pattern[stop - 1] == 0:
                stop += 1
            before = pattern[start - 1] if start else 0
            after = pattern[stop - 1] if stop < n else 0
            level = (sum(map(Fraction, total[start:stop]), Fraction(0)) - p * (before - after)) / sum(
                weight[start:stop]
            )
            values[start:stop] = [level] * (stop - start)
            start = stop
        if _is_optimal(values, pattern, weight, total, p):
            return np.array([float(value) for value in values])
    raise AssertionError("no pattern is optimal")


def _patterns(n: int) -> Iterator[tuple[int, ...]]:
    if n == 0:
        yield ()
        return
    for rest in _patterns(n - 1):
        for step in (-1, 0, 1):
            yield (*rest, step)


def _is_optimal(
    values: list[Fraction], pattern: tuple[int, ...], weight: list[int], total: list[int], price: Fraction
) -> bool:
    dual = Fraction(0)
    for k, step in enumerate(pattern):
        change = values[k + 1] - values[k]
        if (change > 0) - (change < 0) != step:
            return False
        dual += weight[k] * values[k] - total[k]
        if abs(dual) > price or (step and dual != step * price):
            return False
    return True


def bucket_bound(s: np.ndarray, y: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Gap of the buckets that the labels name, and mean distance of the scores from their means, sample by sample."""
    gap = away = 0.0
    for label in set(labels.tolist()):
        inside = labels == label
        gap += abs(math.fsum(y[inside]) - math.fsum(s[inside]))
        away += np.abs(s[inside] - np.mean(s[inside])).sum()
    return gap / s.size, away / s.size


def lipschitz_bucketing(
    s: np.ndarray, y: np.ndarray, training: np.ndarray, edges: list[float], slope: float, delta: float
) -> dict[str, float]:
    """The terms of one partition and one split, sample by sample."""
    buckets = [[i for i, score in enumerate(s) if a <= score < b or score == b == 1.0] for a, b in pairwise(edges)]
    number = [sum(1 for i in bucket if training[i]) for bucket in buckets]
    log = math.log(3 * sum(1 for each in number if each) / (delta / 3))
    gaps, errors, every = [], [], []
    for bucket, n, (a, b) in zip(buckets, number, pairwise(edges), strict=True):
        mean = math.fsum(y[i] for i in bucket if training[i]) / n if n else 0.5
        deviation = math.sqrt(2 * mean * (1 - mean) * log / n) + 3 * log / n if n else 0.0
        error = min(1.0, slope * (b - a) + deviation) if n else 0.5
        held = [i for i in bucket if not training[i]]
        gaps += [abs(s[i] - mean) for i in held]
        errors += [error for _ in held]
        every.append(error)
    m, log = len(gaps), math.log(3 / (delta / 3))

    def deviation(values: list[float], largest: float) -> float:
        return largest * (math.sqrt(2 * np.var(np.array(values) / largest) * log / m) + 3 * log / m)

    return {
        "surrogate gap": math.fsum(gaps) / m,
        "bucketing error": math.fsum(errors) / m,
        "validation of the gap": deviation(gaps, 1.0),
        "validation of the error": deviation(errors, max(every)),
    }


def capital_of_buckets(
    s: np.ndarray, y: np.ndarray, labels: list[np.ndarray], bias: list[float], bets: np.ndarray, m: float
) -> float:
    """Logarithm of the mean capital against a calibration error m, over bets and ways to make buckets."""
    logs = []
    for each, part in zip(labels, bias, strict=True):
        for bet in bets:
            gains = [np.log(1 - sign * bet * (y - s)) for sign in (1, -1)]
            least = sum(min(gain[each == label].sum() for gain in gains) for label in set(each.tolist()))
            logs.append(least - s.size * (part * math.atanh(bet) + math.log1p(-bet * m)))
    return float(np.logaddexp.reduce(logs) - math.log(len(logs)))


def least_over_patterns(
    scores: np.ndarray, outcomes: np.ndarray, constant: float, bet: float, reach: tuple[np.ndarray, np.ndarray, float]
) -> float:
    """The least sum of log(1 - bet · X) over every choice of zeros of η - s and of its signs between them.

    A zero is just before a score. ``reach`` has the last score after it and the first before it where X is the largest
    that |η - s| can be, for both signs, and the largest such X.
    """
    last, first, largest = reach
    design = np.unique(scores)
    count, slope = design.size, math.log(1 - bet * largest) / largest
    steep = np.maximum([constant - 1, constant + 1], 0)  # of what rises and of what falls
    least = math.inf
    for size in range(count + 1):
        for zeros in combinations(range(count), size):
            for signs in product((0, 1), repeat=size + 1):
                if constant <= 1 and (0 in signs[1:] or 1 in signs[:-1]):
                    continue
                total = 0.0
                for sign, a, z in zip(signs, (None, *zeros), (*zeros, None), strict=True):
                    meet = a is not None and z is not None and last[sign, a] >= first[sign, z]
                    for i in range(a or 0, count if z is None else z):
                        x = outcomes[scores == design[i]] - design[i]
                        up = down = math.inf
                        if a is not None and (meet or i <= last[sign, a]):
                            up = steep[sign] * (design[i] - design[max(a - 1, 0)])
                        if z is not None and (meet or i >= first[sign, z]):
                            down = steep[1 - sign] * (design[z] - design[i])
                        known = min(up, down) < math.inf
                        gain = x.size * slope * min(up, down) if known else np.log(1 - (1 - 2 * sign) * bet * x).sum()
                        total += gain
                least = min(least, total)
    return least


def step_function(s: np.ndarray, design: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Value at the largest design point at or below each score; the first value below all."""
    return np.array([values[max(i for i in range(len(design)) if design[i] <= x or i == 0)] for x in s])


def least_capital(z: np.ndarray, c: np.ndarray, bins: np.ndarray, bets: np.ndarray, m: float) -> float:
    """Logarithm of the mean over bets of the capital against m, with the worst sign in every bin."""
    return capital_against(np.ones(z.size), c - z, np.zeros(z.size), bins, bets, m)


def capital_against(
    stake: np.ndarray, free: np.ndarray, fixed: np.ndarray, bins: np.ndarray, bets: np.ndarray, m: float
) -> float:
    """The same for values of which a part has a known sign, and for stakes from 0 to 1."""
    logs = []
    for bet in bets:
        total = 0.0
        for each in set(bins.tolist()):
            u, x, y = (values[bins == each] for values in (stake, free, fixed))
            total += min(np.log(1 + bet * u * (m - sign * x - y) / (1 - m)).sum() for sign in (1, -1))
        logs.append(total)
    return float(np.logaddexp.reduce(logs) - math.log(len(logs)))


def signs_before(order: np.ndarray, bins: np.ndarray, gaps: np.ndarray) -> np.ndarray:
    """The sign that the samples before each one in the order give to its bin, helped by the bins beside it."""
    signs, seen = np.zeros(gaps.size), {}
    for i in order.tolist():
        inside, left, right = (seen.get(int(bins[i]) + step, (0.0, 0.0)) for step in (0, -1, 1))
        beside, reach = (left[0] + right[0]) / 2, math.sqrt(1 + inside[1]) / 2
        signs[i] = 1 if inside[0] + max(-reach, min(reach, beside)) > 0 else -1
        seen[int(bins[i])] = inside[0] + gaps[i], inside[1] + gaps[i] ** 2
    return signs


def capital_from_below(stake: np.ndarray, values: list[np.ndarray], bets: np.ndarray, m: float) -> float:
    """Logarithm of the mean capital against an error of at most m, over bets and over the values in several orders."""
    logs = [np.log(1 + bet * stake * (x - m) / (1 + m)).sum() for x in values for bet in bets]
    return float(np.logaddexp.reduce(logs) - math.log(len(logs)))


def outcome_term(s: np.ndarray, y: np.ndarray, weights: np.ndarray, delta: float, candidates: int) -> float:
    """Deviation of a weighted sum of outcomes: Hoeffding's, or Bernstein's with the largest variance that is likely."""
    aside = delta / 64
    log, log_variance = math.log(candidates / (delta - aside)), math.log(1 / aside)
    seen = sum(w * w * (b - a) ** 2 for a, b, w in zip(s, y, weights, strict=True))
    largest = max(weights)
    low, high = 0.0, 1.0 + sum(w * w for w in weights)
    for _ in range(200):  # of the variances that exceed the squared errors by no more than their deviation, the largest
        v = (low + high) / 2
        likely = v <= seen + largest * math.sqrt(2 * v * log_variance) + largest**2 * log_variance / 3
        low, high = (v, high) if likely else (low, v)
    hoeffding = math.sqrt(sum(w * w for w in weights) * log / 2)
    return min(hoeffding, math.sqrt(2 * high * log) + largest * log / 3)


def capital_of_cuts(z: np.ndarray, c: np.ndarray, bets: np.ndarray, m: float, interval: bool) -> float:
    """Logarithm of the mean over bets of the capital against m, for the worst sign and the worst cut-off(s)."""
    ends = [-1.0, *sorted(set(z.tolist()))]
    cuts = [(a, b) for i, a in enumerate(ends) for b in ends[i:] if interval or a == -1.0]
    least = np.full(len(bets), np.inf)
    for low, high in cuts:
        inside = (z > low) & (z <= high)
        for sign in (1, -1):
            x = np.where(inside, sign * (c - z), 0.0)
            least = np.minimum(least, np.log(1 + bets[:, None] * (m - x) / (1 - m)).sum(axis=1))
    return float(np.logaddexp.reduce(least) - math.log(len(bets)))
