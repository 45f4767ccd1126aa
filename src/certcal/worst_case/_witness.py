"""Confidences that reach the worst-case calibration error, made from the best signs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import kernel_float
from certcal.worst_case._bins import Bins
from certcal.worst_case._intervals import Intervals


def witness(
    bins: Bins, intervals: Intervals, signs: NDArray[np.int8], free_correct: int | None = None
) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """Confidences that the signs make the samples choose, in the input order and type, and their correctness.

    Uncertified samples are NaN, or chosen freely when ``free_correct`` is given.
    """
    from certcal._kernels.signs import place

    low, high, c = kernel_float(intervals.lower), kernel_float(intervals.upper), intervals.correct
    low_bin, high_bin = bins.locate(low), bins.locate(high)
    loose = None if intervals.certified is None else ~intervals.certified
    if loose is not None and free_correct is not None:
        low, high, c = low.copy(), high.copy(), c.copy()
        low[loose], high[loose], c[loose] = 0, 1, free_correct
        low_bin[loose], high_bin[loose] = 0, bins.count - 1
    out = np.empty(c.size)
    chosen = place(low, high, c, low_bin, high_bin, bins.edges, signs, bins.closed == "left", out)
    if bins.dtype != np.float64:  # the nearest float64 inside a bin is not one of a smaller type
        out = np.clip(out, *bins.inside(chosen))
    out = out.astype(bins.dtype)
    if loose is not None and free_correct is None:
        out[loose] = np.nan
    return out, c
