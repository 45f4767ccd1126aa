"""Bounds on the smoothed confidence under every perturbation up to a radius, from histograms: the direct kinds.

Let S(t) = P(X >= t) for the noise at x, and r = R/σ. For every γ with ‖γ‖ <= R (Neyman-Pearson, as in Cohen et al. and
Kumar et al.) P(X' >= t) >= h(S(t)) for the noise at x + γ, where h(p) = Φ(Φ⁻¹(p) - r). Between thresholds S is at
least its value at the next one above, so

    E X' = ∫ P(X' >= t) dt >= Σ_j (t_j - t_{j-1}) h(S(t_j)) =: L(S).

An upper bound is 1 minus the lower bound for 1 - X: by 1 - Φ(Φ⁻¹(p) + r) = h(1 - p) that is the same sum with the
histogram read from the top. So there is one side to prove, and ``Side`` says from where it is seen. Rounding X down to
the lower edge of its cell (and 1 - X likewise) keeps every bound a bound.

Where the sum of the confidences was kept, ``standard`` needs no grid. Y is X rounded down to a multiple of u = 2⁻³⁰: a
function of the draw alone, in [0, 1], with Y <= X < Y + u. Sums of Y are whole numbers of u, so their mean has no other
rounding. Hoeffding's inequality for the independent Y gives a limit of E Y <= E X, and for 1 - Y one of E(1 - Y), from
which E(1 - X) is less than u away: on that side the mean is moved down by u. What is random are the draws, what is
assumed is what all kinds assume. The other kinds need more than a mean, and read the histogram.

Each kind takes rows of equally many draws and spends its level on its side; the bands do not depend on the radius, so
one event of probability 1 - level carries the bounds of all radii.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from certcal._base.threads import map_blocks
from certcal.bounds import clopper_pearson, dkw_width, empirical_bernstein, hoeffding
from certcal.smoothing._counts import UNITS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Bounds in memory are moved outward by this much: sums of at most a few thousand terms in [0, 1], and Φ and Φ⁻¹ with
# relative errors of a few units in the last place, are right to far more digits.
SLACK = 1e-12
# What Φ⁻¹ may be off by, relative to the radius; certified radii give that much away.
ROUNDING = 1e-12

# Rows, and limits of counts, below which a block is not worth a thread.
SMALL_ROWS, _SMALL_LIMITS = 500, 5_000


@dataclass(frozen=True)
class Side:
    """From where histograms are read: X from below, or 1 - X."""

    flip: bool
    widths: Floats

    @classmethod
    def of(cls, thresholds: Floats, flip: bool) -> Side:
        """The side of a grid of thresholds."""
        seen = 1 - thresholds[::-1] if flip else thresholds
        return cls(flip, np.diff(seen, prepend=0.0))

    def means(self, histogram: Integers) -> tuple[Floats, Floats]:
        """Mean and variance of X (or 1 - X) rounded down to the lower edge of its cell, per row."""
        edges = np.concatenate(([0.0], np.cumsum(self.widths)))
        counts = (histogram[:, ::-1] if self.flip else histogram).astype(np.float64)
        n = counts.sum(axis=1)
        mean = counts @ edges / n
        # A difference of squares in [0, 1], moved up by more than its rounding.
        spread = counts @ edges**2 / n - mean**2 + 1e-14
        return np.clip(mean, 0, 1), np.clip(spread, 0, 0.25)

    def mean_of_sums(self, sums: Integers, n: int) -> Floats:
        """No more than the mean of X (or 1 - X) over n draws, and less by at most a unit, per row."""
        mean = sums / (n * UNITS)
        return np.clip(1 - mean - 1 / UNITS if self.flip else mean, 0, 1)


class HistogramRows(NamedTuple):
    """Samples with equally many draws and the keys of their coins, seen from one side; radius over sigma; a level."""

    histogram: Integers
    keys: NDArray[np.uint64]
    side: Side
    r: float
    level: float
    sums: Integers | None = None

    @property
    def n(self) -> int:
        """Draws of each sample."""
        return int(self.histogram[0].sum())


def shift(p: Floats, r: float) -> Floats:
    """h(p) = Φ(Φ⁻¹(p) - r): the least that noise shifted by r standard deviations leaves of a probability p."""
    from scipy.special import ndtr, ndtri

    return p if r == 0 else ndtr(ndtri(p) - r)


def standard(rows: HistogramRows) -> Floats:
    """Hoeffding's limit of the mean, shifted.

    Why: L is for one event per threshold; the mean of X in [0, 1] is the probability of one event in the noise extended
    by a uniform variable U, X >= U, so E X' >= h(E X) as well (Kumar et al. 2020).
    """
    mean = rows.side.means(rows.histogram)[0] if rows.sums is None else rows.side.mean_of_sums(rows.sums, rows.n)
    return _round_down(shift(np.asarray(hoeffding(mean, rows.n, rows.level, side="lower").lower), rows.r))


def bernstein(rows: HistogramRows) -> Floats:
    """The empirical Bernstein limit of the mean, shifted: narrower than Hoeffding's when X hardly varies."""
    mean, variance = rows.side.means(rows.histogram)
    limits = empirical_bernstein(mean, variance, rows.n, rows.level, side="lower")
    return _round_down(shift(np.asarray(limits.lower), rows.r))


def cdf(rows: HistogramRows) -> Floats:
    """L of the band S - w with Dvoretzky, Kiefer and Wolfowitz's width w, the same at every threshold."""
    n = rows.n
    survival = np.arange(n + 1) / n - dkw_width(n, rows.level, side="lower")
    return _integrate_steps(rows, shift(np.maximum(survival, 0.0), rows.r))


def _shared_limits(rows: HistogramRows) -> LowerLimits:
    """Limits that hold at all thresholds together."""
    return lower_limits(rows.n, math.nextafter(rows.level / rows.side.widths.size, 0.0))


def tight(rows: HistogramRows) -> Floats:
    """L of the band of Clopper-Pearson limits at level / G, one per threshold.

    Why: the limit at one fixed threshold fails with probability at most level/G, so at most with probability ``level``
    does any of the G fail; and h grows. In the tails, which Φ⁻¹ magnifies, the limits are far narrower than DKW's.
    """
    limits = _shared_limits(rows)
    limits.fill(survival_counts(rows.histogram, rows.side))
    return _integrate_steps(rows, limits.shifted(rows.r))


def tight_above(rows: HistogramRows) -> Floats:
    """L of the Clopper-Pearson *upper* limits at level / G: below L(S) with probability at most ``level``.

    That is no certificate, but what no certificate can exceed, however many draws it is made from.
    """
    from scipy.special import ndtr

    limits = _shared_limits(rows)
    limits.fill(rows.n - survival_counts(rows.histogram, rows.side))
    # The upper limit is 1 - q, with q the lower limit of the other draws, and h(1 - q) = Φ(-Φ⁻¹(q) - r).
    above = ndtr(-limits.scores[::-1] - rows.r)
    return np.minimum(_integrate_steps(rows, above) + 2 * SLACK, 1.0)


def survival_counts(histogram: Integers, side: Side) -> Integers:
    """Draws at or above each threshold, per row, from the top threshold down."""
    cells = histogram[:, :-1] if side.flip else histogram[:, :0:-1]
    return np.cumsum(cells, axis=1)


def _integrate_steps(rows: HistogramRows, table: Floats) -> Floats:
    """Σ_j (t_j - t_{j-1}) table[draws at or above t_j], per row."""
    from certcal._kernels.certificates import weigh_survival

    histogram, side, out = rows.histogram, rows.side, np.empty(len(rows.histogram))
    map_blocks(
        lambda start, stop: weigh_survival(histogram[start:stop], side.flip, side.widths, table, out[start:stop]),
        out.size,
        small=SMALL_ROWS,
    )
    return _round_down(out)


def _round_down(bound: Floats) -> Floats:
    return np.clip(bound - SLACK, 0.0, 1.0)


# --- limits of p_A by count, and radii --------------------------------------------------------------------------------


class LowerLimits:
    """Clopper-Pearson lower limits of n draws at one level, by count; filled in as counts are asked for.

    Each is wrong with probability at most ``level`` over the draws.
    """

    def __init__(self, n: int, level: float) -> None:
        self.n, self.level = n, level
        self.values: Floats = np.full(n + 1, np.nan)
        # Φ⁻¹ of the limits; the table of counts that no one asked for stays NaN.
        self.scores: Floats = np.full(n + 1, np.nan)

    def fill(self, counts: NDArray[np.int64]) -> None:
        """Make sure that the limits of these counts are there."""
        from scipy.special import ndtri

        asked = np.zeros(self.n + 1, np.bool_)
        asked[counts.ravel()] = True
        missing = np.flatnonzero(asked & np.isnan(self.values))

        def evaluate(start: int, stop: int) -> None:
            some = missing[start:stop]
            limits = clopper_pearson(some, self.n, self.level, side="lower").lower
            self.scores[some] = ndtri(limits)
            self.values[some] = limits

        if missing.size:
            map_blocks(evaluate, missing.size, small=_SMALL_LIMITS)

    def shifted(self, r: float) -> Floats:
        """Φ(Φ⁻¹(limit) - r) by count, and the limit itself at r = 0; NaN where it was not filled in."""
        from scipy.special import ndtr

        return self.values if r == 0 else ndtr(self.scores - r)


@lru_cache(maxsize=8)
def lower_limits(n: int, level: float) -> LowerLimits:
    """The table for (n, level), shared by all who ask in this process."""
    return LowerLimits(n, level)


def radii_of_limits(limits: NDArray[np.float64], scores: NDArray[np.float64], sigma: float) -> NDArray[np.float64]:
    """Radius σΦ⁻¹(p) within which a class is predicted if its probability is at least p, rounded down.

    NaN where p is not above ½: nothing is certified then, and the sample abstains.
    """
    return np.where(limits > 0.5, sigma * scores * (1.0 - ROUNDING), np.nan)
