"""Bootstrap of metrics that need whole rows of probabilities: how often a row was drawn is its weight.

A row belongs to a bin of every class at once, so rows are drawn, not bins. The two classwise metrics are computed from
plain sums of these weights, without sorting again; any other metric is called with them as ``sample_weight``. Each
``evaluate`` gives the metric for every column of weights, and each ``left_out`` the metric without each row (or group
of rows), from which the acceleration of a BCa interval is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import bin_count, choice, class_pair, kernel_float, read_only, to_numpy, weights
from certcal._select import SLACK
from certcal._threads import map_blocks
from certcal.binning import CLOSED, build_lookup, edges_for
from certcal.claims import Interval
from certcal.metrics._bootstrap import acceleration, interval_from
from certcal.metrics.classwise import gap_sums
from certcal.metrics.registry import OfClasses

Floats = NDArray[np.float64]

# Replicates computed in one pass over the rows, if their weights take no more memory than the rows.
AT_ONCE = 16
# A metric that is not known here is evaluated without one group of rows at a time, at most this many.
GROUPS = 512


def row_interval(
    metric: Callable[..., float],
    form: Any,
    arrays: tuple[Any, ...],
    sample_weight: Any,
    options: Mapping[str, Any],
    value: float,
    level: float,
    method: str,
    replicates: int,
    seed: int,
) -> Interval:
    """Interval of a metric of rows."""
    parts = [to_numpy(array, "array") for array in arrays]
    n = int(parts[0].shape[0])
    w = weights(sample_weight, n)
    known = _resampled(metric, form, parts, w, options, seed)
    at_once = max(1, min(AT_ONCE, parts[0].nbytes // (8 * n)))

    def values() -> Iterator[Floats]:
        rng = np.random.default_rng(seed)
        for first in range(0, replicates, at_once):
            times = np.empty((n, min(at_once, replicates - first)))
            for r in range(times.shape[1]):
                drawn = np.bincount(rng.integers(0, n, n), minlength=n)
                times[:, r] = drawn if w is None else drawn * w
            found = np.full(times.shape[1], np.nan)
            heavy = times.any(axis=0)
            if heavy.any():
                found[heavy] = known.evaluate(times if heavy.all() else times[:, heavy])
            yield found

    drawn = np.concatenate(list(values()))
    skewed = acceleration(known.left_out()) if method == "bca" else 0.0
    return interval_from(drawn, value, level, method, skewed)


def _resampled(
    metric: Callable[..., float],
    form: Any,
    arrays: list[NDArray[Any]],
    w: Floats | None,
    options: Mapping[str, Any],
    seed: int,
) -> ResampledClasswise | ResampledClasswiseMass | ResampledFunction:
    if not isinstance(form, OfClasses):
        return ResampledFunction(metric, arrays, w, options, seed)
    p, y, _ = class_pair(*arrays)
    closed, bins = choice(options.get("closed", "left"), CLOSED, "closed"), options.get("bins", 15)
    if form.mass:
        return ResampledClasswiseMass(p, y, w, bin_count(bins), closed)
    return ResampledClasswise(p, y, w, edges_for(bins, options.get("edges")), closed)


class ResampledClasswise:
    """classwise_ece; without a row exactly, since a row changes one sum of every class."""

    def __init__(self, p: NDArray[Any], y: NDArray[np.int64], w: Floats | None, edges: Floats, closed: str) -> None:
        self._given = p, y, w, edges, closed
        self._values, self._labels = kernel_float(p), read_only(y)
        self._lookup = build_lookup(edges, closed, p.dtype)

    def evaluate(self, times: Floats) -> Floats:
        from certcal._kernels import classwise as kernels

        p, _, _, edges, _ = self._given

        def some(start: int, stop: int) -> Floats:
            gaps = np.zeros((p.shape[1], edges.size - 1, stop - start))
            often = np.ascontiguousarray(times[:, start:stop])
            kernels.replicate_gaps(self._values, self._labels, often, *self._lookup, gaps)
            return np.abs(gaps).sum(axis=1).mean(axis=0)

        return np.concatenate(map_blocks(some, times.shape[1], small=1)) / times.sum(axis=0)

    def left_out(self) -> Floats:
        from certcal._kernels import classwise as kernels

        p, y, w, edges, closed = self._given
        gaps = gap_sums(p, y, w, edges, closed)
        heavy, changes = read_only(np.ones(y.size) if w is None else w), np.empty(y.size)
        map_blocks(
            lambda start, stop: kernels.changes_without_each(
                self._values[start:stop],
                self._labels[start:stop],
                heavy[start:stop],
                *self._lookup,
                gaps,
                changes[start:stop],
            ),
            y.size,
            small=1 + 200_000 // p.shape[1],
        )
        return _mean_without_each(float(np.abs(gaps).sum()) + changes, heavy, p.shape[1])


class ResampledClasswiseMass:
    """classwise_equal_mass_ece; every class is sorted once, which takes two copies of the probabilities.

    Without a row exactly: the edges of every class move with the row that is missing.
    """

    def __init__(self, p: NDArray[Any], y: NDArray[np.int64], w: Floats | None, bins: int, closed: str) -> None:
        self._labels, self._weight, self._bins = y, w, bins
        self._columns = [_sorted_column(p[:, k], closed) for k in range(p.shape[1])]

    def evaluate(self, times: Floats) -> Floats:
        from certcal._kernels import classwise as kernels

        y, totals = self._labels, times.sum(axis=0)

        def some(start: int, stop: int) -> Floats:
            errors = np.empty((stop - start, totals.size))
            for k, error in enumerate(errors, start):
                values, order = self._columns[k]
                kernels.mass_errors(values, order, y[order] == k, times, totals, self._bins, SLACK, error)
            return errors

        errors = np.concatenate(map_blocks(some, len(self._columns), small=1 + 200_000 // y.size))
        return errors.mean(axis=0) / totals

    def left_out(self) -> Floats:
        from certcal._kernels import classwise as kernels

        y, w = self._labels, self._weight
        heavy = np.ones(y.size) if w is None else w

        def some(start: int, stop: int) -> Floats:
            total = np.zeros(y.size)
            for k in range(start, stop):
                values, order = self._columns[k]
                weights = heavy[order]
                own = weights * ((y[order] == k) - np.abs(values).astype(np.float64))
                sums = np.concatenate(([0.0], np.cumsum(own)))
                first = np.searchsorted(values, values)  # of the samples that are equal
                before = np.append(sums[first], sums[-1])
                running = np.cumsum(weights)
                kernels.add_mass_errors_without_each(
                    values, order, own, before, weights, running, w is None, self._bins, SLACK, total
                )
            return total

        errors = np.sum(map_blocks(some, len(self._columns), small=1 + 200_000 // y.size), axis=0)
        return _mean_without_each(errors, heavy, len(self._columns))


class ResampledFunction:
    """Any function of arrays and ``sample_weight``.

    It is left out in at most ``GROUPS`` random groups of rows. With so few rows that each is its own group this is the
    jackknife. Larger groups estimate the same skewness: sums of h influences have the skewness of one over √h, and
    there are h times fewer of them.
    """

    def __init__(
        self,
        metric: Callable[..., float],
        arrays: list[NDArray[Any]],
        w: Floats | None,
        options: Mapping[str, Any],
        seed: int,
    ) -> None:
        self._metric, self._arrays, self._weight, self._options, self._seed = metric, arrays, w, options, seed

    def _of(self, rows: NDArray[np.int64], w: Floats | None) -> float:
        return self._metric(*(array[rows] for array in self._arrays), sample_weight=w, **self._options)

    def evaluate(self, times: Floats) -> Floats:
        present = [np.flatnonzero(often) for often in times.T]
        return np.array([self._of(rows, often[rows]) for rows, often in zip(present, times.T, strict=True)])

    def left_out(self) -> Floats:
        n = int(self._arrays[0].shape[0])
        groups = min(n, GROUPS)
        member = np.random.default_rng(self._seed).permutation(np.arange(n) % groups)
        left_out = np.full(groups, np.nan)  # undefined where nothing has weight without the group
        for g in range(groups):
            rest = np.flatnonzero(member != g)
            heavy = None if self._weight is None else self._weight[rest]
            if rest.size and (heavy is None or heavy.any()):
                left_out[g] = self._of(rest, heavy)
        return left_out


def _sorted_column(column: NDArray[Any], closed: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Probabilities of a class in increasing order and where each was; with ``closed="right"`` the mirror image, -p."""
    values = np.minimum(kernel_float(column), 1) + 0
    order = np.argsort(values, kind="stable")
    order = order if closed == "left" else order[::-1]
    return (values if closed == "left" else -values)[order], order.astype(np.int32 if order.size < 2**31 else np.int64)


def _mean_without_each(errors: Floats, heavy: Floats, classes: int) -> Floats:
    """Undefined where nothing has weight without the sample."""
    rest = heavy.sum() - heavy
    rest[(heavy > 0).sum() - (heavy > 0) == 0] = 0
    return np.divide(errors, classes * rest, out=np.full(errors.size, np.nan), where=rest > 0)
