"""Calibration error from kernel density estimates of the confidences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import choice, positive, score_pair
from certcal.metrics.cosine import (
    SMALLEST_BANDWIDTH,
    KernelSums,
    MomentGrid,
    PointMasses,
    absolute_integral,
    error_bound,
    step_count,
)

KERNELS = ("gaussian", "triweight")

# Confidences that spread less than this around their mean count as equal.
SMALLEST_SPREAD = 1e-10


# The grid of the authors' code: so many places from -0.6 to 1.6, of which those between 0 and 1 count.
_PLACES, _ENDS = 2**14, (-0.6, 1.6)


def kde_ece(
    confidence: Any,
    correct: Any,
    *,
    bandwidth: float | None = None,
    kernel: str = "gaussian",
    sample_weight: Any = None,
) -> float:
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
    kernel
        "gaussian" as above, or "triweight" as in the authors' code and in the benchmark study (Tao et al. 2024): the
        kernel (1 - (u/3h)²)³ of standard deviation h, confidences reflected at the nearer end, sums on the code's grid
        of 2¹⁴ places, and by default h = s (2n)^(-1/5) with the standard deviation s of the *correct* samples'
        confidences (of all, where that is below 1e-10). Its value is that of the grid.
    sample_weight
        Weights >= 0, or None.

    Examples
    --------
    >>> kde_ece([0.75, 0.75], [1, 0])
    0.25
    >>> round(kde_ece([0.25, 0.75], [0, 1], bandwidth=0.01), 9)
    0.25
    >>> round(kde_ece([0.25, 0.75], [0, 1], bandwidth=0.01, kernel="triweight"), 6)
    0.25
    """
    h = None if bandwidth is None else positive(bandwidth, "bandwidth")
    if choice(kernel, KERNELS, "kernel") == "triweight":
        return _triweight_error(*score_pair(confidence, correct, sample_weight), h)
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


def _triweight_error(z: NDArray[Any], c: NDArray[np.uint8], w: NDArray[np.float64] | None, h: float | None) -> float:
    """:func:`kde_ece` as its authors' code computes it."""
    from scipy.signal import fftconvolve

    z, weight = z.astype(np.float64, copy=False), np.ones(z.size) if w is None else w
    if h is None:
        size = weight.sum() ** 2 / (weight @ weight)
        spread = _deviation(z, weight * c) or _deviation(z, weight)
        if spread == 0:
            return abs(float(np.average(z - c, weights=weight)))
        h = spread / math.pow(2 * size, 0.2)
    step = (_ENDS[1] - _ENDS[0]) / (_PLACES - 1)
    reach = 3 * max(h, SMALLEST_BANDWIDTH)
    offsets = np.arange(-min(_PLACES, math.floor(reach / step)), min(_PLACES, math.floor(reach / step)) + 1) * step
    shape = (1 - (offsets / reach) ** 2) ** 3
    both = np.concatenate((z, np.where(z < 0.5, -z, 2 - z)))
    cell, share = np.divmod((both - _ENDS[0]) / step, 1)
    cell = cell.astype(np.int64)
    where = np.concatenate((cell, cell + 1))  # shared out to the two nearest places

    def smoothed(mass: NDArray[np.float64]) -> NDArray[np.float64]:
        twice = np.tile(mass, 2)
        found = np.bincount(where, np.concatenate((twice * (1 - share), twice * share)), _PLACES)
        start = offsets.size // 2
        return np.maximum(fftconvolve(found, shape)[start : start + _PLACES], 0.0)

    place = np.linspace(*_ENDS, _PLACES)
    inside = (place > 0) & (place < 1)
    place, density, hits = place[inside], smoothed(weight / weight.sum())[inside], smoothed(weight * c / weight.sum())
    # Places are equally far apart, so the length of a step divides out; where there is no mass nothing is added.
    gaps = np.abs(place * density - np.minimum(hits[inside], density))
    return float(gaps.sum() / density.sum())


def _deviation(z: NDArray[np.float64], weight: NDArray[np.float64]) -> float:
    """Standard deviation, 0 where it counts as zero or where nothing has weight."""
    if not weight.any():
        return 0.0
    spread = math.sqrt(float(np.average((z - np.average(z, weights=weight)) ** 2, weights=weight)))
    return spread if spread >= SMALLEST_SPREAD else 0.0
