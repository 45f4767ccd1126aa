# pyright: basic
"""Averages of outcomes in a window that slides over sorted scores, and how much each outcome weighs in them.

Powers of the offsets from an anchor near the window are rounded once to multiples of a fixed unit and summed as
integers, so what enters the sums and leaves them again leaves no trace. Every two widths there is a new anchor.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certcal._kernels._compile import njit

# Windows whose average weight is below this have their scores at the edge. The samples nearest to the point
# answer instead.
LEAST_WEIGHT = 1.0 / 8.0
# Bits of the integers: their sums stay below 2**62, and no unit is finer than 2**-50.
SUM_BITS = 62
FINEST = 50
# Widths for which an anchor of sums of floats lasts: the farther it is, the more digits cancel, here one of sixteen.
LASTING = 2.0
# Points whose terms are summed on their own before they join the others.
BLOCK = 4096


@njit
def unit_bits(n: Any) -> Any:
    """How many bits after the point n powers of numbers in [-1, 1] may have."""
    bits = FINEST
    while bits > 0 and n > 2.0 ** (SUM_BITS - bits):
        bits -= 1
    return bits


@njit
def local_averages(
    train: Any,
    labels: Any,
    points: Any,
    width: Any,
    first: Any,
    second: Any,
    noise: Any,
    tight: Any,
    sides: Any,
    average: Any,
    error: Any,
    inverse: Any,
) -> Any:
    """Sums over the points of |point - average|, of the bound ``error``, and of their squares and product.

    ``train`` and ``points`` are sorted. Weights are 1 - u² for offsets u in widths. ``first`` and ``second`` bound the
    derivatives and ``noise`` is the largest standard deviation of an outcome. ``tight`` chooses between the bounds on
    the bias described in :func:`certcal.bounds.smooth`; without ``sides`` only Taylor's is looked at. Filled for each
    point: ``inverse``, one over the sum of the weights or, where the samples with the nearest score answer alone, minus
    one minus their first index; ``average`` and the bound ``error`` on its distance from the truth, unless these have
    no entries.
    """
    n = train.size
    scale = 2.0 ** unit_bits(n)
    unit = 1 / scale  # both are powers of two, so this is exact
    half = 0.5 / width
    anchor = 0.0
    lo = np.searchsorted(train, points[0] - width, side="right")
    mid = lo
    hi = lo
    t1 = t2 = t3 = t4 = r1 = r2 = r3 = r4 = y0 = y1 = y2 = np.int64(0)
    start = stop = equal = 0
    sums = np.zeros(5)
    p0 = p1 = p2 = p3 = p4 = 0.0
    for k in range(points.size):
        p = points[k]
        below = p - width
        above = p + width
        fresh = k == 0 or p - anchor > width
        if fresh:
            anchor = above
            while lo < n and train[lo] <= below:
                lo += 1
            mid = max(mid, lo)
            while mid < n and train[mid] <= p:
                mid += 1
            hi = lo + np.searchsorted(train[lo:], above)
            t1, t2, t3, t4 = _powers(train[lo:hi], anchor, half, scale)
            y0, y1, y2 = _powers_of_hits(train[lo:hi], labels[lo:hi], anchor, half, scale)
            if sides:
                r1, r2, r3, r4 = _powers(train[min(mid, hi) : hi], anchor, half, scale)
        while hi < n and train[hi] < above:
            v = (train[hi] - anchor) * half
            v2 = v * v
            i1 = np.int64(v * scale)
            i2 = np.int64(v2 * scale)
            i3 = np.int64(v2 * v * scale)
            i4 = np.int64(v2 * v2 * scale)
            t1 += i1
            t2 += i2
            t3 += i3
            t4 += i4
            if sides and hi >= mid:
                r1 += i1
                r2 += i2
                r3 += i3
                r4 += i4
            y = np.int64(labels[hi])
            y0 += y
            y1 += y * i1
            y2 += y * i2
            hi += 1
        if not fresh:
            while mid < hi and train[mid] <= p:
                if sides:
                    v = (train[mid] - anchor) * half
                    v2 = v * v
                    r1 -= np.int64(v * scale)
                    r2 -= np.int64(v2 * scale)
                    r3 -= np.int64(v2 * v * scale)
                    r4 -= np.int64(v2 * v2 * scale)
                mid += 1
            while lo < mid and train[lo] <= below:
                v = (train[lo] - anchor) * half
                v2 = v * v
                i1 = np.int64(v * scale)
                i2 = np.int64(v2 * scale)
                t1 -= i1
                t2 -= i2
                t3 -= np.int64(v2 * v * scale)
                t4 -= np.int64(v2 * v2 * scale)
                y = np.int64(labels[lo])
                y0 -= y
                y1 -= y * i1
                y2 -= y * i2
                lo += 1
        count = float(hi - lo)
        tau = (p - anchor) * half
        # Offsets from the point, in half widths: sums of their powers from those of the offsets from the anchor.
        a1, a2, a3, a4 = _sums_about(count, t1 * unit, t2 * unit, t3 * unit, t4 * unit, tau)
        total = count - 4 * a2
        if hi == lo or total < LEAST_WEIGHT * count:
            # Without a score in the window ``mid`` still separates the scores below the point from those above.
            near = mid
            if mid == n or (mid > 0 and p - train[mid - 1] <= train[mid] - p):
                near = mid - 1
            if not start <= near < stop:
                # All samples with that score answer: which of them comes first in the order says what its outcome is.
                start = near
                while start > 0 and train[start - 1] == train[near]:
                    start -= 1
                stop = near + 1
                while stop < n and train[stop] == train[near]:
                    stop += 1
                equal = 0
                for i in range(start, stop):
                    equal += np.int64(labels[i])
            bias = first * abs(p - train[near])
            if not tight:
                bias += 0.5 * second * (p - train[near]) ** 2
            mean = equal / (stop - start)
            wrong = bias + noise / np.sqrt(float(stop - start))
            inverse[k] = -1.0 - start
        else:
            over = 1 / total
            signed = (2 * a1 - 8 * a3) * over * width
            curved = 0.5 * second * (4 * a2 - 16 * a4) * over * width * width
            bias = first * abs(signed) + curved
            if sides:
                b1, _, b3, _ = _sums_about(float(hi - mid), r1 * unit, r2 * unit, r3 * unit, r4 * unit, tau)
                absolute = (2 * (2 * b1 - 8 * b3)) * over * width - signed
                bias = min(bias, first * absolute) if tight else first * absolute + curved
            good = y0 * (1 - 4 * tau * tau) + 8 * tau * (y1 * unit) - 4 * (y2 * unit)
            mean = min(max(good * over, 0.0), 1.0)
            wrong = bias
            if noise > 0:
                wrong += noise * np.sqrt(max(count - 8 * a2 + 16 * a4, 0.0)) * over
            inverse[k] = over
        if tight:
            wrong = min(wrong, 1.0)
        gap = abs(p - mean)
        p0 += gap
        p1 += wrong
        p2 += gap * gap
        p3 += wrong * wrong
        p4 += gap * wrong
        if k % BLOCK == 0:  # short sums first, so that rounding does not grow with the number of points
            sums += np.array((p0, p1, p2, p3, p4))
            p0 = p1 = p2 = p3 = p4 = 0.0
        if average.size:
            average[k] = mean
            error[k] = wrong
    return sums + np.array((p0, p1, p2, p3, p4))


@njit
def _powers(values: Any, anchor: Any, half: Any, scale: Any) -> Any:
    """Sums of the powers of offsets as whole numbers, in a loop that the compiler makes several at a time of."""
    t1 = t2 = t3 = t4 = np.int64(0)
    for i in range(values.size):
        v = (values[i] - anchor) * half
        v2 = v * v
        t1 += np.int64(v * scale)
        t2 += np.int64(v2 * scale)
        t3 += np.int64(v2 * v * scale)
        t4 += np.int64(v2 * v2 * scale)
    return t1, t2, t3, t4


@njit
def _powers_of_hits(values: Any, labels: Any, anchor: Any, half: Any, scale: Any) -> Any:
    """The number of outcomes 1, and the sums of the first two powers of their offsets."""
    y0 = y1 = y2 = np.int64(0)
    for i in range(values.size):
        v = (values[i] - anchor) * half
        y = np.int64(labels[i])
        y0 += y
        y1 += y * np.int64(v * scale)
        y2 += y * np.int64(v * v * scale)
    return y0, y1, y2


@njit
def _sums_about(m0: Any, m1: Any, m2: Any, m3: Any, m4: Any, by: Any) -> Any:
    """Power sums about another origin."""
    a1 = m1 - by * m0
    a2 = m2 - by * (2 * m1 - by * m0)
    a3 = m3 - by * (3 * m2 - by * (3 * m1 - by * m0))
    a4 = m4 - by * (4 * m3 - by * (6 * m2 - by * (4 * m1 - by * m0)))
    return a1, a2, a3, a4


@njit
def widest_gap(train: Any) -> Any:
    """The largest distance from a point of [0, 1] to the nearest of the sorted scores."""
    reach = max(train[0], 1 - train[-1])
    for i in range(1, train.size):
        reach = max(reach, 0.5 * (train[i] - train[i - 1]))
    return reach


@njit
def weights_alone(train: Any, inverse: Any, alone: Any) -> Any:
    """Fill ``alone`` with the weight that each sample has in points which it answers without a window."""
    alone[:] = 0.0
    for k in range(inverse.size):
        if inverse[k] < 0:
            alone[np.int64(-1.0 - inverse[k])] += 1
    i = 0
    while i < train.size:
        if alone[i] == 0:
            i += 1
            continue
        stop = i + 1
        while stop < train.size and train[stop] == train[i]:
            stop += 1
        alone[i:stop] = alone[i] / (stop - i)
        i = stop


@njit
def squared_weights(train: Any, errors: Any, alone: Any, points: Any, inverse: Any, width: Any) -> Any:
    """Sum over training scores of the square of the weight that all points together give to each, rounded up.

    Beside it the same sum with each square times the score's entry in ``errors``, unless that has none; and the largest
    weight.

    The reciprocal sums of weights enter and leave three running sums, of powers x^0, x^1 and x^2 of offsets from an
    anchor, |x| <= R = LASTING + 1. Terms leave as they entered, so only additions are rounded: each by at most u =
    2^-53 of a sum, which is at most R^k times the largest sum of x^0 since the anchor was set. A weight is made of the
    three with factors |1 - tau^2|, 2|tau| and 1 where |tau| <= R, so it is off by at most 4 R^2 u (additions) (largest
    sum): that is added twice, for the few roundings that are left.
    """
    m = points.size
    per = 1 / width
    slack = 8 * (LASTING + 1) ** 2 * 2.0**-53
    anchor = 0.0
    lo = hi = np.searchsorted(points, train[0] - width, side="right")
    s0 = s1 = s2 = peak = 0.0
    began = lo
    result = with_errors = largest = 0.0
    for i in range(train.size):
        t = train[i]
        below = t - width
        above = t + width
        fresh = i == 0 or t - anchor > LASTING * width
        if fresh:
            anchor = t + LASTING * width
            s0 = s1 = s2 = peak = 0.0
            while lo < m and points[lo] <= below:
                lo += 1
            hi = began = lo
        while hi < m and points[hi] < above:
            if inverse[hi] > 0:
                x = (points[hi] - anchor) * per
                s0 += inverse[hi]
                s1 += inverse[hi] * x
                s2 += inverse[hi] * x * x
            hi += 1
        peak = max(peak, s0)
        if not fresh:
            while lo < hi and points[lo] <= below:
                if inverse[lo] > 0:
                    x = (points[lo] - anchor) * per
                    s0 -= inverse[lo]
                    s1 -= inverse[lo] * x
                    s2 -= inverse[lo] * x * x
                lo += 1
        tau = (t - anchor) * per
        weight = max(s0 * (1 - tau * tau) + 2 * tau * s1 - s2, 0.0) + slack * (hi - began + 16) * 2 * peak
        if alone.size:
            weight += alone[i]
        result += weight * weight
        largest = max(largest, weight)
        if errors.size:
            with_errors += weight * weight * errors[i]
    return result, with_errors, largest


@njit
def split_fold(scores: Any, outcomes: Any, fold: Any, held: Any, train: Any, labels: Any, points: Any) -> Any:
    """Copy the sorted samples of one fold to ``points`` and the others to ``train`` and ``labels``.

    Each has room for one sample more: both sides are written every time, which spares a branch nobody can predict.
    """
    a = b = 0
    for i in range(scores.size):
        train[a] = scores[i]
        labels[a] = outcomes[i]
        points[b] = scores[i]
        mine = np.int64(fold[i] == held)
        a += 1 - mine
        b += mine
