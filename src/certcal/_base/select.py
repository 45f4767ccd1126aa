"""Order statistics from bucket counts: count once, then sort only the buckets that hold an answer.

Works on blocks that can be read more than once, so a table that does not fit in memory is served by the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import kernel_float, read_only
from certcal._base.threads import map_blocks

Floats = NDArray[np.float64]
Blocks = Callable[[], Iterable[tuple[NDArray[Any], Floats | None]]]

# "Exceeds a share of the total weight" means by more than this part of the total, so that equal
# weights such as 0.1 choose the same edges as no weights although their sums are rounded.
SLACK = 1e-11

# Values that may wait before equal ones among them become one.
_PENDING = 1 << 16


def quantiles(blocks: Blocks, bins: int, closed: str) -> Floats:
    """The M - 1 inner edges of equal-mass bins (see :func:`certcal.binning.equal_mass_edges`)."""
    if bins == 1:
        return np.empty(0)
    state = Quantiles((bins,), closed)
    for z, w in blocks():
        state.count(z, w)
    state.settle()
    for z, w in blocks():
        state.look(z, w)
    return state.edges(bins)


class Quantiles:
    """Inner edges of equal-mass bins from two passes over the samples: ``count`` all, ``settle``, ``look`` at all."""

    def __init__(self, counts: Iterable[int], closed: str, least_bits: int = 4) -> None:
        self._counts, self._closed, self._least_bits = tuple(counts), closed, least_bits
        self._grid: Any = None
        self._per_bucket = np.zeros(0)
        self._wanted = np.zeros(0, np.bool_)
        self._kept = Distinct(1)

    def count(self, z: NDArray[Any], w: Floats | None) -> None:
        """First pass: add the weight of a block to its buckets."""
        from certcal._kernels import select as kernels

        if self._grid is None:
            bits = min(12, max(self._least_bits, int(z.size).bit_length() - 10))
            self._grid = kernels.make_grid(octaves=40, bits=bits)
            self._per_bucket = np.zeros(self._grid.buckets)
        for part in map_blocks(partial(_bucket_sums, kernel_float(z), w, self._grid), z.size):
            self._per_bucket += part

    def settle(self) -> None:
        """Between the passes: which buckets hold an edge."""
        self._wanted = np.zeros(self._per_bucket.size, np.bool_)
        for bins in self._counts:
            self._wanted[self._edge_buckets(bins)[0]] = True

    def look(self, z: NDArray[Any], w: Floats | None) -> None:
        """Second pass: keep the samples of a block that lie in such a bucket."""
        chosen = wanted_positions(z, self._wanted, self._grid)
        if w is None:
            values, counts = np.unique(z[chosen], return_counts=True)
            self._kept.add(values, counts.astype(np.float64)[:, None])
        else:
            self._kept.add(z[chosen], w[chosen][:, None])

    @property
    def kept(self) -> int:
        """How many values are kept."""
        return self._kept.size

    def edges(self, bins: int) -> Floats:
        """The inner edges."""
        if bins == 1:
            return np.empty(0)
        holding, thresholds, side = self._edge_buckets(bins)
        values, weights = self._kept.merge()
        up_to = running(weights[:, 0])
        # Weight of the buckets that were not gathered, to be added in front of each gathered value.
        skipped = running(np.where(self._wanted, 0.0, self._per_bucket))
        goals = thresholds - skipped[holding]
        found = np.searchsorted(up_to, goals, side)
        return values[np.minimum(found, values.size - 1)].astype(np.float64)

    def _edge_buckets(self, bins: int) -> tuple[NDArray[np.int64], Floats, Literal["left", "right"]]:
        """The bucket of every edge, the weight that an edge must exceed, and from which side it is reached."""
        reached = running(self._per_bucket)
        total = float(reached[-1])
        shares = np.arange(1, bins) / bins
        # Left: first value whose weight up to and including it exceeds the share. Right: the mirror image, from above.
        thresholds = shares * total + (SLACK if self._closed == "left" else -SLACK) * total
        side: Literal["left", "right"] = "right" if self._closed == "left" else "left"
        return np.searchsorted(reached, thresholds, side), thresholds, side


class Distinct:
    """Distinct values in increasing order, each with the sums of what came with it; repeated ones take no room."""

    def __init__(self, width: int) -> None:
        self._values: list[NDArray[Any]] = []
        self._sums: list[Floats] = [np.empty((0, width))]
        self._merged_size = 0
        self.size = 0

    def add(self, values: NDArray[Any], sums: Floats) -> None:
        """Add values, and a row of sums for each."""
        values, sums = _merge_equal(values, sums)
        self._values.append(values)
        self._sums.append(sums)
        self.size += values.size
        if self.size > 2 * self._merged_size + _PENDING:
            self.merge()

    def merge(self) -> tuple[NDArray[Any], Floats]:
        """The values and their sums."""
        if len(self._values) != 1:
            values, sums = _merge_equal(
                np.concatenate([np.empty(0, np.float32), *self._values]), np.concatenate(self._sums)
            )
            self._values, self._sums = [values], [sums]
        self._merged_size = self.size = self._values[0].size
        return self._values[0], self._sums[-1]


def _merge_equal(values: NDArray[Any], sums: Floats) -> tuple[NDArray[Any], Floats]:
    """Equal values as one, with the sum of their rows; in extended precision, so that many of them add up right."""
    order = np.argsort(values, kind="stable")
    values = values[order]
    last = np.flatnonzero(np.append(values[1:] != values[:-1], True)) if values.size else order
    up_to = np.cumsum(sums[order], axis=0, dtype=np.longdouble)[last]
    return values[last], np.diff(up_to, axis=0, prepend=0).astype(np.float64)


def running(values: Floats) -> Floats:
    """Running sums, kept in extended precision where the machine has it."""
    return np.cumsum(values, dtype=np.longdouble).astype(np.float64)


def running_shares(values: Floats) -> Floats:
    """Running sums of n numbers from -1 to 1 (or multiples of them, n in all), off by at most 0.6 n · 2^-52.

    Numbers are cut at 2^-25 and both parts are added up as whole numbers, the lower ones as multiples of 2^-55: exactly
    up to 2^33 numbers, but for one rounding of each to 2^-55. Only the sum of both is rounded (beyond 2^28 numbers one
    part of it, too, which makes that 1.1 n · 2^-52).
    """
    top = np.floor(values * 2.0**25)
    rest = values - top * 2.0**-25
    low = np.cumsum(np.rint(rest * 2.0**55).astype(np.int64))
    return np.cumsum(top.astype(np.int64)) * 2.0**-25 + low * 2.0**-55


def _bucket_sums(values: NDArray[Any], w: Floats | None, grid: Any, start: int, stop: int) -> NDArray[Any]:
    from certcal._kernels import select as kernels

    if w is None:
        counts = np.zeros(grid.buckets, np.int64)
        kernels.count(values[start:stop], counts, grid)
        return counts
    sums = np.zeros((grid.buckets, 2))
    kernels.weigh(values[start:stop], read_only(w[start:stop]), sums, grid)
    return sums[:, 0]


def wanted_positions(z: NDArray[Any], wanted: NDArray[np.bool_], grid: Any) -> NDArray[np.int64]:
    """Positions of the samples in the wanted buckets, in order."""
    from certcal._kernels import select as kernels

    values = kernel_float(z)

    def one(start: int, stop: int) -> NDArray[np.int64]:
        out = np.empty(1024, np.int64)
        found = kernels.positions(values[start:stop], wanted, grid, out)
        if found > out.size:
            out = np.empty(found, np.int64)
            kernels.positions(values[start:stop], wanted, grid, out)
        return out[:found] + start

    return np.concatenate(map_blocks(one, z.size))
