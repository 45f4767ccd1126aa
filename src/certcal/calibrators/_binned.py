"""Histogram and equal-mass binning: the mean outcome of each bin, and what it guarantees about the population."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from certcal._base.assumptions import INDEPENDENT
from certcal._base.checks import InputError, bin_count, choice, failure_probability
from certcal.binning import CLOSED, bin_indices, check_edges, equal_width_edges, mass_edges, sums
from certcal.bounds.concentration import binomial_limits, dkw_width
from certcal.calibrators._base import OutcomeMap, numbers
from certcal.calibrators._formulas import ScoreFormula, steps
from certcal.calibrators.scores import Floats
from certcal.claims import Bound, move_outward

Whole = NDArray[np.int64]

NOT_FITTED = "they were not used to train or choose the classifier or to fit an earlier map"

# Room for the rounding of a value, a limit and their difference.
_ROUNDING = 1e-14


class BinnedMap(OutcomeMap):
    """A map that is constant on bins of [0, 1]; each value is the mean outcome of the bin's samples.

    It need not be monotone. An interval of confidences goes to the range of the values of all bins that it touches,
    which contains whatever a confidence inside is mapped to.

    A bin without samples has the value in its middle.
    """

    _kept: ClassVar = dict.fromkeys(("closed", "edges", "values", "counts"))

    def __init__(self, bins: int = 15, closed: str = "left") -> None:
        self.bins = bins
        self.closed = closed

    @property
    def monotone(self) -> bool:
        """Whether the values of the bins do not descend; False before the fit."""
        return hasattr(self, "values_") and bool((np.diff(self.values_) >= 0).all())

    @abstractmethod
    def _edges(self, z: Floats, w: Floats | None, closed: str) -> Floats:
        """Edges of the bins, none of which is the empty set."""

    @abstractmethod
    def _guarantee_counts(self, z: Floats, c: NDArray[np.uint8]) -> dict[str, Whole]:
        """Counts that a guarantee needs, by name."""

    @abstractmethod
    def _cells(self) -> BinCells:
        """Cells of a fitted map."""

    def _fit(self, z: Floats, c: NDArray[np.uint8], w: Floats | None) -> None:
        closed = self._check_choice("closed")
        edges = self._edges(z, w, closed)
        table = sums(z, c, w, edges, closed)
        middle = (edges[:-1] + edges[1:]) / 2
        self.closed_, self.edges_ = closed, edges
        self.values_ = np.where(table.weight > 0, np.clip(table.accuracy, 0.0, 1.0), middle)
        self.counts_ = self._guarantee_counts(z, c) if w is None else None

    def _apply(self, values: Floats) -> Floats:
        if values.size == 1:  # a service's: nothing is compiled for it
            side = "right" if self.closed_ == "left" else "left"
            return self.values_[np.searchsorted(self.edges_[1:-1], values, side)]
        return self.values_[bin_indices(values, self.edges_, self.closed_)]

    def _interval(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        first = bin_indices(lower, self.edges_, self.closed_)
        last = bin_indices(upper, self.edges_, self.closed_)
        return ranges(self.values_, first, last)

    def _formula(self) -> ScoreFormula:
        return ScoreFormula(steps(self.edges_[1:-1], self.values_, self.closed_), f"{self.values_.size} steps")

    def _ready(self, delta: Any) -> tuple[BinCells, float, dict[str, Any]]:
        self._require_fitted()
        level = failure_probability(delta, "delta")
        if self.counts_ is None:
            raise InputError("the map was fitted with sample_weight, for which no guarantee is known; fit without")
        return self._cells(), level, {"bins": self.values_.size, "closed": self.closed_}

    def _restore(self, state: Mapping[str, Any]) -> None:
        closed = choice(state.get("closed"), CLOSED, "closed")
        edges = check_edges(numbers(state, "edges", (None,)))
        values = numbers(state, "values", (edges.size - 1,))
        if not ((values >= 0) & (values <= 1)).all():
            raise InputError("values of the bins are not in [0, 1]; refit the map")
        self.closed_, self.edges_, self.values_, self.counts_ = closed, edges, values, None
        if state.get("counts") is not None:
            self.counts_ = self._read_counts(state["counts"])

    def _read_counts(self, given: Any) -> dict[str, Whole]:
        sizes = self._sizes()
        found: Mapping[str, Any] = cast("Any", given) if isinstance(given, Mapping) else {}
        if set(found) != set(sizes):
            raise InputError(f"counts of the bins must be {', '.join(sizes)}; refit the map")
        counts: dict[str, Whole] = {}
        for name, size in sizes.items():
            entries = cast("list[Any]", found[name]) if isinstance(found[name], list) else []
            if len(entries) != size or not all(type(each) is int and 0 <= each < 2**53 for each in entries):
                raise InputError(f"counts: {name} is damaged; expected {size} whole numbers of at least 0")
            counts[name] = np.array(entries, np.int64)
        for name in counts:
            if (counts.get(f"{name}_correct", counts[name]) > counts[name]).any():
                raise InputError(f"counts: more samples are correct than there are ({name}); refit the map")
        return counts

    @abstractmethod
    def _sizes(self) -> dict[str, int]:
        """Names and lengths of the counts of a map with these edges."""


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

    def _guarantee_counts(self, z: Floats, c: NDArray[np.uint8]) -> dict[str, Whole]:
        table = sums(z, c, None, self.edges_, self.closed_)
        return {"inside": table.count, "inside_correct": table.correct_sum.astype(np.int64)}

    def _sizes(self) -> dict[str, int]:
        return dict.fromkeys(("inside", "inside_correct"), self.values_.size)

    def _cells(self) -> BinCells:
        assert self.counts_ is not None
        n = self.counts_["inside"]
        return BinCells(self.values_, n, self.counts_["inside_correct"], n)

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

    def _guarantee_counts(self, z: Floats, c: NDArray[np.uint8]) -> dict[str, Whole]:
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

    def _cells(self) -> BinCells:
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
        return BinCells(value[kept], n[kept], right[kept], seen[kept])

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


@dataclass(frozen=True, eq=False)
class BinCells:
    """Parts of [0, 1] in ascending order, each inside one bin of a map."""

    value: Floats
    n: Whole
    correct: Whole
    seen: Whole

    def distances(self, alpha: float) -> Floats:
        """How far E[c | cell] may be from the value in each cell, all together except with probability alpha.

        Where no sample counts, as far as 0 or 1 is.
        """
        far = np.maximum(self.value, 1 - self.value)
        counted = self.n > 0
        if counted.any():
            level = alpha / int(np.count_nonzero(counted))
            limits = binomial_limits(self.correct[counted], self.n[counted], level)
            value = self.value[counted]
            far[counted] = np.maximum(limits.upper - value, value - limits.lower) + _ROUNDING
        return np.minimum(far, 1.0)

    def largest(self, name: str, delta: float, settings: dict[str, Any]) -> Bound:
        """Upper bound on the largest |E[c | cell] - value| over the cells in which samples count."""
        counted = self.n > 0
        if not counted.any():
            raise InputError("no bin holds a sample that counts, so nothing is guaranteed; fit to more samples")
        found = float(self.distances(delta)[counted].max())
        return Bound(name, found, "upper", delta, int(self.seen.sum()), (INDEPENDENT, NOT_FITTED), {}, settings)

    def mean(self, name: str, delta: float, settings: dict[str, Any], *assumptions: str) -> Bound:
        """Upper bound on Σ P(cell) |E[c | cell] - value| over all cells.

        Half of delta is spent on the distances. The mean of a function that is constant on cells differs between the
        samples and the population by at most its variation times the largest distance of the two distribution
        functions (summation by parts); the other half is spent on that distance.
        """
        n = int(self.seen.sum())
        far = self.distances(delta / 2)
        here = float(self.seen @ far) / n
        shares = float(np.abs(np.diff(far)).sum()) * float(dkw_width(n, delta / 2))
        value = min(move_outward(here + shares, "upper", _ROUNDING), float(far.max()))
        terms = {"limits in the bins": here, "shares of the bins": shares}
        return Bound(name, value, "upper", delta, n, (INDEPENDENT, NOT_FITTED, *assumptions), terms, settings)


def ranges(values: Floats, first: Whole, last: Whole) -> tuple[Floats, Floats]:
    """Least and largest of values[first], …, values[last], for each pair.

    Two overlapping windows of one power of two cover a range; windows are doubled once for all ranges.
    """
    low, high = np.empty(first.size), np.empty(first.size)
    power = np.frexp(last - first + 1)[1] - 1  # of the largest window that fits
    least, most = values, values
    for k in range(int(power.max(initial=0)) + 1):
        if k > 0:
            half = 1 << (k - 1)
            least, most = np.minimum(least[:-half], least[half:]), np.maximum(most[:-half], most[half:])
        rows = np.flatnonzero(power == k)
        a, b = first[rows], last[rows] + 1 - (1 << k)
        low[rows] = np.minimum(least[a], least[b])
        high[rows] = np.maximum(most[a], most[b])
    return low, high
