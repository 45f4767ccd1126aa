"""Worst case of the Kolmogorov-Smirnov calibration error, exactly and without bins.

For a threshold t and a sign every sample decides alone:

* sign +: a correct sample with lower <= t adds 1 - lower; an incorrect one with upper <= t cannot get away and takes
lower.
* sign -: an incorrect sample with lower <= t adds min(upper, t); a correct one with upper <= t cannot get away and
  takes 1 - upper.

Both are piecewise linear in t with breaks at the ends of the intervals, so the maximum is at a break or just before
one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.select import running_shares
from certcal.metrics.cumulative import ks_error_of as ks_error_of_samples
from certcal.worst_case._result import WorstCase, outward
from certcal.worst_case.intervals import Intervals, check_intervals

Floats = NDArray[np.float64]

# Of a value: running sums of shares are off by half a unit of 2^-52 per sample, as is each of the at most eight other
# additions and products of numbers up to n.
ROUNDING = 8 * 2.0**-52


@names_wrong_types
def ks_error(lower: Any, upper: Any, correct: Any, *, certified: Any = None, best: bool = False) -> WorstCase:
    """Largest KS calibration error inside the intervals, exactly, in O(N log N).

    Parameters
    ----------
    lower, upper, correct, certified
        As for :func:`calibration_error`.
    best
        Whether to bracket the smallest KS calibration error instead: ``lower_end`` is proved, ``value`` is attained.

    Examples
    --------
    >>> round(ks_error([0.25, 0.5], [0.75, 0.5], [1, 0]).value, 12)
    0.375
    """
    return ks_error_of(check_intervals(lower, upper, correct, certified), best)


def ks_error_of(intervals: Intervals, best: bool = False) -> WorstCase:
    kept = intervals.only_certified()
    if best:
        return _best(kept, intervals)
    value, threshold, sign = worst_threshold(kept)
    everything = None
    if intervals.certified is not None:
        everything = _all_samples(kept, intervals)
    return WorstCase(
        "KS calibration error",
        outward(value / len(kept), ROUNDING),
        len(kept),
        None,
        lambda: (_witness(intervals, threshold, sign), None),
        everything,
    )


def worst_threshold(intervals: Intervals, free: int = 0) -> tuple[float, float, int]:
    """Largest |Σ_{z <= t} (c - z)|, the threshold and the sign; ``free`` more samples may be anything."""
    t, rise, fall, fall_before = curves(intervals)
    # A free sample is best as correct with confidence 0 (sign +: worth 1 at every t), or incorrect at t (sign -).
    up = rise + free
    down, down_before = fall + free * t, fall_before + free * t
    best = max((float(up.max()), 1), (float(down.max()), -1), (float(down_before.max()), -2))
    at = {1: up, -1: down, -2: down_before}[best[1]]
    return best[0], float(t[int(np.argmax(at))]), best[1]


def curves(intervals: Intervals) -> tuple[Floats, Floats, Floats, Floats]:
    """Breakpoints t; G₊(t); G₋(t); and G₋ just before t."""
    low, high = intervals.lower.astype(np.float64), intervals.upper.astype(np.float64)
    right = intervals.correct == 1
    t = np.unique(np.concatenate(([0.0], low, high, [1.0])))

    def up_to(places: Floats, sizes: Floats) -> Floats:
        """Σ of the sizes at places <= t for every t."""
        order = np.argsort(places, kind="stable")
        sums = np.concatenate(([0.0], running_shares(sizes[order])))
        return sums[np.searchsorted(places[order], t, side="right")]

    rise = up_to(low[right], 1 - low[right]) - up_to(high[~right], low[~right])
    # Σ min(upper, t) over incorrect samples with lower <= t: those past their upper end, and t for those on the way.
    ended = up_to(high[~right], high[~right])
    started, over = (up_to(places, np.ones(places.size)) for places in (low[~right], high[~right]))
    caught = up_to(high[right], 1 - high[right])
    fall = ended + (started - over) * t - caught
    moving = np.concatenate(([0.0], (started - over)[:-1]))
    fall_before = np.concatenate(([0.0], (ended - caught)[:-1])) + moving * t
    return t, rise, fall, fall_before


def _witness(intervals: Intervals, threshold: float, sign: int) -> Floats:
    """Confidences that reach the value at the threshold (just below it for sign -2)."""
    low, high = intervals.lower.astype(np.float64), intervals.upper.astype(np.float64)
    limit = np.nextafter(threshold, -1.0) if sign == -2 else threshold
    right = intervals.correct == 1
    if sign > 0:
        chosen = np.where(right, low, np.where(high <= limit, low, high))
    else:
        chosen = np.where(right, high, np.where(low <= limit, np.minimum(high, limit), low))
    if intervals.certified is not None:
        chosen[~intervals.certified] = np.nan
    return chosen


def _all_samples(kept: Intervals, intervals: Intervals) -> WorstCase:
    free = len(intervals) - len(kept)
    value, threshold, sign = worst_threshold(kept, free)

    def witness() -> tuple[Floats, None]:
        chosen = _witness(intervals, threshold, sign)
        limit = np.nextafter(threshold, -1.0) if sign == -2 else threshold
        return np.where(np.isnan(chosen), 0.0 if sign > 0 else limit, chosen), None

    value = outward(value / len(intervals), ROUNDING)
    return WorstCase("KS calibration error", value, len(intervals), None, witness, settings={"uncertified": "free"})


def _best(kept: Intervals, intervals: Intervals) -> WorstCase:
    """Bracket of the smallest KS calibration error.

    At a threshold t the sum lies between -G₋(t) and G₊(t) whatever the confidences, so its magnitude is at least
    max(0, -G₊(t), -G₋(t)) for every t, and the smallest KS calibration error at least the largest of these.
    """
    _, rise, fall, fall_before = curves(kept)
    lowest = max(-float(rise.min()), -float(fall.min()), -float(fall_before.min())) / len(kept)
    proved = outward(lowest, ROUNDING, "lower")
    low, high = kept.lower.astype(np.float64), kept.upper.astype(np.float64)
    tried = [np.clip(low + share * (high - low), low, high) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    # A common level for all samples makes the sums cancel as far as the intervals allow.
    tried += [np.clip(level, low, high) for level in (float(kept.correct.mean()), 0.5)]
    value, z = min(((ks_error_of_samples(z, kept.correct), z) for z in tried), key=lambda pair: pair[0])
    return WorstCase(
        "KS calibration error",
        value,
        len(kept),
        None,
        lambda: (intervals.among_all(z), None),
        extreme="lowest",
        lower_end=min(proved, value),
    )
