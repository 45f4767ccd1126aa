# pyright: basic
"""Capital of bets against a mean whose signs are not known (``bounds/_bets.py``), or whose cut-offs are not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from certcal._kernels._compile import njit


@njit
def _log_mean(logs: Any) -> Any:
    """Logarithm of the mean of numbers whose logarithms are given."""
    top, mean = logs[0], 0.0
    for each in logs:
        top = max(top, each)
    for each in logs:
        mean += math.exp(each - top)
    return top + math.log(mean / len(logs))


@njit
def log_capital(points: Any, owner: Any, bets: Any, m: Any) -> Any:
    """Logarithm of the mean over the bets of the least capital against m that any signs leave.

    Rows of ``points``: how often, the stake, the part of the value that a sign belongs to, and the part without one.
    Points of one bin stand together and have one sign.
    """
    logs = np.zeros(len(bets))
    for index in range(len(bets)):
        scale = bets[index] / (1.0 - m)
        row, total = 0, 0.0
        while row < len(owner):
            plus, minus, start = 0.0, 0.0, owner[row]
            while row < len(owner) and owner[row] == start:
                number, stake, free, fixed = points[row]
                rest = m - fixed
                log = math.log(1.0 + scale * stake * (rest - free))
                plus += number * log
                minus += number * (log if free == 0.0 else math.log(1.0 + scale * stake * (rest + free)))
                row += 1
            total += min(plus, minus)
        logs[index] = total
    return _log_mean(logs)


@njit
def _next_place(low: Any, high: Any, below: Any, above: Any) -> Any:
    """A whole number between two: about where the line through their values, below and above 0, crosses 0."""
    if not above - below < math.inf:  # nothing is known at one end
        return (low + high) // 2
    return min(max(low + int((high - low) * (below / (below - above))), low + 1), high - 1)


@njit
def _narrow_bracket(low: Any, high: Any, below: Any, above: Any, side: Any, place: Any, found: Any) -> Any:
    """What is left after one more value. An end that stays for a second time weighs half, or the other would creep."""
    if found >= 0.0:
        return low, place, below * (0.5 if side > 0 else 1.0), found, 1
    return place, high, found, above * (0.5 if side < 0 else 1.0), -1


def _largest_mean(points: Any, owner: Any, bets: Any, target: Any) -> Any:
    """The loop itself: over lists it takes half the time."""
    capital, given = log_capital.interpreted, (points.tolist(), owner.tolist(), bets.tolist())
    low, high, below, above, side = 0, 1 << 41, -math.inf, math.inf, 0
    while high - low > 1:
        place = _next_place.interpreted(low, high, below, above)
        found = capital(*given, place * 2.0**-40 - 1.0) - target
        low, high, below, above, side = _narrow_bracket.interpreted(low, high, below, above, side, place, found)
    return high * 2.0**-40 - 1.0


@njit(patience=1 << 11, in_numpy=_largest_mean)
def largest_mean(points: Any, owner: Any, bets: Any, target: Any) -> Any:
    """The smallest m found, to within 1e-12, at which the capital is at least exp(target); 1 when there is none.

    The capital grows with m: whichever multiples of 2^-40 are tried, the search ends at the same one.
    """
    low, high, below, above, side = 0, 1 << 41, -math.inf, math.inf, 0
    while high - low > 1:
        place = _next_place(low, high, below, above)
        found = log_capital(points, owner, bets, place * 2.0**-40 - 1.0) - target
        low, high, below, above, side = _narrow_bracket(low, high, below, above, side, place, found)
    return high * 2.0**-40 - 1.0


# ------------------------------------------------------------------------ signs that the samples before a sample choose


@njit(patience=1 << 12)
def signs_so_far(order: Any, bin: Any, gaps: Any, bins: Any, up: Any) -> Any:
    """For each sample, whether the gap of its bin looks positive by the samples before it in this order.

    Calibration tends to change slowly with the confidence: half the sums of the two bins beside it count as well, but
    for no more than half a standard deviation of the bin's own sum. Nothing is known at first, and nothing is positive.
    """
    total, squares = np.zeros(bins + 2), np.zeros(bins + 2)
    for i in order:
        at, gap = bin[i] + 1, gaps[i]
        reach = 0.5 * math.sqrt(squares[at] + 1.0)
        beside = 0.5 * (total[at - 1] + total[at + 1])
        up[i] = total[at] + min(max(beside, -reach), reach) > 0.0
        total[at] += gap
        squares[at] += gap * gap


# ------------------------------------------------------------------- cut-offs: the sign is common, the interval unknown

# Columns of a cell of samples in order: how many incorrect and correct, where their mean confidences are between the
# least and the largest one (0 to 1), these two, and the largest sums of correctness minus confidence, then of the
# negative, over the first samples, over the last ones, and over any that stand together. Equal ones are not separated.
CELL = 12


@njit
def _best_sums(z: Any, c: Any, start: Any, stop: Any, sign: Any, row: Any, place: Any) -> Any:
    total = first = last = inside = best = 0.0
    i = start
    while i < stop:
        value = z[i]
        while i < stop and z[i] == value:
            gap = sign * (c[i] - value)
            total += gap
            inside += gap
            i += 1
        first = max(first, total)
        inside = max(inside, 0.0)
        best = max(best, inside)
        last = min(last, total)
    row[place], row[place + 1], row[place + 2] = first, total - last, best


@njit
def cell_row(z: Any, c: Any, start: Any, stop: Any, row: Any) -> Any:
    """Fill the first six columns of a cell with the samples from start to stop."""
    row[:] = 0.0
    low, high = np.float64(z[start]), np.float64(z[stop - 1])
    width = high - low
    for i in range(start, stop):
        hit = np.int64(c[i])
        row[hit] += 1.0
        if width > 0.0:
            row[2 + hit] += (z[i] - low) / width
    for hit in range(2):
        row[2 + hit] = min(row[2 + hit] / max(row[hit], 1.0), 1.0)
    row[4], row[5] = low, high


@njit(patience=1 << 12)
def cut_cells(z: Any, c: Any, size: Any, out: Any) -> Any:
    """Fill rows of ``out`` with cells of about ``size`` samples in order of their confidence; how many there are.

    So many equal confidences are a cell of their own.
    """
    n, cells, start = z.size, 0, 0
    while start < n:
        stop = start
        while stop < n and stop - start < size:
            run = stop + 1
            while run < n and z[run] == z[stop]:
                run += 1
            if run - stop >= size and stop > start:
                break
            stop = run
        row = out[cells]
        cell_row(z, c, start, stop, row)
        _best_sums(z, c, start, stop, 1.0, row, 6)
        _best_sums(z, c, start, stop, -1.0, row, 9)
        cells += 1
        start = stop
    return cells


@njit
def log_capital_of_cuts(cells: Any, bets: Any, m: Any, interval: Any) -> Any:
    """Logarithm of the mean over the bets of the least capital against m that any sign and any cut-off leave.

    The samples up to the cut-off count, or with ``interval`` those between any two; the others have the value 0. The
    logarithm of a gain is concave in the value, so it is above its chord: that of a cell's own correct and incorrect
    samples where the cell counts as a whole, and one over all values in the cell where only a part does.
    """
    logs = np.zeros(len(bets))
    for index in range(len(bets)):
        scale = bets[index] / (1.0 - m)
        rest = math.log(1.0 + scale * m)
        n, least = 0.0, 0.0
        for half in range(2):
            sign, place = 1.0 - 2.0 * half, 6 + 3 * half
            end, best, n = 0.0, 0.0, 0.0
            for row in cells:
                number, low, high = row[0] + row[1], row[4], row[5]
                wrong_low = math.log(1.0 + scale * (m + sign * low)) - rest
                right_low = math.log(1.0 + scale * (m - sign * (1.0 - low))) - rest
                wrong_high, right_high = wrong_low, right_low
                if high > low:
                    wrong_high = math.log(1.0 + scale * (m + sign * high)) - rest
                    right_high = math.log(1.0 + scale * (m - sign * (1.0 - high))) - rest
                whole = row[0] * ((1.0 - row[2]) * wrong_low + row[2] * wrong_high)
                whole += row[1] * ((1.0 - row[3]) * right_low + row[3] * right_high)
                first = last = inside = whole
                if high > low:
                    # From the least value in the cell to the largest: of sign · (0 - high) and sign · (1 - low), or of
                    # sign · (1 - low) and sign · (0 - high). The chord is level + slope · value, and level <= 0.
                    slope = sign * (right_low - wrong_high) / (1.0 - low + high)
                    level = number * min(wrong_high + slope * sign * high, 0.0)
                    first = min(whole, level + slope * row[place])
                    last = min(whole, level + slope * row[place + 1])
                    inside = min(whole, level + slope * row[place + 2])
                if interval:
                    best = min(best, inside, end + first)
                    end = min(end + whole, last, 0.0)
                else:
                    best = min(best, end + first)
                    end += whole
                n += number
            least = min(least, best)
        logs[index] = least + n * rest
    return _log_mean(logs)


def _largest_mean_of_cuts(cells: Any, bets: Any, target: Any, interval: Any) -> Any:
    """The loop itself, over lists."""
    capital, given = log_capital_of_cuts.interpreted, (cells.tolist(), bets.tolist())
    low, high, below, above, side = 0, 1 << 27, -math.inf, math.inf, 0
    while high - low > 1:
        place = _next_place.interpreted(low, high, below, above)
        found = capital(*given, place * 2.0**-27, interval) - target
        low, high, below, above, side = _narrow_bracket.interpreted(low, high, below, above, side, place, found)
    return high * 2.0**-27


@njit(patience=1 << 12, in_numpy=_largest_mean_of_cuts)
def largest_mean_of_cuts(cells: Any, bets: Any, target: Any, interval: Any) -> Any:
    """As :func:`largest_mean`, for :func:`log_capital_of_cuts`; to within 1e-8."""
    low, high, below, above, side = 0, 1 << 27, -math.inf, math.inf, 0
    while high - low > 1:
        place = _next_place(low, high, below, above)
        found = log_capital_of_cuts(cells, bets, place * 2.0**-27, interval) - target
        low, high, below, above, side = _narrow_bracket(low, high, below, above, side, place, found)
    return high * 2.0**-27
