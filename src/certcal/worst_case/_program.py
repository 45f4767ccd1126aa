"""The exact maximum of Σ_m |S_m| over intervals of confidences: bins, cells, and the best signs.

Σ_m |S_m| is the maximum over signs of Σ_m s_m S_m, and for given signs every sample decides alone. How the maximum over
all 2^M sign patterns is found in O(N + M²) is written in ``_kernels/signs.py`` and proved in the documentation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, kernel_float
from certcal._base.threads import map_blocks
from certcal.binning import Lookup, build_lookup
from certcal.worst_case.intervals import Arrays, Intervals, check_intervals, readable_arrays

Floats = NDArray[np.float64]
Words = NDArray[np.int64]
Columns = tuple[NDArray[np.int64], NDArray[np.int64], Floats]

# What whole numbers of the kernels are multiples of.
UNIT = 2.0**-50

# Tables with a place for every cell up to this many; beyond, only cells that hold samples exist.
DENSE = 1 << 16

# Pieces wait to be merged until they hold this many cells, or as many as there are already.
WAITING = 1 << 12


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
        rounded = given.astype(dtype).astype(np.float64)
        possible = np.diff(rounded) > 0
        possible[-1] |= closed == "left"
        possible[0] |= closed == "right"
        kept = np.flatnonzero(possible)
        edges = np.append(rounded[kept], 1.0)
        return cls(given, closed, dtype, edges, kept, build_lookup(edges, closed, dtype))

    @property
    def count(self) -> int:
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


class Cells(NamedTuple):
    """Cells that hold samples.

    ``keys`` are (correct · bins + lowest bin) · bins + highest bin, rising. ``sums`` has the number of samples, then
    Σ lower and Σ upper, each as the words of high · 2³² + low multiples of 2⁻⁵⁰.
    """

    keys: Words
    sums: Words

    @classmethod
    def empty(cls) -> Cells:
        return cls(np.empty(0, np.int64), np.empty((0, 5), np.int64))


def group_cells(samples: Arrays, bins: Bins, copies: Arrays | None = None) -> Cells | None:
    """Cells of the samples, which are copied if there is where to, or None when some interval is wrong.

    Correctness must be checked already; that 0 <= lower <= upper <= 1 is checked on the way, where it costs little.
    """
    from certcal._kernels import cells as kernels

    low, high, c = kernel_float(samples[0]), kernel_float(samples[1]), samples[2]
    many, crowded = bins.count**2 > DENSE, not bins.lookup.cells
    if copies is not None and (many or crowded):
        copies[0][:], copies[1][:], copies[2][:] = samples
    if many:
        if not kernels.all_in_order(low, high):
            return None
        keys, sums = kernels.group_intervals(low, high, c, bins.locate(low), bins.locate(high), bins.count)
        return Cells(keys, _low_words_carried(sums))

    def one(start: int, stop: int) -> tuple[bool, Words]:
        state = np.zeros((2 * bins.count**2, 5), np.int64)
        part = (low[start:stop], high[start:stop], c[start:stop])
        kept: tuple[Any, Any, Any] = (None, None, None)
        if copies is not None:
            kept = (copies[0][start:stop], copies[1][start:stop], copies[2][start:stop])
        if crowded:
            good = bool(kernels.add_crowded_intervals(*part, *bins.lookup, state))
        else:
            good = bool(kernels.add_intervals(*part, *bins.lookup, *kept, state))
        return good, _low_words_carried(state)

    parts = map_blocks(one, low.size)
    if not all(good for good, _ in parts):
        return None
    table = np.sum([state for _, state in parts], axis=0)
    keys = np.flatnonzero(table[:, 0])
    return Cells(keys, _low_words_carried(table[keys]))


def merge_cells(parts: Sequence[Cells]) -> Cells:
    """One set of cells from several: the same for any order of them."""
    keys = np.concatenate([part.keys for part in parts])
    if not keys.size:
        return Cells.empty()
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    sums = np.add.reduceat(np.concatenate([part.sums for part in parts])[order], starts, axis=0)
    return Cells(keys[starts], _low_words_carried(sums))


def _low_words_carried(sums: Words) -> Words:
    """The same sums with every low word in 32 bits."""
    from certcal._kernels.bins import LOW

    out = sums.copy()
    out[:, 1::2] += out[:, 2::2] >> 32
    out[:, 2::2] &= LOW
    return out


def float_sums(cells: Cells) -> NDArray[np.float64]:
    """(count, Σ lower, Σ upper) of every cell, each rounded once."""
    out = np.empty((cells.keys.size, 3))
    out[:, 0] = cells.sums[:, 0]
    out[:, 1:] = (cells.sums[:, 1::2] * 2.0**32 + cells.sums[:, 2::2]) * UNIT
    return out


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
        arrays = readable_arrays(lower, upper, correct) if certified is None else None
        if arrays is not None:
            program = cls(edges, closed, arrays[0].dtype)
            copies = (np.empty_like(arrays[0]), np.empty_like(arrays[1]), np.empty_like(arrays[2])) if own else None
            if program.group(arrays, copies):
                return program, Intervals(*(copies or arrays), None)
        intervals = check_intervals(lower, upper, correct, certified, own)
        return cls.of(intervals, edges, closed), intervals

    @classmethod
    def of(cls, intervals: Intervals, edges: Floats, closed: str) -> Program:
        program = cls(edges, closed, intervals.lower.dtype)
        program.masked = intervals.certified is not None
        program.free = len(intervals) - intervals.certified_count
        if intervals.certified_count:
            program.group(intervals.only_certified().arrays)
        return program

    def group(self, samples: Arrays, copies: Arrays | None = None) -> bool:
        """Take these samples instead of what was there; whether their intervals are in order (else nothing changes)."""
        cells = group_cells(samples, self.bins, copies)
        if cells is None:
            return False
        self._cells, self.n = cells, samples[0].size
        return True

    def merge(self, other: Program) -> None:
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
            self._cells, self._waiting = merge_cells([self._cells, *self._waiting]), []
        return self._cells

    def solve(self, free: int = 0, free_correct: int = 0, sense: int = 1) -> tuple[float, NDArray[np.int8]]:
        """Largest Σ_m |S_m| and the signs of kept bins; ``free`` more samples, all correct or all not, lie anywhere.

        With ``sense=-1`` the smallest Σ_n g_n(s) over sign patterns s, where g_n(s) is the best that sample n can do.
        """
        wrong, right = self._columns()
        if free:
            whole = np.zeros(1, np.int64), np.array([self.bins.count - 1])
            if free_correct:
                right = append_cells(right, (*whole, np.array([[free, free, 0.0]])))
            else:
                wrong = append_cells(wrong, (*whole, np.array([[free, free, 0.0]])))
        return best_signs(1.0 - self.bins.edges, self.bins.edges, right, wrong, sense)

    def _columns(self) -> tuple[Columns, Columns]:
        """Lowest bin, highest bin, and how many, Σ worth where they stay and where they cannot, of the cells.

        First those of incorrect samples, which stay at their upper ends; then those of correct ones.
        """
        cells, bins = self._settle(), self.bins.count
        cut = int(np.searchsorted(cells.keys, bins**2))
        ends = cells.keys % bins**2
        number, low, high = float_sums(cells).T
        wrong, right = np.stack([number, high, -low], axis=1), np.stack([number, number - low, high - number], axis=1)
        lows, highs = ends // bins, ends % bins
        return (lows[:cut], highs[:cut], wrong[:cut]), (lows[cut:], highs[cut:], right[cut:])


def best_signs(
    up: Floats, down: Floats, right: Columns, wrong: Columns, sense: float
) -> tuple[float, NDArray[np.int8]]:
    """The largest (or with ``sense=-1`` the smallest) sum over cells, and its signs: see ``_kernels/signs.py``."""
    from certcal._kernels.signs import best_runs

    small = np.uint16 if up.size <= 1 << 16 else np.int64  # NumPy sorts 16-bit numbers by radix
    by_high, by_low = (np.argsort(ends.astype(small), kind="stable") for ends in (right[1], wrong[0]))
    value, signs = best_runs(up, down, *right, by_high, *wrong, by_low, float(sense))
    return float(value), signs


def append_cells(one: Columns, other: Columns) -> Columns:
    return np.append(one[0], other[0]), np.append(one[1], other[1]), np.concatenate((one[2], other[2]))


def witness(
    bins: Bins, intervals: Intervals, signs: NDArray[np.int8], free_correct: int | None = None
) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """Confidences that the signs make the samples choose, in the input order and type, and their correctness.

    Uncertified samples are NaN, or chosen freely when ``free_correct`` is given.
    """
    from certcal._kernels.signs import place

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
