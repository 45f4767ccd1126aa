# pyright: basic
"""Largest number of equal-mass bins whose accuracies still rise."""

from __future__ import annotations

from typing import Any

import numpy as np

from certcal._kernels._compile import FEW, njit


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
