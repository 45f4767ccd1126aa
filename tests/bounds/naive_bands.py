"""Slow, obvious twins of the bands for a calibration function."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.stats import beta

CELLS = 65536


def clopper_pearson(count: int, n: int, alpha: float) -> tuple[float, float]:
    """Lower and upper limit, each at level alpha."""
    lower = float(beta.ppf(alpha, count, n - count + 1)) if count else 0.0
    return lower, float(beta.ppf(1 - alpha, count + 1, n - count)) if count < n else 1.0


def poisson_binomial(p: Any) -> list[Fraction]:
    """Probabilities of 0, 1, 2 … successes of independent draws with probabilities of their own."""
    found = [Fraction(1)]
    for each in map(Fraction, p):
        hit = [Fraction(0), *(each * value for value in found)]
        miss = [*((1 - each) * value for value in found), Fraction(0)]
        found = [a + b for a, b in zip(hit, miss, strict=True)]
    return found


def intervals(blocks: int, n: int) -> dict[int, list[int]]:
    """First blocks of the intervals of each length."""
    lengths, power = {blocks}, 1
    while power <= blocks:
        lengths |= {power} | ({power * 3 // 2} if power > 1 else set())
        power *= 2
    least = min(8 * blocks // n, blocks)
    found: dict[int, list[int]] = {}
    for length in sorted(lengths):
        if least <= length <= blocks:
            starts = range(0, blocks - length + 1, max(1, length // 4))
            found[length] = sorted({*starts, blocks - length})
    return found


def isotonic_band(scores: Any, outcomes: Any, delta: float, points: Any, *, all_pairs: bool = False) -> Any:
    """Ends at the points from every interval by itself; with ``all_pairs`` the published band."""
    places = sorted(set(scores))
    hits = {place: [y for s, y in zip(scores, outcomes, strict=True) if s == place] for place in places}

    def ends(order: list[float], value: int, alpha_of: Any, sets: dict[int, list[int]]) -> list[tuple[float, float]]:
        """The last place of each interval, in this order, with the limit for a probability of the value."""
        found = []
        for length, starts in sets.items():
            for start in starts:
                inside = [y for place in order[start : start + length] for y in hits[place]]
                limit, _ = clopper_pearson(sum(y == value for y in inside), len(inside), alpha_of(length))
                found.append((order[start + length - 1], limit))
        return found

    k = len(places)
    sets = intervals(k, len(scores)) if not all_pairs else {m: list(range(k - m + 1)) for m in range(1, k + 1)}

    def alpha_of(length: int) -> float:
        return delta / (k * (k + 1)) if all_pairs else delta / 2 / len(sets) / len(sets[length])

    lower = ends(places, 1, alpha_of, sets)
    upper = ends(places[::-1], 0, alpha_of, sets)
    return (
        np.array([max((limit for place, limit in lower if place <= x), default=0.0) for x in points]),
        np.array([1 - max((limit for place, limit in upper if place >= x), default=0.0) for x in points]),
    )


def surrogate(scores: Any, outcomes: Any, first: float, second: float, delta: float) -> Any:
    """Places and ends, with every window's samples looked at one by one."""
    s, y = np.asarray(scores, float), np.asarray(outcomes, int)
    apart = max(2 / 1024 / first, math.sqrt(8 / 1024 / second))
    count = 2 ** min(max(5, math.ceil(-math.log2(apart))), 12)
    places = [i / count for i in range(count + 1)]
    cell = np.minimum((s * CELLS).astype(int), CELLS - 1)
    widths = {min(max(1, round(2 ** (power / 2) / first * CELLS)), CELLS) for power in range(-16, 7)}
    chosen: list[Any] = []
    for x in places:
        best: Any = (math.inf, None, 1.0)
        for width in sorted(widths):
            start, stop = max(round(x * CELLS) - width, 0), min(round(x * CELLS) + width, CELLS)
            inside = (cell >= start) & (cell < stop)
            m = int(inside.sum())
            if not m:
                continue
            offset = s[inside] - x
            bias = first * float(np.abs(offset).mean())
            if math.isfinite(second):
                bias = min(bias, first * abs(float(offset.mean())) + second / 2 * float((offset**2).mean()))
            log = math.log(2 * len(places) / delta)
            cost = bias + math.sqrt(2 * log * x * (1 - x) / m) + log / m
            if cost < best[0] - 1e-9:
                best = (cost, (start, stop), bias)
        chosen.append(best)
    several = {window for _, window, _ in chosen if window is not None}
    lower, upper = [], []
    for _, window, bias in chosen:
        ends = (0.0, 1.0)
        if window is not None:
            inside = (cell >= window[0]) & (cell < window[1])
            ends = clopper_pearson(int(y[inside].sum()), int(inside.sum()), delta / 2 / len(several))
            ends = ends[0] - bias, ends[1] + bias
        lower.append(ends[0])
        upper.append(ends[1])
    off = min(first / (2 * count), second / (8 * count**2))
    far = [first * np.abs(np.array(places) - x) for x in places]
    low = [np.max(np.array(lower) - each) - off for each in far]
    high = [np.min(np.array(upper) + each) + off for each in far]
    return np.array(places), np.clip(low, 0, 1), np.clip(high, 0, 1)
