"""How a metric changes when samples are left out: what the acceleration of a BCa interval is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import kernel_float, read_only
from certcal._select import SLACK
from certcal._threads import map_blocks
from certcal.binning import build_lookup
from certcal.metrics.classwise import gap_sums

Floats = NDArray[np.float64]

# A metric of whole rows that is not known here is evaluated without one group of rows at a time, at most this many.
GROUPS = 512


def acceleration(left_out: Floats, size: Floats | float = 1.0) -> float:
    """Skewness over six of the values with a sample left out; each may stand for ``size`` samples.

    Zero when the values do not vary or one of them is undefined: the interval is then corrected for bias only.
    """
    if not np.isfinite(left_out).all():
        return 0.0
    influence = np.average(left_out, weights=np.broadcast_to(size, left_out.shape)) - left_out
    spread = float((size * influence**2).sum())
    return float((size * influence**3).sum() / (6 * spread**1.5)) if spread > 0 else 0.0


def classwise_left_out(p: NDArray[Any], y: NDArray[np.int64], w: Floats | None, edges: Floats, closed: str) -> Floats:
    """classwise_ece without each row, exactly, from the bin sums: a row changes one sum of every class.

    Examples
    --------
    >>> p, y = np.array([[0.75, 0.25], [0.5, 0.5]]), np.array([0, 1])
    >>> classwise_left_out(p, y, None, np.array([0.0, 1.0]), "left").tolist()
    [0.5, 0.25]
    """
    from certcal._kernels import classwise as kernels

    gaps = gap_sums(p, y, w, edges, closed)
    heavy, y = read_only(np.ones(y.size) if w is None else w), read_only(y)
    values, lookup, changes = kernel_float(p), build_lookup(edges, closed, p.dtype), np.empty(y.size)
    map_blocks(
        lambda start, stop: kernels.changes_without_each(
            values[start:stop], y[start:stop], heavy[start:stop], *lookup, gaps, changes[start:stop]
        ),
        y.size,
        small=1 + 200_000 // p.shape[1],
    )
    return _mean_without_each(float(np.abs(gaps).sum()) + changes, heavy, p.shape[1])


def classwise_mass_left_out(p: NDArray[Any], y: NDArray[np.int64], w: Floats | None, bins: int, closed: str) -> Floats:
    """classwise_equal_mass_ece without each row, exactly: the edges of every class move with the row that is missing.

    Examples
    --------
    >>> p, y = np.array([[0.75, 0.25], [0.5, 0.5]]), np.array([0, 1])
    >>> classwise_mass_left_out(p, y, None, 2, "left").tolist()
    [0.5, 0.25]
    """
    from certcal._kernels import classwise as kernels

    heavy = np.ones(y.size) if w is None else w

    def some(start: int, stop: int) -> Floats:
        total = np.zeros(y.size)
        for k in range(start, stop):
            values, order = sorted_column(p, k, closed)
            weights = heavy[order]
            own = weights * ((y[order] == k) - np.abs(values).astype(np.float64))
            sums = np.concatenate(([0.0], np.cumsum(own)))
            first = np.searchsorted(values, values)  # of the samples that are equal
            before = np.append(sums[first], sums[-1])
            running = np.cumsum(weights)
            kernels.add_mass_errors_without_each(
                values, order, own, before, weights, running, w is None, bins, SLACK, total
            )
        return total

    errors = np.sum(map_blocks(some, p.shape[1], small=1 + 200_000 // y.size), axis=0)
    return _mean_without_each(errors, heavy, p.shape[1])


def sorted_column(p: NDArray[Any], k: int, closed: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Probabilities of a class in increasing order and where each was; with ``closed="right"`` the mirror image, -p.

    Examples
    --------
    >>> sorted_column(np.array([[0.75, 0.25], [0.5, 0.5]]), 0, "right")[0].tolist()
    [-0.75, -0.5]
    """
    column = np.minimum(kernel_float(p[:, k]), 1) + 0
    order = np.argsort(column, kind="stable")
    order = order if closed == "left" else order[::-1]
    return (column if closed == "left" else -column)[order], order.astype(np.int32 if order.size < 2**31 else np.int64)


def _mean_without_each(errors: Floats, heavy: Floats, classes: int) -> Floats:
    """Undefined where nothing has weight without the sample."""
    rest = heavy.sum() - heavy
    rest[(heavy > 0).sum() - (heavy > 0) == 0] = 0
    return np.divide(errors, classes * rest, out=np.full(errors.size, np.nan), where=rest > 0)


def grouped_left_out(
    metric: Callable[..., float], arrays: list[NDArray[Any]], w: Floats | None, options: Mapping[str, Any], seed: int
) -> Floats:
    """A metric without each of at most ``GROUPS`` random groups of rows, undefined where that leaves no weight.

    With so few rows that each is its own group this is the jackknife. Larger groups estimate the same skewness: sums of
    h influences have the skewness of one over √h, and there are h times fewer of them.
    """
    n = int(arrays[0].shape[0])
    groups = min(n, GROUPS)
    member = np.random.default_rng(seed).permutation(np.arange(n) % groups)
    left_out = np.full(groups, np.nan)
    for g in range(groups):
        rest = np.flatnonzero(member != g)
        heavy = None if w is None else w[rest]
        if rest.size and (heavy is None or heavy.any()):
            left_out[g] = metric(*(array[rest] for array in arrays), sample_weight=heavy, **options)
    return left_out
