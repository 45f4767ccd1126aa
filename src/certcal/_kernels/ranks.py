# pyright: basic
"""Concordant and discordant pairs of two ranked columns, from integers only.

Ranks are dense (equal values share one, none is left out) and stored as codes whose bits are the way down a tree:
a rank is one of the 63 of a leaf, a leaf one of the 64 of a branch, a branch one of the 64 of a limb. Each node keeps,
for all its children at once, how many of the values seen so far lie above; to add a value is to add a row of zeros
and ones to each of three nodes, which the machine does for many children at a time, and no step depends on a guess.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certcal._kernels._compile import njit

WIDTH = 64
LEAF = WIDTH - 1  # of the counts of a leaf one is "at or above", the next is "above"; the last one stays 0
MISSING = -1
SHIFT, LAST = np.uint64(6), np.uint64(WIDTH - 1)


@njit
def fill_codes(order: Any, new: Any, codes: Any) -> Any:
    """Codes of the rows in ``order``, of which ``new`` are larger than the one before; how many ranks there are."""
    rank = -1
    for i in range(order.size):
        if new[i]:
            rank += 1
        codes[order[i]] = (rank // LEAF) << 6 | rank % LEAF
    return rank + 1


@njit
def rank_of(code: Any) -> Any:
    """The dense rank that a code stands for."""
    return (code >> 6) * LEAF + (code & 63)


@njit
def rows_by_rank(codes: Any, ranks: Any, order: Any, starts: Any) -> Any:
    """Write the rows that are not missing by increasing rank, and where each rank starts."""
    starts[: ranks + 1] = 0
    for i in range(codes.size):
        if codes[i] >= 0:
            starts[rank_of(codes[i]) + 1] += 1
    for r in range(ranks):
        starts[r + 1] += starts[r]
    for i in range(codes.size):
        if codes[i] >= 0:
            r = rank_of(codes[i])
            order[starts[r]] = i
            starts[r] += 1
    for r in range(ranks, 0, -1):
        starts[r] = starts[r - 1]
    starts[0] = 0


@njit(inline="always")
def _not_below(code: Any, limbs: Any, branches: Any, leaves: Any, above: Any) -> Any:
    """Twice the number of larger values, and the number of equal ones, that the tree holds."""
    leaf = np.uint64(code)
    branch = leaf >> SHIFT
    limb = branch >> SHIFT
    higher = np.int64(limbs[limb]) + np.int64(branches[branch])
    t = above.size - 2 - np.int64(limb >> SHIFT)
    while t > 0:
        higher += above[t]
        t -= t & -t
    return 2 * higher + np.int64(leaves[leaf]) + np.int64(leaves[leaf + np.uint64(1)])


@njit(inline="always")
def _add(code: Any, often: Any, steps: Any, limbs: Any, branches: Any, leaves: Any, above: Any) -> Any:
    """Add a value to the tree, as often as told."""
    in_leaf = np.uint64(code)
    in_branch = in_leaf >> SHIFT
    in_limb = in_branch >> SHIFT
    number = in_limb >> SHIFT
    limb, branch, leaf = number << SHIFT, in_limb << SHIFT, in_branch << SHIFT
    limb_step, branch_step, leaf_step = (
        (in_limb & LAST) << SHIFT,
        (in_branch & LAST) << SHIFT,
        (in_leaf & LAST) << SHIFT,
    )
    for _ in range(often):
        for j in range(WIDTH):
            limbs[limb + np.uint64(j)] += steps[0][limb_step + np.uint64(j)]
        for j in range(WIDTH):
            branches[branch + np.uint64(j)] += steps[1][branch_step + np.uint64(j)]
        for j in range(WIDTH):
            leaves[leaf + np.uint64(j)] += steps[2][leaf_step + np.uint64(j)]
    if above.size > 2:
        t = above.size - 1 - np.int64(number)
        while t < above.size:
            above[t] += often
            t += t & -t


@njit
def _pairs_tied(leaves: Any) -> Any:
    """Pairs of equal values in the tree."""
    tied = np.int64(0)
    for k in range(leaves.size - 1):
        number = np.int64(leaves[k]) - np.int64(leaves[k + 1])
        tied += number * (number - 1) * np.int64(number > 0)  # beyond the last of a leaf comes the first of the next
    return tied // 2


@njit
def _score(
    order: Any, starts: Any, codes: Any, tied: Any, steps: Any, limbs: Any, branches: Any, leaves: Any, out: Any
) -> Any:
    """Concordant minus discordant pairs, pairs tied in x, pairs tied in y, and how many values there are.

    ``order`` and ``starts`` are the rows by increasing x, ``codes`` the ranks of y, ``tied`` whether any are
    equal. ``limbs``, ``branches`` and ``leaves`` are the counts of the tree, as wide as they must be. Rows with equal x
    are first all looked up and then all added, so that they are not compared.
    """
    limbs[:], branches[:], leaves[:] = 0, 0, 0
    above = np.zeros(limbs.size // WIDTH + 1, np.int64)  # values per limb, from the top, as a binary indexed tree
    total, x_tied, seen = np.int64(0), np.int64(0), np.int64(0)
    for group in range(starts.size - 1):
        begin, end = starts[group], starts[group + 1]
        if end - begin == 1:
            code = codes[order[begin]]
            if code >= 0:
                total += seen - _not_below(code, limbs, branches, leaves, above)
                _add(code, 1, steps, limbs, branches, leaves, above)
                seen += 1
            continue
        before = seen
        for k in range(begin, end):
            code = codes[order[k]]
            if code >= 0:
                total += before - _not_below(code, limbs, branches, leaves, above)
                seen += 1
        for k in range(begin, end):
            code = codes[order[k]]
            if code >= 0:
                _add(code, 1, steps, limbs, branches, leaves, above)
        x_tied += (seen - before) * (seen - before - 1) // 2
    out[0], out[1], out[2], out[3] = total, x_tied, _pairs_tied(leaves) if tied else 0, seen


@njit
def score_columns(
    order: Any, starts: Any, codes: Any, tied: Any, steps: Any, limbs: Any, branches: Any, leaves: Any, out: Any
) -> Any:
    """:func:`_score` of one column against several, the rows of ``codes``."""
    for k in range(out.shape[0]):
        _score(order, starts, codes[k], tied[k], steps, limbs, branches, leaves, out[k])


@njit
def score_resamples(
    order: Any, starts: Any, codes: Any, rows: Any, steps: Any, limbs: Any, branches: Any, leaves: Any, out: Any
) -> Any:
    """:func:`_score` of rows drawn with repetition, one draw per row of ``rows``."""
    times = np.empty(codes.size, np.int64)
    above = np.empty(limbs.size // WIDTH + 1, np.int64)
    for draw in range(rows.shape[0]):
        times[:] = 0
        for i in range(rows.shape[1]):
            times[rows[draw, i]] += 1
        for i in range(codes.size):
            times[i] *= np.int64(codes[i] >= 0)
        limbs[:], branches[:], leaves[:], above[:] = 0, 0, 0, 0
        total, x_tied, seen = np.int64(0), np.int64(0), np.int64(0)
        for group in range(starts.size - 1):
            before = seen
            for k in range(starts[group], starts[group + 1]):
                row = order[k]
                if times[row]:
                    total += times[row] * (before - _not_below(codes[row], limbs, branches, leaves, above))
                    seen += times[row]
            for k in range(starts[group], starts[group + 1]):
                row = order[k]
                if times[row]:
                    _add(codes[row], times[row], steps, limbs, branches, leaves, above)
            x_tied += (seen - before) * (seen - before - 1) // 2
        out[draw, 0], out[draw, 1], out[draw, 2], out[draw, 3] = total, x_tied, _pairs_tied(leaves), seen


@njit
def _twice_centred(counts: Any, ranks: Any) -> Any:
    """Turn counts per rank into twice the distance of the mean rank of each from the middle one."""
    below = np.int64(0)
    total = np.int64(0)
    for r in range(ranks):
        total += counts[r]
    for r in range(ranks):
        here = counts[r]
        counts[r] = 2 * below + here - total
        below += here
    return total


@njit
def rank_products(x: Any, y: Any, x_ranks: Any, y_ranks: Any, across: Any, up: Any, out: Any) -> Any:
    """Σ uv, Σ u² and Σ v² of the centred mean ranks u, v (doubled) among the rows where neither is missing."""
    across[:x_ranks], up[:y_ranks] = 0, 0
    for i in range(x.size):
        if x[i] >= 0 and y[i] >= 0:
            across[rank_of(x[i])] += 1
            up[rank_of(y[i])] += 1
    _twice_centred(across, x_ranks)
    _twice_centred(up, y_ranks)
    product, first, second = 0.0, 0.0, 0.0
    for i in range(x.size):
        if x[i] >= 0 and y[i] >= 0:
            u, v = np.float64(across[rank_of(x[i])]), np.float64(up[rank_of(y[i])])
            product += u * v
            first += u * u
            second += v * v
    out[0], out[1], out[2] = product, first, second
