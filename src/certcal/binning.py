"""The one binning: edges, assignment, per-bin sums. Everything binned goes through here.

Conventions, decided once
-------------------------
* ``closed="left"``: bins are ``[b_m, b_{m+1})`` and the last is closed. ``closed="right"``: ``(b_m, b_{m+1}]`` and
  the first is closed. 0.0 and 1.0 are always counted.
* Equal-width edges are m/M correctly rounded, and edges are rounded to the type of the confidences before comparing. A
  value that a person writes as the same decimal as an edge therefore lies *on* it, in float16, float32 and float64.
* Equal-mass edges are quantiles of the confidences; equal confidences share a bin, so bins may be empty.
* Sums are exact and do not depend on the order of the samples (see ``_kernels/bins.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import (
    InputError,
    bin_count,
    choice,
    confidences,
    kernel_float,
    read_only,
    score_pair,
    to_numpy,
    weights,
)
from certcal._base.threads import map_blocks
from certcal._base.told import Told

Floats = NDArray[np.float64]

CLOSED = ("left", "right")


@dataclass(frozen=True, eq=False)
class BinTable(Told):
    """Per-bin sums of a set of samples.

    Examples
    --------
    >>> table = bin_table([0.2, 0.3, 0.9], [0, 1, 1], equal_width_edges(2))
    >>> table.count.tolist(), table.accuracy.tolist()
    ([2, 1], [0.5, 1.0])
    """

    edges: Floats
    """M + 1 edges from 0 to 1, as float64."""
    closed: str
    """Which side of a bin belongs to it, "left" or "right"."""
    count: NDArray[np.int64]
    """Number of samples per bin."""
    weight: Floats
    """Sum of weights per bin (the count when there are none)."""
    squared_weight: Floats
    """Sum of squared weights per bin (the count when there are none)."""
    confidence_sum: Floats
    correct_sum: Floats
    """Weighted sums of confidence and of correctness per bin."""

    @cached_property
    def total(self) -> float:
        """Sum of all weights."""
        return float(self.weight.sum())

    @property
    def gap_sum(self) -> Floats:
        """Sum of correctness minus confidence per bin."""
        return self.correct_sum - self.confidence_sum

    @property
    def mean_confidence(self) -> Floats:
        """Mean confidence per bin; NaN where the bin is empty."""
        return _quotients(self.confidence_sum, self.weight)

    @property
    def accuracy(self) -> Floats:
        """Mean correctness per bin; NaN where the bin is empty."""
        return _quotients(self.correct_sum, self.weight)


def _quotients(top: Floats, bottom: Floats) -> Floats:
    return np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom > 0)


def equal_width_edges(bins: int) -> Floats:
    """Edges m/M for m = 0 … M, each correctly rounded.

    Examples
    --------
    >>> equal_width_edges(10)[3] == 0.3
    np.True_
    """
    count = bin_count(bins)
    return np.arange(count + 1) / count


def check_edges(edges: Any) -> Floats:
    """Given edges as float64: from 0 to 1, not decreasing (a repeated edge makes an empty bin)."""
    array = to_numpy(edges, "edges").astype(np.float64)
    if array.ndim != 1 or array.size < 2:
        raise InputError(f"edges has shape {array.shape}; pass at least the two edges 0 and 1")
    if array[0] != 0 or array[-1] != 1:
        raise InputError(f"edges run from {array[0]} to {array[-1]}; the first must be 0 and the last 1")
    steps = np.diff(array)
    if not (steps >= 0).all():
        index = int(np.argmax(~(steps >= 0))) + 1
        raise InputError(f"edges[{index}] is {array[index]}, below edges[{index - 1}] = {array[index - 1]}; sort them")
    return array


def edges_for(bins: int, edges: Any) -> Floats:
    """The given edges, or equal-width ones when there are none."""
    return equal_width_edges(bins) if edges is None else check_edges(edges)


class Lookup(NamedTuple):
    """Edges prepared for one type of confidences: ``bin = number of inner edges <= value``."""

    inner: Floats
    table: NDArray[np.uint32]
    cells: float


# Edges up to which a lookup is kept: making one takes longer than to bin a thousand samples.
_FEW_EDGES = 257


def build_lookup(edges: Floats, closed: str, dtype: np.dtype[Any]) -> Lookup:
    """Round the inner edges to ``dtype`` and count how many lie at or below the start of each cell.

    For bins closed on the right "edge < value" is "next float above the edge <= value".
    """
    if edges.size <= _FEW_EDGES:
        return _kept_lookup(edges.tobytes(), closed, dtype)
    return _make_lookup(edges, closed, dtype)


@lru_cache(maxsize=32)
def _kept_lookup(edges: bytes, closed: str, dtype: np.dtype[Any]) -> Lookup:
    return _make_lookup(np.frombuffer(edges), closed, dtype)


def _make_lookup(edges: Floats, closed: str, dtype: np.dtype[Any]) -> Lookup:
    from certcal._kernels.bins import CROWDED
    from certcal._kernels.select import count

    inner = edges[1:-1].astype(dtype)
    if closed == "right":
        inner = np.nextafter(inner, dtype.type(2))
    inner = inner.astype(np.float64)
    cells = 1 << min(16, max(10, int(8 * inner.size).bit_length()))
    below = np.searchsorted(inner, np.arange(cells + 2) / cells, side="right")
    if np.diff(below).max() <= 3:
        return Lookup(np.append(inner, np.inf), below.astype(np.uint32), float(cells))
    counts = np.zeros(CROWDED.buckets, np.int64)
    count(read_only(np.minimum(inner, 1.0)), counts, CROWDED)
    below = np.concatenate(([0], np.cumsum(counts)))
    return Lookup(np.append(inner, np.inf), below.astype(np.uint32), 0.0)


def assign(confidence: Any, edges: Any, closed: str = "left") -> NDArray[np.int64]:
    """Bin index of every confidence.

    Examples
    --------
    >>> assign([0.0, 0.1, 0.7, 1.0], equal_width_edges(10)).tolist()
    [0, 1, 7, 9]
    >>> assign([0.0, 0.1, 0.7, 1.0], equal_width_edges(10), closed="right").tolist()
    [0, 0, 6, 9]
    """
    return bin_indices(confidences(confidence), check_edges(edges), choice(closed, CLOSED, "closed"))


def bin_indices(z: NDArray[Any], edges: Floats, closed: str = "left") -> NDArray[np.int64]:
    """:func:`assign` for arrays that are already checked."""
    from certcal._kernels import bins as kernels

    lookup = build_lookup(edges, closed, z.dtype)
    out = np.empty(z.size, np.uint32)
    kernels.locate(kernel_float(z), *lookup, out)
    return out.astype(np.int64)


def bin_table(confidence: Any, correct: Any, edges: Any, closed: str = "left", sample_weight: Any = None) -> BinTable:
    """Per-bin sums of checked input.

    Parameters
    ----------
    confidence
        Values in [0, 1].
    correct
        0 or 1 per sample.
    edges
        M + 1 edges from 0 to 1, not decreasing.
    closed
        Which side of a bin belongs to it.
    sample_weight
        Weights >= 0, or None.

    Examples
    --------
    >>> bin_table([0.1, 0.6], [0, 1], [0, 0.5, 1]).gap_sum.round(12).tolist()
    [-0.1, 0.4]
    """
    z, c, w = score_pair(confidence, correct, sample_weight)
    return sums(z, c, w, check_edges(edges), choice(closed, CLOSED, "closed"))


def sums(z: NDArray[Any], c: NDArray[np.uint8], w: Floats | None, edges: Floats, closed: str = "left") -> BinTable:
    """:func:`bin_table` for arrays that are already checked."""
    state = BinSums(edges, closed)
    state.add(z, c, w)
    return state.table()


class BinSums:
    """Mergeable state of O(bins) behind every binned metric.

    Adding samples in any order or in any pieces, and merging states in any order, gives the same bits.

    Examples
    --------
    >>> import numpy as np
    >>> a, b = BinSums(equal_width_edges(2)), BinSums(equal_width_edges(2))
    >>> a.add(np.array([0.2]), np.array([1], np.uint8))
    >>> b.add(np.array([0.7]), np.array([0], np.uint8))
    >>> a.merge(b)
    >>> a.table().count.tolist()
    [1, 1]
    """

    def __init__(self, edges: Floats, closed: str = "left") -> None:
        self.edges = edges
        self.closed = closed
        self._lookups: dict[np.dtype[Any], Lookup] = {}
        bins = edges.size - 1
        self.whole = np.zeros((bins, 2, 3), np.int64)
        self.weighted: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None

    def _lookup(self, dtype: np.dtype[Any]) -> Lookup:
        if dtype not in self._lookups:
            self._lookups[dtype] = build_lookup(self.edges, self.closed, dtype)
        return self._lookups[dtype]

    def add(self, z: NDArray[Any], c: NDArray[np.uint8], w: Floats | None = None) -> None:
        """Add checked samples."""
        from certcal._kernels import bins as kernels

        lookup = self._lookup(z.dtype)
        values, c, w = kernel_float(z), read_only(c), None if w is None else read_only(w)
        bins = self.edges.size - 1

        def whole(start: int, stop: int) -> NDArray[np.int64]:
            state = np.zeros((bins, 2, 3), np.int64)
            kernels.add_counts_and_sums(values[start:stop], c[start:stop], *lookup, state)
            return state

        def weighted(start: int, stop: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
            counts = np.zeros(bins, np.int64)
            state = np.zeros((bins, 4, kernels.DIGITS), np.int64)
            assert w is not None
            kernels.add_weighted(values[start:stop], c[start:stop], w[start:stop], *lookup, counts, state)
            kernels.normalise(state)
            return counts, state

        if w is None:
            for part in map_blocks(whole, z.size):
                self.whole += part
            kernels.carry_words(self.whole)
        else:
            for counts, state in map_blocks(weighted, z.size):
                self._merge_weighted(counts, state)

    def _merge_weighted(self, counts: NDArray[np.int64], state: NDArray[np.int64]) -> None:
        from certcal._kernels import bins as kernels

        if self.weighted is None:
            self.weighted = np.zeros_like(counts), np.zeros_like(state)
        self.weighted[0][...] += counts
        self.weighted[1][...] += state
        kernels.normalise(self.weighted[1])

    def merge(self, other: BinSums) -> None:
        """Add the samples of another state with the same edges."""
        from certcal._kernels import bins as kernels

        if self.closed != other.closed or not np.array_equal(self.edges, other.edges):
            raise InputError("other has different bins; merge accumulators made with the same edges and closed=")
        self.whole += other.whole
        kernels.carry_words(self.whole)
        if other.weighted is not None:
            self._merge_weighted(*other.weighted)

    def table(self) -> BinTable:
        """The sums as floats, each rounded once."""
        from certcal._kernels.bins import SCALE_BITS

        whole = np.ldexp(self.whole[:, :, 1] * 2.0**32 + self.whole[:, :, 2], -SCALE_BITS)
        count = self.whole[:, :, 0].sum(axis=1)
        weight = count.astype(np.float64)
        squared = weight.copy()
        confidence = whole.sum(axis=1)
        correct = self.whole[:, 1, 0].astype(np.float64)
        if self.weighted is not None:
            count = count + self.weighted[0]
            extra = rounded_sums(self.weighted[1])
            weight, squared = weight + extra[:, 0], squared + extra[:, 1]
            confidence, correct = confidence + extra[:, 2], correct + extra[:, 3]
        return BinTable(self.edges, self.closed, count, weight, squared, confidence, correct)


def rounded_sums(state: NDArray[np.int64]) -> Floats:
    """Superaccumulators as floats: Python's integers make the one rounding correct."""
    flat = state.reshape(-1, state.shape[-1])
    out = np.zeros(flat.shape[0])
    used = np.flatnonzero(flat.any(axis=1))
    # A digit may hold more than its 32 bits: what it holds and what it carries are an integer each.
    halves = flat[used].astype("<i8").view("<u4")
    for row, held, carried in zip(used, halves[:, ::2], halves[:, 1::2], strict=True):
        total = int.from_bytes(held.tobytes(), "little") + (int.from_bytes(carried.tobytes(), "little") << 32)
        out[row] = total / (1 << 1075)
    return out.reshape(state.shape[:-1])


class ExactSum:
    """Sum of non-negative numbers, rounded once: the same bits for any order and any pieces.

    Infinite values are counted and make the sum infinite.

    Examples
    --------
    >>> import numpy as np
    >>> total = ExactSum()
    >>> total.add(np.array([1e16, 1.0, 1.0]))
    >>> total.value
    1.0000000000000002e+16
    """

    def __init__(self) -> None:
        from certcal._kernels.bins import DIGITS

        self.digits = np.zeros(DIGITS, np.int64)
        self.infinite = 0

    def add(self, values: Floats) -> None:
        """Add values."""
        from certcal._kernels import bins as kernels

        finite = np.isfinite(values)
        if not finite.all():
            self.infinite += int(np.count_nonzero(~finite))
            values = values[finite]

        def one(start: int, stop: int) -> NDArray[np.int64]:
            digits = np.zeros_like(self.digits)
            kernels.add_exact(read_only(values[start:stop]), digits)
            kernels.normalise(digits)
            return digits

        for part in map_blocks(one, values.size):
            self.digits += part
        kernels.normalise(self.digits)

    def merge(self, other: ExactSum) -> None:
        """Add another sum."""
        from certcal._kernels import bins as kernels

        self.digits += other.digits
        kernels.normalise(self.digits)
        self.infinite += other.infinite

    @property
    def value(self) -> float:
        """The sum."""
        return float("inf") if self.infinite else float(rounded_sums(self.digits[None])[0])


def equal_mass_edges(confidence: Any, bins: int = 15, closed: str = "left", sample_weight: Any = None) -> Floats:
    """Edges that put the same weight into every bin as far as ties allow.

    Inner edge m is the first confidence (in sorted order) at which the weight up to and including it exceeds m/M of the
    total; without ties bin sizes then differ by at most one. With ``closed="right"`` the mirror image. Edges may
    repeat; the bins between equal edges are empty.

    Examples
    --------
    >>> equal_mass_edges([0.1, 0.2, 0.3, 0.4], bins=2).tolist()
    [0.0, 0.3, 1.0]
    """
    z = confidences(confidence)
    return mass_edges(z, weights(sample_weight, z.size), bin_count(bins), choice(closed, CLOSED, "closed"))


def mass_edges(z: NDArray[Any], w: Floats | None, bins: int, closed: str) -> Floats:
    """:func:`equal_mass_edges` for arrays that are already checked."""
    from certcal._base.select import quantiles

    return np.concatenate(([0.0], quantiles(lambda: [(z, w)], bins, closed), [1.0]))
