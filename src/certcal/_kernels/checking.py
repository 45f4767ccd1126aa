# pyright: basic
"""Range checks that read an array once at memory speed."""

from __future__ import annotations

from typing import Any

import numpy as np

from certcal._kernels._compile import MANY, njit


def _rows_in_numpy(matrix: Any, above_one: Any, sum_tolerance: Any) -> Any:
    values = matrix.astype(np.float64)
    totals = np.add.accumulate(values, axis=1)[:, -1]  # one after the other, as in the loop
    good = (values >= 0.0) & (values <= 1.0 + above_one)
    bad = ~good.all(axis=1) | ~(np.abs(totals - 1.0) <= sum_tolerance)
    if not bad.any():
        return -1, -1, 0.0
    row = int(bad.argmax())
    return row, -1 if good[row].all() else int(good[row].argmin()), float(totals[row])


def _ones_in_numpy(values: Any, out: Any) -> Any:
    out[:] = values == 1
    return bool((out | (values == 0)).all())


@njit(patience=MANY, in_numpy=lambda values: bool(((values >= 0.0) & (values <= 1.0)).all()))
def all_in_unit_interval(values: Any) -> Any:
    """Whether every value is in [0, 1]; false for NaN."""
    good = True
    for i in range(values.size):
        good &= (values[i] >= 0.0) & (values[i] <= 1.0)
    return good


@njit(patience=MANY, in_numpy=_ones_in_numpy)
def all_zero_or_one(values: Any, out: Any) -> Any:
    """Copy ``values`` to the bytes ``out``; whether every value is 0 or 1."""
    good = True
    for i in range(values.size):
        good &= (values[i] == 0) | (values[i] == 1)
        out[i] = np.uint8(values[i] == 1)
    return good


@njit(patience=MANY, in_numpy=lambda values: bool((values <= 1).all()))
def bytes_are_zero_or_one(values: Any) -> Any:
    """Whether every byte is 0 or 1."""
    largest = np.uint8(0)
    for i in range(values.size):
        largest |= values[i]
    return largest <= 1


@njit(patience=MANY, in_numpy=lambda values: bool(((values >= 0.0) & (values < np.inf)).all()))
def all_finite_and_not_negative(values: Any) -> Any:
    """Whether every value is a finite number >= 0."""
    good = True
    for i in range(values.size):
        good &= (values[i] >= 0.0) & (values[i] < np.inf)
    return good


@njit(patience=MANY, in_numpy=lambda values: bool(((values > -np.inf) & (values < np.inf)).all()))
def all_finite(values: Any) -> Any:
    """Whether every value is a finite number."""
    good = True
    for i in range(values.size):
        good &= (values[i] > -np.inf) & (values[i] < np.inf)
    return good


@njit(patience=MANY, in_numpy=_rows_in_numpy)
def check_rows(matrix: Any, above_one: Any, sum_tolerance: Any) -> Any:
    """First row that is no distribution and why: (row, column, sum); (-1, -1, 0) when there is none."""
    rows, columns = matrix.shape
    for i in range(rows):
        total = 0.0
        good = True
        for k in range(columns):
            value = np.float64(matrix[i, k])
            good &= (value >= 0.0) & (value <= 1.0 + above_one)
            total += value
        if not good:
            for k in range(columns):
                value = np.float64(matrix[i, k])
                if not (value >= 0.0 and value <= 1.0 + above_one):
                    return i, k, total
        if not (abs(total - 1.0) <= sum_tolerance):
            return i, -1, total
    return -1, -1, 0.0
