"""Proper scores, accuracy, discrimination: what calibration is usually read beside."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import (
    InputError,
    choice,
    class_pair,
    confidences,
    correctness,
    flag,
    kernel_float,
    logit_matrix,
    positive,
    read_only,
    real,
    same_length,
    score_pair,
    weights,
)
from certcal._base.checks import labels as check_labels
from certcal._base.threads import map_blocks
from certcal.binning import CLOSED, BinTable, edges_for, sums
from certcal.metrics.binned import ece_of

Floats = NDArray[np.float64]

# How far sums in floating point may take a share out of [0, 1].
_ROUNDING = 1e-9


def weighted_mean(values: NDArray[Any], w: Floats | None) -> float:
    """Mean, weighted when weights are given; a value of weight 0 does not count even when it is infinite."""
    if w is None:
        return float(values.mean())
    if not np.isfinite(values).all():
        values = np.where(w > 0, values, 0.0)
        if np.isinf(values).any():
            return float("inf")
    return float(np.dot(values, w) / w.sum())


def accuracy(correct: Any, *, sample_weight: Any = None) -> float:
    """Share of correct predictions.

    Parameters
    ----------
    correct
        Whether each prediction is correct, 0 or 1.
    sample_weight
        Weights >= 0, or None.

    Examples
    --------
    >>> accuracy([1, 1, 0, 1])
    0.75
    """
    c = correctness(correct)
    return weighted_mean(c, weights(sample_weight, c.size, partner="correct"))


def base_rate(outcomes: Any, *, sample_weight: Any = None) -> float:
    """Share of samples whose outcome is 1.

    Parameters
    ----------
    outcomes
        What happened, 0 or 1.
    sample_weight
        Weights >= 0, or None.

    Examples
    --------
    >>> base_rate([1, 0, 0, 0])
    0.25
    """
    y = correctness(outcomes, "outcomes", "pass outcomes as 0/1 or true/false")
    return weighted_mean(y, weights(sample_weight, y.size, partner="outcomes"))


def accuracy_at_threshold(scores: Any, outcomes: Any, *, threshold: float = 0.5, sample_weight: Any = None) -> float:
    """Share of samples whose outcome is 1 exactly where the score is at least the threshold.

    Parameters
    ----------
    scores
        Probability given to outcome 1.
    outcomes
        What happened, 0 or 1.
    threshold
        From which score on outcome 1 is predicted.
    sample_weight
        Weights >= 0, or None.

    Examples
    --------
    >>> accuracy_at_threshold([0.2, 0.4, 0.5, 0.9], [0, 1, 1, 0])
    0.5
    >>> accuracy_at_threshold([0.2, 0.4, 0.5, 0.9], [0, 1, 1, 0], threshold=0.3)
    0.75
    """
    if not 0 <= real(threshold, "threshold", "pass a number from 0 to 1") <= 1:
        raise InputError(f"threshold is {threshold!r}; pass a number from 0 to 1")
    z, y, w = score_pair(scores, outcomes, sample_weight)
    return weighted_mean(right_at(z, y, threshold=threshold), w)


def right_at(z: NDArray[Any], y: NDArray[np.uint8], *, threshold: float = 0.5) -> Floats:
    """1 where the score is on the side of the threshold that its outcome says, else 0."""
    return ((z >= threshold) == y).astype(np.float64)


def accuracy_of(table: BinTable) -> float:
    """:func:`accuracy` of per-bin sums."""
    return float(table.correct_sum.sum() / table.total)


def mean_confidence(confidence: Any, *, sample_weight: Any = None) -> float:
    """Mean of the confidences."""
    z = confidences(confidence)
    return weighted_mean(as_float64(z), weights(sample_weight, z.size))


def as_float64(z: NDArray[Any]) -> Floats:
    """The confidences as terms of a mean."""
    return z.astype(np.float64)


def mean_confidence_of(table: BinTable) -> float:
    """:func:`mean_confidence` of per-bin sums."""
    return float(table.confidence_sum.sum() / table.total)


def top_label_brier_score(confidence: Any, correct: Any, *, sample_weight: Any = None) -> float:
    """Mean of (c - z)² over samples: the Brier score of "this prediction is correct".

    Examples
    --------
    >>> top_label_brier_score([0.5, 1.0], [1, 1])
    0.125
    """
    z, c, w = score_pair(confidence, correct, sample_weight)
    return weighted_mean(top_label_brier(z, c), w)


def top_label_brier(z: NDArray[Any], c: NDArray[np.uint8]) -> Floats:
    """(c - z)² of every sample."""
    out = np.subtract(c, z, dtype=np.float64)
    return np.square(out, out=out)


def brier_score(probabilities: Any, labels: Any, *, sample_weight: Any = None) -> float:
    """Multiclass Brier score: mean over samples of Σ_k (p_k - [label is k])², from 0 to 2.

    Parameters
    ----------
    probabilities
        One row per sample, one column per class.
    labels
        True class of each sample, from 0.
    sample_weight
        Weights >= 0, or None.

    Examples
    --------
    >>> round(brier_score([[0.8, 0.2], [0.4, 0.6]], [0, 0]), 12)
    0.4
    """
    p, y, w = class_pair(probabilities, labels, sample_weight)
    return weighted_mean(brier(p, y), w)


def brier(p: NDArray[Any], y: NDArray[np.int64]) -> Floats:
    """Squared distance of every row to its one-hot label."""
    from certcal._kernels import classwise as kernels

    out = np.empty(y.size)
    values, y = kernel_float(p), read_only(y)
    map_blocks(
        lambda start, stop: kernels.squared_distances(values[start:stop], y[start:stop], out[start:stop]),
        y.size,
        small=1 + 200_000 // p.shape[1],
    )
    return out


def nll(probabilities: Any, labels: Any, *, from_logits: bool = False, sample_weight: Any = None) -> float:
    """Negative log-likelihood: mean of -log p(true label). Infinite when a true label was given probability 0.

    Parameters
    ----------
    probabilities
        One row per sample, one column per class; logits if ``from_logits`` (never guessed).
    labels
        True class of each sample, from 0.
    from_logits
        Whether the first argument holds logits; then the log-softmax is computed without overflow.
    sample_weight
        Weights >= 0, or None.

    Examples
    --------
    >>> round(nll([[0.5, 0.5], [0.2, 0.8]], [0, 1]), 6)
    0.458145
    """
    if flag(from_logits, "from_logits"):
        x = logit_matrix(probabilities)
        y = check_labels(labels, x.shape[1])
        same_length(logits=x.shape[0], labels=y.size)
        w = weights(sample_weight, y.size, partner="labels")
    else:
        x, y, w = class_pair(probabilities, labels, sample_weight)
    return weighted_mean(log_losses(x, y, from_logits=from_logits), w)


def log_losses(values: NDArray[Any], y: NDArray[np.int64], *, from_logits: bool = False) -> Floats:
    """-log p(label) of every row of probabilities or logits; infinite where the probability is 0."""
    if from_logits:
        return _logit_losses(values, y)
    with np.errstate(divide="ignore"):
        return -np.log(np.minimum(values[np.arange(y.size), y], 1).astype(np.float64))


def _logit_losses(x: NDArray[Any], y: NDArray[np.int64]) -> Floats:
    """Log Σ exp(x) - x(label) of every row; infinite where logits differ by more than the largest float."""
    from certcal._kernels.map_losses import row_losses

    out = np.empty(y.size)
    x, y = read_only(x), read_only(y)
    map_blocks(
        lambda start, stop: row_losses(x[start:stop], y[start:stop], out[start:stop]),
        y.size,
        small=1 + 100_000 // x.shape[1],
    )
    return out


def top_label_nll(confidence: Any, correct: Any, *, sample_weight: Any = None) -> float:
    """Mean of -log z over correct and -log(1 - z) over incorrect samples: the log-loss of a binary score.

    Infinite when a confidence of exactly 1 is wrong or one of exactly 0 is right; nothing is clipped.

    Examples
    --------
    >>> round(top_label_nll([0.5, 0.8], [1, 1]), 6)
    0.458145
    """
    z, c, w = score_pair(confidence, correct, sample_weight)
    return weighted_mean(top_label_log_losses(z, c), w)


def top_label_log_losses(z: NDArray[Any], c: NDArray[np.uint8]) -> Floats:
    """-log of the probability given to what happened, for every sample."""
    exact = z.astype(np.float64)
    with np.errstate(divide="ignore"):
        return -np.where(c == 1, np.log(exact), np.log1p(-exact))


@dataclass(frozen=True)
class BrierDecomposition:
    """Terms of the top-label Brier score: ``brier = reliability - resolution + uncertainty + within_bin``."""

    reliability: float
    """Σ_m (n_m/N)(mean confidence - accuracy)²: miscalibration between bins, smaller is better."""
    resolution: float
    """Σ_m (n_m/N)(accuracy of the bin - accuracy)²: how far the bins tell easy from hard, larger is better."""
    uncertainty: float
    """accuracy (1 - accuracy): no property of the confidences."""
    within_bin: float
    """What the bins hide: variance of the confidences minus twice their covariance with the outcome inside bins
    (Stephenson et al. 2008). Without it the classical three terms do not add up."""


def brier_decomposition(
    confidence: Any, correct: Any, bins: int = 15, *, edges: Any = None, closed: str = "left", sample_weight: Any = None
) -> BrierDecomposition:
    """Reliability, resolution, uncertainty and the within-bin rest of the top-label Brier score.

    Parameters are those of :func:`ece`.

    Examples
    --------
    >>> parts = brier_decomposition([0.25, 0.25, 0.75, 0.75], [0, 1, 1, 1], bins=2)
    >>> parts.reliability, parts.resolution, parts.uncertainty, parts.within_bin
    (0.0625, 0.0625, 0.1875, 0.0)
    """
    z, c, w = score_pair(confidence, correct, sample_weight)
    table = sums(z, c, w, edges_for(bins, edges), choice(closed, CLOSED, "closed"))
    score = weighted_mean(top_label_brier(z, c), w)
    return BrierDecomposition(
        reliability_of(table), resolution_of(table), uncertainty_of(table), within_bin_of(table, score)
    )


def reliability_of(table: BinTable) -> float:
    """Σ_m (n_m/N)(mean confidence - accuracy)²."""
    used = table.weight > 0
    weight = table.weight[used]
    return float((weight / table.total * (table.gap_sum[used] / weight) ** 2).sum())


def resolution_of(table: BinTable) -> float:
    """Σ_m (n_m/N)(accuracy of the bin - accuracy)²."""
    used = table.weight > 0
    weight = table.weight[used]
    return float((weight / table.total * (table.correct_sum[used] / weight - accuracy_of(table)) ** 2).sum())


def uncertainty_of(table: BinTable) -> float:
    """Accuracy (1 - accuracy)."""
    overall = accuracy_of(table)
    return overall * (1 - overall)


def within_bin_of(table: BinTable, score: float) -> float:
    """What the other terms leave of the top-label Brier score."""
    rest = score - (reliability_of(table) - resolution_of(table) + uncertainty_of(table))
    # Confidences are summed as multiples of 2⁻⁵⁰; what is as small as that is rounding.
    return rest if abs(rest) > 2.0**-48 else 0.0


def _brier_term(name: str) -> Callable[..., float]:
    def term(confidence: Any, correct: Any, bins: int = 15, **options: Any) -> float:
        return float(getattr(brier_decomposition(confidence, correct, bins, **options), name))

    term.__name__ = f"brier_{name}"
    return term


brier_reliability = _brier_term("reliability")
brier_resolution = _brier_term("resolution")
brier_uncertainty = _brier_term("uncertainty")
brier_within_bin = _brier_term("within_bin")


def auroc(confidence: Any, correct: Any, *, sample_weight: Any = None) -> float:
    """Probability that a random correct sample has a higher confidence than a random incorrect one; ties count half.

    For out-of-distribution detection pass the score and whether the sample is in-distribution. NaN when all
    samples are correct or all are incorrect: the value is then undefined.

    Parameters
    ----------
    confidence
        Scores in [0, 1].
    correct
        0 or 1 per sample.
    sample_weight
        Weights >= 0, or None.

    Examples
    --------
    >>> auroc([0.9, 0.8, 0.3, 0.8], [1, 1, 0, 0])
    0.875
    """
    return auroc_of(*score_pair(confidence, correct, sample_weight))


def auroc_of(z: NDArray[Any], c: NDArray[np.uint8], w: Floats | None) -> float:
    """:func:`auroc` of checked arrays."""
    right = c.view(np.bool_)
    good, bad = z[right], z[~right]
    if w is None:
        if good.size == 0 or bad.size == 0:
            return float("nan")
        bad.sort()
        # Sorted needles are found several times faster: neighbours take the same path through the haystack.
        good.sort()
        below = np.searchsorted(bad, good, side="left").sum(dtype=np.int64)
        not_above = np.searchsorted(bad, good, side="right").sum(dtype=np.int64)
        return (int(below) + int(not_above)) / 2 / (good.size * bad.size)
    good_weight, bad_weight = w[right], w[~right]
    pairs = float(good_weight.sum()) * float(bad_weight.sum())
    if not pairs > 0:
        return float("nan")
    order = np.argsort(bad, kind="stable")
    up_to = np.concatenate(([0.0], np.cumsum(bad_weight[order])))
    below = up_to[np.searchsorted(bad, good, side="left", sorter=order)]
    not_above = up_to[np.searchsorted(bad, good, side="right", sorter=order)]
    return float(np.dot(good_weight, below + not_above) / 2 / pairs)


def harmonic_calibration_score(
    confidence: Any,
    correct: Any,
    bins: int = 15,
    *,
    beta: float = 1.0,
    edges: Any = None,
    closed: str = "left",
    sample_weight: Any = None,
) -> float:
    """Harmonic calibration score (1 + β)·Acc·(1 - ECE) / (β·Acc + 1 - ECE) of Tao et al. (2024).

    Parameters are those of :func:`ece`, and ``beta > 0``; a larger one prefers calibration over accuracy.

    Examples
    --------
    >>> round(harmonic_calibration_score([0.9, 0.8, 0.6, 0.3], [1, 1, 0, 0], bins=2), 6)
    0.62963
    """
    z, c, w = score_pair(confidence, correct, sample_weight)
    table = sums(z, c, w, edges_for(bins, edges), choice(closed, CLOSED, "closed"))
    return harmonic_score_of(table, positive(beta, "beta"))


def harmonic_score_of(table: BinTable, beta: float = 1.0) -> float:
    """:func:`harmonic_calibration_score` of per-bin sums."""
    return harmonic_score(accuracy_of(table), ece_of(table), beta)


def harmonic_score(accuracy: float, calibration_error: float, beta: float = 1.0) -> float:
    """The harmonic calibration score of an accuracy and a calibration error, shares from 0 to 1; NaN if one is NaN.

    Examples
    --------
    >>> round(harmonic_score(0.9391, 0.0420), 4)  # Tao et al. (2024), Table 1, first row
    0.9485
    """
    for name, value in (("accuracy", accuracy), ("calibration_error", calibration_error)):
        number = real(value, name, "pass a share from 0 to 1")
        if number < -_ROUNDING or number > 1 + _ROUNDING:
            raise InputError(f"{name} is {number:g}; pass a share from 0 to 1")
    if math.isnan(accuracy) or math.isnan(calibration_error):
        return math.nan
    positive(beta, "beta")
    kept = 1 - calibration_error
    below = beta * accuracy + kept
    return (1 + beta) * accuracy * kept / below if below > 0 else 0.0
