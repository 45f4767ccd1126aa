# pyright: basic
"""Squared error of logistic maps over boxes of their two parameters: value, slope, and what it cannot fall below."""

from __future__ import annotations

from typing import Any

import numpy as np

from certcal._kernels._compile import njit

# Where the second derivative of σ(t)² in t, 2σ²(1-σ)(2-3σ), has its minimum: the larger root of 12σ² - 15σ + 4.
_DEEPEST = (15 + 33**0.5) / 24


@njit
def _sigmoids(t: Any) -> Any:
    """σ(t) and σ(-t), each with all its digits."""
    e = np.exp(-abs(t))
    large, small = 1 / (1 + e), e / (1 + e)
    return (large, small) if t >= 0 else (small, large)


@njit
def _bend(s: Any) -> Any:
    """Second derivative of σ(t)² in t, from s = σ(t)."""
    return 2 * s * s * (1 - s) * (2 - 3 * s)


@njit
def _least_bend(low: Any, high: Any) -> Any:
    """The least of it for σ from low to high: at an end, or at its only minimum when that is inside."""
    if low < _DEEPEST < high:
        return _bend(_DEEPEST)
    return min(_bend(low), _bend(high))


@njit
def box_bounds(place: Any, weight: Any, low: Any, high: Any, at: Any, out: Any) -> None:
    """For each box of parameters (a, q), sums over places of weight·(c - σ(a·u + q))² and what bounds them below."""
    for b in range(low.shape[0]):
        a0, a1, q0, q1 = low[b, 0], high[b, 0], low[b, 1], high[b, 1]
        a, q = at[b, 0], at[b, 1]
        wide, tall = a1 - a0, q1 - q0
        value = slope_a = slope_q = aa = aq = qq = ends = size = 0.0
        for i in range(place.shape[0]):
            x, y = place[i, 0], place[i, 1]
            right, wrong = weight[i, 0], weight[i, 1]
            above, above_left = _sigmoids((a1 * x if x > 0 else a0 * x) + q1)  # the best that a correct one can get
            below, below_left = _sigmoids((a0 * y if y > 0 else a1 * y) + q0)
            ends += max(weight[i, 2], right * above_left * above_left + wrong * below * below)
            if right > 0:
                other = below_left if x == y else _sigmoids((a0 * x if x > 0 else a1 * x) + q0)[1]
                s, left = _sigmoids(a * x + q)
                bend = right * _least_bend(above_left, other)
                slope = -2 * right * left * left * s
                reach = wide * abs(x) + tall
                value += right * left * left
                slope_a += slope * x
                slope_q += slope
                aa += bend * x * x
                aq += bend * x
                qq += bend
                size += (abs(slope) + 0.5 * abs(bend) * reach) * reach
            if wrong > 0:
                other = above if x == y else _sigmoids((a1 * y if y > 0 else a0 * y) + q1)[0]
                s, left = _sigmoids(a * y + q)
                bend = wrong * _least_bend(below, other)
                slope = 2 * wrong * s * s * left
                reach = wide * abs(y) + tall
                value += wrong * s * s
                slope_a += slope * y
                slope_q += slope
                aa += bend * y * y
                aq += bend * y
                qq += bend
                size += (abs(slope) + 0.5 * abs(bend) * reach) * reach
        out[b, 0], out[b, 1], out[b, 2] = value, slope_a, slope_q
        out[b, 3], out[b, 4], out[b, 5] = aa, aq, qq
        out[b, 6], out[b, 7] = ends, size
