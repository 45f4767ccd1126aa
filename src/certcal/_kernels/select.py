# pyright: basic
"""Buckets of [0, 1] that are fine near both ends, for finding order statistics and maxima without a full sort.

A bucket is the leading bits of the distance to the nearer end, so overconfident models (most of the mass within 1e-4
of one) spread over many buckets, too. The bucket number never decreases with the value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from certcal._kernels._compile import FEW, MANY, njit


class Grid(NamedTuple):
    """Distances below ``smallest`` (as bits) share a bucket; above, the bits are shifted by ``shift``."""

    smallest: int
    shift: int
    half: int

    @property
    def buckets(self) -> Any:
        """Number of buckets."""
        return 2 * self.half + 2


def make_grid(octaves: Any, bits: Any) -> Any:
    """A grid of 2**bits buckets per octave, the last octave ending at 2**-octaves."""
    return Grid((1023 - octaves) << 52, 52 - bits, (octaves - 1) << bits)


def _buckets(values: Any, grid: Any) -> Any:
    """:func:`bucket` of every value."""
    value = values.astype(np.float64)
    upper = value >= 0.5
    distance = np.where(upper, 1.0 - value, value + 0.0)
    number = np.maximum(0, distance.view(np.int64) - grid.smallest) >> grid.shift
    return np.where(upper, 2 * grid.half + 1 - number, number)


@njit(inline="always")
def bucket(value: Any, grid: Any) -> Any:
    """Bucket of a value in [0, 1]."""
    upper = value >= 0.5
    distance = 1.0 - value if upper else value + 0.0  # -0.0 becomes 0.0, whose bits are not negative
    number = max(np.int64(0), np.float64(distance).view(np.int64) - grid.smallest) >> grid.shift
    return 2 * grid.half + 1 - number if upper else number


def _count(values: Any, counts: Any, grid: Any) -> Any:
    np.add.at(counts, _buckets(values, grid), 1)


@njit(patience=MANY, in_numpy=_count)
def count(values: Any, counts: Any, grid: Any) -> Any:
    """Samples per bucket."""
    for i in range(values.size):
        counts[bucket(np.float64(values[i]), grid)] += 1


@njit(patience=FEW)
def weigh(values: Any, weights: Any, sums: Any, grid: Any) -> Any:
    """Weight per bucket; the last axis holds a sum and its rounding error (Kahan)."""
    for i in range(values.size):
        cell = sums[bucket(np.float64(values[i]), grid)]
        term = weights[i] - cell[1]
        total = cell[0] + term
        cell[1] = (total - cell[0]) - term
        cell[0] = total


@njit(patience=FEW)
def rises_and_falls(values: Any, correct: Any, weights: Any, sums: Any, grid: Any) -> Any:
    """Per bucket the sum of w(1 - z) over correct (column 1) and of wz over incorrect samples (column 0).

    Empty weights stand for ones. The last axis holds a sum and its rounding error (Kahan), so that millions of equal
    confidences lose no digits.
    """
    for i in range(values.size):
        value = np.float64(values[i])
        term = 1.0 - value if correct[i] else value
        if weights.size:
            term *= weights[i]
        cell = sums[bucket(value, grid), correct[i]]
        term -= cell[1]
        total = cell[0] + term
        cell[1] = (total - cell[0]) - term
        cell[0] = total


def _positions(values: Any, wanted: Any, grid: Any, out: Any) -> Any:
    found = np.flatnonzero(wanted[_buckets(values, grid)])
    out[: found.size] = found[: out.size]
    return found.size


@njit(patience=MANY, in_numpy=_positions)
def positions(values: Any, wanted: Any, grid: Any, out: Any) -> Any:
    """Write the positions of the samples in wanted buckets to ``out``; how many there are."""
    found = 0
    for i in range(values.size):
        if wanted[bucket(np.float64(values[i]), grid)]:
            if found < out.size:
                out[found] = i
            found += 1
    return found


@njit
def describe(values: Any, outcomes: Any, counts: Any, ends: Any, grid: Any) -> Any:
    """Per bucket the samples and those of outcome 1, and the smallest and largest value; ``ends`` start as 2 and -1."""
    for i in range(values.size):
        value = np.float64(values[i])
        place = bucket(value, grid)
        counts[place, 0] += 1
        counts[place, 1] += np.int64(outcomes[i])
        ends[place, 0] = min(ends[place, 0], value)
        ends[place, 1] = max(ends[place, 1], value)
