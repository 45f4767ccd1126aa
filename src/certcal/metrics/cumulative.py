"""Calibration errors without bins: the largest deviation of a cumulative sum.

No full sort is needed. One pass sums rises (1 - z of correct samples) and falls (z of incorrect ones) per bucket.
Inside a bucket the cumulative sum cannot leave [start - falls, start + rises], so only buckets whose range
reaches beyond the best value seen at bucket ends are opened and sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import kernel_float, read_only, score_pair
from certcal._base.select import Distinct, running, wanted_positions
from certcal._base.threads import map_blocks

Floats = NDArray[np.float64]
Samples = tuple[NDArray[Any], NDArray[np.uint8], Floats | None]
Blocks = Callable[[], Iterable[Samples]]


def ks_error(confidence: Any, correct: Any, *, sample_weight: Any = None) -> float:
    """Kolmogorov-Smirnov calibration error: max over t of |(1/N) Σ_{z_n <= t} (c_n - z_n)| (Gupta et al. 2020).

    Parameters
    ----------
    confidence, correct, sample_weight
        As for :func:`certcal.metrics.ece`.

    Examples
    --------
    >>> ks_error([0.25, 0.75], [0, 0])
    0.5
    """
    return ks_error_of(*score_pair(confidence, correct, sample_weight))


def ks_error_of(z: NDArray[Any], c: NDArray[np.uint8], w: Floats | None = None) -> float:
    """:func:`ks_error` of checked arrays."""
    low, high = extremes(lambda: [(z, c, w)], spread=False)
    return max(high, -low)


def kuiper_error(confidence: Any, correct: Any, *, sample_weight: Any = None) -> float:
    """Kuiper calibration error: highest minus lowest value of (1/N) Σ_{z_n <= t} (c_n - z_n) over t, 0 included.

    The largest miscalibration of any interval of confidences (Arrieta-Ibarra et al. 2022). Parameters are those of
    :func:`ks_error`.

    Examples
    --------
    >>> kuiper_error([0.25, 0.75], [0, 1])
    0.125
    """
    return kuiper_error_of(*score_pair(confidence, correct, sample_weight))


def kuiper_error_of(z: NDArray[Any], c: NDArray[np.uint8], w: Floats | None = None) -> float:
    """:func:`kuiper_error` of checked arrays."""
    low, high = extremes(lambda: [(z, c, w)], spread=True)
    return high - low


def extremes(blocks: Blocks, spread: bool) -> tuple[float, float]:
    """Lowest and highest value (0 included) of the cumulative mean deviation over samples sorted by confidence."""
    state = Extremes(spread)
    for samples in blocks():
        state.count(*samples)
    if state.settle():
        for samples in blocks():
            state.look(*samples)
    return state.result()


class Extremes:
    """:func:`extremes` from two passes over the samples: ``count`` all, ``settle``, ``look`` at all."""

    def __init__(self, spread: bool, least_bits: int = 3) -> None:
        self._spread, self._least_bits = spread, least_bits
        self._grid: Any = None
        self._moves = np.zeros((0, 2))  # falls and rises per bucket
        self._total = 0.0
        self._low = self._high = 0.0
        self._starts = np.zeros(0)
        self._wanted = np.zeros(0, np.bool_)
        self._kept = Distinct(2)  # the weight of incorrect and of correct samples

    def count(self, z: NDArray[Any], c: NDArray[np.uint8], w: Floats | None) -> None:
        """First pass: add the rises and falls of a block to its buckets."""
        from certcal._kernels import select as kernels

        if self._grid is None:
            bits = min(12, max(self._least_bits, int(z.size).bit_length() - 7))
            self._grid = kernels.make_grid(octaves=20, bits=bits)
            self._moves = np.zeros((self._grid.buckets, 2))
        for part in map_blocks(partial(_block_moves, kernel_float(z), c, w, self._grid), z.size):
            self._moves += part
        self._total += float(z.size) if w is None else float(w.sum())

    def settle(self) -> bool:
        """Between the passes: which buckets can hold an extreme, and whether there are any."""
        moves = self._moves
        ends = running(moves[:, 1] - moves[:, 0])
        self._starts = np.concatenate(([0.0], ends[:-1]))
        low, high = min(0.0, float(ends.min())), max(0.0, float(ends.max()))
        # Rounding of the sums must not close a bucket that holds the answer.
        slack = 1e-13 * float(moves.sum())
        highest, lowest = self._starts + moves[:, 1], self._starts - moves[:, 0]
        beat_high, beat_low = (high, low) if self._spread else (max(high, -low), min(low, -high))
        wanted = (highest > beat_high - slack) | (lowest < beat_low + slack)
        # A bucket that only rises or only falls has its extremes at its ends, which are known.
        self._wanted = wanted & (moves[:, 0] > 0) & (moves[:, 1] > 0)
        self._low, self._high = low, high
        return bool(self._wanted.any())

    def look(self, z: NDArray[Any], c: NDArray[np.uint8], w: Floats | None) -> None:
        """Second pass: keep the samples of a block that lie in such a bucket."""
        chosen = wanted_positions(z, self._wanted, self._grid)
        values, right = z[chosen].astype(np.float64), c[chosen] == 1
        for outcome, here in enumerate((~right, right)):
            if w is None:  # many may be equal: sorted as numbers, which is several times as fast as with their places
                found, heavy = np.unique(values[here], return_counts=True)
            else:
                found, heavy = values[here], w[chosen[here]]
            weights = np.zeros((found.size, 2))
            weights[:, outcome] = heavy
            self._kept.add(found, weights)

    @property
    def kept(self) -> int:
        """How many values are kept."""
        return self._kept.size

    def result(self) -> tuple[float, float]:
        """Lowest and highest value."""
        low, high = self._low, self._high
        if self._wanted.any():
            inside = self._inside()
            low, high = min(low, float(inside.min())), max(high, float(inside.max()))
        return low / self._total, high / self._total

    def _inside(self) -> Floats:
        """Cumulative sums after each distinct confidence inside the wanted buckets."""
        from certcal._kernels import select as kernels

        values, weights = self._kept.merge()
        steps = weights[:, 1] * (1 - values) - weights[:, 0] * values
        # The sum of everything in closed buckets before each sample: what the open ones before it do not account for.
        opened = np.flatnonzero(self._wanted)
        before_open = np.concatenate(([0.0], running((self._moves[:, 1] - self._moves[:, 0])[opened])))[:-1]
        offset = self._starts[opened] - before_open
        counts = np.zeros(self._grid.buckets, np.int64)
        kernels.count(read_only(values), counts, self._grid)
        return running(steps) + np.repeat(offset, counts[opened])


def _block_moves(
    values: NDArray[Any], c: NDArray[np.uint8], w: Floats | None, grid: Any, start: int, stop: int
) -> Floats:
    from certcal._kernels import select as kernels

    part = np.zeros((grid.buckets, 2, 2))
    weights = read_only(np.empty(0) if w is None else w[start:stop])
    kernels.rises_and_falls(values[start:stop], read_only(c[start:stop]), weights, part, grid)
    return part[:, :, 0]
