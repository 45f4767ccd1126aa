# pyright: basic
"""Loss of temperature scaling and its derivatives in one pass over the logits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def scaled_loss(logits: Any, labels: Any, weights: Any, inverse: Any) -> Any:
    """Sum of w·loss, its first and second derivative in the inverse temperature; empty weights stand for ones.

    Per row, with p = softmax(βx): loss = log Σ exp(βx) - βx_y, slope = E_p x - x_y, curvature = Var_p x.
    """
    rows, classes = logits.shape
    loss = 0.0
    slope = 0.0
    curvature = 0.0
    for i in range(rows):
        top = np.float64(logits[i, 0])
        for k in range(1, classes):
            top = max(top, np.float64(logits[i, k]))
        total = 0.0
        first = 0.0
        second = 0.0
        for k in range(classes):
            x = np.float64(logits[i, k]) - top
            e = np.exp(inverse * x)
            total += e
            first += e * x
            second += e * x * x
        x = np.float64(logits[i, labels[i]]) - top
        mean = first / total
        weight = weights[i] if weights.size else 1.0
        loss += weight * (np.log(total) - inverse * x)
        slope += weight * (mean - x)
        curvature += weight * max(0.0, second / total - mean * mean)
    return loss, slope, curvature
