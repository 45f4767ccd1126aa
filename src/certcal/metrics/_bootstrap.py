"""A metric with an interval: the one of its registry entry, or percentiles of resamples for a metric of one's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import (
    class_pair,
    confidence_level,
    confidences,
    correctness,
    function,
    labels,
    logit_matrix,
    real,
    score_pair,
    to_numpy,
    weights,
    whole_number,
)
from certcal.claims import Estimate, Interval
from certcal.metrics._intervals import Evidence
from certcal.metrics.registry import entry_of


def check_request(level: float, replicates: int, seed: int) -> None:
    """Refuse an impossible level, too few replicates or a seed that is none."""
    confidence_level(level)
    whole_number(replicates, 10, 1_000_000, "replicates", "pass a number from 10 to 1000000 (1000 is usual)")
    whole_number(seed, 0, 1 << 128, "seed", "pass a whole number >= 0")


@names_wrong_types
def bootstrap(
    metric: Callable[..., float],
    *arrays: Any,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    sample_weight: Any = None,
    **options: Any,
) -> Estimate:
    """A metric of your own with a percentile bootstrap interval: how much the number varies under resampling.

    It is approximate. For averages over samples its level is reached as the samples become many. For calibration errors
    near zero it is not: they are biased upward and so are their replicates, and the interval tends to lie above the
    population value, for any number of samples. The metrics of this package have better ones: :func:`with_interval`.

    Parameters
    ----------
    metric
        ``metric(confidence, correct, sample_weight=…)`` or ``metric(probabilities, labels, sample_weight=…)``. It is
        called with how often each sample was drawn as its weight, and without those that were not.
    *arrays
        The metric's arrays.
    level
        Confidence level of the interval.
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
    >>> from certcal.metrics import ece
    >>> estimate = bootstrap(ece, [0.9, 0.8, 0.6, 0.3], [1, 1, 0, 0], bins=2, replicates=100)
    >>> estimate.interval.lower <= estimate.interval.upper
    True
    """
    check_request(level, replicates, seed)
    function(metric, "metric", "pass a function of certcal.metrics, such as ece")
    found = metric(*arrays, sample_weight=sample_weight, **options)
    value = real(found, "what the metric gives", "pass a function that gives a number")
    parts = [to_numpy(array, "array") for array in arrays]
    n, rng = int(parts[0].shape[0]), np.random.default_rng(seed)
    heavy = weights(sample_weight, n)

    def replicate() -> float:
        times = np.bincount(rng.integers(0, n, n), minlength=n).astype(np.float64)
        drawn = times if heavy is None else times * heavy
        rows = np.flatnonzero(drawn)
        if not rows.size:
            return math.nan
        return float(metric(*(part[rows] for part in parts), sample_weight=drawn[rows], **options))

    found = np.array([replicate() for _ in range(replicates)])
    found = np.sort(found[~np.isnan(found)])  # undefined replicates are left out
    ends = [math.nan, math.nan]
    if found.size and not math.isnan(value):
        tails = ((1 - level) / 2, (1 + level) / 2)
        ends = [float(found[max(1, math.ceil(tail * found.size - 1e-9)) - 1]) for tail in tails]
    interval = Interval(ends[0], ends[1], level, "percentile")
    return Estimate(getattr(metric, "__name__", "metric"), value, n, options, interval)


@names_wrong_types
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
        A function of :mod:`certcal.metrics`. For a metric of your own the interval is that of :func:`bootstrap`, which
        is approximate: it covers the population value of averages only.
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
    checked = _check_arrays(arrays, entry.reads, options)
    n = int(checked[0].shape[0])
    if entry.interval is None:
        return Estimate(entry.name, value, n, options)
    evidence = Evidence.of(checked, weights(sample_weight, n))
    return Estimate(entry.name, value, n, options, entry.interval.interval(evidence, value, level, options))


def _check_arrays(arrays: tuple[Any, ...], reads: str, options: Mapping[str, Any]) -> tuple[NDArray[Any], ...]:
    if reads in ("confidence", "correct"):
        return ((confidences if reads == "confidence" else correctness)(arrays[0]),)
    if reads == "pair":
        return score_pair(*arrays)[:2]
    if options.get("from_logits"):
        x = logit_matrix(arrays[0])
        return x, labels(arrays[1], x.shape[1])
    return class_pair(*arrays)[:2]
