# pyright: basic
"""Capital of bets against a calibration error: see ``bounds/_binned.py``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from certcal._kernels._compile import njit


@njit
def _gain(sign: Any, hit: Any, low: Any, high: Any, share: Any, bet: Any, m: Any) -> Any:
    """A lower limit for the mean logarithm of the gains of confidences in [low, high] whose mean is at ``share``.

    The logarithm is concave in the confidence, so it lies above the chord.
    """
    scale = bet / (1.0 - m)
    first = math.log(1.0 - bet + scale * (1.0 - sign * (hit - low)))
    if share == 0.0:
        return first
    return (1.0 - share) * first + share * math.log(1.0 - bet + scale * (1.0 - sign * (hit - high)))


@njit
def log_capital(cells: Any, owner: Any, signs: Any, bets: Any, m: Any) -> Any:
    """Logarithm of the mean over the bets of the least capital against m that any signs (or the given ones) leave.

    Rows of ``cells``: number of samples, whether correct, least and largest confidence, and where the mean confidence
    is between them, from 0 to 1. Cells of one bin stand together; a sign 0 means that both are tried.
    """
    logs = np.zeros(len(bets))
    for index in range(len(bets)):
        bet = bets[index]
        row, total = 0, 0.0
        while row < len(owner):
            plus, minus, start = 0.0, 0.0, owner[row]
            while row < len(owner) and owner[row] == start:
                number, hit, low, high, share = cells[row]
                if signs[start] >= 0:
                    plus += number * _gain(1.0, hit, low, high, share, bet, m)
                if signs[start] <= 0:
                    minus += number * _gain(-1.0, hit, low, high, share, bet, m)
                row += 1
            if signs[start] > 0:
                total += plus
            elif signs[start] < 0:
                total += minus
            else:
                total += min(plus, minus)
        logs[index] = total
    top = logs.max()
    mean = 0.0
    for index in range(len(bets)):
        mean += math.exp(logs[index] - top)
    return top + math.log(mean / len(bets))


def _largest_mean(cells: Any, owner: Any, signs: Any, bets: Any, target: Any) -> Any:
    """The loop itself: over lists it takes half the time."""
    capital, low, high = log_capital.interpreted, -1.0, 1.0
    given = cells.tolist(), owner.tolist(), signs.tolist(), bets.tolist()
    for _ in range(41):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if capital(*given, middle) >= target else (middle, high)
    return high


@njit(patience=1 << 11, in_numpy=_largest_mean)
def largest_mean(cells: Any, owner: Any, signs: Any, bets: Any, target: Any) -> Any:
    """The smallest m found, to within 1e-12, at which the capital is at least exp(target); 1 when there is none."""
    low, high = -1.0, 1.0
    for _ in range(41):
        middle = 0.5 * (low + high)
        if log_capital(cells, owner, signs, bets, middle) >= target:
            high = middle
        else:
            low = middle
    return high
