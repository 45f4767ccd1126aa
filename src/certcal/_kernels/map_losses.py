# pyright: basic
"""Losses of calibration maps.

Derivatives of the loss of temperature scaling in one pass over the logits; and the squared error of logistic maps over
boxes of their two parameters: value, slope, and what it cannot fall below.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from certcal._kernels._compile import njit

LANES = 32  # rows worked on at once: sums of a row stay in one lane, so nothing is reordered
CHUNK = 32  # classes worked on at once: the scratch arrays stay in the fastest cache

# exp(v) = 2ⁿ exp(r) with n the whole number nearest to v / ln 2 and |r| <= ln(2)/2. Adding SHIFT rounds to n and leaves
# it in the lowest bits, from where it goes into the exponent. Of exp(r) the series up to r¹² is off by 2e-16.
PER_LOG_2 = 1.4426950408889634
LOG_2_HIGH, LOG_2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
SHIFT = 1.5 * 2.0**52
EXPONENT = np.int64(52)
E2, E3, E4, E5, E6, E7, E8, E9, E10, E11, E12 = (1 / math.factorial(k) for k in range(2, 13))

# exp of it is the smallest normal number but two: what is further below the largest logit counts as this far.
FLOOR = -708.0


# Products may be fused with sums, which only makes them more exact.
@njit(fastmath={"contract"})
def exponentials(values: Any, factor: Any, out: Any) -> None:
    """Fill ``out`` with exp(factor · value), for products in [FLOOR, 0], to 4e-16 of each; compiles to vectors."""
    for j in range(values.size):
        v = factor * values[j]
        shifted = v * PER_LOG_2 + SHIFT
        n = shifted - SHIFT
        r = (v - n * LOG_2_HIGH) - n * LOG_2_LOW
        high = E7 + r * (E8 + r * (E9 + r * (E10 + r * (E11 + r * E12))))
        series = 1.0 + r * (1.0 + r * (E2 + r * (E3 + r * (E4 + r * (E5 + r * (E6 + r * high))))))
        bits = np.float64(series).view(np.int64) + (np.float64(shifted).view(np.int64) << EXPONENT)
        out[j] = np.int64(bits).view(np.float64)


@njit(fastmath={"contract"})
def _add_powers(values: Any, shares: Any, sums: Any) -> None:
    """Add shares times the powers 0 to 3 of the values to the lanes of the sums."""
    zeroth, first, second, third = sums[0], sums[1], sums[2], sums[3]
    for j in range(LANES):
        x = values[j]
        e = shares[j]
        zeroth[j] += e
        e *= x
        first[j] += e
        e *= x
        second[j] += e
        third[j] += e * x


@njit
def row_tops(logits: Any, tops: Any) -> None:
    """Fill ``tops`` with the largest logit of each row."""
    rows, classes = logits.shape
    whole = classes - classes % LANES
    best = np.empty(LANES, logits.dtype)
    for i in range(rows):
        row = logits[i]
        top = row[0]
        if whole:
            best[:] = row[:LANES]
            for start in range(LANES, whole, LANES):
                for j in range(LANES):
                    best[j] = row[start + j] if row[start + j] > best[j] else best[j]
            for j in range(LANES):
                top = best[j] if best[j] > top else top
        for k in range(whole, classes):
            top = row[k] if row[k] > top else top
        tops[i] = top


@njit
def derivatives(logits: Any, labels: Any, weights: Any, tops: Any, inverse: Any) -> Any:
    """First three derivatives of Σ w·loss in the inverse temperature β; empty weights stand for ones.

    Per row, with p = softmax(βx) and x counted from the row's largest: loss = log Σ exp(βx) - βx_y, so the first is
    E_p x - x_y and the next are the variance and the third central moment of x under p.
    """
    rows, classes = logits.shape
    floor = FLOOR / inverse
    values = np.zeros((CHUNK, LANES))
    shares = np.empty((CHUNK, LANES))
    sums = np.empty((4, LANES))
    slope, curvature, third = 0.0, 0.0, 0.0
    for begin in range(0, rows, LANES):
        count = min(LANES, rows - begin)
        sums[:] = 0.0
        for start in range(0, classes, CHUNK):
            width = min(CHUNK, classes - start)
            for j in range(count):
                row = logits[begin + j]
                top = tops[begin + j]
                for k in range(width):
                    x = np.float64(row[start + k]) - top
                    values[k, j] = x if x > floor else floor
            exponentials(values[:width].reshape(-1), inverse, shares[:width].reshape(-1))
            for k in range(width):
                _add_powers(values[k], shares[k], sums)
        for j in range(count):
            i = begin + j
            total = sums[0, j]
            mean = sums[1, j] / total
            square = sums[2, j] / total
            weight = weights[i] if weights.size else 1.0
            slope += weight * (mean - (np.float64(logits[i, labels[i]]) - tops[i]))
            curvature += weight * max(0.0, square - mean * mean)
            third += weight * (sums[3, j] / total - 3.0 * mean * square + 2.0 * mean * mean * mean)
    return slope, curvature, third


@njit
def row_losses(logits: Any, labels: Any, out: Any) -> None:
    """Log Σ exp(x) - x(label) of every row.

    What lies further below the largest logit than FLOOR counts as FLOOR, which adds less than 1e-300. The sum goes
    through as many lanes as fit, so that its rounding stays below classes / LANES units in the last place.
    """
    rows, classes = logits.shape
    width = (classes + LANES - 1) // LANES * LANES
    values, shares, lanes = np.full(width, FLOOR), np.empty(width), np.empty(LANES)
    tops = np.empty(rows, logits.dtype)
    row_tops(logits, tops)
    for i in range(rows):
        row = logits[i]
        top = np.float64(tops[i])
        for k in range(classes):
            x = np.float64(row[k]) - top
            values[k] = x if x > FLOOR else FLOOR
        exponentials(values, 1.0, shares)
        lanes[:] = 0.0
        for start in range(0, width, LANES):
            for j in range(LANES):
                lanes[j] += shares[start + j]
        out[i] = math.log(lanes.sum()) - (np.float64(row[labels[i]]) - top)


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
