"""Calibration errors by kernels: SmoothECE, the one of density estimates (KDE-ECE), and MMCE."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import choice, kernel_float, positive, read_only, score_pair
from certcal.binning import ExactSum
from certcal.metrics.cosine import (
    SMALLEST_BANDWIDTH,
    KernelSums,
    MomentGrid,
    PointMasses,
    absolute_integral,
    error_bound,
    sorted_keys,
    step_count,
)

# The fixed point is known when it is bracketed this closely.
TOLERANCE = 1e-12
KERNELS = ("gaussian", "triweight")
# Confidences that spread less than this around their mean count as equal.
SMALLEST_SPREAD = 1e-10
# The grid of the authors' code: so many places from -0.6 to 1.6, of which those between 0 and 1 count.
_PLACES, _ENDS = 2**14, (-0.6, 1.6)


def smooth_ece(confidence: Any, correct: Any, *, bandwidth: float | None = None, sample_weight: Any = None) -> float:
    """Smooth calibration error (Błasiok and Nakkiran 2023), to 1e-9 for any number of samples.

    smECE_σ = ∫_0^1 |Σ_n w_n (c_n - z_n) K_σ(t, z_n)| dt, with the Gaussian kernel K_σ reflected at 0 and 1 and weights
    that sum to one. It does not increase with σ, so smECE_σ = σ for one σ only, and that is the value. The page
    "Metrics" of the documentation has the proof.

    Parameters
    ----------
    confidence, correct, sample_weight
        As for :func:`certcal.metrics.ece`.
    bandwidth
        Return smECE_σ for this σ instead. Bandwidths below 1e-12 count as 1e-12.

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
    confidence, correct, sample_weight
        As for :func:`certcal.metrics.ece`.
    bandwidth
        h. By default 1.06 s n^(-1/5) with the standard deviation s of the confidences and, with weights,
        n = (Σw)² / Σw². If s < 1e-10 all confidences count as equal, and the value is its limit for h → 0,
        |mean z - mean c|. Bandwidths below 1e-12 count as 1e-12.
    kernel
        "gaussian" as above, or "triweight" as in the authors' code and in the benchmark study (Tao et al. 2024): the
        kernel (1 - (u/3h)²)³ of standard deviation h, confidences reflected at the nearer end, sums on the code's grid
        of 2¹⁴ places, and by default h = s (2n)^(-1/5) with the standard deviation s of the *correct* samples'
        confidences (of all, where that is below 1e-10). Its value is that of the grid.

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


def mmce(confidence: Any, correct: Any, *, width: float = 0.4, sample_weight: Any = None) -> float:
    """Maximum mean calibration error (Kumar, Sarawagi and Jain 2018) in O(n log n), to 1e-14 at the default width.

    √(Σ_mn w_m w_n (c_m - z_m) (c_n - z_n) exp(-|z_m - z_n| / width)), with weights that sum to one. It is computed as a
    sum of squares over the sorted confidences, so nothing cancels and rounding does not grow with n. The memory is
    that of one copy of the confidences or, with weights, of one position per sample.

    Parameters
    ----------
    confidence, correct, sample_weight
        As for :func:`certcal.metrics.ece`.
    width
        Width of the kernel.

    Examples
    --------
    >>> mmce([0.75, 0.75], [1, 0])
    0.25
    >>> round(mmce([0.5, 0.9], [1, 0]), 12) == round(math.sqrt(0.265 - 0.225 * math.exp(-1)), 12)
    True
    """
    return mmce_of(*score_pair(confidence, correct, sample_weight), positive(width, "width"))


def mmce_of(z: NDArray[Any], c: NDArray[np.uint8], w: NDArray[np.float64] | None, length: float = 0.4) -> float:
    """:func:`mmce` of checked arrays."""
    from certcal._kernels import moments as kernels

    values = kernel_float(z)
    if w is not None:
        total = ExactSum()
        total.add(w)
        order, c, w = np.argsort(values), read_only(c), read_only(w)
        return math.sqrt(kernels.weighted_squared_norm(order, values, c, w, length)) / total.value
    keys, _ = sorted_keys(values, c)
    cell = np.empty(1, keys.dtype)
    return math.sqrt(kernels.squared_norm(keys, cell, cell.view(values.dtype), length)) / z.size
