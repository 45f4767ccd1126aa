"""What noise draws leave behind: votes and a histogram of confidences per sample."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, choice, positive, same_length, to_numpy, whole_number
from certcal.smoothing._grid import check_thresholds

Integers = NDArray[np.int64]

NOISES = ("gaussian", "exact")
_PER_SAMPLE = ("index", "label", "predicted", "draws", "votes", "invalid", "histogram", "pilot")


@dataclass(frozen=True, eq=False)
class ConfidenceEstimates:
    """Mean confidences read off histograms.

    Attributes
    ----------
    values
        With every draw in the middle of its cell.
    error
        The mean of the draws themselves is at most this far away, per sample.
    """

    values: NDArray[np.float64]
    error: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Counts:
    """Votes and confidence histograms of N samples, from which every certificate is computed.

    Draw number d of a sample is the model's output at x + δ, δ ~ N(0, σ²I), all draws independent, so the output must
    not depend on what else is in a batch. X is the probability that the model gives to the sample's class A, chosen
    beforehand from other draws. A draw with an invalid output has X = 0 and votes for nobody: that is part of the
    definition of the smoothed model, so no certificate needs to except it.

    Attributes
    ----------
    thresholds
        Strictly increasing t_1 < … < t_G in (0, 1). Cell j of a histogram counts draws with t_j <= X < t_{j+1}, where
        t_0 = 0; the last cell counts X >= t_G.
    sigma
        Standard deviation of the noise, or a little less.
    index, label, predicted
        Position in the data set, true class and class A per sample.
    draws, votes, invalid
        Number of draws per sample, how many of them predicted class A, and how many had an invalid output.
    histogram
        N × (G + 1) counts, rows adding up to ``draws``.
    pilot
        The part of ``histogram`` from the first draws, which may be used to choose how the others are used.
    noise
        "gaussian" (in floating point) or "exact" (discretised, from integer thresholds).
    earlier
        Sizes (samples, draws per sample) that a run had before it was extended to this one, in order. Claims then
        assume that nobody looked at results in between.

    Examples
    --------
    >>> counts = Counts.from_confidences([[0.9, 0.95, 0.2, 0.99]], [0.25, 0.5, 0.75], votes=[3], sigma=0.5)
    >>> counts.histogram.tolist(), counts.draws.tolist(), len(counts)
    ([[1, 0, 0, 3]], [4], 1)
    """

    thresholds: NDArray[np.float64]
    sigma: float
    index: Integers
    label: Integers
    predicted: Integers
    draws: Integers
    votes: Integers
    invalid: Integers
    histogram: Integers
    pilot: Integers
    noise: str = "gaussian"
    earlier: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "thresholds", check_thresholds(self.thresholds))
        put(self, "sigma", positive(self.sigma, "sigma"))
        choice(self.noise, NOISES, "noise")
        for name in ("index", "label", "predicted", "draws", "votes", "invalid"):
            put(self, name, _integers(getattr(self, name), name, 1))
        for name in ("histogram", "pilot"):
            put(self, name, _integers(getattr(self, name), name, 2))
            if getattr(self, name).shape[1] != self.thresholds.size + 1:
                raise InputError(
                    f"{name} has {getattr(self, name).shape[1]} cells; {self.thresholds.size} thresholds make "
                    f"{self.thresholds.size + 1}"
                )
        same_length(**{name: getattr(self, name).shape[0] for name in _PER_SAMPLE})
        _refuse(self.draws < 1, "draws", "has no draws; leave the sample out or draw for it")
        _refuse((self.votes < 0) | (self.votes > self.draws), "votes", "is outside 0 to its draws")
        _refuse(np.any(self.pilot < 0, axis=1), "pilot", "has a negative count")
        _refuse(np.any(self.histogram < self.pilot, axis=1), "pilot", "counts more draws in a cell than histogram")
        _refuse(self.histogram.sum(1) != self.draws, "histogram", "does not add up to its draws")
        put(self, "earlier", tuple(_size(size) for size in self.earlier))

    def __len__(self) -> int:
        return self.draws.size

    def select(self, rows: Any) -> Counts:
        """Those of the samples at positions, or where a mask is set; at least one."""
        arrays = {name: getattr(self, name)[rows] for name in _PER_SAMPLE}
        return replace(self, **arrays)

    def confidence_estimates(self) -> ConfidenceEstimates:
        """Smoothed confidence of every sample at its own input, without a perturbation: an estimate, not a guarantee.

        The mean of the draws is not kept, only their histogram: each draw is taken as the middle of its cell. What that
        may be off by from the mean of the draws is ``error``, half a cell on average over the draws.

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
        pilot: int | None = None,
        noise: str = "gaussian",
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
        pilot
            How many of the first draws are the pilot; a tenth when not given, at least one.
        noise
            How the noise was drawn.
        """
        x = np.atleast_2d(np.asarray(to_numpy(confidences, "confidences"), np.float64))
        if not np.all((x >= 0) & (x <= 1)):
            raise InputError("confidences must be in [0, 1]; write 0 for a draw with an invalid output")
        edges = check_thresholds(thresholds)
        rows, n = int(x.shape[0]), int(x.shape[1])
        first = max(1, n // 10) if pilot is None else pilot
        every = np.arange(rows, dtype=np.int64)
        cells = np.searchsorted(edges, x, side="right") + (edges.size + 1) * every[:, None]

        def count(part: NDArray[np.int64]) -> Integers:
            flat = np.bincount(part.ravel(), minlength=rows * (edges.size + 1))
            return flat.reshape(rows, edges.size + 1).astype(np.int64)

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
            histogram=count(cells),
            pilot=count(cells[:, :first]),
            noise=noise,
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
