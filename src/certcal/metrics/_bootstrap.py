"""Bootstrap intervals without drawing indices or sorting again.

The samples are sorted once and cut into at most a few thousand *atoms*: runs of neighbouring confidences with the same
outcome and the same bin. A replicate is one multinomial draw of how often each atom occurs; every
metric is then a function of a few thousand weighted points, or of the bin sums. Up to ``EXACT`` samples every sample is
its own atom and the draw is the ordinary bootstrap; above, confidences are moved inside an atom by at most its width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, choice, kernel_float, score_pair, share, weights, whole_number
from certcal.binning import BinTable, build_lookup
from certcal.claims import Estimate, Interval

Floats = NDArray[np.float64]
Samples = tuple[NDArray[Any], NDArray[np.uint8], Floats | None]

EXACT = 4096
METHODS = ("percentile", "bca")
# Acceleration needs one evaluation per group of neighbouring atoms.
GROUPS = 512


@dataclass(frozen=True, eq=False)
class Atoms:
    """Weighted points that stand for all samples, in the order of (outcome, confidence).

    ``count``, ``weight`` and ``squared`` are the number of samples, the sum of their weights and of their squares; they
    are redrawn for each replicate. ``draw`` makes one replicate.
    """

    confidence: Floats
    correct: NDArray[np.uint8]
    bin: NDArray[np.int64]
    count: Floats
    weight: Floats
    squared: Floats
    dtype: np.dtype[Any]
    draw: Callable[[np.random.Generator], tuple[Floats, Floats, Floats]]


Sums = tuple[Floats, Floats, Floats]
Evaluate = Callable[[Atoms, Sums], float]


def make_atoms(z: NDArray[Any], c: NDArray[np.uint8], w: Floats | None, edges: Floats | None, closed: str) -> Atoms:
    """Sort once and cut into atoms; no atom crosses an edge."""
    from certcal._kernels.bins import locate

    order = np.lexsort((z, c)) if w is not None or z.size <= EXACT else None
    if order is not None:
        ordered, outcome = z[order], c[order]
    else:  # plain sorts of values are several times faster than sorting positions
        ordered = np.concatenate((np.sort(z[c == 0]), np.sort(z[c == 1])))
        outcome = np.zeros(z.size, np.uint8)
        outcome[z.size - int(np.count_nonzero(c)) :] = 1
    where = np.zeros(z.size, np.uint32)
    if edges is not None:
        locate(kernel_float(ordered), *build_lookup(edges, closed, z.dtype), where)
    step = -(-z.size // EXACT)
    cut = np.arange(z.size) % step == 0
    cut[1:] |= (where[1:] != where[:-1]) | (outcome[1:] != outcome[:-1])
    starts = np.flatnonzero(cut)
    count = np.diff(np.append(starts, z.size)).astype(np.float64)

    def total(values: Floats) -> Floats:
        return np.add.reduceat(values, starts)

    exact = ordered.astype(np.float64)
    if w is None or order is None:
        confidence, weight, squared = total(exact) / count, count, count
        shares = count / z.size

        def draw(rng: np.random.Generator) -> Sums:
            drawn = rng.multinomial(z.size, shares).astype(np.float64)
            return drawn, drawn, drawn
    else:
        heavy = w[order]
        weight, squared = total(heavy), total(heavy**2)
        counted = total(heavy * np.where(heavy > 0, exact, 0.0))  # a loss of weight 0 may be infinite
        confidence = np.where(weight > 0, counted / np.where(weight > 0, weight, 1), total(exact) / count)

        def draw(rng: np.random.Generator) -> Sums:
            times = np.bincount(rng.integers(0, z.size, z.size), minlength=z.size)
            return total(times.astype(np.float64)), total(times * heavy), total(times * heavy**2)

    confidence = np.clip(confidence, exact.min(), exact.max())  # a mean of equal values may round beyond them
    return Atoms(confidence, outcome[starts], where[starts].astype(np.int64), count, weight, squared, z.dtype, draw)


def table_of(atoms: Atoms, sums: Sums, edges: Floats, closed: str) -> BinTable:
    """Per-bin sums of one replicate."""
    count, weight, squared = sums
    bins = edges.size - 1

    def per_bin(values: Floats) -> Floats:
        return np.bincount(atoms.bin, values, bins).astype(np.float64)

    return BinTable(
        edges,
        closed,
        per_bin(count).astype(np.int64),
        per_bin(weight),
        per_bin(squared),
        per_bin(weight * atoms.confidence),
        per_bin(weight * atoms.correct),
    )


def table_metric(of: Callable[[BinTable], float], edges: Floats, closed: str) -> Evaluate:
    """A metric of per-bin sums as a function of a replicate."""
    return lambda atoms, sums: of(table_of(atoms, sums, edges, closed))


def point_metric(metric: Callable[..., float], **options: Any) -> Evaluate:
    """Any metric of confidence, correct and sample_weight as a function of a replicate."""

    def evaluate(atoms: Atoms, sums: Sums) -> float:
        present = sums[1] > 0
        confidence = atoms.confidence[present].astype(atoms.dtype)
        return metric(confidence, atoms.correct[present], sample_weight=sums[1][present], **options)

    return evaluate


def mean_metric(atoms: Atoms, sums: Sums) -> float:
    """Mean of the values that were passed as confidences."""
    present = sums[1] > 0  # a value may be infinite
    return float(np.dot(sums[1][present], atoms.confidence[present]) / sums[1].sum())


def resample(
    atoms: Atoms, evaluate: Evaluate, value: float, level: float, method: str, replicates: int, seed: int
) -> Interval:
    """Interval of a metric from replicates of the atoms."""
    rng = np.random.default_rng(seed)

    def values() -> Iterator[float]:
        for _ in range(replicates):
            sums = atoms.draw(rng)
            yield evaluate(atoms, sums) if sums[1].sum() > 0 else float("nan")

    drawn = np.fromiter(values(), np.float64, replicates)
    acceleration = _acceleration(atoms, evaluate) if method == "bca" else 0.0
    return interval_from(drawn, value, level, method, acceleration)


def interval_from(drawn: Floats, value: float, level: float, method: str, acceleration: float) -> Interval:
    """Percentile or BCa interval from the replicates of a metric; undefined replicates are left out.

    Examples
    --------
    >>> interval_from(np.arange(1.0, 101.0), 50.0, 0.9, "percentile", 0.0).upper
    95.0
    """
    drawn = np.sort(drawn[~np.isnan(drawn)])
    if drawn.size == 0 or math.isnan(value):
        return Interval(float("nan"), float("nan"), level, method)
    tails = ((1 - level) / 2, (1 + level) / 2)
    if method == "bca":
        tails = _corrected(drawn, value, tails, acceleration)
    low, high = (drawn[min(drawn.size, max(1, math.ceil(tail * drawn.size - 1e-9))) - 1] for tail in tails)
    return Interval(float(low), float(high), level, method)


def _corrected(drawn: Floats, value: float, tails: tuple[float, float], acceleration: float) -> tuple[float, float]:
    """Tail probabilities of Efron's bias-corrected and accelerated interval."""
    from scipy.special import ndtr, ndtri

    below = (np.count_nonzero(drawn < value) + np.count_nonzero(drawn <= value)) / 2 / drawn.size
    # A replicate distribution entirely on one side says only that the bias exceeds what the replicates resolve.
    shift = float(ndtri(min(max(below, 0.5 / drawn.size), 1 - 0.5 / drawn.size)))
    moved = shift + np.asarray(ndtri(tails))
    low, high = ndtr(shift + moved / np.maximum(1 - acceleration * moved, 1e-12))
    return float(low), float(high)


def _acceleration(atoms: Atoms, evaluate: Evaluate) -> float:
    """Skewness of the jackknife values over six; neighbouring atoms have nearly equal influence and share one value."""
    step = -(-atoms.count.size // GROUPS)
    group = np.arange(atoms.count.size) // step
    size = np.bincount(group, atoms.count)
    left_out = np.empty(size.size)
    for g in range(size.size):
        factor = np.where(group == g, 1 - 1 / size[g], 1.0)
        sums = atoms.count * factor, atoms.weight * factor, atoms.squared * factor
        if not sums[1].sum() > 0:  # one sample carries all the weight: nothing to learn from leaving it out
            return 0.0
        left_out[g] = evaluate(atoms, sums)
    if not np.isfinite(left_out).all():
        return 0.0
    influence = np.average(left_out, weights=size) - left_out
    spread = float((size * influence**2).sum())
    return float((size * influence**3).sum() / (6 * spread**1.5)) if spread > 0 else 0.0


def check_request(level: float, method: str, replicates: int, seed: int) -> None:
    """Refuse an impossible level, an unknown method, too few replicates or a seed that is none."""
    choice(method, METHODS, "method")
    share(level, "level", "pass a confidence level between 0 and 1, such as 0.95")
    whole_number(replicates, 10, 1_000_000, "replicates", "pass a number from 10 to 1000000 (1000 is usual)")
    whole_number(seed, 0, 1 << 128, "seed", "pass a whole number >= 0")


def bootstrap(
    metric: Callable[..., float],
    *arrays: Any,
    level: float = 0.95,
    method: str = "percentile",
    replicates: int = 1000,
    seed: int = 0,
    sample_weight: Any = None,
    **options: Any,
) -> Estimate:
    """A metric with a bootstrap interval, which is asymptotic: its level holds only as the samples become many.

    A binned calibration error is biased upward on few samples and so are its replicates: the interval says how
    much the *number you computed* varies, not where the true calibration error lies.

    Parameters
    ----------
    metric
        A function of :mod:`certcal.metrics`, or your own with the same shape:
        ``metric(confidence, correct, sample_weight=…)`` or ``metric(probabilities, labels, sample_weight=…)``.
    *arrays
        The metric's arrays.
    level
        Confidence level of the interval.
    method
        "percentile" or "bca" (bias-corrected and accelerated).
    replicates
        Number of resampled data sets.
    seed
        The same seed gives the same bits.
    sample_weight
        Weights >= 0, or None; samples are resampled together with their weights.
    **options
        Passed to the metric, such as ``bins=10``.

    Examples
    --------
    >>> from certcal.metrics import accuracy, ece
    >>> estimate = bootstrap(ece, [0.9, 0.8, 0.6, 0.3], [1, 1, 0, 0], bins=2, replicates=100)
    >>> estimate.interval.lower <= estimate.interval.upper, estimate.interval.asymptotic
    (True, True)
    """
    check_request(level, method, replicates, seed)
    from certcal.metrics._strategies import evaluator, losses, table_edges

    name = getattr(metric, "__name__", "metric")
    value = metric(*arrays, sample_weight=sample_weight, **options)
    first = np.asarray(arrays[0]) if not hasattr(arrays[0], "detach") else arrays[0]
    per_sample = losses(metric, arrays, options)
    if per_sample is not None:
        w = weights(sample_weight, per_sample.size)
        zeros = np.zeros(per_sample.size, np.uint8)
        atoms, evaluate = make_atoms(per_sample, zeros, w, None, "left"), mean_metric
    elif len(arrays) == 2 and first.ndim == 1:
        z, c, w = score_pair(arrays[0], arrays[1], sample_weight)
        edges, closed = table_edges(metric, options)
        atoms, evaluate = make_atoms(z, c, w, edges, closed), evaluator(metric, options, edges, closed)
    else:
        if method == "bca":
            raise InputError(f"method 'bca' is not offered for {name}, which needs whole rows; use 'percentile'")
        drawn = _rows(metric, arrays, sample_weight, replicates, seed, options)
        n = int(first.shape[0])
        return Estimate(name, value, n, options, interval_from(drawn, value, level, method, 0.0))
    interval = resample(atoms, evaluate, value, level, method, replicates, seed)
    return Estimate(name, value, int(atoms.count.sum()), options, interval)


def _rows(
    metric: Callable[..., float],
    arrays: tuple[Any, ...],
    sample_weight: Any,
    replicates: int,
    seed: int,
    options: dict[str, Any],
) -> Floats:
    """Replicates of a metric that needs whole rows: how often each row was drawn is its weight."""
    from certcal._checks import to_numpy

    rng = np.random.default_rng(seed)
    parts = [to_numpy(array, "array") for array in arrays]
    n = int(parts[0].shape[0])
    w = weights(sample_weight, n)
    drawn = np.empty(replicates)
    for r in range(replicates):
        times = np.bincount(rng.integers(0, n, n), minlength=n)
        present = np.flatnonzero(times if w is None else times * w)
        heavy = times[present] if w is None else times[present] * w[present]
        chosen = [part[present] for part in parts]
        drawn[r] = metric(*chosen, sample_weight=heavy, **options) if present.size else float("nan")
    return drawn
