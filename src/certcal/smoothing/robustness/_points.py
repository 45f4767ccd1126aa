"""The distribution of p_A as far as a published curve of certified accuracies tells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, failure_probability, positive, to_numpy, whole_number
from certcal.smoothing.robustness._accuracy import check_at
from certcal.smoothing.robustness._binomial import certifying_probability, smallest_votes
from certcal.smoothing.robustness._distribution import MOST_DRAWS, Convertible


@dataclass(frozen=True, eq=False)
class PaPoints(Convertible):
    """The distribution of p_A where a published curve of certified accuracies gives it: at one p per radius.

    Attributes
    ----------
    sigma
        Standard deviation of the noise.
    p
        Probabilities in increasing order.
    share
        P(p_A >= p).

    Examples
    --------
    >>> published = from_curve([0.0, 0.5, 1.0], [0.657, 0.428, 0.220], sigma=0.5, n=100_000, alpha=0.001)
    >>> published.p.round(4), [round(float(x), 3) for x in published.survival(0.9)]
    (array([0.5049, 0.8449, 0.9787]), [0.22, 0.428])
    """

    sigma: float
    p: NDArray[np.float64]
    share: NDArray[np.float64]

    def survival(self, p: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """P(p_A >= p) as a bracket: the share falls with p, so it lies between those at the neighbouring points.

        Parameters
        ----------
        p
            Probabilities.
        """
        where = np.asarray(p, np.float64)
        below = np.append(self.share, 0.0)  # beyond the last point nothing is known but zero
        above = np.concatenate(([1.0], self.share))
        lower = below[np.searchsorted(self.p, where, side="left")]
        upper = above[np.searchsorted(self.p, where, side="right")]
        return np.where(where > 1, 0.0, lower), np.where(where > 1, 0.0, upper)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "type": "points of the distribution of p_A",
            "sigma": self.sigma,
            "p": self.p.tolist(),
            "share": self.share.tolist(),
        }


def from_curve(at: Any, accuracy: Any, *, sigma: float, n: int, alpha: float = 0.001) -> PaPoints:
    """From a published curve of certified accuracies back to the distribution of p_A.

    Certified accuracy at R is the share of samples with at least k*(R, n, α) votes for the label, so it is
    P(p_A >= k*/n) of the point estimates.

    Parameters
    ----------
    at
        Radii.
    accuracy
        Certified accuracy at each, as shares between 0 and 1.
    sigma, n, alpha
        How it was certified.

    Examples
    --------
    >>> from_curve([0.0, 0.5], [0.9, 0.4], sigma=1.0, n=100, alpha=0.01).p
    array([0.63, 0.81])
    """
    where = np.atleast_1d(to_numpy(at, "at")).astype(np.float64)
    shares = np.atleast_1d(to_numpy(accuracy, "accuracy")).astype(np.float64)
    if where.ndim != 1 or where.shape != shares.shape:
        raise InputError(
            f"lengths differ: at has {where.size}, accuracy has {shares.size}; pass one accuracy per radius"
        )
    order = np.argsort(where, kind="stable")
    sorted_at, shares = check_at(where), shares[order]
    if sorted_at.size < where.size:
        raise InputError("at names a radius twice; pass each radius once")
    bad = ~((shares >= 0) & (shares <= 1))
    if bad.any():
        raise InputError(
            f"accuracy at radius {sorted_at[np.argmax(bad)]:g} is {shares[np.argmax(bad)]:g}; pass shares in [0, 1]"
        )
    rising = np.diff(shares) > 0
    if rising.any():
        i = int(np.argmax(rising))
        raise InputError(
            f"accuracy rises from {shares[i]:g} at radius {sorted_at[i]:g} to {shares[i + 1]:g} at "
            f"{sorted_at[i + 1]:g}; certified accuracy cannot grow with the radius"
        )
    sigma = positive(sigma, "sigma")
    n = whole_number(n, 1, MOST_DRAWS, "n", "pass the number of draws per sample")
    alpha = failure_probability(alpha, "alpha")
    k = smallest_votes(certifying_probability(sorted_at, sigma), n, alpha)
    possible = k <= n
    if np.any(shares[~possible] > 0):
        radius = sorted_at[~possible][0]
        raise InputError(
            f"{n} draws at alpha = {alpha:g} and sigma = {sigma:g} certify no sample at radius {radius:g}, but "
            "accuracy there is above 0; check sigma, n and alpha"
        )
    p, last = np.unique((k[possible] / n)[::-1], return_index=True)  # of radii with equal p keep the largest
    return PaPoints(sigma, p, shares[possible][::-1][last])
