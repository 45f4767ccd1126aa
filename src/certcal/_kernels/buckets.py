# pyright: basic
"""Sums over runs of a sorted sample, and two of them merged."""

from __future__ import annotations

from typing import Any

import numpy as np

from certcal._kernels._compile import FEW, njit

# Numbers added before the partial sum moves on, so that no sum loses more than about as many units in the last place.
BLOCK = 128


@njit(patience=FEW)
def run_sums(scores: Any, outcomes: Any, starts: Any, out: Any) -> Any:
    """Number, Σ outcome, Σ score and Σ (score - mean)², rounded up, of the runs from each start to the next.

    Sums of n scores go through at most k = BLOCK + n/BLOCK additions each. With scores that are at most w above the
    first, the squares are then off by at most n w² (k + 3) 2^-53, and the square of the sum by twice that.
    """
    for run in range(starts.size - 1):
        begin, end = starts[run], starts[run + 1]
        out[run, 0] = end - begin
        out[run, 1:] = 0.0
        if begin == end:
            continue
        origin = scores[begin]
        hits, moved, squares = 0, np.float64(0.0), np.float64(0.0)
        for block in range(begin, end, BLOCK):
            part, square = np.float64(0.0), np.float64(0.0)
            for i in range(block, min(end, block + BLOCK)):
                x = scores[i] - origin
                part += x
                square += x * x
                hits += np.int64(outcomes[i])
            moved += part
            squares += square
        out[run, 1] = hits
        out[run, 2] = moved + origin * (end - begin)
        n, width = end - begin, scores[end - 1] - origin
        lost = n * width * width * (BLOCK + n / BLOCK + 8.0) * 2.0**-51
        out[run, 3] = max(0.0, squares - moved * moved / n) + lost


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
