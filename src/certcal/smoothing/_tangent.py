"""Bounds on the smoothed confidence from one mean instead of a band: tangents chosen by a pilot, and bets on the rest.

In the notation of ``_bands``, h(p) = Φ(Φ⁻¹(p) - r) is convex with h'(p) = exp(r Φ⁻¹(p) - r²/2), so it lies above its
tangent at any point q: h(S) >= h(q) + h'(q)(S - q). With one q_j per threshold, chosen independently of the draws,

    L(S) = Σ_j w_j h(S(t_j)) >= Σ_j w_j (h(q_j) - q_j h'(q_j)) + E W(X),   W(x) = Σ_{j: t_j <= x} w_j h'(q_j).

W(X) is a single bounded variable: its mean needs no union over thresholds. Let c be the constant. If L(S) <= ℓ then
E W <= ℓ - c =: m, so for any θ in [0, 1) the product of (1 - θ + θ W(X_i)/m) over the draws has expectation at most 1.
So has the average K(ℓ) of such products over several (q, θ), and by Markov's inequality K(ℓ) >= 1/level has probability
at most ``level`` under every S with L(S) <= ℓ. K falls in ℓ; the bound is the largest ℓ with K(ℓ) >= 1/level.

What is chosen from the pilot, whose draws are independent of those bet on (any choice is valid, these are good ones):
for each of three views of the pilot (a pessimistic, a middle and an optimistic quantile of what S(t_j) may be, given
its count), q_j is the survival that ln(1/level) nats of evidence can just refute, and θ the bet that grows fastest if
the view is right and L(S) is where the tangents touch.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from certcal._threads import map_blocks
from certcal.smoothing._bands import SMALL_ROWS, HistogramRows

Floats = NDArray[np.float64]

# Quantiles of Jeffreys' posterior of a survival probability given its pilot count.
VIEWS = (0.1, 0.5, 0.9)


def tangent(rows: HistogramRows) -> Floats:
    """Lower bounds of rows; see the module for why they hold."""
    from certcal._kernels.certificates import tangent_bounds

    histogram, pilot, side, r, level = rows
    first = int(pilot[0].sum())
    rest, out = rows.n - first, np.zeros(len(histogram))
    if rest == 0:
        return out
    survival, point = views(first, rest, level)
    slope, intercept = lines(point, r)
    # Logarithms of products are sums of n terms: room for their rounding.
    target = math.log(1 / level) + 1e-9 + 1e-14 * rest

    def bound(start: int, stop: int) -> None:
        some, chosen = slice(start, stop), (survival, point, slope, intercept, target)
        tangent_bounds(histogram[some], pilot[some], side.flip, side.widths, *chosen, out[some])

    map_blocks(bound, out.size, small=SMALL_ROWS // 10)
    return out


@lru_cache(maxsize=8)
def views(first: int, rest: int, level: float) -> tuple[Floats, Floats]:
    """Assumed survival and touching point per view and pilot count 0 … ``first``."""
    from scipy.special import betaincinv

    counts = np.arange(first + 1) + 0.5
    survival = np.array([betaincinv(counts, counts[::-1], view) for view in VIEWS], np.float64)
    return survival, least_survival(survival, math.log(1 / level) / rest)


def least_survival(p: Floats, nats: float) -> Floats:
    """The q <= p with p ln(p/q) + (1-p) ln((1-p)/(1-q)) = ``nats``: what that much evidence per draw just refutes.

    Examples
    --------
    >>> least_survival(np.array([0.5, 1.0]), 0.01).round(4)
    array([0.4296, 0.99  ])
    """
    from scipy.special import rel_entr

    low, high = np.zeros(p.shape), p.copy()
    for _ in range(50):
        middle = (low + high) / 2
        far = rel_entr(p, middle) + rel_entr(1 - p, 1 - middle) > nats
        low, high = np.where(far, middle, low), np.where(far, high, middle)
    return low


def lines(point: Floats, r: float) -> tuple[Floats, Floats]:
    """Slope h'(q) and intercept h(q) - q h'(q) of the tangents at q."""
    from scipy.special import ndtr, ndtri

    if r == 0:
        return np.ones(point.shape), np.zeros(point.shape)
    score = ndtri(point)
    slope = np.exp(r * score - r * r / 2)
    return slope, ndtr(score - r) - point * slope
