"""Kernel sums for bandwidths too small for one grid over [0, 1].

The kernel has died out after eight bandwidths. So [0, 1] is cut into units of 8 to 16 bandwidths; only units that
hold samples, and their neighbours, are looked at, in windows of up to 256 units, each with a grid of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal.metrics.cosine import (
    CELLS,
    CELLS_PER_BANDWIDTH,
    Floats,
    Integrand,
    MomentGrid,
    PointMasses,
    absolute_integral,
    step_count,
)

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
_BLOCK = 1 << 20


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
    """Samples in the order of their confidences (without weights, equal confidences in the order of correctness).

    Examples
    --------
    >>> z, c, _ = sorted_samples(np.array([0.5, 0.25, 0.5]), np.array([1, 1, 0], np.uint8), None)
    >>> z.tolist(), c.tolist()
    ([0.25, 0.5, 0.5], [1, 0, 1])
    """
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

    Examples
    --------
    >>> keys, _ = sorted_keys(np.array([0.5, 0.25, 0.5], np.float32), np.array([1, 1, 0], np.uint8))
    >>> (keys & 1).tolist(), (keys >> 1).view(np.float32).tolist()
    ([1, 0, 1], [0.25, 0.5, 0.5])
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
    for first, last in _occupied(z, units):
        stop = min(units, last + 2)
        for begin in range(max(0, first - 1), stop, UNITS_PER_WINDOW):
            end = min(stop, begin + UNITS_PER_WINDOW)
            low, high = max(0, begin - 1), min(units, end + 1)
            i = int(np.searchsorted(z, low / units))
            j = int(np.searchsorted(z, high / units)) if high < units else z.size
            grid = MomentGrid(CELLS_PER_UNIT * (high - low), low / units, (high - low) / units)
            grid.update(z[i:j], c[i:j], None if w is None else w[i:j])
            yield grid, STEPS_PER_UNIT * (high - low), STEPS_PER_UNIT * (begin - low), STEPS_PER_UNIT * (end - low)


def _occupied(z: Floats, units: int) -> list[tuple[int, int]]:
    """First and last unit of each run of units that hold samples, runs being apart by two empty units or more."""

    def unit_of(values: Floats) -> Floats:
        return np.minimum(np.floor(values * units), units - 1)

    starts = [0]
    for start in range(0, z.size - 1, _BLOCK):
        jump = np.diff(unit_of(z[start : start + _BLOCK + 1]))
        starts.extend((start + 1 + np.flatnonzero(jump > 2)).tolist())
    stops = [*(start - 1 for start in starts[1:]), z.size - 1]
    return [(int(first), int(last)) for first, last in zip(unit_of(z[starts]), unit_of(z[stops]), strict=True)]
