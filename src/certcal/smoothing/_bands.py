"""Bounds on the smoothed confidence under every perturbation up to a radius, from histograms: the direct kinds.

Let S(t) = P(X >= t) for the noise at x, and r = R/σ. For every γ with ‖γ‖ <= R (Neyman-Pearson, as in Cohen et al. and
Kumar et al.) P(X' >= t) >= h(S(t)) for the noise at x + γ, where h(p) = Φ(Φ⁻¹(p) - r). Between thresholds S is at
least its value at the next one above, so

    E X' = ∫ P(X' >= t) dt >= Σ_j (t_j - t_{j-1}) h(S(t_j)) =: L(S).

An upper bound is 1 minus the lower bound for 1 - X: by 1 - Φ(Φ⁻¹(p) + r) = h(1 - p) that is the same sum with the
histogram read from the top. So there is one side to prove, and ``Side`` says from where it is seen. Rounding X down to
the lower edge of its cell (and 1 - X likewise) keeps every bound a bound.

Each function takes rows of n draws each and spends ``level`` on its side; the bands do not depend on the radius, so one
event of probability 1 - level carries the bounds of all radii.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certcal._threads import map_blocks
from certcal.bounds import dkw_width, empirical_bernstein, hoeffding
from certcal.smoothing._tables import lower_limits

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Bounds in memory are moved outward by this much: sums of at most a few thousand terms in [0, 1], and Φ and Φ⁻¹ with
# relative errors of a few units in the last place, are right to far more digits.
SLACK = 1e-12

# Rows below which a block is not worth a thread.
SMALL_ROWS = 500


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


def shift(p: Floats, r: float) -> Floats:
    """h(p) = Φ(Φ⁻¹(p) - r): the least that noise shifted by r standard deviations leaves of a probability p."""
    from scipy.special import ndtr, ndtri

    return p if r == 0 else ndtr(ndtri(p) - r)


def standard(histogram: Integers, side: Side, n: int, r: float, level: float) -> Floats:
    """Hoeffding's limit of the mean, shifted.

    Why: L is for one event per threshold; the mean of X in [0, 1] is the probability of one event in the noise extended
    by a uniform variable U, X >= U, so E X' >= h(E X) as well (Kumar et al. 2020).
    """
    mean, _ = side.means(histogram)
    return _down(shift(np.asarray(hoeffding(mean, n, level, side="lower").lower), r))


def bernstein(histogram: Integers, side: Side, n: int, r: float, level: float) -> Floats:
    """The empirical Bernstein limit of the mean, shifted: narrower than Hoeffding's when X hardly varies."""
    mean, variance = side.means(histogram)
    return _down(shift(np.asarray(empirical_bernstein(mean, variance, n, level, side="lower").lower), r))


def cdf(histogram: Integers, side: Side, n: int, r: float, level: float) -> Floats:
    """L of the band S - w with Dvoretzky, Kiefer and Wolfowitz's width w, the same at every threshold."""
    survival = np.arange(n + 1) / n - dkw_width(n, level, side="lower")
    return _weighed(histogram, side, shift(np.maximum(survival, 0.0), r))


def tight(histogram: Integers, side: Side, n: int, r: float, level: float) -> Floats:
    """L of the band of Clopper-Pearson limits at level / G, one per threshold.

    Why: the limit at one fixed threshold fails with probability at most level/G, so at most with probability ``level``
    does any of the G fail; and h grows. In the tails, which Φ⁻¹ magnifies, the limits are far narrower than DKW's.
    """
    limits = lower_limits(n, math.nextafter(level / side.widths.size, 0.0))
    limits.fill(survival_counts(histogram, side))
    return _weighed(histogram, side, limits.shifted(r))


def survival_counts(histogram: Integers, side: Side) -> Integers:
    """Draws at or above each threshold, per row, from the top threshold down."""
    cells = histogram[:, :-1] if side.flip else histogram[:, :0:-1]
    return np.cumsum(cells, axis=1)


def _weighed(histogram: Integers, side: Side, table: Floats) -> Floats:
    from certcal._kernels.certificates import weigh_survival

    out = np.empty(histogram.shape[0])
    map_blocks(
        lambda start, stop: weigh_survival(histogram[start:stop], side.flip, side.widths, table, out[start:stop]),
        out.size,
        small=SMALL_ROWS,
    )
    return _down(out)


def _down(bound: Floats) -> Floats:
    return np.clip(bound - SLACK, 0.0, 1.0)
