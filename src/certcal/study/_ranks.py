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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, choice, same_length, to_numpy
from certcal._threads import map_blocks
from certcal.study._findings import Matrix
from certcal.study._rank_pairs import SMALL, Ranked, kendall_pairs, ranked_columns, spearman_pairs, tau
from certcal.study._words import first

Floats = NDArray[np.float64]

METHODS = ("kendall", "spearman")
# Columns that a note names.
_NAMED = 5


def kendall(x: Any, y: Any) -> float:
    """Kendall's τ_b: (concordant - discordant pairs) / √(pairs not tied in x · pairs not tied in y).

    Parameters
    ----------
    x, y
        Numbers, equally many; NaN where there is none.

    Returns
    -------
    float
        From -1 to 1; NaN when one of the two is constant.

    Examples
    --------
    >>> kendall([1, 2, 3, 4], [1, 3, 2, 4])
    0.6666666666666666
    """
    return float(kendall_pairs(_ranked_pair(x, y))[0, 1])


def spearman(x: Any, y: Any) -> float:
    """Spearman's ρ: the correlation of the ranks, where equal values share the mean of theirs.

    Parameters
    ----------
    x, y
        Numbers, equally many; NaN where there is none.

    Returns
    -------
    float
        From -1 to 1; NaN when one of the two is constant.

    Examples
    --------
    >>> spearman([1, 2, 3, 4], [1, 3, 2, 4])
    0.8
    """
    return float(spearman_pairs(_ranked_pair(x, y))[0, 1])


def kendall_matrix(values: Any) -> Floats:
    """:func:`kendall` of every pair of columns.

    Parameters
    ----------
    values
        Matrix of shape (n, columns); NaN where there is no value.

    Returns
    -------
    ndarray
        Symmetric, of shape (columns, columns).

    Examples
    --------
    >>> kendall_matrix([[1, 5, 0], [2, 4, 0], [3, 6, 0]]).round(3).tolist()
    [[1.0, 0.333, nan], [0.333, 1.0, nan], [nan, nan, nan]]
    """
    return kendall_pairs(ranked_columns(_columns(values)))


def spearman_matrix(values: Any) -> Floats:
    """:func:`spearman` of every pair of columns.

    Parameters
    ----------
    values
        Matrix of shape (n, columns); NaN where there is no value.

    Returns
    -------
    ndarray
        Symmetric, of shape (columns, columns).

    Examples
    --------
    >>> spearman_matrix([[1, 5, 0], [2, 4, 0], [3, 6, 0]]).tolist()
    [[1.0, 0.5, nan], [0.5, 1.0, nan], [nan, nan, nan]]
    """
    return spearman_pairs(ranked_columns(_columns(values)))


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
        Of the matrix, for drawing.

    Examples
    --------
    >>> found = correlations([[1, 5, 0], [2, 4, 0], [3, 6, 0]], ["ece", "mce", "depth"])
    >>> found.note
    'depth is constant, so it has no correlations'
    """
    columns = _columns(values)
    if len(names) != len(columns):
        raise InputError(f"names has {len(names)} entries and values has {len(columns)} columns; name each column once")
    ranked = ranked_columns(columns)
    found = kendall_pairs(ranked) if choice(method, METHODS, "method") == "kendall" else spearman_pairs(ranked)
    notes: list[str] = []
    constant = [name for name, ranks in zip(names, ranked.ranks, strict=True) if ranks == 1]
    empty = [name for name, ranks in zip(names, ranked.ranks, strict=True) if not ranks]
    if constant:
        verb = "is constant, so it has" if len(constant) == 1 else "are constant, so they have"
        notes.append(f"{first(constant, _NAMED)} {verb} no correlations")
    if empty:
        notes.append(f"{first(empty, _NAMED)} {'has' if len(empty) == 1 else 'have'} no values")
    gaps = zip(names, ranked.ranks, ranked.complete, strict=True)
    missing = [name for name, ranks, whole in gaps if ranks and not whole]
    if missing:
        verb = "has" if len(missing) == 1 else "have"
        notes.append(f"{first(missing, _NAMED)} {verb} missing values, so pairs use the rows that both columns have")
    return Matrix(title, tuple(names), found, ranked.codes.shape[1], method.capitalize(), "; ".join(notes))


def kendall_resampled(x: Any, y: Any, rows: Any) -> Floats:
    """:func:`kendall` of rows drawn with repetition, as a bootstrap needs: the columns are sorted once for all draws.

    Parameters
    ----------
    x, y
        Numbers, equally many; NaN where there is none.
    rows
        One draw per row: positions in x and y.

    Returns
    -------
    ndarray
        One τ_b per draw; NaN where one of the two is constant over the rows drawn.

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
        map_blocks(some, drawn.shape[0], small=1 + SMALL // most)
    return tau(out)


def _ranked_pair(x: Any, y: Any) -> Ranked:
    columns = [to_numpy(x, "x"), to_numpy(y, "y")]
    for name, column in zip("xy", columns, strict=True):
        if column.ndim != 1:
            raise InputError(f"{name} has shape {column.shape}; pass one number per row")
    same_length(x=columns[0].size, y=columns[1].size)
    return ranked_columns(columns)


def _columns(values: Any) -> list[NDArray[Any]]:
    matrix = to_numpy(values, "values")
    if matrix.ndim != 2:
        raise InputError(f"values has shape {matrix.shape}; pass a matrix, one row per model and one column per metric")
    if matrix.shape[0] > np.iinfo(np.int32).max // 2:
        raise InputError(f"values has {matrix.shape[0]} rows; pass at most {np.iinfo(np.int32).max // 2}")
    return list(matrix.T)
