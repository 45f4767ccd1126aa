"""Kernel sums over confidences from a grid of moments, with the reflected Gaussian kernel on [0, 1].

The kernel is the heat kernel with insulated ends, K(t, z) = 1 + 2 Σ_k exp(-π²k²σ²/2) cos(πkt) cos(πkz): on cosine
coefficients smoothing is a multiplication. The samples of a cell are replaced by eight points with the same first eight
moments, whose coefficients come from eight FFTs. The smoothed function and three derivatives are then known on a
grid, and the absolute value of the polynomials of degree 7 through them is integrated exactly. :func:`error_bound`
has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import kernel_float, read_only
from certcal._base.threads import map_blocks

Floats = NDArray[np.float64]
Integrand = Literal["residual", "density_gap"]

CELLS = 4096
POINTS = 8
DERIVATIVES = 4
# The Chebyshev points of [-1, 1]; column q of the matrix holds the coefficients of the Lagrange polynomial of point q.
_CHEBYSHEV = np.cos(np.pi * (2 * np.arange(POINTS) + 1) / (2 * POINTS))
_LAGRANGE = np.linalg.inv(np.vander(_CHEBYSHEV, increasing=True))

# A grid is used for bandwidths down to this many cells: the points then add an error of at most 1.1e-10.
CELLS_PER_BANDWIDTH = 2.5
# With this many steps to a bandwidth the polynomials through their ends add an error of at most 1.2e-11.
STEPS_PER_BANDWIDTH = 8
# Cosines whose factor is below 10**-18 are left out: those with πkσ > √(2 ln 10**18).
_LAST_FREQUENCY = math.sqrt(2 * 18 * math.log(10)) / math.pi
# The kernel of a larger bandwidth differs from the constant 1 by less than 1e-200.
_LARGEST_BANDWIDTH = 10.0
# Float sums of weights are cut into blocks of this many samples, so that their rounding does not grow with n.
_BLOCK = 1 << 18


class MomentGrid:
    """The state from which smooth_ece and kde_ece are computed: moments of the confidences per cell.

    For each cell of an interval, and for correct and incorrect samples apart, the sums of the powers 0 to 7 of the
    offset from the cell's centre. Without weights these are sums of integers, so the state does not depend on
    the order of the samples or on how they were cut into updates; with weights they are float64 sums.
    """

    def __init__(self, cells: int = CELLS, origin: float = 0.0, width: float = 1.0) -> None:
        self.cells, self.origin, self.width = cells, origin, width
        self.words = np.zeros((2, cells, 2, POINTS), np.int64)
        self.sums: Floats | None = None
        self.squares = 0.0
        self._moments: Floats | None = None

    def update(self, z: NDArray[Any], c: NDArray[np.uint8], w: Floats | None = None) -> None:
        """Add samples: confidences, correctness and, perhaps, weights, all checked by the caller."""
        from certcal._kernels import moments as kernels

        values, c, w = kernel_float(z), read_only(c), None if w is None else read_only(w)
        scale = self.cells / self.width

        def exactly(start: int, stop: int) -> NDArray[np.int64]:
            part = np.zeros_like(self.words)
            kernels.add_exactly(values[start:stop], c[start:stop], self.origin, scale, part)
            return part

        def weighted(start: int, stop: int, weights: Floats) -> Floats:
            total = np.zeros((self.cells, 2, POINTS))
            for first in range(start, stop, _BLOCK):
                part, last = np.zeros_like(total), min(stop, first + _BLOCK)
                kernels.add_weighted(values[first:last], c[first:last], weights[first:last], self.origin, scale, part)
                total += part
            return total

        if w is None:
            for words in map_blocks(exactly, z.size):
                self._add(words, None)
            self.squares += z.size
        else:
            for sums in map_blocks(lambda start, stop: weighted(start, stop, w), z.size):
                self._add(None, sums)
            self.squares += float(w @ w)

    def merge(self, other: MomentGrid) -> None:
        """Add the samples of another grid over the same cells."""
        self._add(other.words, other.sums)
        self.squares += other.squares

    def _add(self, words: NDArray[np.int64] | None, sums: Floats | None) -> None:
        self._moments = None
        if words is not None:
            self.words += words
            self.words[0] += self.words[1] >> 32
            self.words[1] &= 0xFFFFFFFF
        if sums is not None:
            self.sums = sums.copy() if self.sums is None else self.sums + sums

    @property
    def moments(self) -> Floats:
        """Sums of powers 0 to 7 of the offset in half cells, indexed by cell, correctness and power."""
        from certcal._kernels.moments import UNIT

        found = self._moments
        if found is None:
            exact = (self.words[0] * 2.0**32 + self.words[1]) * UNIT
            found = self._moments = exact if self.sums is None else exact + self.sums
        return found

    @property
    def smallest_bandwidth(self) -> float:
        """The bandwidth down to which kernel sums are accurate to the stated bounds."""
        return CELLS_PER_BANDWIDTH * self.width / self.cells

    @property
    def weight(self) -> float:
        """Total weight of the samples."""
        return float(self.moments[:, :, 0].sum())

    @property
    def accuracy(self) -> float:
        """Weighted mean of correctness."""
        return float(self.moments[:, 1, 0].sum()) / self.weight

    @property
    def mean_confidence(self) -> float:
        """Weighted mean of the confidences."""
        incorrect, correct = self.confidence_sums()
        return (incorrect + correct) / self.weight

    def confidence_sums(self) -> tuple[float, float]:
        """Weighted sums of the confidences of incorrect and of correct samples."""
        centres = self.origin + self.width * (np.arange(self.cells) + 0.5) / self.cells
        moments = self.moments
        sums = (centres[:, None] * moments[:, :, 0] + 0.5 * self.width / self.cells * moments[:, :, 1]).sum(axis=0)
        return float(sums[0]), float(sums[1])

    def spread(self) -> float:
        """Weighted standard deviation of the confidences."""
        moments, half = self.moments.sum(axis=1), 0.5 * self.width / self.cells
        offset = self.origin + (2 * np.arange(self.cells) + 1) * half - self.mean_confidence
        squares = offset**2 * moments[:, 0] + 2 * offset * half * moments[:, 1] + half**2 * moments[:, 2]
        return math.sqrt(max(0.0, float(squares.sum())) / float(moments[:, 0].sum()))


class PointMasses:
    """The points that stand for the samples of a grid, and the cosine coefficients of what is spread over them."""

    def __init__(self, grid: MomentGrid, weight: float | None = None) -> None:
        masses = grid.moments @ _LAGRANGE / (grid.weight if weight is None else weight)
        self.cells, self.origin, self.width = grid.cells, grid.origin, grid.width
        self.incorrect, self.correct = np.ascontiguousarray(masses.transpose(1, 2, 0))
        self.within = (1 + _CHEBYSHEV) / 2
        self.confidence = grid.origin + grid.width * (np.arange(grid.cells) + self.within[:, None]) / grid.cells
        self._known: dict[str, Floats] = {}
        self._turns: dict[tuple[int, int], tuple[Floats, Floats]] = {}

    def residual(self, bandwidth: float, steps: int) -> Floats:
        """Σ w (c - z) K(t, z) and three derivatives at the ends of the steps; the unit of length is the interval."""
        return self._smooth("residual", bandwidth, steps)

    def density_gap(self, bandwidth: float, steps: int) -> Floats:
        """Σ w (t - c) K(t, z) and three derivatives, the t in brackets being a confidence."""
        density = self._smooth("density", bandwidth, steps)
        gap = -self._smooth("correct", bandwidth, steps)
        t = self.origin + self.width * np.linspace(0, 1, steps + 1)
        for k in range(DERIVATIVES):
            gap[k] += t * density[k]
            if k:
                gap[k] += k * self.width * density[k - 1]
        return gap

    def _smooth(self, name: str, bandwidth: float, steps: int) -> Floats:
        sigma = min(bandwidth, _LARGEST_BANDWIDTH)
        terms = 1 + math.ceil(_LAST_FREQUENCY / sigma)
        if name not in self._known or self._known[name].size < terms:
            # Residuals are smoothed again with other bandwidths, densities seldom.
            usual = 1 + math.ceil(_LAST_FREQUENCY * self.cells / CELLS_PER_BANDWIDTH) if name == "residual" else 0
            self._known[name] = self._coefficients(self._masses(name), max(terms, usual))
        angular = np.pi * np.arange(terms)
        damped = self._known[name][:terms] * np.exp(-0.5 * (angular * sigma) ** 2)
        spectra = damped * (1j * angular) ** np.arange(DERIVATIVES)[:, None]
        return np.fft.irfft(spectra, 2 * steps, norm="forward")[:, : steps + 1]

    def _masses(self, name: str) -> Floats:
        if name == "residual":
            return self.correct * (1 - self.confidence) - self.incorrect * self.confidence
        return self.correct if name == "correct" else self.correct + self.incorrect

    def _coefficients(self, masses: Floats, terms: int) -> Floats:
        """Σ mass · cos(πk x) for k below ``terms``, x the place of each point in the interval."""
        spectrum = np.fft.rfft(masses, 2 * self.cells, axis=1)
        k = np.arange(terms)
        wrapped = k % (2 * self.cells)
        mirrored = wrapped > self.cells
        column = np.where(mirrored, 2 * self.cells - wrapped, wrapped)
        total = np.zeros(terms)
        sign = np.where(mirrored, -1.0, 1.0)
        for q in range(POINTS):
            cosine, sine = self._cosines_and_sines(q, terms)
            total += spectrum.real[q, column] * cosine + sign * spectrum.imag[q, column] * sine
        return total

    def _cosines_and_sines(self, point: int, terms: int) -> tuple[Floats, Floats]:
        """Cosines and sines of the angles by which a point lies off the start of its cell; two densities use them."""
        if (point, terms) not in self._turns:
            angle = np.pi * float(self.within[point]) / self.cells * np.arange(terms)
            self._turns[point, terms] = np.cos(angle), np.sin(angle)
        return self._turns[point, terms]


def absolute_integral(
    points: PointMasses, integrand: Integrand, bandwidth: float, steps: int, first: int = 0, last: int | None = None
) -> float:
    """∫ |f| over the steps from ``first`` to ``last`` (all of them) of the interval, for a kernel sum f."""
    from certcal._kernels import moments as kernels

    relative = bandwidth / points.width
    derivatives = points.residual(relative, steps) if integrand == "residual" else points.density_gap(relative, steps)
    chosen = np.ascontiguousarray(derivatives[:, first : None if last is None else last + 1])
    return float(kernels.absolute_integral(chosen, 1 / steps))


def step_count(bandwidth: float) -> int:
    """A number of steps over [0, 1] that is fine enough for the bandwidth and quick to transform."""
    least = max(STEPS_PER_BANDWIDTH, math.ceil(STEPS_PER_BANDWIDTH / bandwidth))
    power = 1 << (least - 1).bit_length()
    return power * 3 // 4 if power * 3 // 4 >= least else power


def error_bound(cell: float, bandwidth: float) -> float:
    """Bound on the error of :func:`absolute_integral` with cells of the given width, over [0, 1].

    2 (h / 4σ)⁸ (1 + √8 σ) / √8! for the points, and 1e-10 for the polynomials, the cosines left out and rounding.

    Kernel derivatives. The places t - z - 2m and -(t + z - 2m) for t in [0, 1] tile the real line, so ∫_0^1 |∂_z^p
    K_σ(t, z)| dt <= ∫ |φ_σ^(p)(x)| dx = E|He_p(X)| / σ^p <= √p! / σ^p by Cauchy and Schwarz, as the Hermite polynomials
    of a standard normal X have E He_p(X)² = p!. The same holds for derivatives in t.

    Points. Let f(z) = (c - z) K_σ(t, z) and If the polynomial through its values at the eight points of the cell of z:
    replacing samples by points replaces f by If. With ω the product of the distances to the points, f - If = ω(z)
    ∫ M_z(s) f⁽⁸⁾(s) ds / 8!, where M_z is a B-spline: non-negative, with integral 1. For Chebyshev points |ω| <= 2
    (h/4)⁸. Integrated over t, with ∂_s⁸ [(c - s) K] = (c - s) ∂_s⁸ K - 8 ∂_s⁷ K and |c - s| <= 1, a sample changes the
    smoothed residuals by at most 2 (h/4)⁸ / 8! · (√8! / σ⁸ + 8 √7! / σ⁷) in L¹, which is the first term, and the
    integral of their absolute value by no more. At the smallest σ = 2.5 h it is below 1.1e-10.

    Polynomials. On a step of width g the difference between f and the polynomial with its values and first three
    derivatives at both ends is ∫ G(t, s) f⁽⁸⁾(s) ds, where G is the Green's function of the eighth derivative with four
    conditions at each end. It is non-negative and symmetric, and ∫ G(t, s) ds = ((t - a)(b - t))⁴ / 8! <= (g/2)⁸ / 8!,
    so the difference is at most (g/2)⁸ / 8! · ∫ |f⁽⁸⁾| in L¹. The points carry a mass of at most 2.5 (the Lebesgue
    constant of eight Chebyshev points is 2.3). With g <= σ/8 and g <= 1/8: 2.5 (1 + √8 σ) (g/2σ)⁸ / √8! < 1.2e-11.

    The rest. Cosines with a factor below 1e-18 are left out. Moments that are off by δ times the total weight change
    the result by at most 2δ; δ is 2⁻⁴⁵ without weights and, summed in blocks of 2¹⁸, below 3e-11 with weights. The
    error of an FFT (Higham 2002, chapter 24) is below 1e-12 here.

    A fixed point of f, which does not increase, lies between σ and the computed f̃(σ) up to ε where |f̃ - f| <= ε: from
    σ < σ* follows σ* = f(σ*) <= f(σ) <= f̃(σ) + ε, and likewise on the other side. So no error is magnified.
    """
    sigma = min(bandwidth, 1.0)
    return 2 * (cell / (4 * sigma)) ** POINTS * (1 + math.sqrt(POINTS) * sigma) / math.sqrt(40320) + 1e-10


# ------------------------------------------------------------------------------------------------- any bandwidth at all
# The kernel has died out after eight bandwidths. Where a grid over [0, 1] is too coarse, [0, 1] is cut into units of 8
# to 16 bandwidths; only units that hold samples, and their neighbours, are looked at, in windows of up to 256 units,
# each with a grid of its own.

UNITS_PER_WINDOW = 256
CELLS_PER_UNIT = 64
STEPS_PER_UNIT = 128
# Grids over [0, 1] to try, coarse first, by the number of samples; below that samples are sorted into windows.
CELLS_BY_SIZE: tuple[tuple[float, tuple[int, ...]], ...] = (
    (CELLS, (CELLS // 8,)),
    (50 * CELLS, (CELLS,)),
    (math.inf, (CELLS, 8 * CELLS)),
)
# Below this the values returned are those of this bandwidth.
SMALLEST_BANDWIDTH = 1e-12
_COMPARED = 1 << 20


class KernelSums:
    """∫_0^1 |f| for the kernel sums f over some samples, at any bandwidth, to 5e-10."""

    def __init__(self, z: NDArray[Any], c: NDArray[np.uint8], w: Floats | None) -> None:
        self._samples = z, c, w
        self._sorted: tuple[Floats, NDArray[np.uint8], Floats | None] | None = None
        self._levels = next(levels for most, levels in CELLS_BY_SIZE if z.size <= most)
        self._points: dict[int, PointMasses] = {}
        self.grid = self._add_grid(self._levels[0])
        self.weight = self.grid.weight

    def integral(self, integrand: Integrand, bandwidth: float) -> float:
        """∫_0^1 |f| with the given bandwidth."""
        for cells in self._levels:
            if bandwidth * cells >= CELLS_PER_BANDWIDTH:
                if cells not in self._points:
                    self._add_grid(cells)
                return absolute_integral(self._points[cells], integrand, bandwidth, step_count(bandwidth))
        if self._sorted is None:
            self._sorted = sorted_samples(*self._samples)
        sigma = max(bandwidth, SMALLEST_BANDWIDTH)
        return math.fsum(
            absolute_integral(PointMasses(grid, self.weight), integrand, sigma, steps, first, last)
            for grid, steps, first, last in _windows(*self._sorted, sigma)
        )

    def spread(self) -> float:
        """Standard deviation of the confidences, to full relative precision down to the rounding of the mean."""
        if self.grid.spread() > self.grid.width / self.grid.cells:
            return self.grid.spread()
        z, _, w = self._samples
        offset = z - np.float64(self.grid.mean_confidence)
        return math.sqrt(float(np.average(offset**2, weights=w)))

    def _add_grid(self, cells: int) -> MomentGrid:
        grid = MomentGrid(cells)
        grid.update(*self._samples)
        self._points[cells] = PointMasses(grid)
        return grid


def sorted_samples(
    z: NDArray[Any], c: NDArray[np.uint8], w: Floats | None
) -> tuple[Floats, NDArray[np.uint8], Floats | None]:
    """Samples in the order of their confidences (without weights, equal confidences in the order of correctness)."""
    if w is not None:
        order = np.argsort(z)
        return z[order] + np.float64(0), c[order], w[order]
    keys, values = sorted_keys(z.astype(np.float64, copy=False), c)
    correct = np.empty(c.size, np.uint8)
    np.bitwise_and(keys, 1, out=correct, casting="unsafe")
    keys >>= 1
    return values, correct, None


def sorted_keys(z: NDArray[Any], c: NDArray[np.uint8]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Sorted integers that hold a confidence's bits and below them its correctness, and the same memory as floats.

    Floats from 0 to 1 are ordered like their bits, of which the first two are zero: correctness fits in below.
    """
    values = z + z.dtype.type(0)  # a copy, without negative zeros
    keys = values.view(np.int64 if values.dtype == np.float64 else np.int32)
    keys <<= 1
    keys |= c
    keys.sort()
    return keys, values


def _windows(
    z: Floats, c: NDArray[np.uint8], w: Floats | None, bandwidth: float
) -> Iterator[tuple[MomentGrid, int, int, int]]:
    """Grids over windows, each with its number of steps and the steps to integrate over."""
    units = 1 << math.ceil(-math.log2(16 * bandwidth))
    for first, last in _occupied_runs(z, units):
        stop = min(units, last + 2)
        for begin in range(max(0, first - 1), stop, UNITS_PER_WINDOW):
            end = min(stop, begin + UNITS_PER_WINDOW)
            low, high = max(0, begin - 1), min(units, end + 1)
            i = int(np.searchsorted(z, low / units))
            j = int(np.searchsorted(z, high / units)) if high < units else z.size
            grid = MomentGrid(CELLS_PER_UNIT * (high - low), low / units, (high - low) / units)
            grid.update(z[i:j], c[i:j], None if w is None else w[i:j])
            yield grid, STEPS_PER_UNIT * (high - low), STEPS_PER_UNIT * (begin - low), STEPS_PER_UNIT * (end - low)


def _occupied_runs(z: Floats, units: int) -> list[tuple[int, int]]:
    """First and last unit of each run of units that hold samples, runs being apart by two empty units or more."""

    def unit_of(values: Floats) -> Floats:
        return np.minimum(np.floor(values * units), units - 1)

    starts = [0]
    for start in range(0, z.size - 1, _COMPARED):
        jump = np.diff(unit_of(z[start : start + _COMPARED + 1]))
        starts.extend((start + 1 + np.flatnonzero(jump > 2)).tolist())
    stops = [*(start - 1 for start in starts[1:]), z.size - 1]
    return [(int(first), int(last)) for first, last in zip(unit_of(z[starts]), unit_of(z[stops]), strict=True)]
