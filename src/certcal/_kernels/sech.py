# pyright: basic
"""Draws from the truncated hyperbolic secant by the inverse of its distribution function."""

from __future__ import annotations

import math
from typing import Any

from certcal._kernels._compile import njit


@njit
def sech_quantiles(share: Any, score: Any, h: Any, out: Any) -> Any:
    """Fill ``out`` with the values below which the given shares of the perturbed scores lie."""
    for i in range(share.size):
        s = score[i]
        left = 2 * math.atan(math.tanh(0.5 * s / h))
        right = 2 * math.atan(math.tanh(0.5 * (1 - s) / h))
        passed = share[i] * (left + right)
        to_left = passed < left
        inner = left - passed if to_left else passed - left
        if inner < 1:
            offset = h * math.asinh(math.tan(inner))
        else:
            # Counted from the angle of a score at infinity, the tail keeps its digits.
            if to_left:
                outer = passed + 2 * math.atan(math.exp(-s / h))
            else:
                outer = max(left + right - passed, 0.0) + 2 * math.atan(math.exp(-(1 - s) / h))
            offset = -h * math.log(math.tan(0.5 * outer)) if outer > 0 else 1.0
        out[i] = min(max(s - offset if to_left else s + offset, 0.0), 1.0)
