# pyright: basic
"""Runs of a sorted sample, and two of them merged."""

from __future__ import annotations

from typing import Any

import numpy as np

from certcal._kernels._compile import FEW, njit


@njit(patience=FEW)
def equal_mass_starts(scores: Any, groups: Any, out: Any) -> Any:
    """Starts of runs of about n/groups sorted scores, none of which splits equal ones; how many starts, n included.

    Equal scores that are n/groups or more make a run of their own.
    """
    n = scores.size
    found, stop = 0, 0
    for k in range(groups):
        at = (k * n) // groups
        if at < stop:
            continue
        low = at
        if at > 0 and scores[at - 1] == scores[at]:
            low = np.searchsorted(scores, scores[at], side="left")
        if found == 0 or low > out[found - 1]:
            out[found] = low
            found += 1
        if at + 1 < n and scores[at + 1] == scores[at]:
            high = np.searchsorted(scores, scores[at], side="right")
            if (high - low) * groups >= n and high < n:
                out[found] = high
                found += 1
            stop = high
    out[found] = n
    return found + 1


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
