"""Samples grouped by the bins they can reach, in sums that merge: all that the exact maximum needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certcal._checks import kernel_float
from certcal._threads import map_blocks
from certcal.worst_case._bins import Bins
from certcal.worst_case._intervals import Arrays

Words = NDArray[np.int64]

# What whole numbers of the kernels are multiples of.
UNIT = 2.0**-50

# Tables with a place for every cell up to this many; beyond, only cells that hold samples exist.
DENSE = 1 << 16


class Cells(NamedTuple):
    """Cells that hold samples.

    ``keys`` are (correct · bins + lowest bin) · bins + highest bin, rising. ``sums`` has the number of samples, then
    Σ lower and Σ upper, each as the words of high · 2³² + low multiples of 2⁻⁵⁰.
    """

    keys: Words
    sums: Words

    @classmethod
    def empty(cls) -> Cells:
        """No cell."""
        return cls(np.empty(0, np.int64), np.empty((0, 5), np.int64))


def gather(samples: Arrays, bins: Bins, copies: Arrays | None = None) -> Cells | None:
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
        return Cells(keys, _carried(sums))

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
        return good, _carried(state)

    parts = map_blocks(one, low.size)
    if not all(good for good, _ in parts):
        return None
    table = np.sum([state for _, state in parts], axis=0)
    keys = np.flatnonzero(table[:, 0])
    return Cells(keys, _carried(table[keys]))


def merged(parts: Sequence[Cells]) -> Cells:
    """One set of cells from several: the same for any order of them."""
    keys = np.concatenate([part.keys for part in parts])
    if not keys.size:
        return Cells.empty()
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    sums = np.add.reduceat(np.concatenate([part.sums for part in parts])[order], starts, axis=0)
    return Cells(keys[starts], _carried(sums))


def _carried(sums: Words) -> Words:
    """The same sums with every low word in 32 bits."""
    from certcal._kernels.bins import LOW

    out = sums.copy()
    out[:, 1::2] += out[:, 2::2] >> 32
    out[:, 2::2] &= LOW
    return out


def as_floats(cells: Cells) -> NDArray[np.float64]:
    """(count, Σ lower, Σ upper) of every cell, each rounded once."""
    out = np.empty((cells.keys.size, 3))
    out[:, 0] = cells.sums[:, 0]
    out[:, 1:] = (cells.sums[:, 1::2] * 2.0**32 + cells.sums[:, 2::2]) * UNIT
    return out


def squares(samples: Arrays) -> int:
    """Σ max (c - z)² over checked samples, in multiples of 2⁻⁵⁰: the same for any order and pieces, never too small.

    It bounds the sum of their squared gains whatever the signs. Every square is rounded to a multiple of 2⁻⁵⁰ and off
    by at most one of them, which is added.
    """
    from certcal._kernels.cells import add_squares

    low, high, c = kernel_float(samples[0]), kernel_float(samples[1]), samples[2]

    def one(start: int, stop: int) -> int:
        words = np.zeros(2, np.int64)
        add_squares(low[start:stop], high[start:stop], c[start:stop], words)
        return (int(words[0]) << 32) + int(words[1])

    return sum(map_blocks(one, low.size)) + low.size
