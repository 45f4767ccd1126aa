# pyright: basic
"""The quadratic form of the Laplacian kernel over sorted points.

Σ_mn r_m r_n exp(-|z_m - z_n| / width) for residuals r = w (c - z) and z in increasing order: with
ρ_k = exp(-(z_k - z_{k-1}) / width), ρ_1 = 0, and B_k = r_k + ρ_{k+1} B_{k+1}, the sum is Σ_k (1 - ρ_k²) B_k². B and the
sum are carried in two floats each, so their rounding does not grow with the number of samples.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from certcal._kernels._compile import FEW, njit


@njit(inline="always")
def _add(total: Any, lost: Any, term: Any) -> Any:
    """Two floats that hold a sum, after one more term."""
    new = total + term
    back = new - total
    return new, lost + ((total - (new - back)) + (term - back))


@njit(patience=FEW)
def squared_norm(keys: Any, cell: Any, value: Any, width: Any) -> Any:
    """The form for sorted keys that hold the bits of a confidence and, as their lowest bit, its correctness.

    The keys are taken apart one at a time, so that nothing of their size is needed beside them: ``cell`` and
    ``value`` are the same few bytes, as the integer that goes in and as the float that comes out.
    """
    b = lost_b = total = lost_total = 0.0
    after = 1.0
    for k in range(keys.size - 1, -1, -1):
        cell[0] = keys[k] >> 1
        z = np.float64(value[0])
        decay = math.expm1((z - after) / width)  # ρ - 1; while B is 0 it does not matter
        whole = b + lost_b
        total, lost_total = _add(total, lost_total, -decay * (2.0 + decay) * (whole * whole))
        lost_b += decay * lost_b
        b, lost_b = _add(b, lost_b, decay * b + (np.float64(keys[k] & 1) - z))
        after = z
    whole = b + lost_b
    total, lost_total = _add(total, lost_total, whole * whole)
    return total + lost_total


@njit(patience=FEW)
def weighted_squared_norm(order: Any, z: Any, c: Any, w: Any, width: Any) -> Any:
    """The form for samples with weights, of which ``order`` gives the positions by increasing confidence."""
    b = lost_b = total = lost_total = 0.0
    after = 1.0
    for k in range(order.size - 1, -1, -1):
        i = order[k]
        now = np.float64(z[i])
        decay = math.expm1((now - after) / width)
        whole = b + lost_b
        total, lost_total = _add(total, lost_total, -decay * (2.0 + decay) * (whole * whole))
        lost_b += decay * lost_b
        b, lost_b = _add(b, lost_b, decay * b + w[i] * (np.float64(c[i]) - now))
        after = now
    whole = b + lost_b
    total, lost_total = _add(total, lost_total, whole * whole)
    return total + lost_total
