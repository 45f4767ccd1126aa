# pyright: basic
"""Isotonic regression at each place after one more sample was added there, for all places together."""

from __future__ import annotations

from typing import Any

import numpy as np

from certcal._kernels._compile import FEW, njit


@njit(patience=FEW >> 2)
def with_one_more(mass: Any, total: Any, outcome: float, out: Any) -> Any:
    """Values of the isotonic fit at each place with one more sample of an outcome at that place.

    The fit is the slope of the lower hull of the cumulative sums. The sample moves all sums from its place on by
    (1, outcome), so the slope there is that of the bridge from the hull of the sums before to the moved hull of those
    after. Both are chains, and the walk along them ends at the bridge.
    """
    n = mass.size
    x, y = np.zeros(n + 1), np.zeros(n + 1)
    for i in range(n):
        x[i + 1], y[i + 1] = x[i] + mass[i], y[i] + total[i]
    before, after = np.zeros(n + 1, np.int64), np.full(n + 1, n, np.int64)
    for i in range(1, n + 1):  # the vertex before i in the hull of 0, ..., i
        j = i - 1
        while j > 0 and (y[j] - y[before[j]]) * (x[i] - x[j]) >= (y[i] - y[j]) * (x[j] - x[before[j]]):
            j = before[j]
        before[i] = j
    for i in range(n - 1, -1, -1):  # the vertex after i in the hull of i, ..., n
        j = i + 1
        while j < n and (y[j] - y[i]) * (x[after[j]] - x[j]) >= (y[after[j]] - y[j]) * (x[j] - x[i]):
            j = after[j]
        after[i] = j
    for i in range(n):
        a, b = i, i + 1
        moved = True
        while moved:
            moved = False
            slope = (y[b] + outcome - y[a]) / (x[b] + 1 - x[a])
            while b < n and (y[after[b]] + outcome - y[a]) / (x[after[b]] + 1 - x[a]) <= slope:
                b = after[b]
                slope = (y[b] + outcome - y[a]) / (x[b] + 1 - x[a])
            while a > 0 and (y[b] + outcome - y[before[a]]) / (x[b] + 1 - x[before[a]]) >= slope:
                a = before[a]
                slope = (y[b] + outcome - y[a]) / (x[b] + 1 - x[a])
                moved = True
        out[i] = (y[b] + outcome - y[a]) / (x[b] + 1 - x[a])
