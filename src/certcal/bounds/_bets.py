"""Bets against a mean whose signs are not known: what bounds on binned errors and on their differences share."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certcal.binning import bin_indices
from certcal.bounds._shared import Floats, Sample
from certcal.bounds.concentration import DEVIATIONS, place_bets

# Standard deviations for which a bet is placed where values may vary by much less: of small weights, or of differences
# between similar classifiers.
SMALL_DEVIATIONS: Floats = 0.5 ** np.arange(10.0)

# And of outcomes, whose standard deviation is at most 1/2.
OUTCOME_DEVIATIONS: Floats = DEVIATIONS / 2

# Samples that are taken one by one; of more, each is replaced by the corners of its cell.
_FEW = 1 << 13

# Different stakes that are told apart; more are spread over as many quantiles of theirs.
_NODES = 65

# Cells that the bins are cut into by confidence, altogether, and samples that are looked at together.
_CELLS = 256
_BLOCK = 1 << 20


class BetPoints(NamedTuple):
    """Samples, or what stands for them: rows of how often, stake u, part x with a sign, part y without; and the bins.

    A bin has one sign for all its points, which stand together.
    """

    rows: Floats
    owner: NDArray[np.int64]


def upper_limit(points: BetPoints, delta: float, n: int, deviations: Floats = DEVIATIONS) -> float:
    """Upper limit, rounded up, for the m with E[u (σx + y - m)] = 0, whatever the signs σ of the bins are.

    What is random are n independent draws of (u, x, y) and a bin, with u in [0, 1] and |σx + y| <= 1. With u = 1 the m
    is the mean of σx + y; else it is the mean weighted by u.

    Why: let σ be any fixed signs, one for each bin. For a bet θ in [0, 1) chosen in advance the gain
    1 + θu (m - σx - y)/(1 - m) is not negative, has expectation 1 at that m, and grows with m. So has the product over
    the draws, and so has the average K(m) of such products over several bets: it reaches 1/δ with probability at most δ
    (Markov). For each bet and m the product is smallest for signs that can be found bin by bin, so the average of the
    smallest products reaches 1/δ even more rarely, whatever σ is: no union over the patterns of signs. The limit is
    where it reaches 1/δ. Bets are the same for every draw, so there is no order in which they are placed.

    The logarithm of a gain is concave in x, in y and in u, each for itself, so a draw that is replaced by points around
    it with the same mean in each of them makes the capital smaller, hence the limit larger: see :func:`spread`.
    """
    from certcal._kernels.capital import largest_mean

    return float(largest_mean(*points, place_bets(delta, n, deviations), _target(delta, n, len(points.owner))))


def _target(delta: float, n: int, points: int) -> float:
    """What the logarithm of the capital has to reach.

    The logarithms of the n gains are below 2.4 in size where it matters and are added over the points: each addition
    loses a 2^-53rd, and each logarithm a few.
    """
    rounding = 1e-9 + n * (points + 10) * 2.0**-51
    return math.log(1 / delta) + rounding


def mean_from_logs(logs: Floats, bets: Floats, n: int, delta: float, rounding: float) -> float:
    """The m, rounded up, where the mean of exp(logs) / (1 - bet · m)^n over the bets reaches 1/delta; 1 at most.

    It grows with m. The last axis of ``logs`` is that of the bets, over which the candidates of the first, if there is
    one, are averaged as well; ``rounding`` is what they can be off by.
    """
    log = math.log(logs.size / delta) + 1e-9 + rounding
    low, high = 0.0, 1.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        capital = float(np.logaddexp.reduce((logs - n * np.log1p(-bets * middle)).ravel()))
        low, high = (low, middle) if capital >= log else (middle, high)
    return high


def sorted_cells(sample: Sample, starts: NDArray[np.int64]) -> Floats:
    """Samples from each start to the next: how many with outcome 0 and 1, where their mean scores are, and the ends.

    A mean score is said as its place between the least and the largest score of the cell, from 0 to 1.
    """
    from certcal._kernels.runs import cells_between

    cells = np.empty((starts.size - 1, 6))
    cells_between(*sample, starts, cells)
    return cells


def mean_places(cells: Floats) -> Floats:
    """Where the mean score of each cell is between its least and its largest, from 0 to 1."""
    return (cells[:, :2] * cells[:, 2:4]).sum(axis=1) / cells[:, :2].sum(axis=1)


def signed_sums(cells: Floats, bets: Floats) -> Floats:
    """Sums over the first k cells of log(1 - bet · x), x = ±(outcome - score), for each bet; and at last of -x.

    The logarithm is concave in the score: within a cell it is replaced by its chord, which is smaller.
    """
    signed, ends = np.outer(bets, (-1.0, 1.0))[:, :, None], cells[:, 4:].T
    sums, gaps = np.zeros((bets.size, 2, len(cells))), np.zeros(len(cells))
    for outcome in (0, 1):
        number, place = cells[:, outcome], cells[:, 2 + outcome]
        for end, share in zip(ends, (1 - place, place), strict=True):
            sums += number * share * np.log1p(signed * (outcome - end))
            gaps += number * share * (end - outcome)
    return running_sums(np.concatenate((sums, np.stack((gaps, -gaps))[None])))


def running_sums(values: Floats) -> Floats:
    """Sums of the first k, from none to all, along the last axis."""
    return np.concatenate((np.zeros((*values.shape[:-1], 1)), np.cumsum(values, axis=-1)), axis=-1)


class Corners(NamedTuple):
    """Samples, or the corners of the cells around them: how often, bin, correctness minus confidence, and the other."""

    number: Floats
    bin: NDArray[np.int64]
    gap: Floats
    other: Floats


def spread(z: NDArray[Any], c: NDArray[np.uint8], edges: Floats, closed: str, other: Floats, nodes: Floats) -> Corners:
    """Samples in the order of their bins; many of them as the corners of a grid, each sample shared by those around it.

    The shares add up to 1 and have the sample's own confidence and ``other`` as their means, and every function that is
    concave in each of the two is at most as large on average over the corners as at the sample. ``nodes`` are the lines
    of the grid for ``other``, rising, from its least to its largest value or beyond.
    """
    if z.size <= _FEW:
        bin = bin_indices(z, edges, closed)
        order = np.argsort(bin, kind="stable")
        gap = c.astype(np.float64) - z
        return Corners(np.ones(z.size), bin[order], gap[order], other[order])
    bins = edges.size - 1
    parts = max(1, _CELLS // bins)
    ends = edges.astype(z.dtype).astype(np.float64)
    shape = (bins, parts + 1, 2, nodes.size)
    count = np.zeros(shape)
    for start in range(0, z.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        values, bin, hit = z[block].astype(np.float64), bin_indices(z[block], edges, closed), c[block].astype(np.int64)
        low, width = ends[bin], (ends[1:] - ends[:-1])[bin]
        place = parts * np.divide(values - low, width, out=np.zeros(values.size), where=width > 0)
        cell = np.minimum(place.astype(np.int64), parts - 1)
        across = np.clip(place - cell, 0, 1)
        node, along = _nodes_below(other[block], nodes)
        first = np.ravel_multi_index((bin, cell, hit, node), shape)
        for up, share in ((0, 1 - across), (2 * nodes.size, across)):  # this line of confidences, and the next
            for right, part in ((0, 1 - along), (1, along)):
                if nodes.size > right:
                    count += np.bincount(first + up + right, share * part, count.size).reshape(shape)
    bin, cell, hit, node = np.nonzero(count)
    at = ends[bin] + (ends[bin + 1] - ends[bin]) * (cell / parts)
    return Corners(count[bin, cell, hit, node], bin, hit - at, nodes[node])


def mean_limit(values: Floats, delta: float, deviations: Floats = DEVIATIONS, stakes: Floats | None = None) -> float:
    """Upper limit, rounded up, for the expectation of values in [-1, 1], or for the one weighted by stakes in [0, 1].

    Several rows are several ways to value the same draws; the capital is the mean over rows and bets. Each row may be a
    bet of its own kind: all that is needed is that E[u (m - v)], given the draws before it in some order, is at most 0
    at the true m, so that its capital is not expected to grow. Of many draws the nodes of a fine grid stand for them.
    """
    rows = np.atleast_2d(values)
    n, u = rows.shape[1], stakes
    if n <= _FEW:
        corners, where = np.unique(rows + 1j * (1.0 if u is None else u), return_inverse=True)
        at, staked = corners.real, corners.imag
        number = np.array([np.bincount(each, minlength=at.size) for each in where.reshape(rows.shape)], np.float64)
    else:
        nodes = np.ones(1) if u is None else stake_nodes(u)
        lines = 4096 if nodes.size == 1 else 512
        number = np.stack([_share_to_corners(each, u, lines, nodes) for each in rows])
        used = np.flatnonzero(number.any(axis=0))
        number, at, staked = number[:, used], 2.0 / lines * (used // nodes.size) - 1.0, nodes[used % nodes.size]
    bets, target = place_bets(delta, n, deviations), _target(delta, n, at.size)
    low, high = 0, 1 << 41
    while high - low > 1:
        middle = (low + high) // 2
        m = middle * 2.0**-40 - 1.0
        logs = number @ np.log1p(np.outer(staked * (m - at), bets / (1.0 - m)))
        reached = float(np.logaddexp.reduce(logs.ravel())) - math.log(logs.size) >= target
        low, high = (low, middle) if reached else (middle, high)
    return high * 2.0**-40 - 1.0


def _share_to_corners(values: Floats, stakes: Floats | None, lines: int, nodes: Floats) -> Floats:
    """How much of the draws stands at each corner of a grid, with their own means of values and of stakes."""
    count = np.zeros((lines + 1) * nodes.size)
    for start in range(0, values.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        place = (values[block] + 1.0) * (lines / 2)
        line = np.minimum(place.astype(np.int64), lines - 1)
        across = place - line
        shares: list[tuple[NDArray[np.int64], Floats]] = [(line, 1 - across), (line + 1, across)]
        if stakes is not None and nodes.size > 1:
            node, along = _nodes_below(stakes[block], nodes)
            shares = [
                (each * nodes.size + node + right, share * part)
                for each, share in shares
                for right, part in ((0, 1 - along), (1, along))
            ]
        for corner, share in shares:
            count += np.bincount(corner, share, count.size)
    return count


def stake_nodes(stakes: Floats) -> Floats:
    """The different stakes, or quantiles of so many that they are not told apart."""
    different = np.unique(stakes)
    return different if different.size <= _NODES else np.unique(np.quantile(stakes, np.linspace(0, 1, _NODES)))


def _nodes_below(values: Floats, nodes: Floats) -> tuple[NDArray[np.int64], Floats]:
    """The node at or below each value, and how far it is to the next, from 0 to 1."""
    below = np.clip(np.searchsorted(nodes, values, "right") - 1, 0, max(0, nodes.size - 2))
    if nodes.size == 1:
        return below, np.zeros(values.size)
    return below, np.clip((values - nodes[below]) / (nodes[below + 1] - nodes[below]), 0, 1)
