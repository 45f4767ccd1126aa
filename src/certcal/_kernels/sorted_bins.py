# pyright: basic
"""Bins of sorted values: sums over many sets of bins, and the most equal-mass bins whose accuracies still rise.

Sums are differences of running sums, in integers and so exact.
"""

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


@njit
def _below(values: Any, bound: Any) -> Any:
    """How many of the sorted values are below the bound."""
    low, high = 0, values.size
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < bound:
            low = middle + 1
        else:
            high = middle
    return low


@njit
def _first_beyond(running: Any, share: Any) -> Any:
    """First position at which the running weight exceeds the share."""
    low, high = 0, running.size - 1
    while low < high:
        middle = (low + high) >> 1
        if running[middle] > share:
            high = middle
        else:
            low = middle + 1
    return low


@njit
def _edge(values: Any, running: Any, k: Any, bins: Any, slack: Any) -> Any:
    """Inner edge k of so many equal-mass bins; ``running`` is empty when there are no weights."""
    if running.size == 0:
        return values[k * values.size // bins]
    total = running[-1]
    return values[_first_beyond(running, (k / bins + slack) * total)]


@njit
def _before(values: Any, running: Any, bound: Any) -> Any:
    """Weight (or number) of the sorted values below the bound."""
    number = _below(values, bound)
    if running.size == 0:
        return np.float64(number)
    return running[number - 1] if number > 0 else 0.0


@njit
def rises(
    values: Any,
    running: Any,
    wrong: Any,
    running_wrong: Any,
    bins: Any,
    lowest_right: Any,
    highest_wrong: Any,
    slack: Any,
) -> Any:
    """Whether the accuracies of so many equal-mass bins never fall; empty bins are passed over.

    Bins below every correct sample have accuracy 0 and those above every wrong one 1: only those between matter.
    """
    total = np.float64(values.size) if running.size == 0 else running[-1]
    first = int(_before(values, running, lowest_right) / total * bins) - 1
    start = 0.0
    start_wrong = 0.0
    if first > 0:
        bound = _edge(values, running, first, bins, slack)
        start = _before(values, running, bound)
        start_wrong = _before(wrong, running_wrong, bound)
    else:
        first = 0
    before = 0.0
    before_right = 0.0
    for k in range(first + 1, bins + 1):
        if k < bins:
            bound = _edge(values, running, k, bins, slack)
            stop = _before(values, running, bound)
            stop_wrong = _before(wrong, running_wrong, bound)
        else:
            bound = 2.0
            stop = total
            stop_wrong = np.float64(wrong.size) if running.size == 0 else running_wrong[-1]
        weight = stop - start
        if weight > 0.0:
            right = weight - (stop_wrong - start_wrong)
            if before > 0.0 and right * before < before_right * weight * (1.0 - slack):
                return False
            before, before_right = weight, right
            start, start_wrong = stop, stop_wrong
            if bound > highest_wrong:
                return True
    return True


def _rises(
    values: Any, running: Any, wrong: Any, running_wrong: Any, bins: Any, right_from: Any, wrong_to: Any, slack: Any
) -> Any:
    n, weighted = values.size, running.size > 0

    def before(values: Any, running: Any, bounds: Any) -> Any:
        number = np.searchsorted(values, bounds)
        return np.append(0.0, running)[number] if weighted else number.astype(np.float64)

    total = running[-1] if weighted else np.float64(n)
    first = max(0, int(before(values, running, right_from) / total * bins) - 1)
    k = np.arange(max(first, 1), bins)
    picks = (
        np.minimum(np.searchsorted(running, (k / bins + slack) * total, "right"), n - 1) if weighted else k * n // bins
    )
    bounds = np.append(values[picks], 2.0)
    ends = np.append(before(values, running, bounds[:-1]), total)
    every = running_wrong[-1] if weighted else np.float64(wrong.size)
    wrong_ends = np.append(before(wrong, running_wrong, bounds[:-1]), every)
    if first == 0:
        bounds, ends, wrong_ends = np.append(0.0, bounds), np.append(0.0, ends), np.append(0.0, wrong_ends)
    filled = np.append(0, 1 + np.flatnonzero(np.diff(ends) > 0))
    # Up to the first bin that reaches beyond every wrong sample.
    filled = filled[: 2 + int(np.argmax(bounds[filled[1:]] > wrong_to))]
    weight = np.diff(ends[filled])
    right = weight - np.diff(wrong_ends[filled])
    return not (right[1:] * weight[:-1] < right[:-1] * weight[1:] * (1.0 - slack)).any()


def _most_rising_bins(values: Any, running: Any, wrong: Any, running_wrong: Any, *limits: Any) -> Any:
    bins = 1
    while bins < values.size and _rises(values, running, wrong, running_wrong, bins + 1, *limits):
        bins += 1
    return bins


@njit(patience=FEW, in_numpy=_most_rising_bins)
def most_rising_bins(
    values: Any, running: Any, wrong: Any, running_wrong: Any, lowest_right: Any, highest_wrong: Any, slack: Any
) -> Any:
    """Bins are added one at a time until an accuracy falls; the number before that."""
    bins = 1
    while bins < values.size and rises(
        values, running, wrong, running_wrong, bins + 1, lowest_right, highest_wrong, slack
    ):
        bins += 1
    return bins
