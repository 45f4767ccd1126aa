"""The worst calibration error when, besides an interval for every sample, the sum of some of their ends is limited.

Intervals that hold one by one are wide, and a worst case takes the far end of each. Where the noise of the samples is
independent, the *sum* of their ends is known much better. Let a_n be the end of sample n that matters (its lower end,
or 1 minus its upper end), â_n an estimate of it, T a set of samples, and let

    Σ_{n in T} (â_n - a_n) <= D,   each a_n in [least_n, most_n],   each other end within its limit.

For every sign pattern s the worth of sample n falls with a_n, and

    Σ_n g_n(s; a_n) <= Σ_n g_n(s; a_n) + Σ_{n in T} (a_n - â_n) + D <= Σ_n v_n(s) + D,

where v_n(s) is the largest g_n(s; a) + a - â_n over [least_n, most_n] for n in T, and the largest g_n(s; a) otherwise.
So D is paid once, and a sample's own limits matter only where its end may lie in a bin of another sign. If it is not
known whether n is in T, v_n(s) is the larger of the two.

For a correct sample whose first reachable '+' is bin p, with edges b (an incorrect one is its mirror image):

* not in T: 1 - max(l, b_p), or u - 1 where no '+' is reachable;
* with the lower end between l and m: 1 - max(m, b_p) + m - â, or u - 1 + m - â. For an end e in bin p or beyond,
  1 - max(e, b_p) + e - â grows with e; and u - 1 <= 1 - max(m, b_p), so a '+' that is reachable is never worse;
* with the upper end between m and u: 1 - max(l, b_p) + e - max(m, b_p), or e - 1, with the estimate e of the upper end:
  a '+' in bin p is reached only by ends of at least b_p, and the smallest of them is worth most.

All depend on s through p alone, so the maximum over the signs is found from tables by own bin and p, as always.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal.binning import edges_for
from certcal.worst_case._gains import least_runs
from certcal.worst_case._program import Bins

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

# Bins up to which sums over runs are tables.
MOST_POOLED_BINS = 2048


@dataclass(frozen=True, eq=False)
class PooledEnds:
    """Limits of every sample's interval, and which of its ends are in a sum that is limited as well."""

    lower: Floats
    upper: Floats
    """Each interval lies within these."""
    end: NDArray[np.int8]
    """-1 where the lower end may be in the sum, 1 where the upper end may be, 0 where neither is."""
    estimate: Floats
    inner: Floats
    """Of that end: its estimate, and a limit of it from inside the interval."""
    sure: Flags
    """Whether it is in the sum for sure."""
    deviation: float
    """Σ (estimate - lower end) + Σ (upper end - estimate) over the ends in the sum is at most this."""

    def flip(self, rows: Flags) -> PooledEnds:
        """Some samples, with confidences read as 1 minus what they are."""
        one = self.select(rows)
        estimate, inner = 1 - one.estimate, 1 - one.inner
        return PooledEnds(1 - one.upper, 1 - one.lower, -one.end, estimate, inner, one.sure, self.deviation)

    def select(self, rows: Flags) -> PooledEnds:
        """Some samples."""
        names = ("lower", "upper", "end", "estimate", "inner", "sure")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})


@names_wrong_types
def pooled_calibration_error(
    ends: PooledEnds,
    correct: Any,
    certified: Any,
    bins: int = 15,
    *,
    edges: Any = None,
    closed: str = "left",
    samples: str = "certified",
) -> float:
    """Largest calibration error of the certified samples, or of all, that the ends allow; rounded up.

    Those that are not certified are in the error of all samples only, with any confidence and correctness.

    Examples
    --------
    >>> one = np.ones(1000)
    >>> ends = PooledEnds(0.7 * one, 0.95 * one, -one.astype(np.int8), 0.8 * one, 0.9 * one, one > 0, 10.0)
    >>> round(pooled_calibration_error(ends, one, one > 0, bins=10), 6)  # each alone: 1 - 0.7
    0.21
    """
    kept, right = np.asarray(certified, np.bool_), np.asarray(correct, np.bool_)
    grid = Bins.build(edges_for(bins, edges), closed, np.dtype(np.float64))
    free = int(np.count_nonzero(~kept)) if samples == "all" else 0
    n = int(np.count_nonzero(kept)) + free
    slack = ends.end[~kept] * (ends.estimate - ends.inner)[~kept]
    outside = np.where(ends.sure[~kept] | (slack > 0), slack, 0.0)
    up, down = kept & right, kept & ~right
    # Seen from above, bins are numbered from the top, and an interval's lowest bin is what was its highest.
    low, high = grid.locate(ends.lower), grid.locate(ends.upper)
    last = grid.count - 1
    tables = [
        _gain_table(ends.select(up), low[up], high[up], grid.edges),
        _gain_table(ends.flip(down), last - high[down], last - low[down], 1 - grid.edges[::-1]),
    ]
    total = _largest_signed_sum(*tables)
    if free:
        anywhere = np.append(1 - grid.edges[:-1], 0.0), np.append(grid.edges[:0:-1], 0.0)
        more = [table.copy() for table in tables]
        for table, worth in zip(more, anywhere, strict=True):
            table[0] += free * worth
        total = max(_largest_signed_sum(more[0], tables[1]), _largest_signed_sum(tables[0], more[1]))
    size = 2 + float(np.abs(ends.estimate).max(initial=0.0)) + float(np.abs(ends.inner).max(initial=0.0))
    rounding = 2.0**-52 * size * (kept.size + 4 * grid.count + 20)
    return min(1.0, (total + float(outside.sum()) + ends.deviation) / n + rounding)


def _gain_table(ends: PooledEnds, low: NDArray[np.int64], high: NDArray[np.int64], edges: Floats) -> Floats:
    """What correct samples bring, by their lowest bin (rows) and the first '+' from there on; last, where none is."""
    bins = edges.size - 1
    table = np.zeros((bins, bins + 1))
    most = ends.inner.clip(ends.lower, ends.upper)
    by_lower, by_upper, maybe = ends.end < 0, ends.end > 0, ~ends.sure & (ends.end != 0)
    start = np.where(by_lower, most, ends.lower)
    shift = np.where(by_lower, most - ends.estimate, 0.0)

    def worths(alone: Floats, pooled: Floats, upper_end: Any) -> Floats:
        """Worths of the samples in their cases; ``upper_end`` is what the upper end adds where it is in the sum."""
        pooled = np.where(by_upper, pooled + ends.estimate - upper_end, pooled + shift)
        return np.where(maybe, np.maximum(alone, pooled), pooled)

    none = worths(ends.upper - 1, ends.upper - 1, ends.upper)
    for t, edge in enumerate(edges[:-1].tolist()):
        reached = worths(1 - np.maximum(ends.lower, edge), 1 - np.maximum(start, edge), np.maximum(most, edge))
        table[:, t] = np.bincount(low, np.where(high >= t, reached, none), bins)
    table[:, bins] = np.bincount(low, none, bins)
    return table


def _largest_signed_sum(right: Floats, wrong: Floats) -> float:
    """The largest sum over all sign patterns, of correct samples' table and of the others', seen from above."""
    stays, turned = np.diagonal(right), wrong[::-1]
    held = np.diagonal(wrong)[::-1]
    minus = right[:, 1:] + held[:, None]
    plus = turned[:, :0:-1] + stays[:, None]
    return -float(least_runs(-minus[None], -plus[None])[0])
