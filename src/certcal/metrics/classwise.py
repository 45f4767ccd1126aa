"""Calibration of every class of a probability matrix, averaged over classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import bin_count, choice, class_pair, kernel_float, read_only
from certcal._base.threads import map_blocks
from certcal.binning import CLOSED, build_lookup, edges_for, mass_edges, rounded_sums, sums
from certcal.metrics.binned import ece_of

Floats = NDArray[np.float64]


def classwise_ece(
    probabilities: Any,
    labels: Any,
    bins: int = 15,
    *,
    edges: Any = None,
    closed: str = "left",
    sample_weight: Any = None,
) -> float:
    """Classwise calibration error: the mean over classes of the ECE of "probability of class k" against "label is k".

    Parameters
    ----------
    probabilities
        One row per sample, one column per class.
    labels
        True class of each sample, from 0.
    bins, edges, closed, sample_weight
        As for :func:`ece`.

    Examples
    --------
    >>> round(classwise_ece([[0.8, 0.2], [0.4, 0.6]], [0, 1], bins=2), 12)
    0.3
    """
    p, y, w = class_pair(probabilities, labels, sample_weight)
    gaps = gap_sums(p, y, w, edges_for(bins, edges), choice(closed, CLOSED, "closed"))
    return classwise_of(gaps, float(y.size) if w is None else float(w.sum()))


def classwise_of(gaps: Floats, total: float) -> float:
    """Mean over classes of the sum over bins of |gap|, divided by the total weight."""
    return float(np.abs(gaps).sum(axis=1).mean() / total)


def gap_sums(p: NDArray[Any], y: NDArray[np.int64], w: Floats | None, edges: Floats, closed: str) -> Floats:
    """Σ w(outcome - probability) for every class (row) and bin (column) of checked arrays."""
    state = ClasswiseSums(p.shape[1], edges, closed)
    state.add(p, y, w)
    return state.gaps()


class ClasswiseSums:
    """Mergeable state of O(classes × bins).

    The sums are exact, with weights too, so the result is the same bits for any order and any pieces.
    """

    def __init__(self, classes: int, edges: Floats, closed: str) -> None:
        self.edges = edges
        self.closed = closed
        shape = (classes, edges.size - 1, 2)
        self.whole = np.zeros(shape, np.int64)
        self.weighted: NDArray[np.int64] | None = None  # exact sums of weighted outcomes and of probabilities

    def add(self, p: NDArray[Any], y: NDArray[np.int64], w: Floats | None) -> None:
        """Add checked samples."""
        from certcal._kernels import classwise as kernels
        from certcal._kernels.bins import DIGITS, normalise

        lookup = build_lookup(self.edges, self.closed, p.dtype)
        values, y, w = kernel_float(p), read_only(y), None if w is None else read_only(w)

        def one(start: int, stop: int) -> NDArray[Any]:
            if w is None:
                whole = np.zeros_like(self.whole)
                kernels.add_gaps(values[start:stop], y[start:stop], *lookup, whole)
                return whole
            weighted = np.zeros((2, *self.whole.shape[:2], DIGITS), np.int64)
            kernels.add_weighted_gaps(values[start:stop], y[start:stop], w[start:stop], *lookup, *weighted)
            normalise(weighted)
            return weighted

        for part in map_blocks(one, y.size, small=1 + 200_000 // p.shape[1]):
            if w is None:
                self.whole += part
                self._carry()
            else:
                self._add_weighted(part)

    def _carry(self) -> None:
        self.whole[..., 0] += self.whole[..., 1] >> 32
        self.whole[..., 1] &= 0xFFFFFFFF

    def _add_weighted(self, part: NDArray[np.int64]) -> None:
        from certcal._kernels.bins import normalise

        self.weighted = part.copy() if self.weighted is None else self.weighted + part
        normalise(self.weighted)

    def merge(self, other: ClasswiseSums) -> None:
        """Add the samples of another state with the same classes and bins."""
        self.whole += other.whole
        self._carry()
        if other.weighted is not None:
            self._add_weighted(other.weighted)

    def gaps(self) -> Floats:
        """The sums as floats."""
        from certcal._kernels.bins import SCALE_BITS

        whole = np.ldexp(self.whole[..., 0] * 2.0**32 + self.whole[..., 1], -SCALE_BITS)
        if self.weighted is None:
            return whole
        gains, losses = rounded_sums(self.weighted)
        return whole + (gains - losses)


def classwise_equal_mass_ece(
    probabilities: Any, labels: Any, bins: int = 15, *, closed: str = "left", sample_weight: Any = None
) -> float:
    """Classwise calibration error with equal-mass bins, chosen for each class from that class's probabilities.

    Parameters are those of :func:`classwise_ece`.

    Examples
    --------
    >>> round(classwise_equal_mass_ece([[0.8, 0.2], [0.4, 0.6]], [0, 1], bins=2), 12)
    0.3
    """
    p, y, w = class_pair(probabilities, labels, sample_weight)
    return classwise_mass(p, y, w, bin_count(bins), choice(closed, CLOSED, "closed"))


def classwise_mass(p: NDArray[Any], y: NDArray[np.int64], w: Floats | None, bins: int, closed: str) -> float:
    """:func:`classwise_equal_mass_ece` of checked arrays."""

    def some(start: int, stop: int) -> list[float]:
        # Eight columns at a time: a column alone would fetch a whole cache line for every entry.
        values: list[float] = []
        for first in range(start, stop, 8):
            columns = np.minimum(np.ascontiguousarray(p[:, first : min(first + 8, stop)].T), 1)
            for k, z in enumerate(columns, first):
                values.append(ece_of(sums(z, (y == k).view(np.uint8), w, mass_edges(z, w, bins, closed), closed)))
        return values

    parts = map_blocks(some, p.shape[1], small=1 + 200_000 // y.size)
    return float(np.mean(np.concatenate(parts)))
