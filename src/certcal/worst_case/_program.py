"""The exact maximum of Σ_m |S_m| over intervals of confidences.

Σ_m |S_m| is the maximum over signs of Σ_m s_m S_m, and for given signs every sample decides alone. How the maximum over
all 2^M sign patterns is found in O(N + M²) is written in ``_kernels/signs.py`` and proved in the documentation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError
from certcal.worst_case._bins import Bins
from certcal.worst_case._cells import Cells, as_floats, gather, merged
from certcal.worst_case._intervals import Arrays, Intervals, check_intervals, unchecked

Floats = NDArray[np.float64]
Columns = tuple[NDArray[np.int64], NDArray[np.int64], Floats]

# Pieces wait to be merged until they hold this many cells, or as many as there are already.
WAITING = 1 << 12


class Program:
    """The certified samples of one type of confidences, as cells, with how many others there are.

    Examples
    --------
    >>> from certcal.binning import equal_width_edges
    >>> program, _ = Program.read([0.1, 0.5], [0.6, 0.9], [1, 0], None, equal_width_edges(3), "left")
    >>> value, signs = program.solve()
    >>> round(value / 2, 12), signs.tolist()
    (0.9, [1, 1, -1])
    """

    def __init__(self, edges: Floats, closed: str, dtype: Any = np.float64) -> None:
        self.bins = Bins.build(edges, closed, np.dtype(dtype))
        self.n = 0
        self.free = 0
        self.masked = False
        self._cells = Cells.empty()
        self._waiting: list[Cells] = []

    @classmethod
    def read(
        cls, lower: Any, upper: Any, correct: Any, certified: Any, edges: Floats, closed: str, own: bool = False
    ) -> tuple[Program, Intervals]:
        """Check samples and group the certified ones; also the intervals, in memory of their own if asked for."""
        arrays = unchecked(lower, upper, correct) if certified is None else None
        if arrays is not None:
            program = cls(edges, closed, arrays[0].dtype)
            copies = (np.empty_like(arrays[0]), np.empty_like(arrays[1]), np.empty_like(arrays[2])) if own else None
            if program.group(arrays, copies):
                return program, Intervals(*(copies or arrays), None)
        intervals = check_intervals(lower, upper, correct, certified, own)
        program = cls(edges, closed, intervals.lower.dtype)
        program.masked = intervals.certified is not None
        program.free = len(intervals) - intervals.certified_count
        if intervals.certified_count:
            program.group(intervals.only_certified().arrays)
        return program, intervals

    def group(self, samples: Arrays, copies: Arrays | None = None) -> bool:
        """Take these samples instead of what was there; whether their intervals are in order (else nothing changes)."""
        cells = gather(samples, self.bins, copies)
        if cells is None:
            return False
        self._cells, self.n = cells, samples[0].size
        return True

    def merge(self, other: Program) -> None:
        """Add the samples of another program over the same bins."""
        if self.n and other.n and self.bins.dtype != other.bins.dtype:
            raise InputError(
                f"intervals are {other.bins.dtype} after {self.bins.dtype}; convert all to one type, because edges are "
                "rounded to it"
            )
        if other.n and not self.n:
            self.bins = other.bins
        self.n, self.free, self.masked = self.n + other.n, self.free + other.free, self.masked or other.masked
        self._waiting += [other._cells, *other._waiting]
        if sum(part.keys.size for part in self._waiting) > max(WAITING, self._cells.keys.size):
            self._settle()

    def _settle(self) -> Cells:
        if self._waiting:
            self._cells, self._waiting = merged([self._cells, *self._waiting]), []
        return self._cells

    def solve(self, free: int = 0, free_correct: int = 0, sense: int = 1) -> tuple[float, NDArray[np.int8]]:
        """Largest Σ_m |S_m| and the signs of kept bins; ``free`` more samples, all correct or all not, lie anywhere.

        With ``sense=-1`` the smallest Σ_n g_n(s) over sign patterns s, where g_n(s) is the best that sample n can do.
        """
        from certcal._kernels.signs import best_runs

        wrong, right = self._columns()
        if free:
            lows, highs, sums = right if free_correct else wrong
            added = [[float(free), 0.0, float(free)]]
            more = np.append(lows, 0), np.append(highs, self.bins.count - 1), np.concatenate((sums, added))
            right, wrong = (more, wrong) if free_correct else (right, more)
        small = np.uint16 if self.bins.count < 1 << 16 else np.int64  # NumPy sorts 16-bit numbers by radix
        by_high, by_low = (np.argsort(ends.astype(small), kind="stable") for ends in (right[1], wrong[0]))
        value, signs = best_runs(self.bins.edges, *right, by_high, *wrong, by_low, float(sense))
        return float(value), signs

    def _columns(self) -> tuple[Columns, Columns]:
        """Lowest bin, highest bin and (count, Σ lower, Σ upper) of the cells of incorrect and of correct samples."""
        cells, bins = self._settle(), self.bins.count
        cut = int(np.searchsorted(cells.keys, bins**2))
        ends, sums = cells.keys % bins**2, as_floats(cells)
        lows, highs = ends // bins, ends % bins
        return (lows[:cut], highs[:cut], sums[:cut]), (lows[cut:], highs[cut:], sums[cut:])
