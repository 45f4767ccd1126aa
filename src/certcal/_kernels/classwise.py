# pyright: basic
"""Sums over every class of a probability matrix, row by row as it lies in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from certcal._kernels.bins import CARRY_EVERY, LOW, SCALE, locate, super_add


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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
