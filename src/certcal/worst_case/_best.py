"""Brackets of the smallest calibration error: a proved lower end, and confidences that come near it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal.binning import BinTable, sums
from certcal.metrics.binned import ece_of
from certcal.worst_case._bins import Bins
from certcal.worst_case._intervals import Intervals
from certcal.worst_case._program import Program
from certcal.worst_case._result import WorstCase, outward

Floats = NDArray[np.float64]


def smallest_calibration_error(name: str, program: Program, intervals: Intervals, kept: Intervals) -> WorstCase:
    """Bracket of the smallest calibration error.

    Lower end: min over z of max over s of Σ s(c - z) is at least max over s of min over z, and for given signs that
    minimum is minus the best that the samples can do with all signs turned; so the maximum over s is -min_s Σ g_n(s).
    A free sample can cancel at most 1 of Σ_m |S_m|, and adds nothing when it is certain and right.
    """
    bins, n = program.bins, len(kept)
    proved = -program.solve(sense=-1)[0]
    z = smallest_found(kept, bins)
    total = ece_of(sums(z, kept.correct, None, bins.given, bins.closed)) * n
    settings: dict[str, Any] = {"bins": bins.given.size - 1, "closed": bins.closed}

    def attain(rest: float) -> tuple[NDArray[Any], BinTable]:
        whole, c = np.full(len(intervals), rest, bins.dtype), np.ones(len(intervals), np.uint8)
        place = slice(None) if intervals.certified is None else intervals.certified
        whole[place], c[place] = z, kept.correct
        used = ~np.isnan(whole)
        return whole, sums(whole[used], c[used], None, bins.given, bins.closed)

    def result(free: int, rest: float, more: dict[str, Any], everything: WorstCase | None = None) -> WorstCase:
        value, end = total / (n + free), outward((proved - free) / (n + free), bins.rounding, "lower")
        return WorstCase(
            name,
            value,
            n + free,
            None,
            lambda: attain(rest),
            everything,
            extreme="lowest",
            lower_end=min(end, value),
            settings={**settings, **more},
        )

    if intervals.certified is None:
        return result(0, np.nan, {})
    return result(0, np.nan, {}, result(len(intervals) - n, 1.0, {"uncertified": "free"}))


def smallest_found(kept: Intervals, bins: Bins) -> NDArray[Any]:
    """Confidences inside the intervals with a small calibration error.

    From several starts, every bin's samples are moved inside bin and interval until the bin's mean gap vanishes or
    they can move no further; the best of these is returned.
    """
    low, high = kept.lower.astype(np.float64), kept.upper.astype(np.float64)
    found: list[tuple[float, NDArray[Any]]] = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        start = np.clip((low + share * (high - low)).astype(bins.dtype), kept.lower, kept.upper)
        where = bins.locate(start)
        bottom, top = bins.inside(where)
        least, most = np.maximum(low, bottom), np.minimum(high, top)

        def per_bin(values: NDArray[Any], where: NDArray[np.int64] = where) -> Floats:
            return np.bincount(where, values, bins.count).astype(np.float64)

        wanted = per_bin(kept.correct) - per_bin(start)
        room = np.where(wanted > 0, per_bin(most - start), per_bin(start - least))
        part = np.clip(np.divide(np.abs(wanted), room, out=np.zeros(bins.count), where=room > 0), 0, 1)
        moved = np.where(wanted[where] > 0, most - start, least - start) * part[where] + start
        z = np.clip(moved, least, most).astype(bins.dtype)
        found.append((ece_of(sums(z, kept.correct, None, bins.given, bins.closed)), z))
    return min(found, key=lambda pair: pair[0])[1]
