"""Worst case of the maximum calibration error, exactly.

Only one bin counts, so for each bin and sign ask: how large can the mean gap s(c - z) of that bin be? Samples that
cannot leave the bin must be in it. Of those that can, the best mean takes the ones with the largest gaps, as long as
a gap exceeds the mean of what is already there: adding it then raises the mean, and a set that leaves out a larger
gap than one it takes is improved by swapping the two. So the maximum is over prefixes of the gaps in falling order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import choice
from certcal._base.select import running_shares
from certcal.binning import CLOSED, BinTable, edges_for, sums
from certcal.worst_case._program import Bins
from certcal.worst_case._result import WorstCase, outward
from certcal.worst_case.intervals import Intervals, check_intervals

Floats = NDArray[np.float64]
NAME = "maximum calibration error"

# Of a mean gap: the running sums, the gaps, their multiples, two additions and a division are each off by at most half
# a unit of 2^-52 per sample.
ROUNDING = 8 * 2.0**-52


@names_wrong_types
def mce(
    lower: Any,
    upper: Any,
    correct: Any,
    bins: int = 15,
    *,
    edges: Any = None,
    closed: str = "left",
    certified: Any = None,
) -> WorstCase:
    """Largest maximum calibration error inside the intervals, exactly, in O(N log N).

    Parameters are those of :func:`calibration_error`.

    Examples
    --------
    >>> round(mce([0.25, 0.625], [0.25, 0.75], [1, 1], bins=2).value, 12)
    0.75
    """
    intervals = check_intervals(lower, upper, correct, certified)
    return mce_of(intervals, edges_for(bins, edges), choice(closed, CLOSED, "closed"))


def mce_of(intervals: Intervals, edges: Floats, closed: str) -> WorstCase:
    settings = {"bins": edges.size - 1, "closed": closed}
    kept = intervals.only_certified()
    search = _Search(kept, Bins.build(edges, closed, kept.lower.dtype))
    found = search.best(0)
    everything = None
    if intervals.certified is not None:
        free = len(intervals) - len(kept)
        more = search.best(free)
        everything = WorstCase(
            NAME,
            outward(more.value, ROUNDING),
            len(intervals),
            None,
            lambda: search.witness(more, intervals, free=True),
            settings={**settings, "uncertified": "free"},
        )
    return WorstCase(
        NAME,
        outward(found.value, ROUNDING),
        len(kept),
        None,
        lambda: search.witness(found, intervals),
        everything,
        settings=settings,
    )


@dataclass(frozen=True)
class _BestBin:
    """The best bin, its sign, and the smallest gap that is taken by choice."""

    value: float
    bin: int
    sign: int
    cut: float


class _Search:
    """Samples by the bin in which they start (sign +) or end (sign -), and how many pass each bin."""

    def __init__(self, kept: Intervals, bins: Bins) -> None:
        self.kept, self.bins, self.edges = kept, bins, bins.edges
        self.low_bin, self.high_bin = bins.locate(kept.lower), bins.locate(kept.upper)
        self.low, self.high = kept.lower.astype(np.float64), kept.upper.astype(np.float64)
        self.c = kept.correct.astype(np.float64)

    def best(self, free: int) -> _BestBin:
        """The largest mean gap over bins and signs; ``free`` more samples may be anything anywhere."""
        result = _BestBin(-1.0, 0, 1, np.inf)
        for sign in (1, -1):
            home = self.low_bin if sign > 0 else self.high_bin
            gap = self.c - self.low if sign > 0 else self.high - self.c
            must = self.low_bin == self.high_bin
            order = np.lexsort((-gap, home))
            starts = np.searchsorted(home[order], np.arange(self.edges.size))
            passing = [self._count_passing(sign, right) for right in (1, 0)]
            for m in range(self.edges.size - 1):
                mine = order[starts[m] : starts[m + 1]]
                edge = self.edges[m] if sign > 0 else self.edges[m + 1]
                forced, chosen = mine[must[mine]], mine[~must[mine]]
                worth = [1 - edge, -edge] if sign > 0 else [edge - 1, edge]
                counts = [passing[0][m] + (free if sign > 0 else 0), passing[1][m] + (free if sign < 0 else 0)]
                value, cut = _best_mean(gap[forced], gap[chosen], np.array(worth), np.array(counts))
                if value > result.value:
                    result = _BestBin(value, m, sign, cut)
        return result

    def _count_passing(self, sign: int, right: int) -> NDArray[np.int64]:
        """How many (in)correct samples can be in each bin that is not their home bin."""
        chosen = self.c == right
        first = self.low_bin[chosen] + (1 if sign > 0 else 0)
        stop = self.high_bin[chosen] + (1 if sign > 0 else 0)
        size = self.edges.size + 1
        return np.cumsum(np.bincount(first, minlength=size) - np.bincount(stop, minlength=size))

    def witness(self, best: _BestBin, intervals: Intervals, free: bool = False) -> tuple[NDArray[Any], BinTable]:
        m, given, closed = best.bin, self.bins.given, self.bins.closed
        bottom, top = (float(end) for end in self.bins.inside(np.array(m)))
        can = (self.low_bin <= m) & (m <= self.high_bin)
        must = can & (self.low_bin == self.high_bin)
        if best.sign > 0:
            inside, home = np.where(self.low_bin == m, self.low, bottom), self.low_bin == m
            gap, away = self.c - np.where(home, self.low, self.edges[m]), np.where(home, self.high, self.low)
            free_z, free_c = bottom, 1
        else:
            inside, home = np.where(self.high_bin == m, self.high, top), self.high_bin == m
            gap, away = np.where(home, self.high, self.edges[m + 1]) - self.c, np.where(home, self.low, self.high)
            free_z, free_c = top, 0
        taken = must | (can & (gap >= best.cut))
        z, c = np.where(taken, inside, away).astype(self.bins.dtype), self.kept.correct
        if free:
            z, c = intervals.among_all(z, free_z), intervals.among_all(c, free_c)
            return z, sums(z, c, None, given, closed)
        return intervals.among_all(z), sums(z, c, None, given, closed)


def _best_mean(forced: Floats, chosen: Floats, worth: Floats, counts: NDArray[np.int64]) -> tuple[float, float]:
    """Largest mean of the forced gaps and a choice of the others, and the smallest gap taken by choice."""
    gaps, times = np.concatenate((chosen, worth)), np.concatenate((np.ones(chosen.size), counts))
    gaps, times = gaps[times > 0], times[times > 0]
    order = np.argsort(-gaps, kind="stable")
    gaps, times = gaps[order], times[order]
    number = forced.size + np.concatenate(([0.0], np.cumsum(times)))
    must = running_shares(forced)[-1] if forced.size else 0.0
    total = must + np.concatenate(([0.0], running_shares(gaps * times)))
    means = np.divide(total, number, out=np.full(number.size, -np.inf), where=number > 0)
    k = int(np.argmax(means))
    return float(means[k]), float(gaps[k - 1]) if k else np.inf
