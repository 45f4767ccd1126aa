# pyright: basic
"""Two sorted arrays become one."""

from __future__ import annotations

from typing import Any

import numpy as np

from certcal._kernels._compile import njit


@njit
def merge(first: Any, second: Any, out: Any) -> Any:
    """Fill ``out`` with the entries of two sorted arrays in order.

    Which side gives the next entry nobody can predict, so it is counted rather than branched on.
    """
    i = j = k = 0
    while i < first.size and j < second.size:
        x, y = first[i], second[j]
        mine = np.int64(x <= y)
        out[k] = x if mine else y
        i += mine
        j += 1 - mine
        k += 1
    out[k : k + first.size - i] = first[i:]
    k += first.size - i
    out[k:] = second[j:]
