"""What maps that are constant on bins have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, choice, failure_probability
from certcal.binning import CLOSED, assign, check_edges, sums
from certcal.calibrators._cells import Cells
from certcal.calibrators._outcomes import OutcomeMap
from certcal.calibrators._state import numbers
from certcal.claims import Bound

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


class BinnedMap(OutcomeMap):
    """A map that is constant on bins of [0, 1]; each value is the mean outcome of the bin's samples.

    It need not be monotone. An interval of confidences goes to the range of the values of all bins that it touches,
    which contains whatever a confidence inside is mapped to.

    A bin without samples has the value in its middle.
    """

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
    def _counted(self, z: Floats, c: NDArray[np.uint8]) -> dict[str, Whole]:
        """Counts that a guarantee needs, by name."""

    @abstractmethod
    def _cells(self) -> Cells:
        """Cells of a fitted map."""

    @abstractmethod
    def guarantee(self, delta: float = 0.05) -> Bound:
        """Upper bound on the largest |E[c | bin] - value| in the population."""

    @abstractmethod
    def mean_guarantee(self, delta: float = 0.05) -> Bound:
        """Upper bound on the mean of |E[c | bin] - value| in the population."""

    def _fit(self, z: Floats, c: NDArray[np.uint8], w: Floats | None) -> None:
        closed = choice(self.closed, CLOSED, "closed")
        edges = self._edges(z, w, closed)
        table = sums(z, c, w, edges, closed)
        middle = (edges[:-1] + edges[1:]) / 2
        self.closed_, self.edges_ = closed, edges
        self.values_ = np.where(table.weight > 0, np.clip(table.accuracy, 0.0, 1.0), middle)
        self.counts_ = self._counted(z, c) if w is None else None

    def _apply(self, values: Floats) -> Floats:
        return self.values_[assign(values, self.edges_, self.closed_)]

    def _interval(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        first = assign(lower, self.edges_, self.closed_)
        last = assign(upper, self.edges_, self.closed_)
        return ranges(self.values_, first, last)

    def _ready(self, delta: Any) -> tuple[Cells, float, dict[str, Any]]:
        """What a guarantee is made of."""
        self._require_fitted()
        level = failure_probability(delta, "delta")
        if self.counts_ is None:
            raise InputError("the map was fitted with sample_weight, for which no guarantee is known; fit without")
        return self._cells(), level, {"bins": self.values_.size, "closed": self.closed_}

    def _state(self) -> dict[str, Any] | None:
        if not hasattr(self, "edges_"):
            return None
        counts = self.counts_ and {name: count.tolist() for name, count in self.counts_.items()}
        return {
            "closed": self.closed_,
            "edges": self.edges_.tolist(),
            "values": self.values_.tolist(),
            "counts": counts,
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        closed = choice(state.get("closed"), CLOSED, "closed")
        edges = check_edges(numbers(state, "edges", (None,)))
        values = numbers(state, "values", (edges.size - 1,))
        if not ((values >= 0) & (values <= 1)).all():
            raise InputError("values of the bins are not in [0, 1]; refit the map")
        given = state.get("counts")
        self.closed_, self.edges_, self.values_, self.counts_ = closed, edges, values, None
        if given is not None:
            sizes = self._sizes()
            if not isinstance(given, Mapping) or set(given) != set(sizes):  # pyright: ignore[reportUnknownArgumentType]
                raise InputError(f"counts of the bins must be {', '.join(sizes)}; refit the map")
            self.counts_ = {name: _whole(given, name, size) for name, size in sizes.items()}  # pyright: ignore[reportUnknownArgumentType]
            self._check_counts(self.counts_)

    @abstractmethod
    def _sizes(self) -> dict[str, int]:
        """Names and lengths of the counts of a map with these edges."""

    def _check_counts(self, counts: Mapping[str, Whole]) -> None:
        for name in counts:
            right = counts.get(f"{name}_correct")
            if right is not None and (right > counts[name]).any():
                raise InputError(f"counts: more samples are correct than there are ({name}); refit the map")


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


def _whole(given: Mapping[str, Any], name: str, size: int) -> Whole:
    value = given[name]
    entries = cast("list[Any]", value) if isinstance(value, list) else []
    if len(entries) != size or not all(type(each) is int and 0 <= each < 2**53 for each in entries):
        raise InputError(f"counts: {name} is damaged; expected {size} whole numbers of at least 0")
    return np.array(entries, np.int64)
