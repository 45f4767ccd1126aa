# pyright: basic
"""Total variation denoising on a line, exactly and in linear time, and the step function it gives.

The problem: minimise Σ_k (w_k v_k²/2 - t_k v_k) + p Σ_k |v_{k+1} - v_k| over v, for weights w_k > 0 and totals t_k
(weight times observation), that is weighted least squares with a price p per unit of variation.

The method is dynamic programming over the derivative of the message "least cost of all points up to k, given that v_k
is x". That derivative is continuous, piecewise linear and rising; to pass on to point k + 1 it is clipped to [-p, p].
Each clip removes corners at the ends and adds one on each side, so all n clips together cost O(n). The places of the
clips are all that is needed to read the solution backwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certcal._kernels._compile import njit

# Numbers added before the partial sum moves on, so that no sum loses more than about as many units in the last place.
BLOCK = 128


@njit
def denoise(weight: Any, total: Any, price: Any) -> Any:
    """The minimiser, one value per point."""
    n = weight.size
    out = np.empty(n, np.float64)
    if n == 1 or price == 0.0:
        for k in range(n):
            out[k] = total[k] / weight[k]
        return out
    low, high = np.empty(n, np.float64), np.empty(n, np.float64)
    # Corners of the derivative: where they are, and by how much slope and offset change there. They sit in the middle
    # of arrays that are long enough for any path; pages that are never reached cost nothing.
    place, slope, offset = np.empty(2 * n + 2), np.empty(2 * n + 2), np.empty(2 * n + 2)
    first, last = n, n - 1  # no corners yet
    left_base, right_base = 0.0, 0.0  # the derivative before the first and behind the last corner, without point k
    for k in range(n):
        w, t = np.float64(weight[k]), np.float64(total[k])
        end = -price if k < n - 1 else 0.0
        # Walk from the left to where the derivative reaches -price (for the last point: 0, the minimum).
        a, b = w, left_base - t
        while first <= last and a * place[first] + b <= end:
            a += slope[first]
            b += offset[first]
            first += 1
        low[k] = (end - b) / a
        if k == n - 1:
            break
        # Walk from the right to where it reaches +price.
        c, d = w, right_base - t
        while last >= first and c * place[last] + d >= price:
            c -= slope[last]
            d -= offset[last]
            last -= 1
        high[k] = (price - d) / c
        # Clip: constant outside, so the new corners switch the line on and off.
        first -= 1
        place[first], slope[first], offset[first] = low[k], a, b + price
        last += 1
        place[last], slope[last], offset[last] = high[k], -c, price - d
        left_base, right_base = -price, price
    out[n - 1] = low[n - 1]
    for k in range(n - 2, -1, -1):
        out[k] = min(max(out[k + 1], low[k]), high[k])
    settle(weight, total, price, out)
    return out


@njit
def settle(weight: Any, total: Any, price: Any, values: Any) -> Any:
    """Recompute the value of each flat piece from its own sums: with whole-number input it is then rounded once."""
    n = values.size
    start = 0
    before = 0.0  # +1 when the piece lies above the one before it, -1 when below
    while start < n:
        stop = start
        w, t = np.float64(0.0), np.float64(0.0)
        while stop < n and values[stop] == values[start]:
            w += weight[stop]
            t += total[stop]
            stop += 1
        after = 0.0
        if stop < n:
            after = 1.0 if values[start] > values[stop] else -1.0
        level = (t - price * (before + after)) / w
        values[start:stop] = level
        before = -after
        start = stop


# Which fold a sample is in cannot be predicted, so the two loops below add conditions as numbers instead of branching.


@njit
def design_points(scores: Any, outcomes: Any, fold: Any, held_out: Any, weight: Any, total: Any) -> Any:
    """Weights and totals of the different scores outside one fold, from place 1 on; how many there are.

    Scores are sorted; the arrays have one place more than there are samples outside the fold.
    """
    m = 0
    current = np.float64(-1.0)
    weight[0], total[0] = 0, 0
    for i in range(scores.size):
        inside = fold[i] != held_out
        fresh = inside and scores[i] != current
        current = scores[i] if inside else current
        m += fresh
        weight[m] = (0 if fresh else weight[m]) + inside
        total[m] = (0 if fresh else total[m]) + (inside & outcomes[i])
    return m


@njit
def held_out_gaps(scores: Any, fold: Any, held_out: Any, values: Any) -> Any:
    """Number, sum and sum of squares of |score - step function| over the samples of one fold.

    The step function takes the value of the largest design point at or below a score, and the first value below all.
    """
    n = scores.size
    m, i, number = -1, 0, 0
    total, squares = 0.0, 0.0
    while i < n:
        part, square = 0.0, 0.0
        until = min(n, i + BLOCK)
        while i < until:
            stop, inside = i + 1, fold[i] != held_out
            many = 1 - inside
            while stop < n and scores[stop] == scores[i]:
                other = fold[stop] != held_out
                inside |= other
                many += 1 - other
                stop += 1
            m += inside
            gap = abs(scores[i] - values[max(m, 0)])
            part += many * gap
            square += many * gap * gap
            number += many
            i = stop
        total += part
        squares += square
    return number, total, squares


@njit
def variation(values: Any) -> Any:
    """Sum of the absolute differences of neighbours."""
    total = 0.0
    for k in range(1, values.size):
        total += abs(values[k] - values[k - 1])
    return total
