"""Order statistics from bucket counts: count once, then sort only the buckets that hold an answer.

Works on blocks that can be read more than once, so a table that does not fit in memory is served by the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from certcal._checks import kernel_float
from certcal._threads import map_blocks

Floats = NDArray[np.float64]
Blocks = Callable[[], Iterable[tuple[NDArray[Any], Floats | None]]]

# "Exceeds a share of the total weight" means by more than this part of the total, so that equal
# weights such as 0.1 choose the same edges as no weights although their sums are rounded.
SLACK = 1e-11


def quantiles(blocks: Blocks, bins: int, closed: str) -> Floats:
    """The M - 1 inner edges of equal-mass bins (see :func:`certcal.binning.equal_mass_edges`).

    Examples
    --------
    >>> quantiles(lambda: [(np.array([0.4, 0.1, 0.3, 0.2]), None)], 2, "left").tolist()
    [0.3]
    """
    if bins == 1:
        return np.empty(0)
    per_bucket, grid = bucket_weights(blocks)
    before = np.concatenate(([0.0], running(per_bucket)))
    total = float(before[-1])
    shares = np.arange(1, bins) / bins
    # Left: first value whose weight up to and including it exceeds the share. Right: the mirror image, from above.
    thresholds = shares * total + SLACK * total if closed == "left" else shares * total - SLACK * total
    side: Literal["left", "right"] = "right" if closed == "left" else "left"
    holding = np.searchsorted(before[1:], thresholds, side)
    wanted = np.zeros(per_bucket.size, np.bool_)
    wanted[holding] = True
    values, weights = gather(blocks, wanted, grid)
    order = np.argsort(values, kind="stable") if weights is not None else None
    values = np.sort(values) if order is None else values[order]
    up_to = np.arange(1.0, values.size + 1) if weights is None or order is None else running(weights[order])
    # Weight of the buckets that were not gathered, to be added in front of each gathered value.
    skipped = running(np.where(wanted, 0.0, per_bucket))
    goals = thresholds - skipped[holding]
    found = np.searchsorted(up_to, goals, side)
    return values[np.minimum(found, values.size - 1)].astype(np.float64)


def running(values: Floats) -> Floats:
    """Running sums, kept in extended precision where the machine has it."""
    return np.cumsum(values, dtype=np.longdouble).astype(np.float64)


def bucket_weights(blocks: Blocks) -> tuple[Floats, Any]:
    """Weight (or count) of every bucket, and the buckets: the finer the more samples the first block has."""
    from certcal._kernels import select as kernels

    total = np.zeros(0)
    grid: Any = None
    for z, w in blocks():
        if grid is None:
            grid = kernels.make_grid(octaves=40, bits=min(12, max(4, int(z.size).bit_length() - 10)))
            total = np.zeros(grid.buckets)
        for part in map_blocks(partial(_bucket_sums, kernel_float(z), w, grid), z.size):
            total += part
    return total, grid


def _bucket_sums(values: NDArray[Any], w: Floats | None, grid: Any, start: int, stop: int) -> NDArray[Any]:
    from certcal._kernels import select as kernels

    if w is None:
        counts = np.zeros(grid.buckets, np.int64)
        kernels.count(values[start:stop], counts, grid)
        return counts
    sums = np.zeros((grid.buckets, 2))
    kernels.weigh(values[start:stop], w[start:stop], sums, grid)
    return sums[:, 0]


def gather(blocks: Blocks, wanted: NDArray[np.bool_], grid: Any) -> tuple[NDArray[Any], Floats | None]:
    """Values and weights of the samples in the wanted buckets."""
    values: list[NDArray[Any]] = []
    weights: list[Floats] = []
    for z, w in blocks():
        chosen = wanted_positions(z, wanted, grid)
        values.append(z[chosen])
        if w is not None:
            weights.append(w[chosen])
    return np.concatenate(values), np.concatenate(weights) if weights else None


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
