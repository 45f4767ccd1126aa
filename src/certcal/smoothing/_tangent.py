"""Bounds on the smoothed confidence from one mean instead of a band: tangents, and bets that learn as they go.

In the notation of ``_bands``, h(p) = Φ(Φ⁻¹(p) - r) is convex with h'(p) = exp(r Φ⁻¹(p) - r²/2), so it lies above its
tangent at any point q: h(S) >= h(q) + h'(q)(S - q). With one q_j per threshold, fixed before a draw X is made,

    L(S) = Σ_j w_j h(S(t_j)) >= Σ_j w_j (h(q_j) - q_j h'(q_j)) + E W(X),   W(x) = Σ_{j: t_j <= x} w_j h'(q_j).

W(X) is a single bounded variable: its mean needs no union over thresholds. Let c be the constant. If L(S) <= ℓ then
E W <= ℓ - c =: m, so for any θ in [0, 1), fixed before X too, 1 - θ + θ W(X)/m has expectation at most 1.

What is random are the draws and fair coins that deal them into parts: half of them into the last part, half of what is
left into the one before, and so on. Coins are independent of the draws, so given the coins all draws are still
independent and distributed as S. The tangents and the bet on a part are chosen by all parts before it, so the product
K(ℓ) of the factors over all draws that are bet on, part by part, has expectation at most 1 under every S with
L(S) <= ℓ. By Markov's inequality K(ℓ) >= 1/level has probability at most ``level``. K falls in ℓ; the bound is the
largest ℓ with K(ℓ) >= 1/level.

A run keeps histograms, not the order of the draws, so coins are tossed cell by cell. With coins that are never tossed
anew the split would be a function of the histogram: the claim is one over draws and coins, and not for each way that
the coins may have fallen. They are those of a generator keyed by the run's seed and the sample's place in the data.

Any choice is valid, these are good ones: what is believed of S is what the parts before have shown, q_j is the survival
that SHARE of ln(1/level) nats of evidence can just refute, and θ the bet that grows fastest if the belief is right and
L(S) is where the tangents touch.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from certcal._base.threads import map_blocks
from certcal.smoothing._bands import SMALL_ROWS, HistogramRows

Floats = NDArray[np.float64]

# Parts of the draws that are bet on; before them comes one of a 2^-PARTS-th of the draws, in expectation.
PARTS = 8
# What is believed of a survival probability: the share seen, and so much of a draw in the first and in the last cell.
PRIOR = 0.003
# Tangents touch where this share of the evidence would refute a threshold on its own.
SHARE = 0.75
# Believed survivals for which there is a line: evenly spaced in the arcsine of the root, as counts are known.
GRID = 4096


def tangent(rows: HistogramRows) -> Floats:
    """Lower bounds of rows; see the module for why they hold."""
    from certcal._kernels.certificates import tangent_bounds

    histogram, keys, side, r, level = rows[:5]
    out, nats = np.zeros(len(histogram)), math.log(1 / level)
    point = touching_points(SHARE * nats / rows.n)
    slope, intercept = lines(point, r)
    # Logarithms of products are sums of n terms: room for their rounding.
    target = nats + 1e-9 + 1e-14 * rows.n

    def bound(start: int, stop: int) -> None:
        some, chosen = slice(start, stop), (PARTS, PRIOR, point, slope, intercept, target)
        tangent_bounds(histogram[some], keys[some], side.flip, side.widths, *chosen, out[some])

    map_blocks(bound, out.size, small=SMALL_ROWS // 10)
    return out


@lru_cache(maxsize=8)
def touching_points(nats: float) -> Floats:
    """Where to touch for each believed survival of the grid, given the evidence per draw."""
    return least_survival(np.sin(np.linspace(0, math.pi / 2, GRID + 1)) ** 2, nats)


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
