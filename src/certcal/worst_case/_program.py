"""The exact maximum of Σ_m |S_m| over intervals of confidences.

Σ_m |S_m| is the maximum over signs of Σ_m s_m S_m, and for given signs every sample decides alone. How the maximum over
all 2^M sign patterns is found in O(N + M²) is written in ``_kernels/signs.py`` and proved in the documentation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, kernel_float
from certcal._threads import map_blocks
from certcal.worst_case._bins import Bins
from certcal.worst_case._intervals import Intervals

Floats = NDArray[np.float64]
Cells = tuple[NDArray[np.int64], NDArray[np.int64], Floats]

# Dense tables of cells up to this many; beyond, every sample is a cell of its own.
DENSE = 1 << 16


class SignProgram:
    """Samples grouped by the bins they can reach: all that the exact maximum needs.

    The state is O(bins²) for up to 256 bins and merges; with more bins each sample is kept as it is. ``squares`` is
    Σ max (c - z)² over the samples, which bounds the sum of their squared gains whatever the signs.

    Examples
    --------
    >>> from certcal.binning import equal_width_edges
    >>> from certcal.worst_case._intervals import check_intervals
    >>> program = SignProgram(equal_width_edges(3), "left")
    >>> program.add(check_intervals([0.1, 0.5], [0.6, 0.9], [1, 0]))
    >>> value, signs = program.solve()
    >>> round(value / 2, 12), signs.tolist()
    (0.9, [1, 1, -1])
    """

    def __init__(self, edges: Floats, closed: str, dtype: Any = np.float64) -> None:
        self.bins = Bins.build(edges, closed, np.dtype(dtype))
        dense = self.bins.count**2 <= DENSE
        self.table = np.zeros((2, self.bins.count, self.bins.count, 3)) if dense else None
        self.loose: list[tuple[NDArray[Any], ...]] = []
        self.squares = 0.0

    def add(self, intervals: Intervals) -> None:
        """Add checked samples."""
        from certcal._kernels import signs as kernels

        bins = self.bins
        if intervals.lower.dtype != bins.dtype:
            raise InputError(f"intervals are {intervals.lower.dtype}; this program was made for {bins.dtype}")
        low, high, c = kernel_float(intervals.lower), kernel_float(intervals.upper), intervals.correct
        if self.table is None:
            self.loose.append((c, bins.locate(low), bins.locate(high), low, high))
            self.squares += float(np.square(np.where(c == 1, low, high).astype(np.float64) - c).sum())
            return

        def one(start: int, stop: int) -> tuple[Floats, float]:
            state = np.zeros((2, bins.count, bins.count, 3))
            return state, kernels.add_cells(low[start:stop], high[start:stop], c[start:stop], *bins.lookup, state)

        for part, squares in map_blocks(one, low.size):
            self.table += part
            self.squares += squares

    def merge(self, other: SignProgram) -> None:
        """Add the samples of another program over the same bins."""
        mine, theirs = self.bins, other.bins
        if (mine.closed, mine.dtype) != (theirs.closed, theirs.dtype) or not np.array_equal(mine.given, theirs.given):
            raise InputError("other has different bins; merge programs made with the same edges, closed and dtype")
        if self.table is not None and other.table is not None:
            self.table += other.table
        self.loose += other.loose
        self.squares += other.squares

    def _cells(self, correct: int) -> Cells:
        """Lowest bin, highest bin and (count, Σ lower, Σ upper) of the samples that are (not) correct."""
        if self.table is not None:
            part = self.table[correct]
            lows, highs = np.nonzero(part[:, :, 0])
            return lows, highs, part[lows, highs]
        none = [np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0)]
        parts = [none] + [[column[c == correct] for column in columns] for c, *columns in self.loose]
        lows, highs, lower, upper = (np.concatenate(column) for column in zip(*parts, strict=True))
        sums = np.empty((lows.size, 3))
        sums[:, 0], sums[:, 1], sums[:, 2] = 1.0, lower, upper
        return lows, highs, sums

    def solve(self, free: int = 0, free_correct: int = 0, sense: int = 1) -> tuple[float, NDArray[np.int8]]:
        """Largest Σ_m |S_m| and the signs of kept bins; ``free`` more samples, all correct or all not, lie anywhere.

        With ``sense=-1`` the smallest Σ_n g_n(s) over sign patterns s, where g_n(s) is the best that sample n can do.
        """
        from certcal._kernels.signs import best_runs

        right, wrong = self._cells(1), self._cells(0)
        if free:
            lows, highs, sums = right if free_correct else wrong
            added = [[float(free), 0.0, float(free)]]
            more = np.append(lows, 0), np.append(highs, self.bins.count - 1), np.concatenate((sums, added))
            right, wrong = (more, wrong) if free_correct else (right, more)
        small = np.uint16 if self.bins.count < 1 << 16 else np.int64  # NumPy sorts 16-bit numbers by radix
        by_high, by_low = (np.argsort(ends.astype(small), kind="stable") for ends in (right[1], wrong[0]))
        value, signs = best_runs(self.bins.edges, *right, by_high, *wrong, by_low, float(sense))
        return float(value), signs

    def witness(
        self, intervals: Intervals, signs: NDArray[np.int8], free_correct: int | None = None
    ) -> tuple[NDArray[Any], NDArray[np.uint8]]:
        """Confidences that the signs make the samples choose, in the input order and type, and their correctness.

        Uncertified samples are NaN, or chosen freely when ``free_correct`` is given.
        """
        from certcal._kernels.signs import place

        bins = self.bins
        low, high, c = kernel_float(intervals.lower), kernel_float(intervals.upper), intervals.correct
        low_bin, high_bin = bins.locate(low), bins.locate(high)
        loose = None if intervals.certified is None else ~intervals.certified
        if loose is not None and free_correct is not None:
            low, high, c = low.copy(), high.copy(), c.copy()
            low[loose], high[loose], c[loose] = 0, 1, free_correct
            low_bin[loose], high_bin[loose] = 0, bins.count - 1
        out = np.empty(c.size)
        chosen = place(low, high, c, low_bin, high_bin, bins.edges, signs, bins.closed == "left", out)
        if bins.dtype != np.float64:  # the nearest float64 inside a bin is not one of a smaller type
            out = np.clip(out, *bins.inside(chosen))
        out = out.astype(bins.dtype)
        if loose is not None and free_correct is None:
            out[loose] = np.nan
        return out, c
