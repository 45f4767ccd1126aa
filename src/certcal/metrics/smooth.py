"""SmoothECE: the calibration error seen after smoothing the residuals at the scale of the error itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from certcal._checks import positive, score_pair
from certcal.metrics.cosine import KernelSums, MomentGrid, PointMasses, absolute_integral, error_bound, step_count

# The fixed point is known when it is bracketed this closely.
TOLERANCE = 1e-12


def smooth_ece(confidence: Any, correct: Any, *, bandwidth: float | None = None, sample_weight: Any = None) -> float:
    """Smooth calibration error (Błasiok and Nakkiran 2023), to 1e-9 for any number of samples.

    smECE_σ = ∫_0^1 |Σ_n w_n (c_n - z_n) K_σ(t, z_n)| dt, with the Gaussian kernel K_σ reflected at 0 and 1 and weights
    that sum to one. It does not increase with σ, so smECE_σ = σ for one σ only, and that is the value. The page
    "SmoothECE and other kernel sums" of the documentation has the proofs.

    Parameters
    ----------
    confidence
        Confidence of each prediction, in [0, 1].
    correct
        Whether each prediction is correct, 0 or 1.
    bandwidth
        Return smECE_σ for this σ instead. Bandwidths below 1e-12 count as 1e-12.
    sample_weight
        Weights >= 0, or None.

    Examples
    --------
    >>> smooth_ece([0.75, 0.5], [1, 1])
    0.375
    >>> round(smooth_ece([0.2, 0.8, 0.8, 0.8], [0, 1, 1, 0]), 6)
    0.15
    """
    sigma = None if bandwidth is None else positive(bandwidth, "bandwidth")
    return smoothed_error(KernelSums(*score_pair(confidence, correct, sample_weight)), sigma)


def smoothed_error(sums: KernelSums, sigma: float | None = None) -> float:
    """:func:`smooth_ece` of kernel sums."""

    def smoothed(sigma: float) -> float:
        return sums.integral("residual", sigma)

    if sigma is not None:
        return smoothed(sigma)
    return fixed_point(smoothed, *residual_range(sums.grid), sums.grid.smallest_bandwidth)


def smooth_ece_of(grid: MomentGrid, bandwidth: float | None = None) -> tuple[float, float]:
    """smooth_ece of the samples in a grid over [0, 1], and a bound on its error.

    The bound is below 1e-9 when the value (or the given bandwidth) is at least ``grid.smallest_bandwidth``, 2.5 cells.
    Below one cell the grid only says between which values the answer lies, and the middle is returned; without a
    given bandwidth its error is at most half a cell.
    """
    points, cell = PointMasses(grid), grid.width / grid.cells
    low, high = residual_range(grid)

    def smoothed(sigma: float) -> float:
        return absolute_integral(points, "residual", sigma, step_count(sigma))

    if bandwidth is not None and bandwidth >= cell:
        return smoothed(bandwidth), error_bound(cell, bandwidth)
    at_cell = smoothed(cell)
    if bandwidth is None and at_cell >= cell:
        value = fixed_point(smoothed, max(low, cell), high, grid.smallest_bandwidth)
        return value, error_bound(cell, value) + TOLERANCE
    # smECE does not increase with σ: at smaller ones it is at least what it is at one cell.
    low = max(low, at_cell)
    high = max(low, high if bandwidth is not None else min(high, cell))
    return (low + high) / 2, (high - low) / 2 + error_bound(cell, cell)


def residual_range(grid: MomentGrid) -> tuple[float, float]:
    """|Σ w (c - z)| and Σ w |c - z|, between which smECE lies at every bandwidth."""
    weight = grid.weight
    falls, confidence_of_correct = grid.confidence_sums()
    rises = grid.accuracy - confidence_of_correct / weight
    falls /= weight
    return abs(rises - falls), rises + falls


def fixed_point(smoothed: Callable[[float], float], low: float, high: float, likely: float) -> float:
    """The σ in [low, high] with smoothed(σ) = σ, for a function that does not increase.

    One evaluation brackets: the fixed point lies between σ and smoothed(σ). The next σ is where the line through
    the last two evaluations, in logarithms of both, meets the diagonal; when brackets stop halving, their middle.
    """
    sigma = min(max(math.sqrt(low * high), likely), high)
    slope, before, width = -1.5, None, math.inf
    while high - low > TOLERANCE:
        value = smoothed(sigma)
        low, high = max(low, min(sigma, value)), min(high, max(sigma, value))
        least = max(low, TOLERANCE)
        x, y = math.log(sigma), math.log(max(value, TOLERANCE) / sigma)
        if before is not None and x != before[0]:
            slope = min(-1.0, (y - before[1]) / (x - before[0]))
        before = x, y
        sigma = math.sqrt(least * high) if high - low > width / 2 else min(max(math.exp(x - y / slope), least), high)
        width = high - low
    return low
