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

from certcal._checks import kernel_float, score_pair
from certcal._select import running, wanted_positions
from certcal._threads import map_blocks

Floats = NDArray[np.float64]
Samples = tuple[NDArray[Any], NDArray[np.uint8], Floats | None]
Blocks = Callable[[], Iterable[Samples]]


def ks_error(confidence: Any, correct: Any, *, sample_weight: Any = None) -> float:
    """Kolmogorov-Smirnov calibration error: max over t of |(1/N) Σ_{z_n <= t} (c_n - z_n)| (Gupta et al. 2020).

    Parameters
    ----------
    confidence
        Confidence of each prediction, in [0, 1].
    correct
        Whether each prediction is correct, 0 or 1.
    sample_weight
        Weights >= 0, or None.

    Examples
    --------
    >>> ks_error([0.25, 0.75], [0, 0])
    0.5
    """
    samples = score_pair(confidence, correct, sample_weight)
    low, high = extremes(lambda: [samples], spread=False)
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
    samples = score_pair(confidence, correct, sample_weight)
    low, high = extremes(lambda: [samples], spread=True)
    return high - low


def extremes(blocks: Blocks, spread: bool) -> tuple[float, float]:
    """Lowest and highest value (0 included) of the cumulative mean deviation over samples sorted by confidence.

    Parameters
    ----------
    blocks
        Gives the samples in blocks, each time it is called.
    spread
        Whether both ends are needed exactly; otherwise only the one with the larger magnitude is.

    Examples
    --------
    >>> import numpy as np
    >>> extremes(lambda: [(np.array([0.25, 0.75]), np.array([0, 1], np.uint8), None)], True)
    (-0.125, 0.0)
    """
    moves, total, grid = _rises_and_falls(blocks)
    ends = running(moves[:, 1] - moves[:, 0])
    starts = np.concatenate(([0.0], ends[:-1]))
    low, high = min(0.0, float(ends.min())), max(0.0, float(ends.max()))
    # Rounding of the sums must not close a bucket that holds the answer.
    slack = 1e-13 * float(moves.sum())
    highest, lowest = starts + moves[:, 1], starts - moves[:, 0]
    beat_high, beat_low = (high, low) if spread else (max(high, -low), min(low, -high))
    wanted = (highest > beat_high - slack) | (lowest < beat_low + slack)
    # A bucket that only rises or only falls has its extremes at its ends, which are known.
    wanted &= (moves[:, 0] > 0) & (moves[:, 1] > 0)
    if wanted.any():
        inside = _inside(blocks, wanted, moves, starts, grid)
        low, high = min(low, float(inside.min())), max(high, float(inside.max()))
    return low / total, high / total


def _rises_and_falls(blocks: Blocks) -> tuple[Floats, float, Any]:
    """Rises and falls per bucket, the total weight, and the buckets: the finer the more samples the first block has."""
    from certcal._kernels import select as kernels

    grid: Any = None
    moves = np.zeros((0, 2))
    total = 0.0
    for z, c, w in blocks():
        if grid is None:
            grid = kernels.make_grid(octaves=20, bits=min(12, max(3, int(z.size).bit_length() - 7)))
            moves = np.zeros((grid.buckets, 2))
        for part in map_blocks(partial(_block_moves, kernel_float(z), c, w, grid), z.size):
            moves += part
        total += float(z.size) if w is None else float(w.sum())
    return moves, total, grid


def _block_moves(
    values: NDArray[Any], c: NDArray[np.uint8], w: Floats | None, grid: Any, start: int, stop: int
) -> Floats:
    from certcal._kernels import select as kernels

    part = np.zeros((grid.buckets, 2, 2))
    weights = np.empty(0) if w is None else w[start:stop]
    kernels.rises_and_falls(values[start:stop], c[start:stop], weights, part, grid)
    return part[:, :, 0]


def _inside(blocks: Blocks, wanted: NDArray[np.bool_], moves: Floats, starts: Floats, grid: Any) -> Floats:
    """Cumulative sums after each distinct confidence inside the wanted buckets."""
    confidence: list[Floats] = []
    step: list[Floats] = []
    for z, c, w in blocks():
        chosen = wanted_positions(z, wanted, grid)
        values = z[chosen].astype(np.float64)
        confidence.append(values)
        step.append((c[chosen] - values) * (1.0 if w is None else w[chosen]))
    values, steps = np.concatenate(confidence), np.concatenate(step)
    order = np.argsort(values, kind="stable")
    values, steps = values[order], steps[order]
    # The sum of everything in closed buckets before each sample: what the open buckets before it do not account for.
    opened = np.flatnonzero(wanted)
    before_open = np.concatenate(([0.0], running((moves[:, 1] - moves[:, 0])[opened])))[:-1]
    offset = starts[opened] - before_open
    from certcal._kernels import select as kernels

    counts = np.zeros(grid.buckets, np.int64)
    kernels.count(values, counts, grid)
    reached = running(steps) + np.repeat(offset, counts[opened])
    last_of_tie = np.append(values[1:] != values[:-1], True)
    return reached[last_of_tie]
