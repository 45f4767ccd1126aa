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
def _round_sum(high: Any, low: Any) -> Any:
    """The sum of two words, rounded once."""
    return (np.float64(high + (low >> 32)) * HIGH + np.float64(low & LOW)) * UNIT


@njit(inline="always")
def _bin(begin: Any, end: Any, hits: Any, sums: Any, hit_sums: Any) -> Any:
    """Flagged values of a bin, and the sum of its values: those of either kind rounded once, then added."""
    first, last = hits[begin], hits[end]
    high, low = hit_sums[last, 0] - hit_sums[first, 0], hit_sums[last, 1] - hit_sums[first, 1]
    others = _round_sum(sums[end, 0] - sums[begin, 0] - high, sums[end, 1] - sums[begin, 1] - low)
    return last - first, others + _round_sum(high, low)


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
            width[k, b] = _round_sum(high, sums[begin, 1] - sums[end, 1])
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


# The sweep reads runs, the distinct values: row r of ``up_to`` has the weight (or number) of wrong and of correct
# samples below run r. A bin is a range of runs and starts at a run that holds one of the inner edges.
#
# Accuracies that rise from run to run rise from bin to bin, whatever the bins: the accuracy of a range of runs lies
# between those of its first and of its last. So one look at the runs says whether any number of bins will fall.


@njit
def _sum_runs(values: Any, right: Any, running_wrong: Any, running_right: Any, up_to: Any) -> Any:
    """Fill ``up_to`` from the sorted values of all and of the correct samples; how many runs there are."""
    runs, passed = 0, 0
    up_to[0] = 0.0
    for i in range(values.size):
        if i + 1 < values.size and values[i + 1] == values[i]:
            continue
        while passed < right.size and right[passed] <= values[i]:
            passed += 1
        runs, wrong = runs + 1, i + 1 - passed
        if running_right.size + running_wrong.size == 0:
            up_to[runs, 0], up_to[runs, 1] = wrong, passed
        else:
            up_to[runs, 0] = running_wrong[wrong - 1] if wrong > 0 else 0.0
            up_to[runs, 1] = running_right[passed - 1] if passed > 0 else 0.0
    return runs


@njit(inline="always")
def _before(up_to: Any, run: Any) -> Any:
    """Weight below a run."""
    return up_to[run, 0] + up_to[run, 1]


@njit(inline="always")
def _falls(up_to: Any, first: Any, begin: Any, end: Any, slack: Any) -> Any:
    """Whether the runs from ``begin`` to ``end`` have a lower accuracy than those from ``first`` to ``begin``."""
    before_right, right = up_to[begin, 1] - up_to[first, 1], up_to[end, 1] - up_to[begin, 1]
    before, weight = before_right + (up_to[begin, 0] - up_to[first, 0]), right + (up_to[end, 0] - up_to[begin, 0])
    return right * before < before_right * weight * (1.0 - slack)


@njit
def _edge(up_to: Any, whole: Any, k: Any, bins: Any, slack: Any) -> Any:
    """The run that holds inner edge k of so many equal-mass bins; ``whole`` stands for numbers of samples."""
    low, high = 0, up_to.shape[0] - 2
    total = _before(up_to, high + 1)
    share = np.float64(k * int(total) // bins) if whole else (k / bins + slack) * total
    while low < high:
        middle = (low + high) >> 1
        if _before(up_to, middle + 1) > share:
            high = middle
        else:
            low = middle + 1
    return low


@njit
def _holds_edge(up_to: Any, whole: Any, run: Any, bins: Any, slack: Any) -> Any:
    """Whether a run holds an inner edge of so many bins. A bin starts at the first run and at the end of all anyway."""
    if run in (0, up_to.shape[0] - 1):
        return True
    start, end, total = _before(up_to, run), _before(up_to, run + 1), _before(up_to, up_to.shape[0] - 1)
    if whole:
        k = -(-int(start) * bins // int(total))
        return k * int(total) < int(end) * bins
    k = max(1, int((start / total - slack) * bins))
    while k > 1 and ((k - 1) / bins + slack) * total >= start:
        k -= 1
    while (k / bins + slack) * total < start:
        k += 1
    return k < bins and (run == up_to.shape[0] - 2 or (k / bins + slack) * total < end)


@njit
def _rises(up_to: Any, whole: Any, bins: Any, first: Any, last: Any, slack: Any) -> Any:
    """Whether the accuracies of so many equal-mass bins never fall, edge by edge.

    Bins below ``first``, the first run with a correct sample, have accuracy 0 and those above ``last``, the last with a
    wrong one, 1: only those between matter.
    """
    runs = up_to.shape[0] - 1
    k = max(0, int(_before(up_to, first) / _before(up_to, runs) * bins) - 1)
    begin = _edge(up_to, whole, k, bins, slack) if k > 0 else 0
    before = -1
    while begin <= last:
        k += 1
        end = _edge(up_to, whole, k, bins, slack) if k < bins else runs
        if end == begin:
            continue
        if before >= 0 and _falls(up_to, before, begin, end, slack):
            return False
        before, begin = begin, end
    return True


@njit
def _rises_within(up_to: Any, whole: Any, bins: Any, pieces: Any, slack: Any) -> Any:
    """The same, run by run, for the bins that start in one of the pieces, ranges of runs."""
    for p in range(pieces.shape[0]):
        run = begin = pieces[p, 0]
        while not _holds_edge(up_to, whole, begin, bins, slack):
            begin -= 1
        before = -1
        while begin < pieces[p, 1]:
            run += 1
            if _holds_edge(up_to, whole, run, bins, slack):
                if before >= 0 and _falls(up_to, before, begin, run, slack):
                    return False
                before, begin = begin, run
    return True


@njit
def _changing(up_to: Any, whole: Any, bins: Any, first: Any, last: Any, slack: Any) -> Any:
    """Pieces of the runs from ``first`` to ``last``, outside of which so many bins, or more, are single runs.

    A run that is as heavy as a bin holds an edge, now and with more bins. Around the lighter ones, two runs before and
    one behind belong to the bins that are compared.
    """
    pieces = np.empty((last - first + 1, 2), np.int64)
    found, runs = 0, up_to.shape[0] - 1
    total = _before(up_to, runs)
    for run in range(max(1, first - 1), min(last + 3, runs)):
        start = _before(up_to, run)
        heavy = (_before(up_to, run + 1) - start) * bins
        if heavy >= total if whole else heavy >= total * (1 + 1e-6) and start > 2 * slack * total:
            continue
        begin, end = max(first, run - 2), min(last, run + 1) + 1
        if found > 0 and begin <= pieces[found - 1, 1]:
            pieces[found - 1, 1] = max(end, pieces[found - 1, 1])
        elif begin < end:
            pieces[found, 0], pieces[found, 1] = begin, end
            found += 1
    return pieces[:found]


def _most_rising_bins(values: Any, right: Any, running_wrong: Any, running_right: Any, slack: Any) -> Any:
    n, whole = values.size, running_right.size + running_wrong.size == 0
    last = np.append(np.flatnonzero(values[1:] != values[:-1]), n - 1)
    passed = np.append(0, np.searchsorted(right, values[last], "right"))
    up_to = np.stack((np.append(0, last + 1) - passed, passed)).astype(np.float64)
    if not whole:
        sums = (np.append(0.0, running_wrong), np.append(0.0, running_right))
        up_to = np.stack([each[count.astype(np.int64)] for each, count in zip(sums, up_to, strict=True)])
    runs, ends = last.size, up_to.sum(axis=0)[1:]

    def falls(starts: Any, slack: Any) -> Any:
        wrong, height = np.diff(up_to[:, np.append(starts, runs)])
        weight = height + wrong
        return (height[1:] * weight[:-1] < height[:-1] * weight[1:] * (1.0 - slack)).any()

    if not falls(np.arange(runs), 0.0 if whole else slack):
        return 0
    for bins in range(2, n + 1):
        k = np.arange(1, bins)
        shares = k * n // bins if whole else (k / bins + slack) * ends[-1]
        if falls(np.unique(np.append(0, np.minimum(np.searchsorted(ends, shares, "right"), runs - 1))), slack):
            return bins - 1
    return n


@njit(patience=FEW, in_numpy=_most_rising_bins)
def most_rising_bins(values: Any, right: Any, running_wrong: Any, running_right: Any, slack: Any) -> Any:
    """Bins are added one at a time until an accuracy falls; the number before that, and 0 if none will ever fall.

    ``values`` and ``right``, those of correct samples, are sorted; running weights are empty where there are none.
    """
    whole = running_right.size + running_wrong.size == 0
    up_to = np.empty((values.size + 1, 2))
    runs = _sum_runs(values, right, running_wrong, running_right, up_to)
    up_to = up_to[: runs + 1]
    first, last, rising = runs, -1, True
    for run in range(runs):
        first = min(first, run) if up_to[run + 1, 1] > up_to[run, 1] else first
        last = run if up_to[run + 1, 0] > up_to[run, 0] else last
        rising = rising and not (run > 0 and _falls(up_to, run - 1, run, run + 1, 0.0 if whole else slack))
    if rising:
        return 0
    bins = 1
    while bins + 1 < runs and _rises(up_to, whole, bins + 1, first, last, slack):
        bins += 1
    if bins + 1 < runs:
        return bins
    # From here on most runs have a bin of their own; only where they do not, something is left to look at.
    everything = np.array([[first, last + 1]])
    pieces, until = everything, 0
    while bins < values.size:
        if bins + 1 > until:
            if not _rises_within(up_to, whole, bins + 1, everything, slack):
                return bins
            pieces, until = _changing(up_to, whole, bins + 1, first, last, slack), bins + 1 + bins // 8
        elif not _rises_within(up_to, whole, bins + 1, pieces, slack):
            return bins
        bins += 1
    return bins
