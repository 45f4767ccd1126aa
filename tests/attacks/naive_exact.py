"""Slow twins of what steers the exact adversary: all sign patterns, and reach one sample at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np


def error(z: Sequence[float], correct: Sequence[int], edges: Sequence[float]) -> float:
    """The calibration error, bin by bin; bins are closed on the left."""
    gaps = [0.0] * (len(edges) - 1)
    for each, c in zip(z, correct, strict=True):
        gaps[max(m for m in range(len(gaps)) if edges[m] <= each)] += c - each
    return sum(abs(gap) for gap in gaps) / len(z)


def aims(
    low: Sequence[float],
    high: Sequence[float],
    now: Sequence[float],
    correct: Sequence[int],
    edges: Sequence[float],
    rules: tuple[float, float, float],
) -> tuple[float, list[float]]:
    """Largest calibration error over all 2^M sign patterns, and where each sample aims.

    ``rules`` are the margin in widths of a bin, the margin in parts of the way, and what is enough.
    """
    bins = len(edges) - 1
    best, chosen = -np.inf, []
    for signs in product((1, -1), repeat=bins):
        total, places = 0.0, []
        for least, most, c in zip(low, high, correct, strict=True):
            options = []
            for m in range(bins):
                bottom, top = max(least, edges[m]), min(most, edges[m + 1])
                if bottom < top or (bottom == top and bottom < edges[m + 1]):
                    z = bottom if signs[m] > 0 else top
                    options.append((signs[m] * (c - z), m, z))
            worth, m, z = max(options)
            total += worth
            places.append((m, z))
        if total > best:
            best, chosen = total, places
    far = [least if c else most for least, most, c in zip(low, high, correct, strict=True)]
    if error(far, correct, edges) >= rules[2] * best / len(low):
        return best / len(low), far
    out = []
    for (m, z), least, most, here in zip(chosen, low, high, now, strict=True):
        width = edges[m + 1] - edges[m]
        margin = min(max(rules[1] * abs(z - here), rules[0] * width), 0.5 * width)
        inside = min(max(z, edges[m] + margin), edges[m + 1] - margin)
        out.append(min(max(inside, least), most))
    return best / len(low), out


def reach(
    gradient: np.ndarray,
    clean: np.ndarray,
    moved: np.ndarray,
    log_odds: float,
    epsilon: float,
    left: float,
    norm: str,
    box: tuple[float, float],
) -> tuple[float, float]:
    """Lowest and highest confidence of one sample, to first order in its log odds."""
    ends = []
    for way in (-1, 1):
        followed = [
            0.0
            if (way * g < 0 and x <= box[0])
            or (way * g > 0 and x >= box[1])
            or (norm == "linf" and math.copysign(1, way * g) * (x - start) >= epsilon)
            else g
            for g, x, start in zip(gradient, moved, clean, strict=True)
        ]
        size = sum(abs(g) for g in followed) if norm == "linf" else sum(g * g for g in followed) ** 0.5
        already = sum(way * g * (x - start) for g, x, start in zip(followed, moved, clean, strict=True))
        gain = max(0.0, min(size * epsilon - already, size * left))
        ends.append(1 / (1 + math.exp(-(log_odds + way * gain))))
    return ends[0], ends[1]
