"""Histogram binning: the mean outcome of each of some bins of equal width."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certcal.binning import equal_width_edges, sums
from certcal.calibrators._binned import BinnedMap
from certcal.calibrators._cells import Cells
from certcal.claims import Bound

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


class HistogramBinning(BinnedMap):
    """A confidence becomes the share of correct samples in its bin of equal width (Zadrozny and Elkan 2001).

    A bin without samples has the value in its middle. Confidences are binned as float64; bins are those of
    :mod:`certcal.binning`.

    Parameters
    ----------
    bins
        Number of bins.
    closed
        "left" for bins [a, b) with the last closed, "right" for (a, b] with the first closed.

    Attributes
    ----------
    edges_, values_
        Edges of the bins, and the value of each.

    Examples
    --------
    >>> fitted = HistogramBinning(bins=2).fit([0.1, 0.3, 0.6, 0.8, 0.9], [0, 1, 1, 1, 0])
    >>> fitted.transform([0.2, 0.5, 1.0]).round(6).tolist()
    [0.5, 0.666667, 0.666667]
    >>> [end.round(6).tolist() for end in fitted.intervals([0.2, 0.6], [0.7, 0.9])]
    [[0.5, 0.666667], [0.666667, 0.666667]]
    """

    def _edges(self, z: Floats, w: Floats | None, closed: str) -> Floats:
        return equal_width_edges(self.bins)

    def _counted(self, z: Floats, c: NDArray[np.uint8]) -> dict[str, Whole]:
        table = sums(z, c, None, self.edges_, self.closed_)
        return {"inside": table.count, "inside_correct": table.correct_sum.astype(np.int64)}

    def _sizes(self) -> dict[str, int]:
        return dict.fromkeys(("inside", "inside_correct"), self.values_.size)

    def _cells(self) -> Cells:
        assert self.counts_ is not None
        n = self.counts_["inside"]
        return Cells(self.values_, n, self.counts_["inside_correct"], n)

    def guarantee(self, delta: float = 0.05) -> Bound:
        """Upper bound on the largest |E[c | bin] - value| in the population, over the bins that hold samples.

        What is random: n independent draws of (z, c), to which the map was fitted. What is claimed: with probability at
        least 1 - delta over them, in every bin that holds one of them the value differs from E[c | z in bin], in the
        population, by at most ``value``. Nothing is assumed about the confidences.

        Why: the edges are fixed. Given how many samples fall into each bin, those in a bin are independent draws from
        the population inside it, so the number of correct ones is binomial, and Clopper-Pearson limits at level
        delta / (bins that hold samples) hold in all of them together. The value lies between them, and the bound is the
        distance to the farther. This is true given any counts, so also without giving them.

        Parameters
        ----------
        delta
            Probability with which the bound may fail.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> z = rng.random(10_000)
        >>> print(HistogramBinning(bins=10).fit(z, rng.random(z.size) < z**2).guarantee().text)
        0.0454
        """
        cells, level, settings = self._ready(delta)
        return cells.largest("largest |E[c | bin] - value| over the bins that hold samples", level, settings)

    def mean_guarantee(self, delta: float = 0.05) -> Bound:
        """Upper bound on Σ P(bin) |E[c | bin] - value|, the calibration error of the mapped confidences by bins.

        What is random: as in :meth:`guarantee`. What is claimed: with probability at least 1 - delta over the samples,
        the sum over all bins, also those that hold none, is at most ``value``.

        Why: half of delta is spent on the limits of :meth:`guarantee`; a bin without samples may be off by as much as 0
        or 1 is from its value. The other half limits how far the distribution function of the confidences is from that
        of the samples (Dvoretzky, Kiefer, Wolfowitz and Massart), which limits how far the mean of these distances over
        the population is from that over the samples: by the product of that with their variation from bin to bin.

        Parameters
        ----------
        delta
            Probability with which the bound may fail.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> z = rng.random(10_000)
        >>> print(HistogramBinning(bins=10).fit(z, rng.random(z.size) < z**2).mean_guarantee().text)
        0.0359
        """
        cells, level, settings = self._ready(delta)
        return cells.mean("mean of |E[c | bin] - value| over the population", level, settings)
