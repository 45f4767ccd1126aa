"""Rank correlations between many columns: Kendall's τ_b and Spearman's ρ.

Every column is sorted once. A pair of columns then costs O(n log n) steps on integers for Kendall and O(n) for
Spearman, and memory for a few bytes per row; the two cores share the pairs. All counts are exact, so the
values do not depend on the order of the rows or on the number of threads (Spearman's: up to 200,000 rows).

Columns may hold NaN where there is no value: each pair is correlated over the rows that both columns have. Infinite
values are values, larger or smaller than all others. Where one column is constant over these rows, or where there are
fewer than two of them, the correlation does not exist and is NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError, choice, same_length, to_numpy
from certcal._base.threads import map_blocks
from certcal.lab.study._findings import Matrix, join_words

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

_METHODS = ("kendall", "spearman")
# Columns that a note names.
_NAMED = 5
# Below this many rows of all pairs together a second thread costs more than it saves.
_SMALL = 50_000
# Rows whose ranks are multiplied at once.
_ROWS = 1 << 13


@names_wrong_types
def kendall(x: Any, y: Any) -> float:
    """Kendall's τ_b: (concordant - discordant pairs) / √(pairs not tied in x · pairs not tied in y).

    Parameters
    ----------
    x, y
        Numbers, equally many; NaN where there is none. The result is NaN when one of the two is constant.

    Examples
    --------
    >>> kendall([1, 2, 3, 4], [1, 3, 2, 4])
    0.6666666666666666
    """
    return float(_kendall_pairs(_ranked_pair(x, y))[0, 1])


@names_wrong_types
def spearman(x: Any, y: Any) -> float:
    """Spearman's ρ: the correlation of the ranks, where equal values share the mean of theirs.

    Parameters
    ----------
    x, y
        As of :func:`kendall`.

    Examples
    --------
    >>> spearman([1, 2, 3, 4], [1, 3, 2, 4])
    0.8
    """
    return float(_spearman_pairs(_ranked_pair(x, y))[0, 1])


@names_wrong_types
def kendall_matrix(values: Any) -> Floats:
    """:func:`kendall` of every pair of columns.

    Parameters
    ----------
    values
        Matrix of shape (n, columns); NaN where there is no value.

    Examples
    --------
    >>> kendall_matrix([[1, 5, 0], [2, 4, 0], [3, 6, 0]]).round(3).tolist()
    [[1.0, 0.333, nan], [0.333, 1.0, nan], [nan, nan, nan]]
    """
    return _kendall_pairs(_ranked_columns(_check_columns(values)))


@names_wrong_types
def spearman_matrix(values: Any) -> Floats:
    """:func:`spearman` of every pair of columns.

    Parameters
    ----------
    values
        As for :func:`kendall_matrix`.

    Examples
    --------
    >>> spearman_matrix([[1, 5, 0], [2, 4, 0], [3, 6, 0]]).tolist()
    [[1.0, 0.5, nan], [0.5, 1.0, nan], [nan, nan, nan]]
    """
    return _spearman_pairs(_ranked_columns(_check_columns(values)))


@names_wrong_types
def correlations(values: Any, names: Sequence[str], *, method: str = "kendall", title: str = "") -> Matrix:
    """Rank correlations between named columns, with a note about those that have none.

    Parameters
    ----------
    values
        Matrix of shape (n, columns); NaN where there is no value.
    names
        One per column.
    method
        "kendall" or "spearman".
    title
        Title of the chart.

    Examples
    --------
    >>> found = correlations([[1, 5, 0], [2, 4, 0], [3, 6, 0]], ["ece", "mce", "depth"])
    >>> found.note
    'depth is constant, so it has no correlations'
    """
    columns = _check_columns(values)
    if len(names) != len(columns):
        raise InputError(f"names has {len(names)} entries and values has {len(columns)} columns; name each column once")
    ranked = _ranked_columns(columns)
    found = _kendall_pairs(ranked) if choice(method, _METHODS, "method") == "kendall" else _spearman_pairs(ranked)
    notes: list[str] = []
    constant = [name for name, ranks in zip(names, ranked.ranks, strict=True) if ranks == 1]
    empty = [name for name, ranks in zip(names, ranked.ranks, strict=True) if not ranks]
    if constant:
        verb = "is constant, so it has" if len(constant) == 1 else "are constant, so they have"
        notes.append(f"{join_words(constant, _NAMED)} {verb} no correlations")
    if empty:
        notes.append(f"{join_words(empty, _NAMED)} {'has' if len(empty) == 1 else 'have'} no values")
    gaps = zip(names, ranked.ranks, ranked.complete, strict=True)
    missing = [name for name, ranks, whole in gaps if ranks and not whole]
    if missing:
        verb = "has" if len(missing) == 1 else "have"
        notes.append(
            f"{join_words(missing, _NAMED)} {verb} missing values, so pairs use the rows that both columns have"
        )
    return Matrix(title, tuple(names), found, ranked.codes.shape[1], method.capitalize(), "; ".join(notes))


@names_wrong_types
def kendall_resampled(x: Any, y: Any, rows: Any) -> Floats:
    """:func:`kendall` of rows drawn with repetition, as a bootstrap needs: the columns are sorted once for all draws.

    Parameters
    ----------
    x, y
        Numbers, equally many; NaN where there is none.
    rows
        One draw per row: positions in x and y.

    Examples
    --------
    >>> kendall_resampled([1, 2, 3, 4], [1, 3, 2, 4], [[0, 1, 2, 3], [0, 1, 2, 2]]).round(3).tolist()
    [0.667, 0.2]
    """
    from certcal._kernels import ranks as kernels

    ranked = _ranked_pair(x, y)
    n = ranked.codes.shape[1]
    drawn = to_numpy(rows, "rows")
    if drawn.ndim != 2 or (drawn.dtype.kind not in "iu" and drawn.size):
        raise InputError(f"rows has shape {drawn.shape} and type {drawn.dtype}; pass one row of positions per draw")
    bad = (drawn < 0) | (drawn >= n)
    if bad.any():
        where = tuple(int(axis[0]) for axis in np.nonzero(bad))
        raise InputError(
            f"rows[{where[0]}, {where[1]}] is {drawn[where]}; pass positions from 0 to {n - 1}, one per value of x"
        )
    drawn = np.ascontiguousarray(drawn, np.int64)
    out = np.zeros((drawn.shape[0], 4), np.int64)
    most = drawn.shape[1]  # a row may be all that was drawn

    def some(start: int, stop: int) -> None:
        order, starts = ranked.order(0)
        tree = ranked.tree(most, most)
        kernels.score_resamples(order, starts, ranked.codes[1], drawn[start:stop], *tree, out[start:stop])

    if n and drawn.size:
        map_blocks(some, drawn.shape[0], small=1 + _SMALL // most)
    return _tau(out)


def _ranked_pair(x: Any, y: Any) -> _RankedColumns:
    columns = [to_numpy(x, "x"), to_numpy(y, "y")]
    for name, column in zip("xy", columns, strict=True):
        if column.ndim != 1:
            raise InputError(f"{name} has shape {column.shape}; pass one number per row")
    same_length(x=columns[0].size, y=columns[1].size)
    return _ranked_columns(columns)


def _check_columns(values: Any) -> list[NDArray[Any]]:
    matrix = to_numpy(values, "values")
    if matrix.ndim != 2:
        raise InputError(f"values has shape {matrix.shape}; pass a matrix, one row per model and one column per metric")
    if matrix.shape[0] > np.iinfo(np.int32).max // 2:
        raise InputError(f"values has {matrix.shape[0]} rows; pass at most {np.iinfo(np.int32).max // 2}")
    return list(matrix.T)


@dataclass(frozen=True, eq=False)
class _RankedColumns:
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


def _ranked_columns(columns: Sequence[NDArray[Any]]) -> _RankedColumns:
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

    map_blocks(some, len(columns), small=1 + _SMALL // max(rows, 1))
    return _RankedColumns(codes, ranks, present)


def _kendall_pairs(ranked: _RankedColumns) -> Floats:
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
        map_blocks(some, len(out), small=1 + _SMALL // n)
    found, (across, up) = np.empty((m, m)), np.triu_indices(m)
    found[across, up] = found[up, across] = _tau(out)
    return found


def _tau(scores: Counts) -> Floats:
    """τ_b of concordant minus discordant pairs, pairs tied in each, and the number of values, one pair per row."""
    pairs = scores[:, 3] * (scores[:, 3] - 1) // 2
    x, y = pairs - scores[:, 1], pairs - scores[:, 2]
    below = np.where(x == y, x.astype(np.float64), np.sqrt(x) * np.sqrt(y))
    found = np.divide(scores[:, 0], below, out=np.full(len(scores), np.nan), where=(x > 0) & (y > 0))
    return np.clip(found, -1.0, 1.0)


def _spearman_pairs(ranked: _RankedColumns) -> Floats:
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

    map_blocks(some, across.size, small=1 + _SMALL // max(n, 1))
    found[across, up] = found[up, across] = _rho(*sums.T)
    return found


def _complete_spearman(ranked: _RankedColumns, columns: NDArray[np.intp]) -> Floats:
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
    for start in range(0, n, _ROWS):
        block = np.empty((columns.size, min(_ROWS, n - start)))
        for k, column in enumerate(chosen):
            codes = ranked.codes[column, start : start + _ROWS]
            block[k] = centred[k][(codes >> 6) * LEAF + (codes & 63)]
        product += block @ block.T
    squares = np.diagonal(product)
    return _rho(product, squares[:, None], squares[None, :])


def _rho(product: Floats, x: Floats, y: Floats) -> Floats:
    """Correlation from Σ uv, Σ u² and Σ v²."""
    x, y = np.broadcast_arrays(x, y)
    below = np.where(x == y, x, np.sqrt(x) * np.sqrt(y))
    return np.clip(np.divide(product, below, out=np.full(product.shape, np.nan), where=below > 0), -1.0, 1.0)
