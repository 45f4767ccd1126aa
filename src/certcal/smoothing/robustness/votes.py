"""What is known of the votes, counted in a run or recovered from a published log, and which radii they certify.

k votes out of n certify p_A >= p at level alpha exactly when P(Binomial(n, p) >= k) <= alpha. That tail falls as k
grows and rises as p does, so "the smallest k that certifies p" and "the largest p that k certifies" are one relation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError, failure_probability, noise_level, same_length, to_numpy, whole_number
from certcal.smoothing._bands import radii_of_limits

if TYPE_CHECKING:
    from certcal.smoothing._counts import Counts


@dataclass(frozen=True, eq=False)
class VoteRecord:
    """Votes for the chosen class per sample, as the lowest and highest count that fits what is known.

    In a run the two are equal. In a log they differ by what the rounding of printed radii hides, and where the log
    abstained the class itself is unknown: the sample may have been wrong (p_A counts as zero) or had too few votes.

    Examples
    --------
    >>> record = VoteRecord.of([100, 90, 55], 100, [1, 1, 0], sigma=1.0, name="toy")
    >>> record.radii(0.001).round(4)
    array([1.5005, 0.7565,    nan])
    """

    name: str
    """Of the run."""
    sigma: float
    """Standard deviation of the noise."""
    index: NDArray[np.int64]
    label: NDArray[np.int64]
    """Which sample, and its true class."""
    correct: NDArray[np.bool_]
    """Whether the chosen class is the label; False where a log does not say."""
    draws: NDArray[np.int64]
    """Draws per sample."""
    lowest: NDArray[np.int64]
    highest: NDArray[np.int64]
    """Votes."""
    unknown: NDArray[np.bool_]
    """Samples of which a log does not say which class was chosen."""

    def __len__(self) -> int:
        return self.correct.size

    def __repr__(self) -> str:
        return f"VoteRecord(name={self.name!r}, n={len(self)}, sigma={self.sigma:g})"

    @classmethod
    def of(cls, votes: Any, draws: Any, correct: Any, *, sigma: float, label: Any = None, name: str = "") -> VoteRecord:
        """Votes that are known exactly.

        Parameters
        ----------
        votes, draws
            Votes for the chosen class, out of how many draws (one number, or one per sample).
        correct
            Whether the chosen class is the label.
        sigma
            Standard deviation of the noise.
        label
            True classes, when they are known.
        name
            Of the run.
        """
        k = np.atleast_1d(np.asarray(votes)).astype(np.int64)
        n = np.broadcast_to(np.asarray(draws).astype(np.int64), k.shape)
        c = np.atleast_1d(np.asarray(correct)).astype(np.bool_)
        y = np.zeros(k.size, np.int64) if label is None else np.asarray(label).astype(np.int64)
        same_length(votes=k.size, correct=c.size, label=y.size)
        if k.size == 0:
            raise InputError("votes is empty; pass at least one sample")
        bad = (n < 1) | (k < 0) | (k > n)
        if bad.any():
            i = int(np.argmax(bad))
            raise InputError(f"votes[{i}] is {k[i]} of {n[i]} draws; pass votes from 0 to a positive number of draws")
        sigma = noise_level(sigma)
        return cls(name, sigma, np.arange(k.size, dtype=np.int64), y, c, n, k, k, np.zeros(k.size, np.bool_))

    @classmethod
    def from_counts(cls, counts: Counts, name: str = "") -> VoteRecord:
        """The votes of a run.

        Parameters
        ----------
        counts
            What :meth:`certcal.smoothing.Run.counts` returns.
        name
            Of the run.
        """
        known = cls.of(
            counts.votes,
            counts.draws,
            counts.predicted == counts.label,
            sigma=counts.sigma,
            label=counts.label,
            name=name,
        )
        return replace(known, index=np.asarray(counts.index, np.int64))

    def radii(self, alpha: float = 0.001) -> NDArray[np.float64]:
        """Certified radii of the lowest counts, NaN where abstained.

        Parameters
        ----------
        alpha
            Probability that a sample's radius may fail.
        """
        alpha = failure_probability(alpha, "alpha")
        return np.where(self.unknown, np.nan, vote_radii(self.lowest, self.draws, self.sigma, alpha))

    def select(self, rows: Any) -> VoteRecord:
        """Some of the samples, by their places."""
        arrays = ("index", "label", "correct", "draws", "lowest", "highest", "unknown")
        return replace(self, **{name: getattr(self, name)[rows] for name in arrays})

    def values(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lowest and highest point estimate of p_A per sample: votes / draws, zero where the class is wrong."""
        low = np.where(self.correct, self.lowest / self.draws, 0.0)
        high = np.where(self.correct | self.unknown, self.highest / self.draws, 0.0)
        return low, high


@names_wrong_types
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


@names_wrong_types
def smallest_votes(p: Any, n: int, alpha: float) -> NDArray[np.int64]:
    """The smallest vote count out of ``n`` that certifies p_A >= ``p`` at level ``alpha``; n + 1 when none does.

    Examples
    --------
    >>> smallest_votes([0.5, 0.9, 0.95], 100, 0.001)
    array([ 66,  99, 101])
    """
    p, n = to_numpy(p, "p").astype(np.float64), whole_number(n, 1, 2**53, "n", "pass the number of draws")
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


def as_record(source: Any, name: str = "") -> VoteRecord:
    """A record of whatever holds votes: itself, a run's counts, or an imported log."""
    if isinstance(source, VoteRecord):
        return source
    if hasattr(source, "record"):
        return source.record(name)
    if hasattr(source, "votes") and hasattr(source, "draws"):
        return VoteRecord.from_counts(source, name)
    raise InputError(f"{type(source).__name__} holds no votes; pass a run's counts(), a log, or a VoteRecord")


@dataclass(frozen=True, eq=False)
class NamedLog:
    """A log under a name of its own, with all that a comparison asks of one."""

    votes_of: VoteRecord
    name: str
    radii: NDArray[np.float64]
    alpha: float
    notes: tuple[str, ...]

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise."""
        return self.votes_of.sigma

    def record(self, name: str = "") -> VoteRecord:
        """What is known of its votes."""
        return replace(self.votes_of, name=name or self.name)

    def select(self, rows: Any) -> NamedLog:
        """Some of its samples."""
        return replace(self, votes_of=self.votes_of.select(rows), radii=self.radii[rows])


@names_wrong_types
def named(source: Any, name: str) -> VoteRecord | NamedLog:
    """Whatever holds votes, under another name.

    Examples
    --------
    >>> named(VoteRecord.of([9], 10, [1], sigma=0.5), "mine")
    VoteRecord(name='mine', n=1, sigma=0.5)
    """
    if hasattr(source, "record"):
        return NamedLog(source.record(name), name, source.radii, source.alpha, tuple(source.notes))
    return replace(as_record(source), name=name)
