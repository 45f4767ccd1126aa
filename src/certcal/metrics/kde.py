"""Calibration error from kernel density estimates of the confidences."""

from __future__ import annotations

from typing import Any

from certcal._checks import positive, score_pair
from certcal.metrics.cosine import (
    SMALLEST_BANDWIDTH,
    KernelSums,
    MomentGrid,
    PointMasses,
    absolute_integral,
    error_bound,
    step_count,
)

# Confidences that spread less than this around their mean count as equal.
SMALLEST_SPREAD = 1e-10


def kde_ece(confidence: Any, correct: Any, *, bandwidth: float | None = None, sample_weight: Any = None) -> float:
    """Calibration error from kernel density estimates (Zhang, Kailkhura and Han 2020), to 1e-9 for any n.

    ∫_0^1 |t - π(t)| p(t) dt, where p(t) = Σ_n w_n K_h(t, z_n) is the density of the confidences,
    π(t) = Σ_n w_n c_n K_h(t, z_n) / p(t) the accuracy at confidence t, K_h the Gaussian kernel reflected at 0 and 1,
    and the weights sum to one.

    Parameters
    ----------
    confidence
        Confidence of each prediction, in [0, 1].
    correct
        Whether each prediction is correct, 0 or 1.
    bandwidth
        h. By default 1.06 s n^(-1/5) with the standard deviation s of the confidences and, with weights,
        n = (Σw)² / Σw². If s < 1e-10 all confidences count as equal, and the value is its limit for h → 0,
        |mean z - mean c|. Bandwidths below 1e-12 count as 1e-12.
    sample_weight
        Weights >= 0, or None.

    Examples
    --------
    >>> kde_ece([0.75, 0.75], [1, 0])
    0.25
    >>> round(kde_ece([0.25, 0.75], [0, 1], bandwidth=0.01), 9)
    0.25
    """
    h = None if bandwidth is None else positive(bandwidth, "bandwidth")
    return density_error(KernelSums(*score_pair(confidence, correct, sample_weight)), h)


def density_error(sums: KernelSums, h: float | None = None) -> float:
    """:func:`kde_ece` of kernel sums."""
    if h is None:
        h = rule_of_thumb(sums.spread(), sums.grid)
        if h is None:
            return abs(sums.grid.mean_confidence - sums.grid.accuracy)
    return sums.integral("density_gap", h)


def kde_ece_of(grid: MomentGrid, bandwidth: float | None = None) -> tuple[float, float]:
    """kde_ece of the samples in a grid over [0, 1], and a bound on its error.

    The bound is below 1e-9 when the bandwidth is at least ``grid.smallest_bandwidth``, 2.5 cells. For a bandwidth below
    one cell the value is that of one cell, and the bound is 1.
    """
    h = rule_of_thumb(grid.spread(), grid) if bandwidth is None else bandwidth
    if h is None:
        return abs(grid.mean_confidence - grid.accuracy), SMALLEST_SPREAD
    cell = grid.width / grid.cells
    sigma = max(h, cell)
    value = absolute_integral(PointMasses(grid), "density_gap", sigma, step_count(sigma))
    return value, error_bound(cell, sigma) if h >= cell else 1.0


def rule_of_thumb(spread: float, grid: MomentGrid) -> float | None:
    """1.06 s n^(-1/5) for the spread s, or None if that counts as zero."""
    if spread < SMALLEST_SPREAD:
        return None
    size = grid.weight**2 / grid.squares
    return max(1.06 * spread * size**-0.2, SMALLEST_BANDWIDTH)
