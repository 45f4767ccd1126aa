"""Bins as a worst case needs them: for one type of confidences, without bins that none of them can be in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import kernel_float
from certcal._threads import map_blocks
from certcal.binning import Lookup, build_lookup

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Bins:
    """Edges rounded to the type of the confidences, and which of the given bins they delimit.

    Bins between equal edges are left out, except the closed one at the end ({1} or {0}).
    """

    given: Floats
    closed: str
    dtype: np.dtype[Any]
    edges: Floats
    kept: NDArray[np.intp]
    lookup: Lookup

    @classmethod
    def build(cls, given: Floats, closed: str, dtype: np.dtype[Any]) -> Bins:
        """Prepare the given edges for confidences of a type."""
        rounded = given.astype(dtype).astype(np.float64)
        possible = np.diff(rounded) > 0
        possible[-1] |= closed == "left"
        possible[0] |= closed == "right"
        kept = np.flatnonzero(possible)
        edges = np.append(rounded[kept], 1.0)
        return cls(given, closed, dtype, edges, kept, build_lookup(edges, closed, dtype))

    @property
    def count(self) -> int:
        """Number of bins that a confidence can be in."""
        return self.edges.size - 1

    @property
    def rounding(self) -> float:
        """Bound on the rounding error of a worst calibration error (see :mod:`certcal._kernels.signs`).

        In units of 2^-52, for sums over n samples: one rounding of each confidence to a multiple of 2^-50 gives 2n. A
        bin's sums have at most 2 bins additions, each off by half the number of its samples, so that those of all bins
        give bins · n; so do the additions along the bins and between runs, of numbers up to n. What is done once per
        cell or bin (differences, products with an edge) or once at all gives less than 6n.
        """
        return 2.0**-52 * (16 + 2 * self.count)

    def locate(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """Bin of every value, among those that are kept."""
        from certcal._kernels.bins import locate

        readable = kernel_float(values)
        out = np.empty(values.size, np.uint32)
        map_blocks(lambda start, stop: locate(readable[start:stop], *self.lookup, out[start:stop]), values.size)
        return out.astype(np.int64)

    def inside(self, where: NDArray[Any]) -> tuple[Floats, Floats]:
        """Smallest and largest number of the type inside each of the bins ``where``."""
        ends = self.edges.astype(self.dtype)
        bottom, top = ends[:-1].copy(), ends[1:].copy()
        if self.closed == "left":
            top[:-1] = np.nextafter(top[:-1], self.dtype.type(-1))
        else:
            bottom[1:] = np.nextafter(bottom[1:], self.dtype.type(2))
        return bottom[where].astype(np.float64), top[where].astype(np.float64)

    def spread(self, signs: NDArray[np.int8]) -> NDArray[np.int8]:
        """Signs for all given bins; those that no confidence can be in get +1."""
        whole = np.ones(self.given.size - 1, np.int8)
        whole[self.kept] = signs
        return whole
