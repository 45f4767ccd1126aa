"""What noise draws leave behind: votes and a histogram of confidences per sample, on a grid of thresholds."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError, choice, noise_level, random_seed, same_length, to_numpy, whole_number
from certcal._base.json import PlainValues
from certcal._base.told import Told
from certcal.smoothing._noise import NOISES

Integers = NDArray[np.int64]

# Confidences are added up as whole numbers of 1/UNITS, rounded down: exactly, in any order, and within 64 bits.
UNITS = 1 << 30

_THRESHOLDS = 255
_PER_SAMPLE = ("index", "label", "predicted", "draws", "votes", "invalid", "histogram", "sums")


def default_thresholds() -> NDArray[np.float64]:
    """255 thresholds sin²(πk/512): evenly spaced in the arcsine of the root, from 3.8·10⁻⁵ to 1 - 3.8·10⁻⁵.

    Dense where certificates need it: Φ⁻¹ magnifies the tails, and the confidences of a trained network gather near 0
    and 1. Intervals from it were narrower than from a grid evenly spaced in the logit, near 1 and in the middle. The
    grid is symmetric about ½: 1 - t is in it for every t, to the last bit of t above ½.

    Examples
    --------
    >>> t = default_thresholds()
    >>> t[[0, 127, 254]].tolist()
    [3.764908e-05, 0.5, 0.99996235092]
    >>> bool(np.all(t + t[::-1] == 1))
    True
    """
    # Rounded to twelve decimals, so that a last bit of some machine's sine does not matter.
    below = [
        round(math.sin(math.pi * step / (2 * _THRESHOLDS + 2)) ** 2, 12) for step in range(1, _THRESHOLDS // 2 + 1)
    ]
    return np.array([*below, 0.5, *(1 - share for share in reversed(below))])


def check_thresholds(thresholds: Any) -> NDArray[np.float64]:
    """Strictly increasing numbers in (0, 1), at most 65,535, as float64."""
    values = np.ascontiguousarray(to_numpy(thresholds, "thresholds"), dtype=np.float64)
    if values.ndim != 1 or not 1 <= values.size <= 65_535:
        raise InputError(f"thresholds has shape {values.shape}; pass from 1 to 65535 numbers between 0 and 1")
    outside = ~((values > 0) & (values < 1))
    if outside.any():
        index = int(np.argmax(outside))
        raise InputError(f"thresholds[{index}] is {values[index]}; pass numbers strictly between 0 and 1")
    falling = np.diff(values) <= 0
    if falling.any():
        index = int(np.argmax(falling))
        raise InputError(
            f"thresholds[{index + 1}] is {values[index + 1]}, not above thresholds[{index}] = {values[index]}; "
            "sort them and drop repetitions"
        )
    return values


def sum_limits(thresholds: NDArray[np.float64], histogram: Integers) -> tuple[Integers, Integers]:
    """The smallest and the largest sum, in whole units, that confidences in the cells of a histogram can have."""
    edges = np.floor(np.concatenate(([0.0], thresholds, [1.0])) * UNITS).astype(np.int64)
    return histogram @ edges[:-1], histogram @ edges[1:]


@dataclass(frozen=True, eq=False)
class ConfidenceEstimates:
    """Mean confidences read off histograms."""

    values: NDArray[np.float64]
    """With every draw in the middle of its cell."""
    error: NDArray[np.float64]
    """The mean of the draws themselves is at most this far away, per sample."""


@dataclass(frozen=True, eq=False)
class Counts(Told):
    """Votes and confidence histograms of N samples, from which every certificate is computed.

    Draw number d of a sample is the model's output at x + δ, δ ~ N(0, σ²I), all draws independent, so the output must
    not depend on what else is in a batch. X is the probability that the model gives to the sample's class A, chosen
    beforehand from other draws. A draw with an invalid output has X = 0 and votes for nobody: that is part of the
    definition of the smoothed model, so no certificate needs to except it.

    Examples
    --------
    >>> counts = Counts.from_confidences([[0.9, 0.95, 0.2, 0.99]], [0.25, 0.5, 0.75], votes=[3], sigma=0.5)
    >>> counts.histogram.tolist(), counts.draws.tolist(), len(counts)
    ([[1, 0, 0, 3]], [4], 1)
    """

    thresholds: NDArray[np.float64]
    """Strictly increasing t_1 < … < t_G in (0, 1). Cell j of a histogram counts draws with t_j <= X < t_{j+1}, where
    t_0 = 0; the last cell counts X >= t_G."""
    sigma: float
    """Standard deviation of the noise, or a little less."""
    index: Integers
    label: Integers
    predicted: Integers
    """Position in the data set, true class and class A per sample."""
    draws: Integers
    votes: Integers
    invalid: Integers
    """Number of draws per sample, how many of them predicted class A, and how many had an invalid output."""
    histogram: Integers
    """N × (G + 1) counts, rows adding up to ``draws``."""
    noise: str = "gaussian"
    """"gaussian" (in floating point) or "exact" (discretised, from integer thresholds)."""
    earlier: tuple[tuple[int, int], ...] = ()
    """Sizes (samples, draws per sample) that a run had before it was extended to this one, in order. Claims then assume
    that nobody looked at results in between."""
    seed: int = 0
    """Of the run's noise, and of the random splits of the draws that "tangent" certificates and averaged claims make.
    Without a run, any number that was chosen before the draws were looked at."""
    sums: Integers | None = None
    """Sum over a sample's draws of X in units of 2⁻³⁰, each rounded down; None for runs that did not keep it."""

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "thresholds", check_thresholds(self.thresholds))
        put(self, "sigma", noise_level(self.sigma))
        choice(self.noise, NOISES, "noise")
        for name in ("index", "label", "predicted", "draws", "votes", "invalid"):
            put(self, name, _integers(getattr(self, name), name, 1))
        put(self, "histogram", _integers(self.histogram, "histogram", 2))
        if self.histogram.shape[1] != self.thresholds.size + 1:
            reason = f"histogram has {self.histogram.shape[1]} cells; {self.thresholds.size} thresholds make "
            raise InputError(f"{reason}{self.thresholds.size + 1}")
        if self.sums is not None:
            put(self, "sums", _integers(self.sums, "sums", 1))
        same_length(**{name: getattr(self, name).shape[0] for name in _PER_SAMPLE if getattr(self, name) is not None})
        _refuse(self.draws < 1, "draws", "has no draws; leave the sample out or draw for it")
        _refuse((self.votes < 0) | (self.votes > self.draws), "votes", "is outside 0 to its draws")
        _refuse(np.any(self.histogram < 0, axis=1), "histogram", "has a negative count")
        _refuse(self.histogram.sum(1) != self.draws, "histogram", "does not add up to its draws")
        if self.sums is not None:
            least, most = sum_limits(self.thresholds, self.histogram)
            _refuse((self.sums < least) | (self.sums > most), "sums", "is not a sum of the histogram's confidences")
        put(self, "earlier", tuple(_size(size) for size in self.earlier))
        put(self, "seed", random_seed(self.seed))

    def __len__(self) -> int:
        return self.draws.size

    @property
    def keys(self) -> NDArray[np.uint64]:
        """Keys of the coins that deal out each sample's draws: of the seed and of the sample's place in the data."""
        from certcal._kernels.certificates import mix_bits

        return mix_bits(np.array([self.seed], np.uint64)) + self.index.astype(np.uint64)

    def select(self, rows: Any) -> Counts:
        """Those of the samples at positions, or where a mask is set; at least one."""
        chosen = copy(self)  # what is checked stays checked
        for name in _PER_SAMPLE:
            if getattr(self, name) is not None:
                object.__setattr__(chosen, name, np.ascontiguousarray(getattr(self, name)[rows]))
        if chosen.draws.ndim != 1 or not chosen.draws.size:
            raise InputError("rows picks no samples; pass a mask or positions of at least one")
        return chosen

    def confidence_estimates(self) -> ConfidenceEstimates:
        """Smoothed confidence of every sample at its own input, without a perturbation: an estimate, not a guarantee.

        It is read off the histogram: each draw is taken as the middle of its cell. What that may be off by from the
        mean of the draws is ``error``, half a cell on average over the draws.

        Examples
        --------
        >>> counts = Counts.from_confidences([[0.9, 0.95, 0.2, 0.99]], [0.25, 0.5, 0.75], votes=[3], sigma=0.5)
        >>> found = counts.confidence_estimates()
        >>> found.values.tolist(), found.error.tolist()
        ([0.6875], [0.125])
        """
        edges = np.concatenate(([0.0], self.thresholds, [1.0]))
        middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
        return ConfidenceEstimates(self.histogram @ middle / self.draws, self.histogram @ half / self.draws)

    @classmethod
    def from_confidences(
        cls,
        confidences: Any,
        thresholds: Any,
        *,
        votes: Any,
        sigma: float,
        correct: Any = None,
        noise: str = "gaussian",
        seed: int = 0,
    ) -> Counts:
        """Counts of confidences that are at hand: one row per sample, one column per draw.

        Parameters
        ----------
        confidences
            N × n probabilities of class A.
        thresholds
            Of the histogram.
        votes
            Draws that predicted class A, per sample.
        sigma
            Standard deviation of the noise.
        correct
            Whether class A is the true class, per sample; all when not given.
        noise
            How the noise was drawn.
        seed
            Of the random splits of the draws; choose it before looking at them.
        """
        x = np.atleast_2d(np.asarray(to_numpy(confidences, "confidences"), np.float64))
        if not np.all((x >= 0) & (x <= 1)):
            raise InputError("confidences must be in [0, 1]; write 0 for a draw with an invalid output")
        edges = check_thresholds(thresholds)
        rows, n = int(x.shape[0]), int(x.shape[1])
        every = np.arange(rows, dtype=np.int64)
        cells = np.searchsorted(edges, x, side="right") + (edges.size + 1) * every[:, None]
        counted = np.bincount(cells.ravel(), minlength=rows * (edges.size + 1))
        one = np.ones(rows, np.int64)
        return cls(
            thresholds=edges,
            sigma=sigma,
            index=every,
            label=one if correct is None else np.asarray(correct).astype(np.int64),
            predicted=one,
            draws=n * one,
            votes=to_numpy(votes, "votes"),
            invalid=0 * one,
            histogram=counted.reshape(rows, edges.size + 1).astype(np.int64),
            noise=noise,
            seed=seed,
            sums=np.floor(x * UNITS).astype(np.int64).sum(axis=1),
        )


@dataclass(frozen=True)
class Overview(PlainValues):
    """Shares over the samples of a run. Estimates, not guarantees."""

    correct: float
    """Samples whose chosen class is the label."""
    abstained: float
    """Samples whose votes do not prove, at the level that certificates with ``alpha`` give them, that the chosen class
    is the likeliest one: those that nothing is certified of at radius 0."""
    votes: float
    """Draws that voted for the chosen class, averaged over samples."""
    invalid: int
    """Draws, in all, for which the model returned no prediction; they count against the class."""
    alpha: float
    """Of the certificates."""
    radius: float
    """Half of sigma."""
    certified: float
    """Samples whose chosen class is the label and is certified at ``radius``."""


@names_wrong_types
def overview(counts: Counts, alpha: float = 0.001) -> Overview:
    """What a run's counts say at a glance."""
    from certcal.smoothing._certificates import certified_radii, prediction_level

    radii, right = certified_radii(counts, prediction_level(alpha, len(counts))), counts.predicted == counts.label
    return Overview(
        correct=float(np.count_nonzero(right)) / len(counts),
        abstained=float(np.mean(np.isnan(radii))),
        votes=float(np.mean(counts.votes / counts.draws)),
        invalid=int(counts.invalid.sum()),
        alpha=alpha,
        radius=counts.sigma / 2,
        certified=float(np.count_nonzero(right & (radii >= counts.sigma / 2))) / len(counts),
    )


def _integers(value: Any, name: str, dimensions: int) -> Integers:
    array = to_numpy(value, name)
    if array.ndim != dimensions or array.shape[0] == 0 or array.dtype.kind not in "iu":
        raise InputError(f"{name} is {array.dtype} of shape {array.shape}; pass whole numbers, one row per sample")
    return np.ascontiguousarray(array, dtype=np.int64)


def _size(size: Any) -> tuple[int, int]:
    remedy = "pass pairs (samples, draws) of whole numbers, at least 1"
    try:
        samples, draws = size
    except (TypeError, ValueError):
        raise InputError(f"earlier has an entry {size!r}; {remedy}") from None
    most = 2**63 - 1
    return whole_number(samples, 1, most, "earlier", remedy), whole_number(draws, 1, most, "earlier", remedy)


def _refuse(bad: Any, name: str, what: str) -> None:
    if np.any(bad):
        raise InputError(f"{name}[{int(np.argmax(bad))}] {what}; the counts are damaged or were put together wrongly")
