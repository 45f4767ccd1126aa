"""Where is the model miscalibrated? Local averages of the outcomes, with a band for the calibration function."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certcal._base.assumptions import NOT_USED_BEFORE
from certcal._base.checks import MOST_CHANGE, InputError, failure_probability, flag, positive
from certcal.binning import BinTable, equal_width_edges, sums
from certcal.bounds import _perturb
from certcal.bounds._band import CalibrationBand, Floats
from certcal.bounds._isotonic_band import OUTCOMES
from certcal.bounds._shared import check_pairs, check_seed
from certcal.bounds.concentration import binomial_limits
from certcal.claims import short_text

# What a straight line between two places may be off by, and how many places there are at most.
STRAIGHT = 1 / 1024
MOST_PLACES = 12  # as a power of two
# Samples are counted in cells of this share of the unit interval.
CELLS = 1 << 16
# Half widths of the windows that are tried, in units of 1/(largest slope).
TRIED = tuple(2.0 ** (power / 2) for power in range(-16, 7))


Places = NDArray[np.int64]


class Slopes(NamedTuple):
    """Largest slope of η and of its slope, and what is assumed so."""

    first: float
    second: float
    kind: str
    assumption: str
    settings: dict[str, Any]


def surrogate(
    scores: Any,
    outcomes: Any,
    bandwidth: float | None = None,
    delta: float = 0.05,
    *,
    constant: float | None = None,
    seed: int = 0,
    perturb: bool = False,
) -> CalibrationBand:
    """The local average η̂ of the outcomes, with a band that holds η(s) = P(y = 1 | s) at every score at once.

    For scores that were perturbed by :func:`certcal.bounds.perturb` with this bandwidth h, for which |η′| <= 1/2h and
    |η″| <= 1/2h² whatever the classifier (see :func:`certcal.bounds.smooth`); or for any scores and an η that changes
    by at most ``constant`` per unit of the score, which is then an assumption. (A bounded variation would not do: such
    an η can be anything at a single score.)

    What is random: the outcomes, given the perturbed scores. With probability at least 1 - δ over them lower(s) <=
    η(s) <= upper(s) for all s in [0, 1] together. What is assumed: outcomes are independent given the scores, and what
    is said above of η.

    Why: the m samples in a window around a place x, chosen by looking at scores only, have a mean probability p̄ =
    Σ_j η(s_j)/m. Clopper and Pearson's limits for draws with probabilities of their own
    (:func:`certcal.bounds.clopper_pearson`, ``identical=False``) hold p̄ except with probability δ/W, where W is the
    number of different windows. And |p̄ - η(x)| is at most |η′| times the mean of |s_j - x|, and at most |η′| |mean of
    (s_j - x)| + |η″|/2 · (mean of (s_j - x)²) (Taylor around x). So all places have limits for η at once. Neighbours
    sharpen each other, since η has a largest slope. Between two places that are Δ apart η is off the straight line by
    at most |η″| Δ²/8 and |η′| Δ/2; the band is wider by that, so straight lines between its places hold η as well.

    Parameters
    ----------
    scores, outcomes, bandwidth, delta, seed, perturb
        As for :func:`certcal.bounds.smooth`.
    constant
        Largest slope of η, in place of the bandwidth.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> s = rng.random(100_000)
    >>> band = surrogate(s, rng.random(s.size) < s**2, 2**-3, perturb=True)
    >>> print(band.regions[-1].sentence)
    Scores from 0.0517 to 1.0000 over-predict: at 0.5156 the rate is at most 0.3199.
    """
    level, start = failure_probability(delta, "delta"), check_seed(seed)
    if (bandwidth is None) == (constant is None):
        raise InputError("bandwidth and constant: pass one of them; they say how fast the calibration function changes")
    slopes = _lipschitz_slopes(constant) if bandwidth is None else _smooth_slopes(bandwidth)
    s, y = check_pairs(scores, outcomes)
    if flag(perturb, "perturb"):
        if bandwidth is None:
            raise InputError("perturb needs a bandwidth; pass it in place of constant, or perturb=False")
        s = _perturb.perturb_scores(s, bandwidth, start)
    return _band(s.astype(np.float64, copy=False), y, slopes, level)


def _smooth_slopes(bandwidth: float) -> Slopes:
    h = _perturb.check_bandwidth(bandwidth)
    return Slopes(0.5 / h, 0.5 / h**2, "perturbed", _perturb.perturbed_assumption(h), {"bandwidth": h})


def _lipschitz_slopes(constant: Any) -> Slopes:
    slope = positive(constant, "constant", MOST_CHANGE)
    limit = short_text(slope, "lower")
    change = f"the share of outcomes 1 as a function of the score changes by at most {limit} per unit of the score"
    return Slopes(slope, math.inf, "Lipschitz", change, {"constant": slope})


def _band(s: Floats, y: NDArray[np.uint8], slopes: Slopes, delta: float) -> CalibrationBand:
    cells = sums(s, y, None, equal_width_edges(CELLS))
    first = slopes.first
    # Δ at which a straight line is off by STRAIGHT.
    apart = max(2 * STRAIGHT / first, math.sqrt(8 * STRAIGHT / slopes.second))
    count = 1 << min(max(5, math.ceil(-math.log2(apart))), MOST_PLACES)
    places: Floats = np.arange(count + 1) / count
    off = min(first / (2 * count), slopes.second / (8 * count**2))
    start, stop, bias = _windows(cells, places, slopes, math.log(2 * places.size / delta))
    used = np.flatnonzero(start < stop)
    several, which = np.unique(np.stack((start[used], stop[used])), axis=1, return_inverse=True)
    size, hits = (np.concatenate(([0], np.cumsum(each))) for each in (cells.count, cells.correct_sum.astype(np.int64)))
    m, k = (each[several[1]] - each[several[0]] for each in (size, hits))
    limits = binomial_limits(k, m, delta / max(1, m.size) * (1 - 1e-12), identical=False)
    lower, upper, estimate = np.zeros(places.size), np.ones(places.size), np.full(places.size, np.nan)
    lower[used], upper[used] = limits.lower[which] - bias[used], limits.upper[which] + bias[used]
    estimate[used] = (k / m)[which]
    lower, upper = -_limit_by_slope(-lower, places, first), _limit_by_slope(upper, places, first)
    lower, upper = np.maximum(lower - off - 1e-12, 0), np.minimum(upper + off + 1e-12, 1)
    if (lower <= upper).all():
        estimate = np.clip(estimate, lower, upper)
    span = float(s.min()), float(s.max())
    assumptions = (OUTCOMES, NOT_USED_BEFORE, slopes.assumption)
    return CalibrationBand(
        slopes.kind, places, lower, upper, estimate, delta, s.size, span, assumptions, slopes.settings
    )


def _windows(cells: BinTable, places: Floats, slopes: Slopes, log: float) -> tuple[Places, Places, Floats]:
    """Of a few windows around each place, the one with the least sum of bias and expected width, were η(s) = s.

    Its first cell and the one after its last (the same where no window holds a sample), and the largest bias.

    Windows consist of whole cells, and places are edges of cells. A sum of squares over a cell [a, b] is at most
    (a + b) Σs - ab · (samples), because (s - a)(s - b) <= 0. Sums over a window are differences of running sums of
    numbers that add up to at most n: each is off by at most n · CELLS · 2^-53, for which there is room.
    """
    left, right = cells.edges[:-1], cells.edges[1:]
    squares = (left + right) * cells.confidence_sum - left * right * cells.count
    size, ones, twos = (np.concatenate(([0], np.cumsum(each))) for each in (cells.count, cells.confidence_sum, squares))
    middle = np.rint(places * CELLS).astype(np.int64)
    chosen = np.zeros(places.size, np.int64), np.zeros(places.size, np.int64), np.ones(places.size)
    least = np.full(places.size, np.inf)
    rounding = 4 * float(size[-1]) * CELLS * 2.0**-53
    for reach in sorted({min(max(1, round(width / slopes.first * CELLS)), CELLS) for width in TRIED}):
        start, stop = np.maximum(middle - reach, 0), np.minimum(middle + reach, CELLS)
        m = size[stop] - size[start]
        divisor = np.maximum(m, 1)
        one, two = ones[stop] - ones[start], twos[stop] - twos[start]
        signed, square = one - m * places, two - 2 * places * one + m * places**2
        above = ones[stop] - ones[middle] - (size[stop] - size[middle]) * places
        lost, width = rounding / divisor, reach / CELLS
        bias = slopes.first * np.minimum((2 * above - signed) / divisor + lost, width)
        if math.isfinite(slopes.second):
            curved = slopes.second / 2 * np.minimum(square / divisor + lost, width**2)
            bias = np.minimum(bias, slopes.first * (np.abs(signed) / divisor + lost) + curved)
        cost = bias + np.sqrt(2 * log * places * (1 - places) / divisor) + log / divisor
        better = (m > 0) & (cost < least)
        least[better] = cost[better]
        for kept, new in zip(chosen, (start, stop, bias), strict=True):
            kept[better] = new[better]
    return chosen


def _limit_by_slope(upper: Floats, places: Floats, slope: float) -> Floats:
    """The smallest of all upper ends, each raised by the slope times its distance."""
    from_left = np.minimum.accumulate(upper - slope * places) + slope * places
    from_right = np.minimum.accumulate((upper + slope * places)[::-1])[::-1] - slope * places
    return np.minimum(from_left, from_right)
