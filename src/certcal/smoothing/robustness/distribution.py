"""The distribution of p_A, empirical or from a published curve: what it says about every budget, level and radius.

p_A of a sample is the probability that the base classifier gives the true label under noise; its point estimate is
votes / draws, and it is zero where the chosen class is wrong. A sample is certified at radius R with N draws at level α
when at least k*(R, N, α) of them vote for the class. So, if every sample's votes came in the proportion seen, certified
accuracy at (R, N, α) is the share of samples with p_A >= k*/N: one look at the distribution, no new draws.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError, failure_probability, noise_level, to_numpy, whole_number
from certcal._base.json import PlainValues
from certcal._base.told import Told
from certcal.claims import short_text
from certcal.smoothing.robustness.accuracy import check_at
from certcal.smoothing.robustness.votes import as_record, certifying_probability, smallest_votes, votes_tail

MOST_DRAWS = 2**53


@dataclass(frozen=True, eq=False)
class ConvertedAccuracy(PlainValues, kind="converted certified accuracy", more="sentence"):
    """Certified accuracy to be expected at another budget, level or radius.

    Examples
    --------
    >>> from certcal.smoothing.robustness import VoteRecord
    >>> runs = PaDistribution.of(VoteRecord.of([95, 85, 99, 40], 100, [1, 1, 0, 1], sigma=1.0))
    >>> asked = runs.certified_accuracy([0.0, 0.5], n=100, alpha=0.01)
    >>> asked.p.tolist(), asked.lower.tolist()
    ([0.63, 0.81], [0.5, 0.5])
    """

    at: NDArray[np.float64]
    """Radii."""
    p: NDArray[np.float64]
    """The smallest share of votes that certifies each; above 1 when no number of votes does."""
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    """What the accuracy would be: equal when the distribution is known exactly, a bracket when it is known at points or
    through rounded radii."""
    draws: int
    alpha: float
    """The budget and level asked about."""

    @property
    def sentence(self) -> str:
        """What is said of the smallest and the largest radius."""
        return f"{self._would_be(sorted({0, len(self.at) - 1}))}; an estimate."

    @property
    def statement(self) -> str:
        """What is said of every radius, and what is assumed."""
        assumed = "an estimate, which takes the distribution of p_A seen here for the true one"
        return f"{self._would_be(range(len(self.at)))}; {assumed}."

    def _would_be(self, places: Iterable[int]) -> str:
        shares = [
            f"{low:.4f} at {self.at[place]:g}" if low == high else f"{low:.4f} to {high:.4f} at {self.at[place]:g}"
            for place in places
            for low, high in [(self.lower[place], self.upper[place])]
        ]
        level = short_text(self.alpha, "upper")
        return f"with {self.draws} draws at alpha = {level}, certified accuracy would be {', '.join(shares)}"


class Convertible(ABC):
    """What the whole distribution and single points of it share: reading certified accuracy off a curve."""

    sigma: float

    @abstractmethod
    def survival(self, p: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Share of samples with p_A at least p: at least, and at most."""

    def certified_accuracy(self, at: Any, *, n: int, alpha: float = 0.001) -> ConvertedAccuracy:
        """Certified accuracy at any radius, number of draws and level, without new draws."""
        n = whole_number(n, 1, MOST_DRAWS, "n", "pass the number of draws per sample")
        alpha = failure_probability(alpha, "alpha")
        where = check_at(at)
        p = smallest_votes(certifying_probability(where, self.sigma), n, alpha) / n
        lower, upper = self.survival(p)
        return ConvertedAccuracy(where, p, lower, upper, n, alpha)


@dataclass(frozen=True, eq=False)
class PaCurve(PlainValues, kind="curve of p_A"):
    """P(p_A >= p) at some p: falling steps, each share holding from the p before it up to its own."""

    p: NDArray[np.float64]
    """In increasing order, from 1/2 to 1."""
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    """The lowest and the highest share that fit; the same in a run."""
    thinned: bool
    """Whether steps were left out. A share then holds at its own p, and before it the true one may be higher."""


@dataclass(frozen=True, eq=False)
class PaDistribution(Convertible, Told):
    """The empirical distribution of p_A over the samples of a run or log.

    Examples
    --------
    >>> from certcal.smoothing.robustness import VoteRecord
    >>> seen = PaDistribution.of(VoteRecord.of([100, 90, 55, 80], 100, [1, 1, 1, 0], sigma=1.0))
    >>> seen.survival([0.5, 0.9, 1.0])[0]
    array([0.75, 0.5 , 0.25])
    >>> seen.quantile([0.0, 0.5, 1.0])
    array([0.  , 0.55, 1.  ])
    """

    name: str
    """Of the run."""
    sigma: float
    """Standard deviation of the noise."""
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    """Sorted point estimates of p_A: the lowest and the highest that fit what is known. The same in a run."""
    open_to: float = 0.0
    """The largest p that samples of unknown class may reach: up to there the curve is open. 0 where all are known."""

    @classmethod
    def of(cls, source: Any, name: str = "") -> PaDistribution:
        """The distribution seen in a run's counts, a log or a record of votes.

        Parameters
        ----------
        source
            Counts of a run, an imported log, or a VoteRecord.
        name
            Of the run.
        """
        record = as_record(source, name)
        low, high = record.values()
        open_to = float(np.max(high, where=record.unknown, initial=0.0))
        return cls(name or record.name, record.sigma, np.sort(low), np.sort(high), open_to)

    def __len__(self) -> int:
        return self.low.size

    def __repr__(self) -> str:
        return f"PaDistribution(name={self.name!r}, n={len(self)}, sigma={self.sigma:g})"

    def survival_counts(self, p: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Number of samples with p_A >= p: the fewest and the most that fit.

        Parameters
        ----------
        p
            Probabilities.
        """
        where = np.asarray(p, np.float64)
        return tuple(len(self) - np.searchsorted(values, where, side="left") for values in (self.low, self.high))  # pyright: ignore[reportReturnType]

    def survival(self, p: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """P(p_A >= p): the lowest and the highest that fit.

        Parameters
        ----------
        p
            Probabilities.
        """
        low, high = self.survival_counts(p)
        return low / len(self), high / len(self)

    def quantile(self, q: Any) -> NDArray[np.float64]:
        """Smallest p_A that at least a share ``q`` of the samples does not exceed, from the lowest values that fit.

        Parameters
        ----------
        q
            Shares from 0 to 1.
        """
        asked = to_numpy(q, "q").astype(np.float64)
        if not np.all((asked >= 0) & (asked <= 1)):
            raise InputError("q has an entry outside [0, 1]; pass shares such as 0.5")
        # q as a float may exceed the fraction that is meant by a rounding; 1e-9 of a sample is less than any sample.
        rank = np.ceil(asked * len(self) - 1e-9).astype(np.int64)
        return self.low[np.clip(rank - 1, 0, len(self) - 1)]

    def expected_accuracy(self, at: Any, *, n: int, alpha: float = 0.001) -> NDArray[np.float64]:
        """Mean certified accuracy of new runs with ``n`` draws, over their noise, at each radius.

        :meth:`certified_accuracy` lets each sample's votes come in exactly the proportion p_A; here they are binomial,
        so samples near the edge count with their probability to pass. The lowest values that fit are used.

        Parameters
        ----------
        at
            Radii.
        n
            Draws per sample.
        alpha
            Probability that a sample's radius may fail.
        """
        n = whole_number(n, 1, MOST_DRAWS, "n", "pass the number of draws per sample")
        alpha = failure_probability(alpha, "alpha")
        p = certifying_probability(check_at(at), self.sigma)
        values, counts = np.unique(self.low, return_counts=True)
        chances = [votes_tail(k, n, values) for k in smallest_votes(p, n, alpha)]
        return np.array([float(np.dot(chance, counts)) / len(self) for chance in chances])

    def curve(self, most: int = 200) -> PaCurve:
        """P(p_A >= p) for p from 1/2 to 1, at no more than so many steps.

        Parameters
        ----------
        most
            Number of steps. Where there are more, they are thinned evenly; the shares that are kept are exact.

        Examples
        --------
        >>> from certcal.smoothing.robustness import VoteRecord
        >>> seen = PaDistribution.of(VoteRecord.of([100, 90, 55, 80], 100, [1, 1, 1, 0], sigma=1.0))
        >>> found = seen.curve()
        >>> found.p.tolist(), found.lower.tolist(), found.thinned
        ([0.5, 0.55, 0.9, 1.0], [0.75, 0.75, 0.5, 0.25], False)
        """
        most = whole_number(most, 2, 2**31, "most", "pass a number of steps of at least 2")
        p = steps(self)
        thinned = p.size > most
        if thinned:
            p = p[np.unique(np.linspace(0, p.size - 1, most).round().astype(np.int64))]
        return PaCurve(p, *self.survival(p), thinned)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: the steps of the curve at p >= 1/2, and quantiles."""
        p = steps(self)
        lower, upper = self.survival(p)
        quantiles = (0.1, 0.25, 0.5, 0.75, 0.9)
        return {
            "type": "distribution of p_A",
            "name": self.name,
            "sigma": self.sigma,
            "n": len(self),
            "p": p.tolist(),
            "lower": lower.tolist(),
            "upper": upper.tolist(),
            "quantiles": dict(zip(map(str, quantiles), self.quantile(quantiles).tolist(), strict=True)),
        }


@dataclass(frozen=True, eq=False)
class PaPoints(Convertible, PlainValues, kind="points of the distribution of p_A"):
    """The distribution of p_A where a published curve of certified accuracies gives it: at one p per radius.

    Examples
    --------
    >>> published = from_curve([0.0, 0.5, 1.0], [0.657, 0.428, 0.220], sigma=0.5, n=100_000, alpha=0.001)
    >>> published.p.round(4), [round(float(x), 3) for x in published.survival(0.9)]
    (array([0.5049, 0.8449, 0.9787]), [0.22, 0.428])
    """

    sigma: float
    """Standard deviation of the noise."""
    p: NDArray[np.float64]
    """Probabilities in increasing order."""
    share: NDArray[np.float64]
    """P(p_A >= p)."""

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

    def distribution(self, samples: int = 10_000, name: str = "") -> PaDistribution:
        """The bracket as a distribution of so many samples, for :func:`dominance`; who is which is not known.

        Parameters
        ----------
        samples
            How many the shares are of: each must be a whole number of samples, to the precision of its digits.
        name
            Of the run.
        """
        samples = whole_number(samples, 1, 10**9, "samples", "pass how many samples the shares are of")
        counts = np.rint(self.share * samples).astype(np.int64)
        off = np.abs(counts / samples - self.share)
        if np.any(off > 1e-6):
            place = int(np.argmax(off))
            what = f"share[{place}] is {self.share[place]:g}, no whole number of {samples} samples"
            raise InputError(f"{what}; pass how many samples the shares are of")
        # Those counted at a point but not at the next lie between the two.
        sizes = -np.diff(np.concatenate(([samples], counts, [0])))
        low = np.repeat(np.concatenate(([0.0], self.p)), sizes)
        high = np.repeat(np.concatenate((np.nextafter(self.p, 0.0), [1.0])), sizes)
        return PaDistribution(name, self.sigma, low, high, float(high[0]) if sizes[0] else 0.0)


@names_wrong_types
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
    sigma = noise_level(sigma)
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


def steps(*distributions: PaDistribution) -> NDArray[np.float64]:
    """Every p in [1/2, 1] where one of the curves P(p_A >= p) may change: between neighbours none does."""
    values = [each[each >= 0.5] for seen in distributions for each in (seen.low, seen.high)]
    return np.unique(np.concatenate([*values, [0.5, 1.0]]))
