"""Votes, probabilities and radii: the Clopper–Pearson bound read in both directions.

k votes out of n certify p_A >= p at level alpha exactly when P(Binomial(n, p) >= k) <= alpha. That tail falls as k
grows and rises as p does, so "the smallest k that certifies p" and "the largest p that k certifies" are one relation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal.smoothing._radii import radii_of_limits


def vote_radii(votes: Any, draws: Any, sigma: float, alpha: float) -> NDArray[np.float64]:
    """Certified radius of each vote count, rounded down; NaN where the sample abstains.

    The claim, per sample: except with probability ``alpha`` over the draws, the most likely class of the smoothed
    classifier stays the counted one under every perturbation of norm up to the radius, if the counted class was chosen
    from other draws. A lower bound of p_A that is not above one half certifies nothing: the sample abstains.

    Parameters
    ----------
    votes, draws
        Votes for the chosen class, out of how many draws.
    sigma
        Standard deviation of the noise.
    alpha
        Probability that a radius may fail.

    Examples
    --------
    >>> vote_radii([100, 90, 55], 100, sigma=1.0, alpha=0.001).round(4)
    array([1.5005, 0.7565,    nan])
    """
    from scipy.special import ndtri

    from certcal.bounds.concentration import clopper_pearson

    p = np.asarray(clopper_pearson(votes, draws, alpha, side="lower").lower, np.float64)
    return radii_of_limits(p, np.asarray(ndtri(p), np.float64), sigma)


def certifying_probability(radius: Any, sigma: float) -> NDArray[np.float64]:
    """The p_A that a radius needs: Φ(radius / σ)."""
    from scipy.special import ndtr

    return np.asarray(ndtr(np.asarray(radius, np.float64) / sigma), np.float64)


def smallest_votes(p: Any, n: int, alpha: float) -> NDArray[np.int64]:
    """The smallest vote count out of ``n`` that certifies p_A >= ``p`` at level ``alpha``; n + 1 when none does.

    Examples
    --------
    >>> smallest_votes([0.5, 0.9, 0.95], 100, 0.001)
    array([ 66,  99, 101])
    """
    p = np.asarray(p, np.float64)
    low = np.zeros(p.shape, np.int64)  # certifies nothing: P(Binomial >= 0) is 1
    high = np.full(p.shape, n + 1, np.int64)
    while np.any(high - low > 1):
        middle = (low + high) // 2
        enough = votes_tail(middle, n, p) <= alpha
        high = np.where(enough, middle, high)
        low = np.where(enough, low, middle)
    return high


def votes_tail(k: Any, n: int, p: Any) -> NDArray[np.float64]:
    """P(Binomial(n, p) >= k), which is the alpha at which k votes certify exactly p."""
    from scipy.special import betainc

    k = np.asarray(k, np.float64)
    inside = np.clip(k, 1.0, float(n))
    tail = np.asarray(betainc(inside, n - inside + 1.0, p), np.float64)
    return np.where(k <= 0, 1.0, np.where(k > n, 0.0, tail))
