# pyright: basic
"""Samples grouped by the bins they can reach, with sums that do not depend on their order.

As in ``bins.py`` every confidence is rounded once to a multiple of 2**-50 and summed as an integer, in two words.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certcal._kernels._compile import FEW, MANY, njit
from certcal._kernels.bins import LOW, SCALE, locate

BLOCK = 1 << 10
# Carried when a sum reaches this: one more confidence adds at most 2**50, so it never overflows.
FULL = 1 << 62


@njit
def whole(value: Any) -> Any:
    """A number from 0 to 1 as the nearest whole multiple of 2**-50."""
    return np.int64(value * SCALE + 0.5)


def _all_in_order(low: Any, high: Any) -> Any:
    return bool(((low >= 0.0) & (low <= high) & (high <= 1.0)).all())


@njit(patience=MANY, in_numpy=_all_in_order)
def all_in_order(low: Any, high: Any) -> Any:
    """Whether 0 <= low <= high <= 1 everywhere; false for NaN."""
    good = True
    for i in range(low.size):
        good &= (low[i] >= 0.0) & (low[i] <= high[i]) & (high[i] <= 1.0)
    return good


@njit(inline="always")
def add_to_cell(flat: Any, cell: Any, low: Any, high: Any) -> Any:
    """Add one sample to the five numbers of a cell."""
    k = cell * np.uint32(5)
    flat[k] += 1
    flat[k + np.uint32(2)] += np.int64(low * SCALE + 0.5)
    total = flat[k + np.uint32(4)] + np.int64(high * SCALE + 0.5)
    if total >= FULL:  # Σ lower is never the larger one
        flat[k + np.uint32(1)] += flat[k + np.uint32(2)] >> 32
        flat[k + np.uint32(2)] &= LOW
        flat[k + np.uint32(3)] += total >> 32
        total &= LOW
    flat[k + np.uint32(4)] = total


@njit(patience=FEW)
def add_intervals(
    lower: Any,
    upper: Any,
    correct: Any,
    inner: Any,
    table: Any,
    cells: Any,
    kept_lower: Any,
    kept_upper: Any,
    kept_correct: Any,
    state: Any,
) -> Any:
    """Check, add and copy samples in one pass over memory; false at the first block without 0 <= lower <= upper <= 1.

    ``state[correct, low bin, high bin]`` is the number of samples, then Σ lower and Σ upper as (high word, low word) of
    whole multiples of 2**-50: the same for any order and any pieces. Copies go to ``kept_*`` unless these are None;
    each value is copied when it is added, so that memory is written while the sums are computed.
    """
    bins = np.uint32(inner.size)
    flat = state.reshape(-1)
    for start in range(0, lower.size, BLOCK):
        low = lower[start : start + BLOCK]
        high = upper[start : start + BLOCK]
        right = correct[start : start + BLOCK]
        if not all_in_order(low, high):
            return False
        if kept_lower is not None:
            copy_low = kept_lower[start : start + BLOCK]
            copy_high = kept_upper[start : start + BLOCK]
            copy_right = kept_correct[start : start + BLOCK]
        for i in range(low.size):
            least, most = np.float64(low[i]), np.float64(high[i])
            first, last = table[np.uint32(least * cells)], table[np.uint32(most * cells)]
            while least >= inner[first]:
                first += np.uint32(1)
            while most >= inner[last]:
                last += np.uint32(1)
            if kept_lower is not None:
                copy_low[i] = low[i]
                copy_high[i] = high[i]
                copy_right[i] = right[i]
            add_to_cell(flat, (np.uint32(right[i]) * bins + first) * bins + last, least, most)
    return True


@njit(patience=FEW)
def add_crowded_intervals(lower: Any, upper: Any, correct: Any, inner: Any, table: Any, cells: Any, state: Any) -> Any:
    """:func:`add_intervals` without copies, for edges that crowd at one end."""
    bins = np.uint32(inner.size)
    flat = state.reshape(-1)
    low_bin = np.empty(BLOCK, np.uint32)
    high_bin = np.empty(BLOCK, np.uint32)
    for start in range(0, lower.size, BLOCK):
        low = lower[start : start + BLOCK]
        high = upper[start : start + BLOCK]
        right = correct[start : start + BLOCK]
        if not all_in_order(low, high):
            return False
        locate(low, inner, table, cells, low_bin)
        locate(high, inner, table, cells, high_bin)
        for i in range(low.size):
            cell = (np.uint32(right[i]) * bins + low_bin[i]) * bins + high_bin[i]
            add_to_cell(flat, cell, np.float64(low[i]), np.float64(high[i]))
    return True


@njit(patience=FEW)
def group_intervals(lower: Any, upper: Any, correct: Any, low_bin: Any, high_bin: Any, bins: Any) -> Any:
    """Keys in rising order, and sums, of the cells that hold samples.

    What :func:`add_intervals` adds up in a table, for more bins than a table has room for: two passes of a counting
    sort, by highest bin and then by correctness and lowest bin, put the samples of a cell next to each other.
    """
    n = lower.size
    by_high = np.zeros(bins + 1, np.int64)
    by_low = np.zeros(2 * bins + 1, np.int64)
    for i in range(n):
        by_high[high_bin[i] + 1] += 1
        by_low[np.int64(correct[i]) * bins + low_bin[i] + 1] += 1
    by_high = np.cumsum(by_high)
    by_low = np.cumsum(by_low)
    first = np.empty(n, np.int64)
    order = np.empty(n, np.int64)
    for i in range(n):
        first[by_high[high_bin[i]]] = i
        by_high[high_bin[i]] += 1
    for j in range(n):
        i = first[j]
        group = np.int64(correct[i]) * bins + low_bin[i]
        order[by_low[group]] = i
        by_low[group] += 1
    keys = np.empty(n, np.int64)
    sums = np.zeros((n, 5), np.int64)
    last = -1
    for j in range(n):
        i = order[j]
        key = (np.int64(correct[i]) * bins + low_bin[i]) * bins + high_bin[i]
        if last < 0 or keys[last] != key:
            last += 1
            keys[last] = key
        low, high = whole(np.float64(lower[i])), whole(np.float64(upper[i]))
        sums[last, 0] += 1
        sums[last, 1] += low >> 32
        sums[last, 2] += low & LOW
        sums[last, 3] += high >> 32
        sums[last, 4] += high & LOW
    return keys[: last + 1], sums[: last + 1]
