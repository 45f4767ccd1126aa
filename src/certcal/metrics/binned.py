"""Metrics that are functions of per-bin sums, and those that choose their bins from the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import bin_count, choice, kernel_float, norm_order, score_pair
from certcal._base.select import SLACK
from certcal.binning import CLOSED, BinTable, edges_for, mass_edges, sums


def ece(
    confidence: Any, correct: Any, bins: int = 15, *, edges: Any = None, closed: str = "left", sample_weight: Any = None
) -> float:
    """Expected calibration error with fixed bins: (1/N) Σ_m |Σ_{n in m} (c_n - z_n)|.

    Parameters
    ----------
    confidence
        Confidence of each prediction, in [0, 1].
    correct
        Whether each prediction is correct (binary task: the outcome), 0 or 1.
    bins
        Number of equal-width bins.
    edges
        Your own edges from 0 to 1 instead of equal-width ones.
    closed
        "left" for bins [a, b) with the last closed, "right" for (a, b] with the first closed.
    sample_weight
        Weights >= 0, or None.

    Returns
    -------
    float
        In [0, 1]; 0 when confidence equals accuracy in every bin.

    Examples
    --------
    >>> round(ece([0.9, 0.8, 0.6, 0.3], [1, 1, 0, 0], bins=2), 12)
    0.15
    """
    return ece_of(_table(confidence, correct, bins, edges, closed, sample_weight))


def mce(
    confidence: Any, correct: Any, bins: int = 15, *, edges: Any = None, closed: str = "left", sample_weight: Any = None
) -> float:
    """Maximum calibration error: the largest |accuracy - mean confidence| over the bins that hold samples.

    Parameters are those of :func:`ece`.

    Examples
    --------
    >>> round(mce([0.9, 0.8, 0.6, 0.3], [1, 1, 0, 0], bins=2), 12)
    0.3
    """
    return mce_of(_table(confidence, correct, bins, edges, closed, sample_weight))


def lp_ece(
    confidence: Any,
    correct: Any,
    bins: int = 15,
    *,
    p: float = 2.0,
    edges: Any = None,
    closed: str = "left",
    sample_weight: Any = None,
) -> float:
    """Binned calibration error in L_p: (Σ_m (n_m/N) |gap_m|^p)^(1/p); p = 1 is :func:`ece`, p = inf is :func:`mce`.

    Parameters are those of :func:`ece`, and the order ``p >= 1``.

    Examples
    --------
    >>> round(lp_ece([0.9, 0.8, 0.6, 0.3], [1, 1, 0, 0], bins=2, p=2), 12)
    0.173205080757
    """
    return lp_ece_of(_table(confidence, correct, bins, edges, closed, sample_weight), norm_order(p))


def debiased_ece(
    confidence: Any, correct: Any, bins: int = 15, *, edges: Any = None, closed: str = "left", sample_weight: Any = None
) -> float:
    """Root-mean-square calibration error with the sampling noise of each bin subtracted (Kumar et al. 2019).

    sqrt(max(0, Σ_m (n_m/N) [gap_m² - ȳ_m(1 - ȳ_m)/(n_m - 1)])); bins with a single sample contribute 0. With weights
    the noise term uses the effective number of samples (Σw)²/Σw² of the bin. That is the variance of a weighted mean of
    outcomes only if weights are independent of outcomes within a bin; if, say, wrong predictions were sampled more
    often and weigh less, too much or too little is subtracted.

    Parameters are those of :func:`ece`. ``edges=certcal.binning.equal_mass_edges(confidence, bins)`` gives the authors'
    equal-mass bins if ``bins`` divides the number of samples and no confidences are equal; otherwise their larger bins
    come first and ours lie between the others.

    Examples
    --------
    >>> debiased_ece([0.5, 0.5, 0.5, 0.5], [1, 0, 1, 0], bins=1)
    0.0
    """
    return debiased_ece_of(_table(confidence, correct, bins, edges, closed, sample_weight))


def equal_mass_ece(
    confidence: Any, correct: Any, bins: int = 15, *, closed: str = "left", sample_weight: Any = None
) -> float:
    """Expected calibration error with bins that hold equally many samples; equal confidences share a bin.

    Parameters are those of :func:`ece`; see :func:`certcal.binning.equal_mass_edges` for the edges.

    Examples
    --------
    >>> round(equal_mass_ece([0.9, 0.8, 0.6, 0.3], [1, 1, 0, 0], bins=2), 12)
    0.3
    """
    z, c, w = score_pair(confidence, correct, sample_weight)
    side = choice(closed, CLOSED, "closed")
    edges = mass_edges(z, w, bin_count(bins), side)
    if edges.size > z.size:  # most bins lie between equal edges and are empty; exact sums of weights would be long
        edges = np.concatenate(([0.0], np.unique(edges[1:-1]), [1.0]))
    return ece_of(sums(z, c, w, edges, side))


def sweep_ece(confidence: Any, correct: Any, *, sample_weight: Any = None) -> float:
    """Equal-mass calibration error with as many bins as keep the accuracies rising (Roelofs et al. 2022).

    Bins are added one at a time until the accuracy of a bin falls below that of the bin before it. Bins are closed on
    the left and equal confidences share one, as in :func:`equal_mass_ece`. Where accuracies rise from each distinct
    confidence to the next, those of no bins fall, and each distinct confidence has a bin of its own.

    Parameters
    ----------
    confidence, correct, sample_weight
        As for :func:`ece`.

    Examples
    --------
    >>> round(sweep_ece([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1]), 12)
    0.2
    """
    return sweep_ece_of(*score_pair(confidence, correct, sample_weight))


def sweep_ece_of(z: NDArray[Any], c: NDArray[np.uint8], w: NDArray[np.float64] | None) -> float:
    """:func:`sweep_ece` of checked arrays."""
    return ece_of(sweep_table(z, c, w))


def sweep_table(z: NDArray[Any], c: NDArray[np.uint8], w: NDArray[np.float64] | None) -> BinTable:
    """Sums per bin of :func:`sweep_ece`."""
    count = sweep_bins(z, c, w)
    if count is None:
        return sums(z, c, w, np.concatenate(([0.0], np.unique(z)[1:].astype(np.float64), [1.0])))
    return sums(z, c, w, mass_edges(z, w, count, "left"))


def sweep_bins(z: NDArray[Any], c: NDArray[np.uint8], w: NDArray[np.float64] | None) -> int | None:
    """Largest number of equal-mass bins, counted up from one, whose accuracies never fall.

    None when no number of bins makes them fall; then every distinct confidence has a bin of its own.
    """
    from certcal._kernels.sorted_bins import most_rising_bins

    values, none = kernel_float(z), np.empty(0)
    if w is None:
        return int(most_rising_bins(np.sort(values), np.sort(values[c == 1]), none, none, SLACK)) or None
    values, c, w = values[w > 0], c[w > 0], w[w > 0]
    order = np.argsort(values, kind="stable")
    values, c, w = values[order], c[order], w[order]
    running = [np.cumsum(w[c == outcome]) for outcome in (0, 1)]
    return int(most_rising_bins(values, values[c == 1], *running, SLACK)) or None


def _table(confidence: Any, correct: Any, bins: int, edges: Any, closed: str, sample_weight: Any) -> BinTable:
    z, c, w = score_pair(confidence, correct, sample_weight)
    return sums(z, c, w, edges_for(bins, edges), choice(closed, CLOSED, "closed"))


def ece_of(table: BinTable) -> float:
    """:func:`ece` of per-bin sums."""
    return float(np.abs(table.gap_sum).sum() / table.total)


def _gaps(table: BinTable) -> tuple[Any, Any]:
    """Share of the weight and |gap| of every bin that has weight."""
    used = table.weight > 0
    return table.weight[used] / table.total, np.abs(table.gap_sum[used]) / table.weight[used]


def mce_of(table: BinTable) -> float:
    """:func:`mce` of per-bin sums."""
    return float(_gaps(table)[1].max())


def lp_ece_of(table: BinTable, p: float = 2.0) -> float:
    """:func:`lp_ece` of per-bin sums."""
    share, gap = _gaps(table)
    largest = float(gap.max())
    if largest == 0 or p == float("inf"):
        return largest
    # Scaled by the largest gap so that a high order neither under- nor overflows.
    return largest * float((share * (gap / largest) ** p).sum() ** (1 / p))


def debiased_ece_of(table: BinTable) -> float:
    """:func:`debiased_ece` of per-bin sums."""
    used = (table.count > 1) & (table.weight > 0)
    weight = table.weight[used]
    crowding = table.squared_weight[used] / weight**2  # 1 / effective number of samples
    several = crowding < 1 - 1e-12
    weight, crowding = weight[several], crowding[several]
    accuracy = table.correct_sum[used][several] / weight
    gap = table.gap_sum[used][several] / weight
    noise = accuracy * (1 - accuracy) * crowding / (1 - crowding)
    return float(np.sqrt(max(0.0, float((weight * (gap**2 - noise)).sum() / table.total))))
