# pyright: basic
"""Sums over many sets of bins from one sorted column: differences of running sums, in integers and so exact."""

from __future__ import annotations

from typing import Any

import numpy as np

from certcal._kernels._compile import FEW, MANY, njit
from certcal._kernels.bins import LOW, SCALE, SCALE_BITS

HIGH = 2.0**32
UNIT = 2.0**-SCALE_BITS


def _take_flags(keys: Any, flags: Any) -> Any:
    flags[:] = keys & 1
    keys >>= 1


@njit(patience=MANY, in_numpy=_take_flags)
def take_flags(keys: Any, flags: Any) -> Any:
    """Move the lowest bit of every key to the flags."""
    for k in range(keys.shape[0]):
        for i in range(keys.shape[1]):
            flags[k, i] = keys[k, i] & 1
            keys[k, i] >>= 1


@njit
def _starts(values: Any, edges: Any, which: Any, picks: Any, right: Any, reached: Any, width: Any, mass: Any) -> Any:
    """Where every bin starts in the sorted values.

    ``width``: at the first value not below the edge ``which``. ``mass``: with the value at the place ``picks`` or, for
    bins closed on the right, behind it. Below 0 stands for the start of everything.
    """
    i = 0
    for e in range(edges.size):
        while i < values.size and values[i] < edges[e]:
            i += 1
        reached[e] = i
    for b in range(which.size):
        width[b] = reached[which[b]] if which[b] >= 0 else 0
    for b in range(picks.size):
        at = picks[b]
        if at < 0:
            mass[b] = 0
        elif picks[b - 1] >= 0 and values[picks[b - 1]] == values[at]:
            mass[b] = mass[b - 1]
        else:
            value = values[at]
            if right:
                while at < values.size and values[at] == value:
                    at += 1
            else:
                while at > 0 and values[at - 1] == value:
                    at -= 1
            mass[b] = at


@njit
def _run(values: Any, flags: Any, hits: Any, sums: Any, hit_sums: Any) -> Any:
    """Running number of set flags, running sums of all values, and of the flagged ones, in two words each."""
    high, low, found = np.int64(0), np.int64(0), np.int64(0)
    hit_high, hit_low = np.int64(0), np.int64(0)
    for i in range(values.size):
        whole = np.int64(np.float64(values[i]) * SCALE + 0.5)
        high += whole >> 32
        low += whole & LOW
        sums[i + 1, 0] = high
        sums[i + 1, 1] = low
        if flags[i]:
            found += 1
            hit_high += whole >> 32
            hit_low += whole & LOW
            hit_sums[found, 0] = hit_high
            hit_sums[found, 1] = hit_low
        hits[i + 1] = found


@njit(inline="always")
def _rounded(high: Any, low: Any) -> Any:
    """The sum of two words, rounded once."""
    return (np.float64(high + (low >> 32)) * HIGH + np.float64(low & LOW)) * UNIT


@njit(inline="always")
def _bin(begin: Any, end: Any, hits: Any, sums: Any, hit_sums: Any) -> Any:
    """Flagged values of a bin, and the sum of its values: those of either kind rounded once, then added."""
    first, last = hits[begin], hits[end]
    high, low = hit_sums[last, 0] - hit_sums[first, 0], hit_sums[last, 1] - hit_sums[first, 1]
    others = _rounded(sums[end, 0] - sums[begin, 0] - high, sums[end, 1] - sums[begin, 1] - low)
    return last - first, others + _rounded(high, low)


@njit(patience=FEW)
def column_gaps(
    values: Any, flags: Any, edges: Any, which: Any, picks: Any, right: Any, last: Any, width: Any, mass: Any
) -> Any:
    """Σ(flag - value) of every bin of every column: of fixed bins rounded once, of equal-mass bins as in a table.

    ``last`` marks the last bin of each set.
    """
    columns, n = values.shape
    bins = which.size
    reached = np.empty(edges.size, np.int64)
    fixed, moved = np.empty(bins, np.int64), np.empty(bins, np.int64)
    hits = np.zeros(n + 1, np.int64)
    sums, hit_sums = np.zeros((n + 1, 2), np.int64), np.zeros((n + 1, 2), np.int64)
    for k in range(columns):
        _starts(values[k], edges, which, picks, right, reached, fixed, moved)
        _run(values[k], flags[k], hits, sums, hit_sums)
        for b in range(bins):
            begin, end = fixed[b], n if last[b] else fixed[b + 1]
            found = hits[end] - hits[begin]
            high = (found << (SCALE_BITS - 32)) - (sums[end, 0] - sums[begin, 0])
            width[k, b] = _rounded(high, sums[begin, 1] - sums[end, 1])
            found, total = _bin(moved[b], n if last[b] else moved[b + 1], hits, sums, hit_sums)
            mass[k, b] = np.float64(found) - total


@njit(patience=FEW)
def score_sums(
    values: Any, flags: Any, edges: Any, which: Any, picks: Any, right: Any, last: Any, counts: Any, totals: Any
) -> Any:
    """``counts[kind, bin] = (values, flagged values)`` and ``totals[kind, bin]``, their sum, of one column."""
    n, bins = values.size, which.size
    reached = np.empty(edges.size, np.int64)
    starts = np.empty((2, bins), np.int64)
    hits = np.zeros(n + 1, np.int64)
    sums, hit_sums = np.zeros((n + 1, 2), np.int64), np.zeros((n + 1, 2), np.int64)
    _starts(values, edges, which, picks, right, reached, starts[0], starts[1])
    _run(values, flags, hits, sums, hit_sums)
    for kind in range(2):
        for b in range(bins):
            begin, end = starts[kind, b], n if last[b] else starts[kind, b + 1]
            found, total = _bin(begin, end, hits, sums, hit_sums)
            counts[kind, b, 0], counts[kind, b, 1], totals[kind, b] = end - begin, found, total
