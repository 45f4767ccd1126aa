"""Equal-mass binning: the mean outcome of each of some bins with the same number of samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certcal._checks import bin_count
from certcal.binning import mass_edges
from certcal.calibrators._binned import BinnedMap
from certcal.calibrators._cells import Cells
from certcal.claims import Bound

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


class EqualMassBinning(BinnedMap):
    """A confidence becomes the share of correct samples in its bin; the bins hold equally many as far as ties allow.

    Edges are those of :func:`certcal.binning.equal_mass_edges`: inner ones are confidences of samples. Equal
    confidences share a bin; bins that this leaves without any place are dropped, so there may be fewer than asked
    for (always when there are fewer different confidences than bins). A bin without samples has the value in its
    middle. Confidences are binned as float64.

    Parameters
    ----------
    bins
        Number of bins, at most.
    closed
        "left" for bins [a, b) with the last closed, "right" for (a, b] with the first closed.

    Attributes
    ----------
    edges_, values_
        Edges of the bins, and the value of each.

    Examples
    --------
    >>> fitted = EqualMassBinning(bins=2).fit([0.5, 0.8, 0.9, 0.95], [0, 1, 1, 1])
    >>> fitted.edges_.tolist(), fitted.values_.tolist()
    ([0.0, 0.9, 1.0], [0.5, 1.0])
    """

    def _edges(self, z: Floats, w: Floats | None, closed: str) -> Floats:
        inner = np.unique(mass_edges(z, w, bin_count(self.bins), closed)[1:-1])
        inner = inner[inner > 0] if closed == "left" else inner[inner < 1]  # [0, 0) and (1, 1] are empty
        return np.concatenate(([0.0], inner, [1.0]))

    def _counted(self, z: Floats, c: NDArray[np.uint8]) -> dict[str, Whole]:
        inner = self.edges_[1:-1]
        below, up_to = np.searchsorted(inner, z, "left"), np.searchsorted(inner, z, "right")
        right, on = c == 1, up_to > below

        def count(places: Whole, rows: NDArray[np.bool_], size: int) -> Whole:
            return np.bincount(places[rows], minlength=size).astype(np.int64)

        return {
            "inside": count(below, ~on, inner.size + 1),
            "inside_correct": count(below, ~on & right, inner.size + 1),
            "edge": count(below, on, inner.size),
            "edge_correct": count(below, on & right, inner.size),
        }

    def _sizes(self) -> dict[str, int]:
        bins = self.values_.size
        return {"inside": bins, "inside_correct": bins, "edge": bins - 1, "edge_correct": bins - 1}

    def _cells(self) -> Cells:
        """Open bins, and between them the edges that several samples share."""
        assert self.counts_ is not None
        bins = self.values_.size
        left = self.closed_ == "left"
        size = 2 * bins - 1  # bin, edge, bin, edge, …, bin
        value, n, right, seen = np.empty(size), *(np.zeros(size, np.int64) for _ in range(3))
        value[::2], value[1::2] = self.values_, self.values_[1:] if left else self.values_[:-1]
        n[::2], right[::2] = self.counts_["inside"], self.counts_["inside_correct"]
        n[1::2], right[1::2] = self.counts_["edge"], self.counts_["edge_correct"]
        seen[:] = n
        shared = n[1::2] > 1
        owner = np.arange(2, size, 2) if left else np.arange(0, size - 2, 2)
        np.add.at(seen, owner[~shared], n[1::2][~shared])  # an edge of one sample is part of its bin, uncounted
        kept = np.ones(size, np.bool_)
        kept[1::2] = shared
        # A bin that is the point 1 (or 0) has nothing but its edge; it stays where the edge is not a cell of its own.
        kept[::2] = (np.diff(self.edges_) > 0) | (seen[::2] > 0)
        return Cells(value[kept], n[kept], right[kept], seen[kept])

    def guarantee(self, delta: float = 0.05) -> Bound:
        """Upper bound on the largest |E[c | bin] - value| in the population, inside bins and on edges that are shared.

        What is random: n independent draws of (z, c), which gave both the edges and the values. What is claimed: with
        probability at least 1 - delta over them, in every bin that holds samples inside, the value differs from
        E[c | z inside the bin], in the population, by at most ``value``. Inside is without the edges that are
        confidences of samples. Such an edge counts as a bin of its own, with the value of the bin it belongs to, when
        two samples or more share it; an edge of one sample is not spoken of. (When confidences are continuous, a
        single confidence has probability 0 and nothing is left out.) Nothing else is assumed about the confidences.

        Why (after Gupta and Ramdas 2021, with ties): each edge is an order statistic of a rank that depends on n only.
        That a confidence e has that rank says how many samples are below e and how many are at most e, and nothing
        else. So, given the edges and the numbers of samples inside each bin and at each edge, samples inside a bin are
        independent draws from the population inside it, and samples at an edge from the population there: the numbers
        of correct ones are binomial. Clopper-Pearson limits at level delta / (bins and shared edges that hold samples)
        hold in all together; the bound is the distance of the value to the farthest. The sample that made an edge is
        not a draw from its bin, so it does not count, although the value, which may be anything, uses it.

        Edges that few samples share (confidences rounded to a few digits) make the bound useless, though true: use
        :class:`HistogramBinning` there.

        Parameters
        ----------
        delta
            Probability with which the bound may fail.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> z = rng.beta(5, 1, 10_000)
        >>> print(EqualMassBinning(bins=10).fit(z, rng.random(z.size) < z).guarantee().text)
        0.0449
        """
        cells, level, settings = self._ready(delta)
        return cells.largest(
            "largest |E[c | bin] - value| inside bins and on shared edges with samples", level, settings
        )

    def mean_guarantee(self, delta: float = 0.05) -> Bound:
        """Upper bound on the mean of |E[c | bin] - value| over the population.

        What is random, and what a bin is: as in :meth:`guarantee`. What is claimed: with probability at least 1 - delta
        over the samples, Σ P(bin) |E[c | bin] - value| over all bins and shared edges is at most ``value``. Assumed
        besides: confidences that are an edge of one sample have probability 0. Why: as for
        :meth:`HistogramBinning.mean_guarantee`; the distance of distribution functions is limited at all places at
        once, so the edges may depend on the samples.

        Parameters
        ----------
        delta
            Probability with which the bound may fail.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> z = rng.beta(5, 1, 10_000)
        >>> print(EqualMassBinning(bins=10).fit(z, rng.random(z.size) < z).mean_guarantee().text)
        0.0339
        """
        cells, level, settings = self._ready(delta)
        alone = "no confidence that is an edge of one sample has a positive probability"
        return cells.mean("mean of |E[c | bin] - value| over the population", level, settings, alone)
