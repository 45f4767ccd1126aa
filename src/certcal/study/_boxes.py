"""Distributions in five numbers, brackets of a size, and points few enough to draw."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certcal.study._findings import Box

Floats = NDArray[np.float64]

# Points that are drawn at most.
DRAWN = 2000
# A size with at most so many values has a box for each; others are cut into so many brackets of equal numbers.
_DISTINCT, _BRACKETS = 8, 5


def box(name: str, values: Floats) -> Box:
    """The quartiles of the values that are numbers, and the last values within 1.5 interquartile ranges of them."""
    known = values[np.isfinite(values)]
    if not known.size:
        return Box(name, 0, *(float("nan"),) * 5)
    first, median, third = (float(q) for q in np.quantile(known, (0.25, 0.5, 0.75)))
    reach = 1.5 * (third - first)
    low = float(known[known >= first - reach].min())
    high = float(known[known <= third + reach].max())
    return Box(name, known.size, min(low, first), first, median, third, max(high, third))


def brackets(size: Floats) -> list[tuple[str, NDArray[np.bool_]]]:
    """Parts of a column by its values: one for each if there are few, or brackets with about equally many models.

    Examples
    --------
    >>> import numpy as np
    >>> [(name, int(which.sum())) for name, which in brackets(np.array([8.0, 8, 16, 64]))]
    [('8', 2), ('16', 1), ('64', 1)]
    >>> [name for name, _ in brackets(np.arange(100.0))]
    ['0 to 19', '20 to 39', '40 to 59', '60 to 79', '80 to 99']
    """
    known = np.sort(size[np.isfinite(size)])
    values = np.unique(known)
    if values.size <= _DISTINCT:
        return [(f"{value:,.6g}", size == value) for value in values.tolist()]
    starts = np.unique(known[[known.size * part // _BRACKETS for part in range(_BRACKETS)]])
    ends = [*starts[1:].tolist(), np.inf]
    found: list[tuple[str, NDArray[np.bool_]]] = []
    for start, end in zip(starts.tolist(), ends, strict=True):
        which = (size >= start) & (size < end) & np.isfinite(size)
        found.append((f"{start:,.6g} to {float(size[which].max()):,.6g}", which))
    return found


def thinned(n: int) -> tuple[NDArray[np.int64], str]:
    """Evenly spaced places of n in order, at most :data:`DRAWN`, and a note if some are left out."""
    if n <= DRAWN:
        return np.arange(n), ""
    places = np.arange(DRAWN) * n // DRAWN
    return places, f"{DRAWN:,} of {n:,} models are drawn, evenly spaced by accuracy"
