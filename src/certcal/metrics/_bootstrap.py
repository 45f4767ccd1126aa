"""Bootstrap intervals without drawing indices or sorting again.

The samples are sorted once and cut into at most a few thousand *atoms*: runs of neighbouring confidences with the same
outcome and the same bin. A replicate is one multinomial draw of how often each atom occurs; every
metric is then a function of a few thousand weighted points, or of the bin sums. Up to ``EXACT`` samples every sample is
its own atom and the draw is the ordinary bootstrap; above, confidences are moved inside an atom by at most its width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import (
    choice,
    class_pair,
    confidence_level,
    confidences,
    correctness,
    kernel_float,
    labels,
    logit_matrix,
    score_pair,
    weights,
    whole_number,
)
from certcal.binning import CLOSED, BinTable, build_lookup, edges_for
from certcal.claims import Estimate, Interval
from certcal.metrics._intervals import Evidence
from certcal.metrics.registry import MeanOf, OfBins, OfClasses, OfSamples, entry_of
from certcal.metrics.scores import mean_confidence_of_atoms, top_label_brier_of_atoms

Floats = NDArray[np.float64]

EXACT = 4096
METHODS = ("percentile", "bca")
# The interval of each metric's registry entry, which covers the population value.
AUTO = "auto"
# Acceleration needs one evaluation per group of neighbouring atoms.
GROUPS = 512


@dataclass(frozen=True, eq=False)
class Atoms:
    """Weighted points that stand for all samples, in the order of (outcome, confidence).

    ``confidence`` and ``confidence_square`` are means over an atom's samples. ``count``, ``weight`` and ``squared`` are
    the number of samples, the sum of their weights and of their squares; they are redrawn for each replicate. ``draw``
    makes one replicate.
    """

    confidence: Floats
    confidence_square: Floats
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
        square = total(exact**2) / count
        shares = count / z.size

        def draw(rng: np.random.Generator) -> Sums:
            drawn = rng.multinomial(z.size, shares).astype(np.float64)
            return drawn, drawn, drawn
    else:
        heavy = w[order]
        weight, squared = total(heavy), total(heavy**2)
        counts = np.where(heavy > 0, exact, 0.0)  # a loss of weight 0 may be infinite
        divisor = np.where(weight > 0, weight, 1)
        confidence = np.where(weight > 0, total(heavy * counts) / divisor, total(exact) / count)
        square = total(heavy * counts**2) / divisor

        def draw(rng: np.random.Generator) -> Sums:
            times = np.bincount(rng.integers(0, z.size, z.size), minlength=z.size)
            return total(times.astype(np.float64)), total(times * heavy), total(times * heavy**2)

    confidence = np.clip(confidence, exact.min(), exact.max())  # a mean of equal values may round beyond them
    which = where[starts].astype(np.int64)
    return Atoms(confidence, square, outcome[starts], which, count, weight, squared, z.dtype, draw)


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


def bin_metric(form: OfBins, options: Mapping[str, Any], edges: Floats, closed: str) -> Evaluate:
    """A metric of per-bin sums as a function of a replicate."""
    own = {key: value for key, value in options.items() if key not in ("bins", "edges", "closed")}

    def evaluate(atoms: Atoms, sums: Sums) -> float:
        score = (top_label_brier_of_atoms(atoms, sums[1]),) if form.scored else ()
        return form.of(table_of(atoms, sums, edges, closed), *score, **own)

    return evaluate


def point_metric(metric: Callable[..., float], options: Mapping[str, Any]) -> Evaluate:
    """Any metric of confidence, correct and sample_weight as a function of a replicate."""

    def evaluate(atoms: Atoms, sums: Sums) -> float:
        present = sums[1] > 0
        confidence = atoms.confidence[present].astype(atoms.dtype)
        return metric(confidence, atoms.correct[present], sample_weight=sums[1][present], **options)

    return evaluate


def mean_metric(atoms: Atoms, sums: Sums) -> float:
    """Mean of the values that were passed as confidences."""
    return mean_confidence_of_atoms(atoms, sums[1])


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
    skewed = acceleration(*left_out(atoms, evaluate)) if method == "bca" else 0.0
    return interval_from(drawn, value, level, method, skewed)


def interval_from(drawn: Floats, value: float, level: float, method: str, skewed: float) -> Interval:
    """Percentile or BCa interval from the replicates of a metric; undefined replicates are left out."""
    drawn = np.sort(drawn[~np.isnan(drawn)])
    if drawn.size == 0 or math.isnan(value):
        return Interval(float("nan"), float("nan"), level, method)
    tails = ((1 - level) / 2, (1 + level) / 2)
    if method == "bca":
        tails = _corrected(drawn, value, tails, skewed)
    low, high = (drawn[min(drawn.size, max(1, math.ceil(tail * drawn.size - 1e-9))) - 1] for tail in tails)
    return Interval(float(low), float(high), level, method)


def _corrected(drawn: Floats, value: float, tails: tuple[float, float], skewed: float) -> tuple[float, float]:
    """Tail probabilities of Efron's bias-corrected and accelerated interval."""
    from scipy.special import ndtr, ndtri

    below = (np.count_nonzero(drawn < value) + np.count_nonzero(drawn <= value)) / 2 / drawn.size
    # A replicate distribution entirely on one side says only that the bias exceeds what the replicates resolve.
    shift = float(ndtri(min(max(below, 0.5 / drawn.size), 1 - 0.5 / drawn.size)))
    moved = shift + np.asarray(ndtri(tails))
    low, high = ndtr(shift + moved / np.maximum(1 - skewed * moved, 1e-12))
    return float(low), float(high)


def acceleration(left_out: Floats, size: Floats | float = 1.0) -> float:
    """Skewness over six of the values with a sample left out; each may stand for ``size`` samples.

    Zero when the values do not vary or one of them is undefined: the interval is then corrected for bias only.
    """
    if not np.isfinite(left_out).all():
        return 0.0
    influence = np.average(left_out, weights=np.broadcast_to(size, left_out.shape)) - left_out
    spread = float((size * influence**2).sum())
    return float((size * influence**3).sum() / (6 * spread**1.5)) if spread > 0 else 0.0


def left_out(atoms: Atoms, evaluate: Callable[[Atoms, Sums], Any]) -> tuple[NDArray[Any], Floats]:
    """A metric (or several) without one sample of each group of neighbouring atoms, and how many samples that is.

    Neighbours have nearly equal influence and share one value.
    """
    step = -(-atoms.count.size // GROUPS)
    group = np.arange(atoms.count.size) // step
    size = np.bincount(group, atoms.count).astype(np.float64)
    values: list[Any] = []
    for g in range(size.size):
        factor = np.where(group == g, 1 - 1 / size[g], 1.0)
        sums = atoms.count * factor, atoms.weight * factor, atoms.squared * factor
        # When one sample carries all the weight there is nothing to learn from leaving it out.
        values.append(evaluate(atoms, sums) if sums[1].sum() > 0 else float("nan"))
    return np.array(values, np.float64), size


def check_request(level: float, method: str, replicates: int, seed: int) -> None:
    """Refuse an impossible level, an unknown method, too few replicates or a seed that is none."""
    choice(method, (AUTO, *METHODS), "method")
    confidence_level(level)
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
    """A metric with a bootstrap interval: how much the *number you computed* varies under resampling.

    For averages over samples (accuracy, Brier score, log loss) its level is reached as the samples become many. For
    calibration errors (binned, absolute, largest) near zero it is not: they are biased upward and so are their
    replicates, and the interval tends to lie above the population value, for any number of samples.
    :func:`with_interval` covers that value.

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
    >>> estimate.interval.lower <= estimate.interval.upper
    True
    """
    check_request(level, choice(method, METHODS, "method"), replicates, seed)
    value = metric(*arrays, sample_weight=sample_weight, **options)
    name = getattr(metric, "__name__", "metric")
    entry = entry_of(metric)
    form = OfSamples() if entry is None else entry.form
    first = arrays[0] if hasattr(arrays[0], "detach") else np.asarray(arrays[0])
    if isinstance(form, MeanOf):
        losses = form.losses(*_checked(arrays, entry.reads if entry else "", options), **options).astype(np.float64)
        w, zeros = weights(sample_weight, losses.size), np.zeros(losses.size, np.uint8)
        atoms, evaluate = make_atoms(losses, zeros, w, None, "left"), mean_metric
    elif isinstance(form, OfClasses) or len(arrays) != 2 or first.ndim != 1:
        from certcal.metrics._rows import row_interval

        interval = row_interval(metric, form, arrays, sample_weight, options, value, level, method, replicates, seed)
        return Estimate(name, value, int(first.shape[0]), options, interval)
    else:
        z, c, w = score_pair(arrays[0], arrays[1], sample_weight)
        if isinstance(form, OfBins) and not form.mass:
            closed = choice(options.get("closed", "left"), CLOSED, "closed")
            edges = edges_for(options.get("bins", 15), options.get("edges"))
            atoms, evaluate = make_atoms(z, c, w, edges, closed), bin_metric(form, options, edges, closed)
        else:
            atoms, evaluate = make_atoms(z, c, w, None, "left"), point_metric(metric, options)
    interval = resample(atoms, evaluate, value, level, method, replicates, seed)
    return Estimate(name, value, int(atoms.count.sum()), options, interval)


def with_interval(
    metric: Callable[..., float],
    *arrays: Any,
    level: float = 0.95,
    replicates: int = 200,
    seed: int = 0,
    sample_weight: Any = None,
    **options: Any,
) -> Estimate:
    """A metric with a confidence interval for its value in the population that the samples are drawn from.

    Each metric of this package has its own interval in closed form, near zero as well, which contains the estimate;
    the page "Intervals" of the documentation says which and how often each covers. The population value is that at the
    same settings: of the same bins, of the same bandwidth.

    Parameters
    ----------
    metric
        A function of :mod:`certcal.metrics`. For a metric of your own the interval is that of :func:`bootstrap`, from
        percentiles, which covers the population value of averages only.
    *arrays
        The metric's arrays.
    level
        Confidence level of the interval.
    replicates, seed
        For a metric of your own.
    sample_weight
        Weights >= 0, or None. The population is then that of the weighted samples. Weights of outcomes that did not
        occur are not known, and not allowed for.
    **options
        Passed to the metric, such as ``bins=10``.

    Examples
    --------
    >>> from certcal.metrics import accuracy
    >>> found = with_interval(accuracy, [1] * 9 + [0])
    >>> print(f"{found.interval.lower:.4f} {found.value} {found.interval.upper:.4f} {found.interval.method}")
    0.5550 0.9 0.9975 Clopper-Pearson
    """
    entry = entry_of(metric)
    if entry is None or (entry.interval is None and not entry.test):
        return bootstrap(
            metric, *arrays, level=level, replicates=replicates, seed=seed, sample_weight=sample_weight, **options
        )
    value, level = metric(*arrays, sample_weight=sample_weight, **options), confidence_level(level)
    checked = _checked(arrays, entry.reads, options)
    n = int(checked[0].shape[0])
    if entry.interval is None:
        return Estimate(entry.name, value, n, options)
    evidence = Evidence.of(checked, weights(sample_weight, n))
    return Estimate(entry.name, value, n, options, entry.interval.interval(evidence, value, level, options))


def _checked(arrays: tuple[Any, ...], reads: str, options: Mapping[str, Any]) -> tuple[NDArray[Any], ...]:
    """Arrays that a metric has accepted, as its losses take them."""
    if reads in ("confidence", "correct"):
        return ((confidences if reads == "confidence" else correctness)(arrays[0]),)
    if reads == "pair":
        return score_pair(*arrays)[:2]
    if options.get("from_logits"):
        x = logit_matrix(arrays[0])
        return x, labels(arrays[1], x.shape[1])
    return class_pair(*arrays)[:2]
