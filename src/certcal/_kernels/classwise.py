# pyright: basic
"""Sums over every class of a probability matrix, row by row as it lies in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from certcal._kernels._compile import MANY, njit
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
