# pyright: basic
"""Least capital over all ways in which the sign of a gap can run along sorted samples (``bounds/_lipschitz.py``)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from certcal._kernels._compile import FEW, njit
from certcal._kernels.capital import cell_row


@njit(patience=FEW)
def cells_between(scores: Any, outcomes: Any, starts: Any, out: Any) -> Any:
    """The first six columns of a cell (``capital.py``) for the samples from each start to the next."""
    for cell in range(starts.size - 1):
        cell_row(scores, outcomes, starts[cell], starts[cell + 1], out[cell])


@njit(patience=FEW)
def fine_starts(scores: Any, places: Any, slope: Any, fine: Any, out: Any) -> Any:
    """Starts of cells in which number times fall is at most so many standard deviations; how many, n included.

    What falls changes by ``slope`` per unit of the places, and by what the scores rise. Equal scores stay together.
    """
    n, cells, start = scores.size, 0, 0
    while start < n:
        out[cells] = start
        cells += 1
        stop, variance = start, 0.0
        before = slope * places[max(start - 1, 0)] + scores[max(start - 1, 0)]
        while stop < n:
            run = stop + 1
            while run < n and scores[run] == scores[stop]:
                run += 1
            variance += (run - stop) * scores[stop] * (1.0 - scores[stop])
            fall = slope * places[run - 1] + scores[run - 1] - before
            if stop > start and (run - start) * fall > fine * math.sqrt(variance):
                break
            stop = run
        start = stop
    out[cells] = n
    return cells + 1


@njit
def _upward(table: Any, sign: Any, zone: Any, cell: Any) -> Any:
    """What |gap| can be after a zero in the zone, summed over the samples from its cell to this one."""
    hi, _, mass, high, _, before, mixed = table
    if cell < zone:
        return 0.0
    area = high[sign, cell + 1] - high[sign, zone] - before[sign, zone] * (mass[cell + 1] - mass[zone])
    if mixed[zone]:  # there the gap has both signs, so that it may have fallen
        area += (mass[zone + 1] - mass[zone]) * (hi[1, zone] - before[1, zone] - hi[sign, zone] + before[sign, zone])
    return area


@njit
def _downward(table: Any, sign: Any, cell: Any, zone: Any) -> Any:
    """What |gap| can be before a zero in the zone, summed over the samples from this cell to the one before it."""
    hi, _, mass, _, low, _, _ = table
    other = 1 - sign  # after a zero a positive gap has risen; before it, it falls
    return hi[other, zone] * (mass[zone] - mass[cell]) - (low[other, zone] - low[other, cell])


@njit(patience=1 << 9)
def reaches(spread: Any, table: Any, reach: Any, last: Any, first: Any) -> Any:
    """How far a zero in each cell has influence, for both signs: the last cell after it and the first before it.

    As far as the sum of what |gap| can be there is at most ``reach`` standard deviations of the outcomes, and twice
    that on average over the signs; and as long as |gap| is at most 1. A cell with several scores is always within reach
    of a zero in it. ``spread`` has the sums of s (1 - s) over the first k cells. The largest |gap| that is used is
    returned.
    """
    hi, lo, mass, _, _, before, mixed = table
    count, largest = mass.size - 1, 0.0
    for sign in range(2):
        end = -1
        for zone in range(count):
            end = max(end, zone if mixed[zone] else zone - 1)
            while end + 1 < count and hi[1, end + 1] - before[1, zone] <= 1.0:
                area, other = _upward(table, sign, zone, end + 1), _upward(table, 1 - sign, zone, end + 1)
                most = reach * math.sqrt(max(spread[end + 2] - spread[zone], 0.0))
                if max(area, 0.25 * (area + other)) > most:
                    break
                end += 1
            last[sign, zone] = end
            if end >= zone:
                largest = max(largest, hi[1, end] - before[1, zone])
        begin = count
        for zone in range(count - 1, -1, -1):
            begin = min(begin, zone)
            while begin > 0 and hi[1, zone] - lo[1, begin - 1] <= 1.0:
                area, other = _downward(table, sign, begin - 1, zone), _downward(table, 1 - sign, begin - 1, zone)
                most = reach * math.sqrt(max(spread[zone + 1] - spread[begin - 1], 0.0))
                if max(area, 0.25 * (area + other)) > most:
                    break
                begin -= 1
            first[sign, zone] = begin
            if begin < zone:
                largest = max(largest, hi[1, zone] - lo[1, begin])
    return largest


@njit(patience=1 << 9)
def least_of_runs(logs: Any, table: Any, last: Any, first: Any, slope: Any, rises: Any) -> Any:
    """The least sum of logarithms over all patterns of signs and zeros: see ``bounds/_lipschitz.py``.

    ``logs`` are the sums over the first k cells for one bet and both signs; ``slope`` is what a unit of |gap| costs
    where it is known to be small. A pattern is a row of zones, cells with a zero of the gap in them or just before
    them. Between two zones whose reaches meet the gap is at most as large as either allows; else it has one sign
    between their reaches.
    """
    hi, lo, mass, _, _, before, mixed = table
    count, found = mass.size - 1, math.inf
    least = np.empty(count)  # up to a zone
    open_run = np.zeros(2)  # the least so far, less the logarithms of the run that goes on; at first without any zone
    passed = np.zeros(2, np.int64)  # zones whose reach ends before that of the present one begins
    for zone in range(count + 1):
        found = math.inf
        for sign in range(2):
            other, begin = passed[sign], first[sign, zone] if zone < count else count
            while other < zone and (zone == count or last[sign, other] < begin):
                if rises or sign == 1:  # else a gap that has been 0 is never positive again
                    cost = least[other] + slope * _upward(table, sign, other, last[sign, other])
                    open_run[sign] = min(open_run[sign], cost - logs[sign, last[sign, other] + 1])
                other += 1
            passed[sign] = other
            if zone == count:
                found = min(found, open_run[sign] + logs[sign, count])
            elif rises or sign == 0:  # else a negative gap is never 0 again
                cost = slope * _downward(table, sign, begin, zone)
                found = min(found, open_run[sign] + logs[sign, begin] + cost)
            if zone == count or not rises:
                continue
            cut = zone - 1  # the last cell that the zero before it limits more than the zero after it
            for other in range(zone - 1, passed[sign] - 1, -1):
                while cut >= other and hi[sign, cut] - before[sign, other] > hi[1 - sign, zone] - lo[1 - sign, cut]:
                    cut -= 1
                end = max(cut, other if mixed[other] else other - 1)
                area = _upward(table, sign, other, end) + _downward(table, sign, end + 1, zone)
                found = min(found, least[other] + slope * area)
        if zone < count:
            least[zone] = found
    return found
