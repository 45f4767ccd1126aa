"""Bootstrap of metrics that need whole rows of probabilities: how often a row was drawn is its weight.

A row belongs to a bin of every class at once, so rows are drawn, not bins. The two classwise metrics are computed from
plain sums of these weights, without sorting again; any other metric is called with them as ``sample_weight``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import bin_count, choice, class_pair, kernel_float, read_only, to_numpy, weights
from certcal._select import SLACK
from certcal._threads import map_blocks
from certcal.binning import CLOSED, build_lookup, edges_for
from certcal.claims import Interval
from certcal.metrics import _jackknife as jackknife
from certcal.metrics import classwise
from certcal.metrics._bootstrap import interval_from

Floats = NDArray[np.float64]

# Replicates computed in one pass over the rows, if their weights take no more memory than the rows.
AT_ONCE = 16


class Rows(ABC):
    """A metric of rows that can be computed for other weights and without some rows."""

    @abstractmethod
    def evaluate(self, times: Floats) -> Floats:
        """The metric for every column of ``times``, the weights of the rows in a replicate."""

    @abstractmethod
    def left_out(self) -> Floats:
        """The metric without each row or group of rows, with the weights the rows were given."""


class Classwise(Rows):
    """classwise_ece."""

    def __init__(self, p: NDArray[Any], y: NDArray[np.int64], w: Floats | None, edges: Floats, closed: str) -> None:
        self._given = p, y, w, edges, closed
        self._values, self._lookup = kernel_float(p), build_lookup(edges, closed, p.dtype)
        self._shape = p.shape[1], edges.size - 1

    def evaluate(self, times: Floats) -> Floats:
        """The metric for every column of weights."""
        from certcal._kernels import classwise as kernels

        def some(start: int, stop: int) -> Floats:
            gaps = np.zeros((*self._shape, stop - start))
            often = np.ascontiguousarray(times[:, start:stop])
            kernels.replicate_gaps(self._values, read_only(self._given[1]), often, *self._lookup, gaps)
            return np.abs(gaps).sum(axis=1).mean(axis=0)

        return np.concatenate(map_blocks(some, times.shape[1], small=1)) / times.sum(axis=0)

    def left_out(self) -> Floats:
        """The metric without each row."""
        return jackknife.classwise_left_out(*self._given)


class ClasswiseMass(Rows):
    """classwise_equal_mass_ece; the probabilities of every class are sorted once, which takes two copies of them."""

    def __init__(self, p: NDArray[Any], y: NDArray[np.int64], w: Floats | None, bins: int, closed: str) -> None:
        self._given = p, y, w, bins, closed
        self._columns = [jackknife.sorted_column(p, k, closed) for k in range(p.shape[1])]

    def evaluate(self, times: Floats) -> Floats:
        """The metric for every column of weights."""
        from certcal._kernels import classwise as kernels

        _, y, _, bins, _ = self._given
        totals = times.sum(axis=0)

        def some(start: int, stop: int) -> Floats:
            errors = np.empty((stop - start, totals.size))
            for k, error in enumerate(errors, start):
                values, order = self._columns[k]
                kernels.mass_errors(values, order, y[order] == k, times, totals, bins, SLACK, error)
            return errors

        errors = np.concatenate(map_blocks(some, len(self._columns), small=1 + 200_000 // y.size))
        return errors.mean(axis=0) / totals

    def left_out(self) -> Floats:
        """The metric without each row."""
        return jackknife.classwise_mass_left_out(*self._given)


class AnyMetric(Rows):
    """Any function of arrays and ``sample_weight``."""

    def __init__(
        self,
        metric: Callable[..., float],
        arrays: list[NDArray[Any]],
        w: Floats | None,
        options: Mapping[str, Any],
        seed: int,
    ) -> None:
        self._metric, self._arrays, self._weight, self._options, self._seed = metric, arrays, w, options, seed

    def evaluate(self, times: Floats) -> Floats:
        """The metric for every column of weights."""
        values = np.empty(times.shape[1])
        for r, often in enumerate(times.T):
            present = np.flatnonzero(often)
            chosen = (array[present] for array in self._arrays)
            values[r] = self._metric(*chosen, sample_weight=often[present], **self._options)
        return values

    def left_out(self) -> Floats:
        """The metric without each group of rows."""
        return jackknife.grouped_left_out(self._metric, self._arrays, self._weight, self._options, self._seed)


def row_interval(
    metric: Callable[..., float],
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
    known = _known(metric, parts, w, options) or AnyMetric(metric, parts, w, options, seed)
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
    skewed = jackknife.acceleration(known.left_out()) if method == "bca" else 0.0
    return interval_from(drawn, value, level, method, skewed)


def _known(
    metric: Callable[..., float], arrays: list[NDArray[Any]], w: Floats | None, options: Mapping[str, Any]
) -> Rows | None:
    """The metric if it is one of the two that sums of weights are enough for."""
    if metric not in (classwise.classwise_ece, classwise.classwise_equal_mass_ece):
        return None
    p, y, _ = class_pair(*arrays)
    closed, bins = choice(options.get("closed", "left"), CLOSED, "closed"), options.get("bins", 15)
    if metric is classwise.classwise_ece:
        return Classwise(p, y, w, edges_for(bins, options.get("edges")), closed)
    return ClasswiseMass(p, y, w, bin_count(bins), closed)
