"""Columns that are sorted once, and the correlations of all their pairs from integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._threads import map_blocks

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

# Below this many rows of all pairs together a second thread costs more than it saves.
SMALL = 50_000
# Rows whose ranks are multiplied at once.
ROWS = 1 << 13


@dataclass(frozen=True, eq=False)
class Ranked:
    """Columns as codes of their dense ranks (see ``_kernels/ranks.py``), one row per column."""

    codes: NDArray[np.int32]
    ranks: list[int]
    present: list[int]

    @property
    def complete(self) -> list[bool]:
        """Columns without missing values."""
        return [here == self.codes.shape[1] for here in self.present]

    @property
    def tied(self) -> NDArray[np.bool_]:
        """Columns in which a value occurs more than once."""
        return np.array(self.ranks) < np.array(self.present)

    def order(self, column: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Rows of a column by increasing value, and where each value starts."""
        from certcal._kernels import ranks as kernels

        codes, ranks = self.codes[column], self.ranks[column]
        order, starts = np.empty(codes.size, np.int32), np.empty(ranks + 1, np.int32)
        kernels.rows_by_rank(codes, ranks, order, starts)
        return order[: starts[-1]], starts

    def heaviest(self) -> tuple[int, int]:
        """The most values that one branch and one leaf must count, in any column."""
        branch = leaf = 0
        for codes in self.codes:
            counted = np.bincount(codes[codes >= 0] >> 6, minlength=1)
            leaf = max(leaf, int(counted.max()))
            branch = max(branch, int(np.add.reduceat(counted, np.arange(0, counted.size, 64)).max()))
        return branch, leaf

    def tree(self, branch: int, leaf: int) -> tuple[tuple[Any, Any, Any], Any, Any, Any]:
        """The counts that :func:`certcal._kernels.ranks.score_columns` works on, as narrow as they may be."""
        from certcal._kernels.ranks import LEAF, WIDTH

        leaves = -(-max(self.ranks) // LEAF)
        branches = -(-leaves // WIDTH)
        limbs = -(-branches // WIDTH)
        narrow = (np.uint16, np.uint8) if branch < 1 << 16 and leaf < 1 << 8 else (np.uint32, np.uint16)
        middle, low = narrow if leaf < 1 << 16 else (np.uint32, np.uint32)
        child = np.arange(WIDTH)
        above, not_below = (child < child[:, None]).ravel(), (child <= child[:, None]).ravel()
        steps = above.astype(np.uint32), above.astype(middle), not_below.astype(low)
        shapes = ((limbs, np.uint32), (branches, middle), (leaves, low))
        upper, mid, lower = (np.zeros(count * WIDTH, kind) for count, kind in shapes)
        return steps, upper, mid, lower


def ranked_columns(columns: Sequence[NDArray[Any]]) -> Ranked:
    """Sort every column."""
    from certcal._kernels import ranks as kernels

    rows = columns[0].size if columns else 0
    codes = np.full((len(columns), rows), kernels.MISSING, np.int32)
    ranks, present = [0] * len(columns), [rows] * len(columns)

    def some(start: int, stop: int) -> None:
        for k in range(start, stop):
            values = np.ascontiguousarray(columns[k])
            order = np.argsort(values)  # NaN comes last
            ordered = values[order]
            here = rows - int(np.count_nonzero(np.isnan(ordered)))
            new = np.ones(here, np.bool_)
            np.not_equal(ordered[1:here], ordered[: max(here - 1, 0)], out=new[1:])
            ranks[k] = kernels.fill_codes(order[:here], new, codes[k])
            present[k] = here

    map_blocks(some, len(columns), small=1 + SMALL // max(rows, 1))
    return Ranked(codes, ranks, present)


def kendall_pairs(ranked: Ranked) -> Floats:
    """τ_b of every pair."""
    from certcal._kernels import ranks as kernels

    m, n = len(ranked.ranks), ranked.codes.shape[1]
    # Pairs row by row of the upper triangle, the diagonal included: it says which columns have a correlation.
    ends = np.cumsum(np.arange(m, 0, -1))
    out = np.zeros((m * (m + 1) // 2, 4), np.int64)

    def some(start: int, stop: int) -> None:
        tree = ranked.tree(*heaviest)
        while start < stop:
            x = int(np.searchsorted(ends, start, side="right"))
            until = min(stop, int(ends[x]))
            first = m - (int(ends[x]) - start)
            others = slice(first, first + until - start)
            kernels.score_columns(*ranked.order(x), ranked.codes[others], ranked.tied[others], *tree, out[start:until])
            start = until

    if n and max(ranked.ranks, default=0):
        heaviest = ranked.heaviest()
        map_blocks(some, len(out), small=1 + SMALL // n)
    return _symmetric(tau(out), m)


def tau(scores: Counts) -> Floats:
    """τ_b of concordant minus discordant pairs, pairs tied in each, and the number of values, one pair per row."""
    pairs = scores[:, 3] * (scores[:, 3] - 1) // 2
    x, y = pairs - scores[:, 1], pairs - scores[:, 2]
    below = np.where(x == y, x.astype(np.float64), np.sqrt(x) * np.sqrt(y))
    found = np.divide(scores[:, 0], below, out=np.full(len(scores), np.nan), where=(x > 0) & (y > 0))
    return np.clip(found, -1.0, 1.0)


def spearman_pairs(ranked: Ranked) -> Floats:
    """ρ of every pair."""
    from certcal._kernels import ranks as kernels

    m, n = len(ranked.ranks), ranked.codes.shape[1]
    found = np.full((m, m), np.nan)
    whole = np.flatnonzero(ranked.complete)
    if n and whole.size:
        found[np.ix_(whole, whole)] = _complete_spearman(ranked, whole)
    across, up = np.triu_indices(m)
    complete = np.array(ranked.complete, np.bool_)
    left = ~(complete[across] & complete[up])
    across, up = across[left], up[left]
    sums = np.zeros((across.size, 3))

    def some(start: int, stop: int) -> None:
        scratch = np.empty((2, max(ranked.ranks, default=0)), np.int64)
        for k in range(start, stop):
            i, j = int(across[k]), int(up[k])
            codes, ranks = ranked.codes, ranked.ranks
            kernels.rank_products(codes[i], codes[j], ranks[i], ranks[j], scratch[0], scratch[1], sums[k])

    map_blocks(some, across.size, small=1 + SMALL // max(n, 1))
    found[across, up] = found[up, across] = _rho(*sums.T)
    return found


def _complete_spearman(ranked: Ranked, columns: NDArray[np.intp]) -> Floats:
    """ρ between columns without missing values, as one product of the matrix of their ranks with itself.

    The centred ranks, doubled, are whole numbers below n, so up to 200,000 rows all sums are below 2⁵³ and exact.
    """
    from certcal._kernels.ranks import LEAF

    chosen: list[int] = columns.tolist()
    centred: list[Floats] = []
    for k in chosen:
        codes = ranked.codes[k]
        counts = np.bincount((codes >> 6) * LEAF + (codes & 63), minlength=ranked.ranks[k])
        centred.append((2 * np.cumsum(counts) - counts - codes.size).astype(np.float64))
    n = ranked.codes.shape[1]
    product = np.zeros((columns.size, columns.size))
    for start in range(0, n, ROWS):
        block = np.empty((columns.size, min(ROWS, n - start)))
        for k, column in enumerate(chosen):
            codes = ranked.codes[column, start : start + ROWS]
            block[k] = centred[k][(codes >> 6) * LEAF + (codes & 63)]
        product += block @ block.T
    squares = np.diagonal(product)
    return _rho(product, squares[:, None], squares[None, :])


def _rho(product: Floats, x: Floats, y: Floats) -> Floats:
    """Correlation from Σ uv, Σ u² and Σ v²."""
    x, y = np.broadcast_arrays(x, y)
    below = np.where(x == y, x, np.sqrt(x) * np.sqrt(y))
    return np.clip(np.divide(product, below, out=np.full(product.shape, np.nan), where=below > 0), -1.0, 1.0)


def _symmetric(upper: Floats, m: int) -> Floats:
    """A matrix from its upper triangle, row by row."""
    found = np.empty((m, m))
    across, up = np.triu_indices(m)
    found[across, up] = found[up, across] = upper
    return found
