# pyright: basic
"""Sums over every class of a probability matrix, row by row as it lies in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from certcal._kernels._compile import FEW, MANY, njit
from certcal._kernels.bins import CARRY_EVERY, LOW, SCALE, locate, super_add


def _add_gaps(probabilities: Any, labels: Any, inner: Any, table: Any, cells: Any, state: Any) -> Any:
    classes, bins = probabilities.shape[1], inner.size
    start_of = bins * np.arange(classes)
    for start in range(0, len(labels), CARRY_EVERY):
        rows, own = probabilities[start : start + CARRY_EVERY].astype(np.float64), labels[start : start + CARRY_EVERY]
        where = np.searchsorted(inner[:-1], rows, "right") + start_of
        sums = np.zeros(classes * bins, np.int64)
        np.subtract.at(sums, where.reshape(-1), (np.minimum(rows, 1.0) * SCALE + 0.5).astype(np.int64).reshape(-1))
        np.add.at(sums, where[np.arange(own.size), own], np.int64(SCALE))
        state[:, :, 0] += (sums >> 32).reshape(classes, bins)
        state[:, :, 1] += (sums & LOW).reshape(classes, bins)


@njit(patience=MANY, in_numpy=_add_gaps)
def add_gaps(probabilities: Any, labels: Any, inner: Any, table: Any, cells: Any, state: Any) -> Any:
    """Add Σ(outcome - probability) of every class and bin to ``state[class, bin] = (high word, low word)``."""
    rows, classes = probabilities.shape
    bins = inner.size
    sums = np.zeros(classes * bins, np.int64)
    where = np.empty(classes, np.uint32)
    for start in range(0, rows, CARRY_EVERY):
        for i in range(start, min(rows, start + CARRY_EVERY)):
            row = probabilities[i]
            locate(row, inner, table, cells, where)
            base = np.uint64(0)
            for k in range(classes):
                sums[base + where[k]] -= np.int64(min(np.float64(row[k]), 1.0) * SCALE + 0.5)
                base += np.uint64(bins)
            sums[np.uint64(labels[i] * bins) + where[labels[i]]] += np.int64(SCALE)
        for k in range(classes):
            for j in range(bins):
                total = sums[k * bins + j]
                state[k, j, 0] += total >> 32
                state[k, j, 1] += total & LOW
                sums[k * bins + j] = 0


@njit
def add_weighted_gaps(
    probabilities: Any, labels: Any, weights: Any, inner: Any, table: Any, cells: Any, gains: Any, losses: Any
) -> Any:
    """Add Σw·outcome and Σw·probability per class and bin to the superaccumulators ``gains`` and ``losses``."""
    rows, classes = probabilities.shape
    where = np.empty(classes, np.uint32)
    terms = np.empty(1, np.float64)
    bits = terms.view(np.uint64)
    for i in range(rows):
        row = probabilities[i]
        locate(row, inner, table, cells, where)
        for k in range(classes):
            terms[0] = weights[i] * min(np.float64(row[k]), 1.0)
            if bits[0]:
                super_add(losses[k, where[k]], bits[0])
        terms[0] = weights[i]
        if bits[0]:
            super_add(gains[labels[i], where[labels[i]]], bits[0])


def _squared_distances(probabilities: Any, labels: Any, out: Any) -> Any:
    values = np.minimum(probabilities.astype(np.float64), 1.0)
    total = np.add.accumulate(values * values, axis=1)[:, -1]  # one after the other, as in the loop
    out[:] = total - 2.0 * values[np.arange(labels.size), labels] + 1.0


@njit(patience=MANY, in_numpy=_squared_distances)
def squared_distances(probabilities: Any, labels: Any, out: Any) -> Any:
    """Squared distance of every row to its one-hot label."""
    rows, classes = probabilities.shape
    for i in range(rows):
        total = 0.0
        for k in range(classes):
            value = min(np.float64(probabilities[i, k]), 1.0)
            total += value * value
        value = min(np.float64(probabilities[i, labels[i]]), 1.0)
        out[i] = total - 2.0 * value + 1.0


def _replicate_gaps(probabilities: Any, labels: Any, times: Any, inner: Any, table: Any, cells: Any, out: Any) -> Any:
    rows, classes = probabilities.shape
    values = probabilities.astype(np.float64)
    where, number = np.searchsorted(inner[:-1], values, "right"), np.arange(rows)
    # A row's probabilities, then its outcome: added in this order.
    places = np.column_stack((where, where[number, labels]))
    columns = np.column_stack((np.tile(np.arange(classes), (rows, 1)), labels))
    terms = np.empty((rows, classes + 1, times.shape[1]))
    terms[:, :classes] = -(np.minimum(values, 1.0)[:, :, None] * times[:, None, :])
    terms[:, classes] = times
    np.add.at(out, (columns, places), terms)


@njit(patience=MANY, in_numpy=_replicate_gaps)
def replicate_gaps(probabilities: Any, labels: Any, times: Any, inner: Any, table: Any, cells: Any, out: Any) -> Any:
    """Add Σ times·(outcome - probability) to ``out[class, bin, replicate]``, for several replicates at once.

    Each replicate's sums are in the order of the rows, whatever others are computed beside it.
    """
    rows, classes = probabilities.shape
    replicates = times.shape[1]
    where = np.empty(classes, np.uint32)
    for i in range(rows):
        row = probabilities[i]
        often = times[i]
        locate(row, inner, table, cells, where)
        for k in range(classes):
            value = min(np.float64(row[k]), 1.0)
            sums = out[k, where[k]]
            for r in range(replicates):
                sums[r] -= often[r] * value
        sums = out[labels[i], where[labels[i]]]
        for r in range(replicates):
            sums[r] += often[r]


@njit
def changes_without_each(
    probabilities: Any, labels: Any, weights: Any, inner: Any, table: Any, cells: Any, gaps: Any, out: Any
) -> Any:
    """How leaving a row out changes Σ|gap| over all classes and bins: Σ_k |G - g| - |G|, for every row."""
    rows, classes = probabilities.shape
    where = np.empty(classes, np.uint32)
    for i in range(rows):
        row = probabilities[i]
        locate(row, inner, table, cells, where)
        total = 0.0
        for k in range(classes):
            gap = gaps[k, where[k]]
            own = weights[i] * (np.float64(labels[i] == k) - min(np.float64(row[k]), 1.0))
            total += abs(gap - own) - abs(gap)
        out[i] = total


def _mass_errors(
    values: Any, order: Any, outcomes: Any, times: Any, totals: Any, bins: Any, slack: Any, out: Any
) -> Any:
    often = times[order]
    ends = np.append(values[1:] != values[:-1], True)
    own, gaps = np.zeros((np.count_nonzero(ends), totals.size)), np.zeros((bins, totals.size))
    miss = outcomes.astype(np.float64) - np.abs(values).astype(np.float64)
    np.add.at(own, np.cumsum(ends) - ends, often * miss[:, None])
    walked = np.add.accumulate(often)[ends]
    bound = (np.arange(1, bins) / bins + slack)[:, None] * totals
    where = np.count_nonzero(walked[:, None] > bound, axis=1)
    np.add.at(gaps, (where, np.arange(totals.size)), own)
    out[:] = np.add.accumulate(np.abs(gaps))[-1]


@njit(patience=FEW, in_numpy=_mass_errors)
def mass_errors(
    values: Any, order: Any, outcomes: Any, times: Any, totals: Any, bins: Any, slack: Any, out: Any
) -> Any:
    """Σ|gap| of one class over equal-mass bins for several replicates, from one walk through its sorted probabilities.

    ``times`` holds a weight per row and replicate. An edge is the first value up to and including which the weight
    exceeds its share of the total; equal values are passed together.
    """
    replicates = totals.size
    walked, gap, own = np.zeros(replicates), np.zeros(replicates), np.zeros(replicates)
    edge = np.ones(replicates, np.int64)
    bound = (1.0 / bins + slack) * totals if bins > 1 else np.full(replicates, np.inf)
    out[:] = 0.0
    for j in range(values.size):
        often = times[order[j]]
        miss = np.float64(outcomes[j]) - np.float64(abs(values[j]))
        for r in range(replicates):
            walked[r] += often[r]
            own[r] += often[r] * miss
        if j + 1 < values.size and values[j + 1] == values[j]:
            continue
        for r in range(replicates):
            if walked[r] > bound[r]:
                out[r] += abs(gap[r])
                gap[r] = 0.0
                while walked[r] > bound[r]:
                    edge[r] += 1
                    bound[r] = (edge[r] / bins + slack) * totals[r] if edge[r] < bins else np.inf
            gap[r] += own[r]
            own[r] = 0.0
    for r in range(replicates):
        out[r] += abs(gap[r])


@njit
def _first_above(running: Any, bound: Any) -> Any:
    """First position at which the running weight exceeds the bound; the last one if none does."""
    low, high = 0, running.size - 1
    while low < high:
        middle = (low + high) >> 1
        if running[middle] > bound:
            high = middle
        else:
            low = middle + 1
    return low


@njit
def add_mass_errors_without_each(
    values: Any,
    order: Any,
    own: Any,
    before: Any,
    weights: Any,
    running: Any,
    even: Any,
    bins: Any,
    slack: Any,
    out: Any,
) -> Any:
    """Add Σ|gap| of one class over equal-mass bins to ``out``, for every sample left out; the edges move with it.

    ``own`` and ``weights`` are gap and weight of the sorted samples, ``running`` is the weight up to and including each
    and ``before`` the gap of all that lie strictly below, with the gap of all at the end. ``even``: all weights are 1.
    """
    n = values.size
    for r in range(n):
        total = running[n - 1] - weights[r]
        error = 0.0
        last = 0.0
        for m in range(1, bins):
            if even:
                j = m * (n - 1) // bins
                j += j >= r
            else:
                bound = (m / bins + slack) * total
                j = _first_above(running, bound)
                if j >= r:  # the sample that is left out lies before the edge
                    j = _first_above(running, bound + weights[r])
            reached = before[j]
            if values[r] < values[j]:
                reached -= own[r]
            error += abs(reached - last)
            last = reached
        out[order[r]] += error + abs(before[n] - own[r] - last)
