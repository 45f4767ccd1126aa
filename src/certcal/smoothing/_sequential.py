"""Whether the certified radius of a sample is above r: draw until that is clear, and no longer.

**What is claimed.** Draws are independent; each is a vote for the class A (fixed beforehand, from other draws) with the
same unknown probability p. The radius in question is R = σΦ⁻¹(p), so "R > r" is "p > p0" with p0 = Φ(r/σ). After k
votes in n draws the e-value is

    e_n = ∫ L_n(q) dπ(q) / L_n(p0),   L_n(q) = q^k (1 - q)^(n - k),   π = Beta(1/2, 1/2),
    log e_n = log B(k + 1/2, n - k + 1/2) - log B(1/2, 1/2) - k log p0 - (n - k) log(1 - p0).

"R > r" is said when k/n > p0 and e_n >= 1/α at some look; "R < r" when k/n < p0 and e_n >= 1/α′; whichever comes first
ends the drawing. If p <= p0, "R > r" is said with probability at most α; if p >= p0, "R < r" is said with probability
at most α′. This holds for every schedule of looks, also one that depends on the draws so far, with a budget or without.
R > r is strict: the prediction is A at every distance up to r, r itself included, and nowhere a tie.

**Why.** Let E_n(q) = ∫ L_n dπ / L_n(q). If the votes have probability q, E_n(q) is a nonnegative martingale with mean
1: it is a ratio of two probabilities of the same n votes, the one below being their true one. By Ville's inequality it
ever reaches 1/α with probability at most α. Now let p <= p0 be the truth, and let "R > r" be said at n: k/n > p0 >= p.
k log q + (n - k) log(1 - q) rises in q up to k/n, so L_n(p) <= L_n(p0), hence E_n(p) >= E_n(p0) = e_n >= 1/α: the
martingale of the truth has reached 1/α, which happens with probability at most α. The other side is the mirror image,
with p >= p0 > k/n. Looking less often, or stopping for whatever other reason, only makes either saying rarer.

**α is not doubled.** Both sayings can be offered to every sample, but a sample has one p. If p < p0 only "R > r" is an
error, if p > p0 only "R < r" is. At p = p0 both are, and both need one and the same martingale E_n(p0) to reach
1/max(α, α′). So a verdict is wrong with probability at most max(α, α′).

**The last look.** Paying for every look makes the e-process ask for more at the budget's end than a single test there
would. So with a budget known beforehand, half of each level goes to the e-process, and half of α to one more chance at
the last draw: "R > r" is also said if the Clopper-Pearson lower limit of p at level α/2 is above p0. If p <= p0 that
has probability at most α/2, which with the e-process's α/2 makes α. At p = p0 a verdict of either kind is wrong with
probability at most max(α, α′)/2 + α/2, again no more than max(α, α′).

**What "R < r" means.** More draws would not certify this class at radius r, except with probability α′. It does not say
that an adversarial example exists.

**Rounding.** log e_n is lowered by a bound on the error of its terms before it is compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

ABOVE, BELOW, UNDECIDED = "above", "below", "undecided"

# Error of a log-gamma, a logarithm or a product, relative to the largest number it is made of.
_ROUNDING = 16 * 2.0**-52


def log_e_value(votes: Any, draws: Any, *, radius: float, sigma: float) -> NDArray[np.float64]:
    """The logarithm of e_n, rounded down: how strongly votes speak against p = Φ(radius/σ), on either side of it."""
    from scipy.special import gammaln, log_ndtr

    k, n = np.asarray(votes, np.float64), np.asarray(draws, np.float64)
    # B(k + 1/2, n - k + 1/2) / B(1/2, 1/2) = Γ(k + 1/2) Γ(n - k + 1/2) / (Γ(n + 1) π)
    gammas = gammaln(k + 0.5), gammaln(n - k + 0.5), gammaln(n + 1.0)
    inside = k * float(log_ndtr(radius / sigma)), (n - k) * float(log_ndtr(-radius / sigma))
    value = gammas[0] + gammas[1] - gammas[2] - np.log(np.pi) - inside[0] - inside[1]
    size = sum((np.abs(term) for term in (*gammas, *inside)), np.full(value.shape, 2.0))
    return np.asarray(value - _ROUNDING * size, np.float64)


def verdicts(
    votes: Any,
    draws: Any,
    *,
    radius: float,
    sigma: float,
    alpha: float = 0.001,
    alpha_below: float | None = None,
    budget: int | None = None,
) -> NDArray[np.str_]:
    """What each sample's votes so far decide: "above" (R > r), "below" (R < r) or "undecided"."""
    from scipy.special import ndtr

    from certcal.bounds import clopper_pearson

    k, n = np.broadcast_arrays(np.asarray(votes, np.float64), np.asarray(draws, np.float64))
    evidence = log_e_value(k, n, radius=radius, sigma=sigma)
    p0 = float(ndtr(radius / sigma))
    result = np.full(k.shape, UNDECIDED, dtype="<U9")
    below, part = alpha if alpha_below is None else alpha_below, 1.0 if budget is None else 0.5
    result[(k > n * p0) & (evidence >= -np.log(part * alpha))] = ABOVE
    result[(k < n * p0) & (evidence >= -np.log(part * below))] = BELOW
    last = np.flatnonzero((n == (budget or 0)) & (result == UNDECIDED) & (k > n * p0))
    if last.size:
        limit = np.asarray(clopper_pearson(k.flat[last], n.flat[last], part * alpha, side="lower").lower)
        result.flat[last] = np.where(limit > np.nextafter(p0, 1), ABOVE, UNDECIDED)
    return result


def looks(budget: int, block: int = 100, growth: float = 1.1) -> list[int]:
    """Numbers of draws at which a sample is looked at: multiples of ``block``, each about a tenth above the last."""
    found: list[int] = []
    now = 0
    while now < budget:
        now = min(budget, max(now + block, -(-int(now * growth) // block) * block))
        found.append(now)
    return found
