"""Binned metrics at several bin counts from one sort: what :func:`certcal.binning.sums` gives, to the last bit.

Once a column is sorted, a bin is a range of it, and its sums are differences of running sums. One more bin
count then costs as much as its bins, whatever the number of samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import kernel_float
from certcal._select import SLACK
from certcal._threads import map_blocks
from certcal.binning import BinTable, equal_width_edges

Floats = NDArray[np.float64]

# With more samples than this a pass for every bin count is as fast as a sort, and needs no memory for it.
MOST_SORTED = 1 << 17
# Columns sorted at a time: one alone would fetch a whole cache line for every entry.
_COLUMNS = 8
# Columns whose bins are summed at a time.
_SUMMED = 128


@dataclass(frozen=True, eq=False)
class _Plan:
    """Bins of all counts, one after the other: the inner edge or the place in the sorted column where each starts."""

    edges: Floats  # inner edges of the equal-width bins of all counts, without repetitions
    which: NDArray[np.int64]
    picks: NDArray[np.int64]
    right: bool
    last: NDArray[np.bool_]

    @classmethod
    def of(cls, counts: tuple[int, ...], closed: str, dtype: np.dtype[Any], n: int) -> _Plan:
        right = closed == "right"
        inner: list[NDArray[Any]] = []
        picks: list[NDArray[np.int64]] = []
        places = np.arange(1.0, n + 1)
        for count in counts:
            edges = equal_width_edges(count)[1:-1].astype(dtype)
            inner.append(np.nextafter(edges, dtype.type(2)) if right else edges)
            # As in certcal._select: the first value up to and including which the share is exceeded, or its mirror.
            thresholds = np.arange(1, count) / count * n + (-SLACK if right else SLACK) * n
            found = np.searchsorted(places, thresholds, "left" if right else "right")
            picks.append(np.concatenate(([-1], np.minimum(found, n - 1))))
        edges, places_of = np.unique(np.concatenate(inner).astype(np.float64), return_inverse=True)
        parts = np.split(places_of, np.cumsum([each.size for each in inner])[:-1])
        which = np.concatenate([np.concatenate(([-1], part)) for part in parts])
        last = np.zeros(which.size, np.bool_)
        last[np.cumsum(counts) - 1] = True
        return cls(edges, which, np.concatenate(picks), right, last)


def _sorted_columns(values: NDArray[Any], columns: Any, places: Any) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """Every row of values sorted, and flags for those at the given rows and places; the values are overwritten.

    Floats from 0 to 1 are ordered like their bits, of which the first two are zero: the flag fits in below.
    """
    from certcal._kernels.sorted_bins import take_flags

    values += values.dtype.type(0)  # no negative zeros
    keys = values.view(np.int64 if values.dtype == np.float64 else np.int32)
    keys <<= 1
    keys[columns, places] |= 1
    keys.sort(axis=1)
    flags = np.empty(keys.shape, np.uint8)
    take_flags(keys, flags)
    return values, flags


def score_tables(
    z: NDArray[Any], c: NDArray[np.uint8], counts: tuple[int, ...], closed: str
) -> dict[int, tuple[BinTable, BinTable]]:
    """Tables of equal-width and of equal-mass bins for every bin count."""
    from certcal._kernels import sorted_bins as kernels

    plan = _Plan.of(counts, closed, z.dtype, z.size)
    ordered, flags = _sorted_columns(np.array(kernel_float(z))[None], 0, np.flatnonzero(c))
    values = ordered[0]
    found = np.empty((2, plan.which.size, 2), np.int64)
    totals = np.empty((2, plan.which.size))
    kernels.score_sums(values, flags[0], plan.edges, plan.which, plan.picks, plan.right, plan.last, found, totals)
    tables: dict[int, tuple[BinTable, BinTable]] = {}
    stop = 0
    for count in counts:
        start, stop = stop, stop + count
        by_mass = np.concatenate(([0.0], values[plan.picks[start + 1 : stop]], [1.0])).astype(np.float64)
        pair: list[BinTable] = []
        for kind, edges in enumerate((equal_width_edges(count), by_mass)):
            here, weight = found[kind, start:stop, 0].copy(), found[kind, start:stop, 0].astype(np.float64)
            correct = found[kind, start:stop, 1].astype(np.float64)
            pair.append(BinTable(edges, closed, here, weight, weight.copy(), totals[kind, start:stop].copy(), correct))
        tables[count] = pair[0], pair[1]
    return tables


def classwise_errors(
    p: NDArray[Any], y: NDArray[np.int64], counts: tuple[int, ...], closed: str
) -> dict[int, tuple[float, float]]:
    """Classwise calibration errors with equal-width and with equal-mass bins for every bin count."""
    from certcal._kernels import sorted_bins as kernels

    n, classes = p.shape
    plan = _Plan.of(counts, closed, p.dtype, n)
    bounds = np.cumsum((0, *counts))
    errors = np.empty((2, len(counts), classes))
    matrix = kernel_float(p)

    def some(start: int, stop: int) -> None:
        gaps = np.empty((2, min(_SUMMED, stop - start), plan.which.size))
        for begin in range(start, stop, _SUMMED):
            end = min(begin + _SUMMED, stop)
            for first in range(begin, end, _COLUMNS):
                last = min(first + _COLUMNS, end)
                columns = np.minimum(np.ascontiguousarray(matrix[:, first:last].T), 1)
                labelled = np.flatnonzero((y >= first) & (y < last))
                values, flags = _sorted_columns(columns, y[labelled] - first, labelled)
                width, mass = gaps[:, first - begin : last - begin]
                kernels.column_gaps(
                    values, flags, plan.edges, plan.which, plan.picks, plan.right, plan.last, width, mass
                )
            for k in range(len(counts)):
                part = np.abs(gaps[:, : end - begin, bounds[k] : bounds[k + 1]])
                errors[:, k, begin:end] = part.sum(axis=2)

    map_blocks(some, classes, small=1 + 200_000 // n)
    # In the order of certcal.metrics.classwise: one divides the mean of all classes, the other the sum of each.
    width, mass = errors[0].mean(axis=1) / n, (errors[1] / n).mean(axis=1)
    return {count: (float(width[k]), float(mass[k])) for k, count in enumerate(counts)}
