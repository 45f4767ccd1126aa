# pyright: basic
"""Sums over survival counts, and the capital of bets against a mean, row by row of a table of histograms.

``flip`` looks at 1 - X instead of X: cells are read from the top. Widths are those of the steps from one threshold
to the next one above, seen from the side that is read; the first step starts at 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certcal._kernels._compile import njit


@njit
def weigh_survival(histogram: Any, flip: Any, widths: Any, table: Any, out: Any) -> None:
    """Σ_j widths[j] · table[number of draws at or above threshold j], per row."""
    last = histogram.shape[1] - 1
    for row in range(histogram.shape[0]):
        counts = histogram[row]
        above = 0
        total = 0.0
        for j in range(last, 0, -1):
            above += counts[last - j] if flip else counts[j]
            total += widths[j - 1] * table[above]
        out[row] = total


@njit
def best_bet(mass: Any, gain: Any, size: Any) -> Any:
    """The share θ in [0, 1) that makes Σ mass · log(1 + θ gain) largest, to about a thousandth of θ and of 1 - θ."""
    first = 0.0
    second = 0.0
    for i in range(size):
        first += mass[i] * gain[i]
        second += mass[i] * gain[i] * gain[i]
    if not (first > 0.0 and second > 0.0):
        return 0.0
    low, high = 0.0, 1.0
    theta = min(first / second, 0.9)
    for _ in range(20):
        slope = 0.0
        bend = 0.0
        for i in range(size):
            share = gain[i] / (1.0 + theta * gain[i])
            slope += mass[i] * share
            bend += mass[i] * share * share
        if slope > 0.0:
            low = theta
        else:
            high = theta
        step = slope / bend
        following = theta + step
        if not low < following < high:
            following = 0.5 * (low + high)
        moved = abs(following - theta)
        theta = following
        if moved < 1e-3 * min(theta, 1.0 - theta):
            break
    return min(theta, 1.0 - 1e-9)


@njit
def log_capital(
    value: Any, counts: Any, worth: Any, size: Any, offset: Any, bets: Any, most: Any, logs: Any, slopes: Any
) -> Any:
    """Logarithm of the average capital of the bets against "the functional is ``value``", and its derivative.

    Bet number c gains ``1 - θ + θ worth[c, i] / (value - offset[c])`` on each of the ``counts[i]`` draws in cell i.
    """
    number = bets.size
    top = -np.inf
    for c in range(number):
        theta = bets[c]
        log = 0.0
        slope = 0.0
        if theta > 0.0 and most[c] > 0.0:
            mean = max(value - offset[c], 1e-300)
            scale = theta / mean
            for i in range(size):
                factor = 1.0 - theta + scale * worth[c, i]
                log += counts[i] * np.log(factor)
                slope -= counts[i] * (scale * worth[c, i]) / factor
            slope /= mean
        logs[c] = log
        slopes[c] = slope
        top = max(top, log)
    total = 0.0
    pull = 0.0
    for c in range(number):
        weight = np.exp(logs[c] - top)
        total += weight
        pull += weight * slopes[c]
    return top + np.log(total / number), pull / total


@njit
def largest_refuted(
    start: Any, target: Any, counts: Any, worth: Any, size: Any, offset: Any, bets: Any, most: Any, scratch: Any
) -> Any:
    """A value whose capital was seen to be at least exp(``target``), next to the largest one; 0 when there is none.

    The capital falls in the value, so everything below is refuted too. Newton's steps within a bracket.
    """
    low, high = 0.0, 1.0
    value = min(max(start, 1e-6), 1.0 - 1e-6)
    for _ in range(60):
        log, pull = log_capital(value, counts, worth, size, offset, bets, most, scratch[0], scratch[1])
        excess = log - target
        if excess >= 0.0:
            low = value
        else:
            high = value
        if 0.0 <= excess < 1e-5 or high - low < 1e-10:
            break
        value = value - (excess - 5e-6) / pull if pull < 0.0 else 0.5 * (low + high)
        if not low < value < high:
            value = 0.5 * (low + high)
    return low


@njit
def lay_tangent(
    above: Any, widths: Any, survival: Any, point: Any, slope: Any, intercept: Any, worth: Any, mass: Any, gain: Any
) -> Any:
    """What a draw in each cell is worth under one set of lines, and its offset, mean at the touching points and bet.

    The lines have ``slope`` and ``intercept`` and touch at ``point``, each by pilot count at or above the threshold.
    The bet is the one that grows fastest if survival is as assumed and the functional is where the lines touch it.
    """
    cells = above.size
    total = 0.0
    offset = 0.0
    mean = 0.0
    before = 1.0
    worth[0] = 0.0
    for j in range(1, cells):
        k = above[j]
        rise = widths[j - 1] * slope[k]
        offset += widths[j - 1] * intercept[k]
        mean += rise * point[k]
        total += rise
        worth[j] = total
        mass[j - 1] = before - survival[k]
        before = survival[k]
    mass[cells - 1] = before
    if not mean > 0.0:
        return offset, mean, 0.0
    filled = 0
    for i in range(cells):
        if mass[i] > 1e-12:
            mass[filled] = mass[i]
            gain[filled] = worth[i] / mean - 1.0
            filled += 1
    return offset, mean, best_bet(mass, gain, filled)


@njit
def tangent_bounds(
    histogram: Any,
    pilot: Any,
    flip: Any,
    widths: Any,
    survival: Any,
    point: Any,
    slope: Any,
    intercept: Any,
    target: Any,
    out: Any,
) -> None:
    """Per row the largest value of the functional that the capital of the tangents' bets refutes.

    Tables are per bet and pilot count (see :func:`lay_tangent`); the draws that are not in the pilot are bet on.
    """
    cells = histogram.shape[1]
    last = cells - 1
    number = survival.shape[0]
    above = np.empty(cells, np.int64)
    counts = np.empty(cells)
    place = np.empty(cells, np.int64)
    worth = np.empty(cells)
    kept = np.empty((number, cells))
    mass = np.empty(cells)
    gain = np.empty(cells)
    offset = np.empty(number)
    most = np.empty(number)
    bets = np.empty(number)
    scratch = np.empty((2, number))
    for row in range(histogram.shape[0]):
        running = 0
        size = 0
        for i in range(last, -1, -1):
            cell = last - i if flip else i
            running += pilot[row, cell]
            above[i] = running
            left = histogram[row, cell] - pilot[row, cell]
            if left > 0:
                counts[size] = left
                place[size] = i
                size += 1
        start = 0.0
        widest = 0.0
        for c in range(number):
            offset[c], mean, bets[c] = lay_tangent(
                above, widths, survival[c], point[c], slope[c], intercept[c], worth, mass, gain
            )
            most[c] = worth[last]
            widest = max(widest, most[c])
            start += (offset[c] + mean) / number
            for i in range(size):
                kept[c, i] = worth[place[i]]
        low = largest_refuted(start, target, counts, kept, size, offset, bets, most, scratch)
        # Sums of a few hundred terms up to the widest worth are right to far more digits than this.
        out[row] = max(low - 1e-12 * (1.0 + widest), 0.0)
