# pyright: basic
"""Range checks that read an array once at memory speed."""

from __future__ import annotations

from typing import Any

import numpy as np

from certcal._kernels._compile import njit


@njit(cache=True, nogil=True)
def all_in_unit_interval(values: Any) -> Any:
    """Whether every value is in [0, 1]; false for NaN."""
    good = True
    for i in range(values.size):
        good &= (values[i] >= 0.0) & (values[i] <= 1.0)
    return good


@njit(cache=True, nogil=True)
def all_zero_or_one(values: Any, out: Any) -> Any:
    """Copy ``values`` to the bytes ``out``; whether every value is 0 or 1."""
    good = True
    for i in range(values.size):
        good &= (values[i] == 0) | (values[i] == 1)
        out[i] = np.uint8(values[i] == 1)
    return good


@njit(cache=True, nogil=True)
def bytes_are_zero_or_one(values: Any) -> Any:
    """Whether every byte is 0 or 1."""
    largest = np.uint8(0)
    for i in range(values.size):
        largest |= values[i]
    return largest <= 1


@njit(cache=True, nogil=True)
def all_finite_and_not_negative(values: Any) -> Any:
    """Whether every value is a finite number >= 0."""
    good = True
    for i in range(values.size):
        good &= (values[i] >= 0.0) & (values[i] < np.inf)
    return good


@njit(cache=True, nogil=True)
def all_finite(values: Any) -> Any:
    """Whether every value is a finite number."""
    good = True
    for i in range(values.size):
        good &= (values[i] > -np.inf) & (values[i] < np.inf)
    return good


@njit(cache=True, nogil=True)
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
