"""Which α a log's radii were certified with: there are only n + 1 radii that n draws can give.

A radius r is certified by k votes at level α exactly when α = P(Binomial(n, Φ(r/σ)) >= k). A printed radius stands for
an interval of radii, so for every k it allows an interval of α. Far from the top these intervals overlap and say
nothing; near the top the possible radii are further apart than the printed digits, and only few α fit all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal.smoothing.robustness._binomial import certifying_probability, votes_tail

Range = tuple[float, float]

LEAST, MOST = 1e-15, 0.5
# Radii with more missing votes than this to be expected are too dense to say anything.
_MOST_MISSED = 500
# Levels that people choose, as digits of a power of ten.
_ROUND = (1.0, 2.0, 2.5, 5.0)


def fitting_alphas(lower: Any, upper: Any, *, sigma: float, n: int) -> tuple[Range, ...]:
    """All α for which every radius interval holds a radius that some number of votes out of ``n`` certifies.

    Parameters
    ----------
    lower, upper
        Ends of the interval that each printed radius stands for.
    sigma, n
        How the log was made.

    Examples
    --------
    >>> top = [3.81, 3.74, 3.69, 3.65]  # what 100000, 99999, 99998 and 99997 votes certify, as printed
    >>> ranges = fitting_alphas([r - 0.005 for r in top], [r + 0.005 for r in top], sigma=1.0, n=100_000)
    >>> [(round(low, 5), round(high, 5)) for low, high in ranges][0]
    (0.00087, 0.0011)
    """
    p_low, p_high = certifying_probability(lower, sigma), certifying_probability(upper, sigma)
    order = np.argsort(-p_high)
    ranges: list[Range] = [(LEAST, MOST)]
    for i in order:
        missed = n * (1.0 - p_low[i])
        if missed > _MOST_MISSED:
            break
        k = n - np.arange(min(n, int(missed + 8 * np.sqrt(missed + 1)) + 8) + 1, dtype=np.int64)
        ranges = _intersect(ranges, votes_tail(k, n, p_low[i]), votes_tail(k, n, p_high[i]))
        if not ranges:
            break
    return tuple(ranges)


def _intersect(ranges: Sequence[Range], low: NDArray[np.float64], high: NDArray[np.float64]) -> list[Range]:
    """Parts of the ranges that lie in one of the intervals, which ascend; touching parts are joined."""
    joined: list[list[float]] = []
    for start, stop in ranges:
        first, last = np.searchsorted(high, start, side="left"), np.searchsorted(low, stop, side="right")
        for j in range(int(first), int(last)):
            begin, end = max(start, float(low[j])), min(stop, float(high[j]))
            if joined and begin <= joined[-1][1]:
                joined[-1][1] = max(joined[-1][1], end)
            elif begin <= end:
                joined.append([begin, end])
    return [(begin, end) for begin, end in joined]


def round_alphas(ranges: Sequence[Range]) -> tuple[float, ...]:
    """The round numbers (1, 2, 2.5 or 5 times a power of ten) inside the ranges, largest first.

    Examples
    --------
    >>> round_alphas([(0.00095, 0.00103)]), round_alphas([(0.0007, 0.0009)])
    ((0.001,), ())
    """
    candidates = [float(f"{digits}e-{power}") for power in range(1, 15) for digits in _ROUND]
    return tuple(sorted((a for a in candidates if holds(ranges, a)), reverse=True))


def holds(ranges: Sequence[Range], alpha: float) -> bool:
    """Whether an α is inside one of the ranges, up to rounding.

    Examples
    --------
    >>> holds([(0.001, 0.002)], 0.002), holds([(0.001, 0.002)], 0.05)
    (True, False)
    """
    return any(start * (1 - 1e-9) <= alpha <= stop * (1 + 1e-9) for start, stop in ranges)
