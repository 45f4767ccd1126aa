# pyright: basic
"""The quadratic form of the Laplacian kernel over sorted points."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def squared_norm(z: Any, c: Any, w: Any, width: Any) -> Any:
    """Σ_mn r_m r_n exp(-|z_m - z_n| / width) for residuals r = w (c - z) and z in increasing order.

    With ρ_k = exp(-(z_k - z_{k-1}) / width), ρ_1 = 0, and B_k = r_k + ρ_{k+1} B_{k+1}, the sum is Σ_k (1 - ρ_k²) B_k².
    B and the sum are carried in two floats each, so their rounding does not grow with the number of samples.
    """
    b = lost_b = total = lost_total = 0.0
    decay = 0.0  # ρ - 1
    for k in range(z.size - 1, -1, -1):
        r = np.float64(c[k]) - z[k]
        if w is not None:
            r *= w[k]
        step = decay * b + r
        new = b + step
        back = new - b
        lost_b += decay * lost_b + ((b - (new - back)) + (step - back))
        b = new
        decay = math.expm1((z[k - 1] - z[k]) / width) if k else -1.0
        term = -decay * (2.0 + decay) * (b + lost_b) ** 2
        new = total + term
        back = new - total
        lost_total += (total - (new - back)) + (term - back)
        total = new
    return total + lost_total
