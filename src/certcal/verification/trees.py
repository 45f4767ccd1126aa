"""Tree ensembles over boxes: bounds on scores by reachable leaves, tightened, and an attack in the same box.

Whatever library a model is from, it becomes one :class:`Ensemble`: arrays over all nodes, sums of leaf values, and a
link. That the two are the same is checked on the data: the library's own probabilities must lie in the interval of each
row alone, which is as narrow as the rounding of the library's sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal._base.margins import DOUBLE, confidence_intervals, score_intervals
from certcal._base.text import reason as reason_of
from certcal._base.threads import map_blocks
from certcal._kernels.leaves import Forest, bound_rows
from certcal.verification.boxes import BoxedRows
from certcal.verification.kinds import Verified, inside

Floats = NDArray[np.float64]
Cells = NDArray[np.int32]

SMALL = 16  # rows for which another thread is not worth its start
NOTHING = -1


@dataclass(frozen=True, eq=False)
class CategorySplit:
    """Categories that go left at a node, those that go right, and whether all others go left."""

    left: Floats
    right: Floats
    others_left: bool


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Trees as arrays over all nodes."""

    description: str
    features: int
    classes: int
    feature: Cells
    threshold: Floats
    missing_left: NDArray[np.bool_]
    left: Cells
    right: Cells
    """Of each node; the feature is -1 at leaves. A value goes left when it is at most the threshold; a missing one goes
    where ``missing_left`` says."""
    values: Floats
    """Of each leaf, a column per class; one column for a raw binary score."""
    roots: Cells
    group: Cells
    """First node of each tree, and the column that it adds to; -1 for all."""
    base: Floats
    """What is added to the sums."""
    predict: Callable[[Floats], Any]
    link: str = "logistic"
    """"logistic", "softmax" or "mean"."""
    single: bool = False
    """Whether features are rounded to float32 before they are compared."""
    unit: float = DOUBLE
    """Unit roundoff of the library's sums and link."""
    truncated: bool = False
    """Whether categories are cut to whole numbers before they are compared."""
    zero: float = 0.0
    """The largest size of a value that counts as 0."""
    categories: Mapping[int, CategorySplit] = field(default_factory=dict[int, CategorySplit])
    """Nodes that split categories."""
    names: tuple[str, ...] = ()
    """Of the features, as the model stores them; empty where it does not."""

    @cached_property
    def depth(self) -> int:
        """Edges of the longest path."""
        deepest, level = 0, self.roots
        while True:
            level = level[self.feature[level] >= 0]
            if not level.size:
                return deepest
            deepest += 1
            level = np.concatenate([self.left[level], self.right[level]])

    @cached_property
    def categorical(self) -> dict[int, Floats]:
        """Features with categories, and all that their nodes name."""
        found: dict[int, list[Floats]] = {}
        for node, split in self.categories.items():
            found.setdefault(int(self.feature[node]), []).extend((split.left, split.right))
        return {place: np.unique(np.concatenate(several)) for place, several in sorted(found.items())}

    def compared(self, rows: Floats) -> Floats:
        """Values as the library compares them."""
        if self.zero:
            rows = np.where(np.abs(rows) <= self.zero, 0.0, rows)
        if not self.single:
            return rows
        with np.errstate(over="ignore"):
            return rows.astype(np.float32).astype(np.float64)


@dataclass(frozen=True, eq=False)
class CellGrid:
    """The cells into which an ensemble's thresholds cut each feature, and its nodes in terms of them.

    Of a feature of whole numbers only those count, so that every cell holds one. Categories come with those that are
    allowed first: an interval of cells then holds all of them.
    """

    ensemble: Ensemble
    whole: tuple[int, ...] = ()
    choices: Mapping[int, Floats] = field(default_factory=dict[int, Floats])

    @cached_property
    def cuts(self) -> dict[int, Floats]:
        """Thresholds of each feature that has any, ascending."""
        e = self.ensemble
        inner = np.flatnonzero(e.feature >= 0)
        plain = inner[~np.isin(inner, list(e.categories))] if e.categories else inner
        if not plain.size:  # categories only, or no split at all
            return {}
        order = plain[np.argsort(e.feature[plain], kind="stable")]
        places, starts = np.unique(e.feature[order], return_index=True)
        parts = np.split(e.threshold[order], starts[1:])
        return {
            int(place): np.unique(np.floor(part) if place in self.whole else part)
            for place, part in zip(places, parts, strict=True)
        }

    @cached_property
    def orders(self) -> dict[int, Floats]:
        """Categories of each categorical feature in the order of their cells; one more cell is for all others."""
        orders = dict[int, Floats]()
        for place, known in self.ensemble.categorical.items():
            first = self.choices.get(place, np.empty(0))
            orders[place] = np.concatenate([first, np.setdiff1d(known, first)])
        return orders

    @cached_property
    def forest(self) -> Forest:
        """Nodes in terms of cells, for the kernel."""
        e = self.ensemble
        cut = np.full(e.feature.size, NOTHING, np.int32)
        offset, prefix, filled = np.full(e.feature.size, NOTHING, np.int32), [np.zeros(0, np.int32)], 0
        for place, cuts in self.cuts.items():
            nodes = np.flatnonzero(e.feature == place)
            whole = place in self.whole
            cut[nodes] = np.searchsorted(cuts, np.floor(e.threshold[nodes]) if whole else e.threshold[nodes])
        for node, split in e.categories.items():
            order = self.orders[int(e.feature[node])]
            inside = np.full(order.size + 1, split.others_left)
            inside[:-1][np.isin(order, split.left)], inside[:-1][np.isin(order, split.right)] = True, False
            counts = np.concatenate([[0], np.cumsum(inside)]).astype(np.int32)
            offset[node], cut[node] = filled, NOTHING
            prefix.append(counts)
            filled += counts.size
        joined = np.concatenate(prefix) if filled else np.zeros(1, np.int32)
        arrays = (e.missing_left, e.left, e.right, e.values, e.roots, e.group)
        return Forest(e.feature, cut, offset, *arrays, prefix=joined)

    def cells(self, rows: Floats) -> Cells:
        """The cell of every value; -1 where it is missing."""
        compared, cells = self.ensemble.compared(rows), np.zeros(rows.shape, np.int32)
        for place, cuts in self.cuts.items():
            cells[:, place] = np.searchsorted(cuts, compared[:, place])
        for place, order in self.orders.items():
            values = np.trunc(rows[:, place]) if self.ensemble.truncated else rows[:, place]
            sorted_order = np.argsort(order)
            spot = np.minimum(np.searchsorted(order[sorted_order], values), order.size - 1)
            hit = order[sorted_order][spot] == values
            cells[:, place] = np.where(hit, sorted_order[spot], order.size)
        cells[np.isnan(rows)] = NOTHING
        return cells

    def ends(self, region: BoxedRows) -> tuple[Cells, Cells, Cells]:
        """First and last cell of each feature's box, and the cell of the row."""
        own, low, high = self.cells(region.rows), self.cells(region.lower), self.cells(region.upper)
        for place in self.orders:
            there = own[:, place] >= 0
            moved = there & (region.lower[:, place] != region.upper[:, place])
            if moved.any():
                reason = f"feature {place} holds categories, and sample {int(np.argmax(moved))} may move in between"
                raise InputError(reason, argument="change", remedy="give the values that it may take, or keep it fixed")
            if place in self.choices:
                low[there, place], high[there, place] = 0, self.choices[place].size - 1
        for place, values in self.choices.items():
            if place in self.orders:
                continue
            # Of a number: everything from the smallest to the largest of the values.
            there = own[:, place] >= 0
            low[there, place], high[there, place] = self._cells_of(place, values[[0, -1]])
        return low, high, own

    def inputs(self, region: BoxedRows, points: Cells, own: Cells) -> Floats:
        """Values inside each row's box with the given cells, the row's own where it is in its cell."""
        low, high = self.cells(region.lower), self.cells(region.upper)
        inputs = region.rows.copy()
        for place in (*self.cuts, *self.orders):
            moved = np.flatnonzero(points[:, place] != own[:, place])
            if not moved.size:
                continue
            wanted = points[moved, place]
            if place in self.choices:
                cells = self._cells_of(place, self.choices[place])
                reachable = np.isin(wanted, cells)
                spot = np.argmax(cells == wanted[:, None], axis=1)
                inputs[moved, place] = np.where(reachable, self.choices[place][spot], inputs[moved, place])
                continue
            values = self._inside(place, wanted)
            values = np.where(low[moved, place] == wanted, region.lower[moved, place], values)
            inputs[moved, place] = np.where(high[moved, place] == wanted, region.upper[moved, place], values)
        return inputs

    def _cells_of(self, place: int, values: Floats) -> Cells:
        rows = np.zeros((values.size, self.ensemble.features))
        rows[:, place] = values
        return self.cells(rows)[:, place]

    def _inside(self, place: int, wanted: Cells) -> Floats:
        """The largest value of each cell that the library can be given."""
        cuts = self.cuts[place]
        values = cuts[np.minimum(wanted, cuts.size - 1)]
        if not self.ensemble.single:
            return values
        nearest = values.astype(np.float32)
        return np.where(nearest > values, np.nextafter(nearest, np.float32(-np.inf)), nearest).astype(np.float64)


@dataclass(frozen=True, eq=False)
class TreeVerifier:
    """Bounds an ensemble's scores by the leaves that a box can reach.

    What is claimed: for every row of values inside its box, and with at most ``at_most`` of them changed, the library's
    own probability lies in the interval. The sum over trees of the largest reachable leaf is no smaller than any sum;
    splitting a box in two and bounding both keeps that true. Rounding: a sum of n terms in any order is off by at most
    n u / (1 - n u) times the sum of absolute values, with u the unit roundoff of the library; the bounds are moved
    outward by that, once for the library and once for the sums here.
    """

    ensemble: Ensemble

    @property
    def description(self) -> str:
        """Library and number of trees."""
        return self.ensemble.description

    @property
    def method(self) -> str:
        """How bounds are found."""
        return "reachable leaves, tightened by splitting boxes"

    @property
    def classes(self) -> int:
        """Number of classes."""
        return self.ensemble.classes

    @property
    def names(self) -> tuple[str, ...]:
        """Of the features, as the model stores them."""
        return self.ensemble.names

    def predict(self, rows: NDArray[Any]) -> Floats:
        """The library's own probabilities, after a check that the trees here are the library's."""
        e, values = self.ensemble, np.asarray(rows, np.float64)
        if values.ndim != 2 or values.shape[1] != e.features:
            reason = f"{self.description} takes {e.features} features, and the data has shape {values.shape}"
            raise InputError(reason, argument="data", remedy="give the columns that the model was fitted on")
        result = self._own_predictions(values)
        predicted = result.argmax(axis=1)
        alone = BoxedRows(values, values, values)
        low, high, _ = self._intervals(CellGrid(e), alone, predicted, budget=0, attack=False)[:3]
        answer = self._answer(result, predicted)
        if not ((low <= answer) & (answer <= high)).all():
            row = int(np.argmin((low <= answer) & (answer <= high)))
            reason = (
                f"{self.description} predicts {answer[row]!r} for sample {row} and its trees add up to between "
                f"{low[row]!r} and {high[row]!r}"
            )
            raise InputError(reason, argument="model", remedy="it computes something else than its trees say")
        return result

    def verify(self, region: BoxedRows, predicted: NDArray[np.int64], *, budget: int, attack: bool) -> Verified:
        """Bound the scores over a region, and attack inside it."""
        if region.l2 is not None:
            reason = "trees are verified over boxes, not over l2 balls"
            raise InputError(reason, argument="norm", remedy="give an amount for each feature")
        if self.ensemble.truncated:
            for place in self.ensemble.categorical:
                given = region.choices.get(place, np.empty(0))
                if (odd := given[(given != np.trunc(given)) | (given < 0)]).size:
                    reason = f"the category {odd[0]:g} of feature {place} is no whole number from 0"
                    remedy = "give the numbers of the categories: the library cuts others to such a number"
                    raise InputError(reason, argument="box", remedy=remedy)
        grid = CellGrid(self.ensemble, region.integers, region.choices)
        low, high, certified, points, own = self._intervals(grid, region, predicted, budget=budget, attack=attack)
        clean = self._own_predictions(region.rows)
        reached = [self._answer(clean, predicted)] * 2
        flipped = np.zeros(len(region), np.bool_)
        for cells in points:
            found = self._own_predictions(grid.inputs(region, cells, own))
            answer = self._answer(found, predicted)
            reached = [np.minimum(reached[0], answer), np.maximum(reached[1], answer)]
            flipped |= found.argmax(axis=1) != predicted if self.classes > 2 else flipped
        inside = (low <= reached[0]) & (reached[1] <= high) & ~(flipped & certified & (self.classes > 2))
        if not inside.all():
            row = int(np.argmin(inside))
            raise InputError(
                f"{self.description} gives sample {row} a score from {reached[0][row]!r} to {reached[1][row]!r}, "
                f"outside of its interval from {low[row]!r} to {high[row]!r}",
                argument="model",
                remedy="it computes something else than its trees say",
            )
        return Verified(low, high, certified, reached[0], reached[1], flipped)

    def _own_predictions(self, rows: Floats) -> Floats:
        try:
            found = np.asarray(self.ensemble.predict(rows), np.float64)
        except ValueError as error:  # such as missing values where the model was fitted without any
            raise InputError(f"{self.description} failed on these rows: {reason_of(error)}", argument="data") from error
        return np.stack([1 - found, found], axis=1) if found.ndim == 1 else found

    def _answer(self, probabilities: Floats, predicted: NDArray[np.int64]) -> Floats:
        """What intervals are of: the score of class 1, or the predicted class's confidence."""
        if self.classes == 2:
            return probabilities[:, 1]
        return np.take_along_axis(probabilities, predicted[:, None], axis=1)[:, 0]

    def _intervals(
        self, grid: CellGrid, region: BoxedRows, predicted: NDArray[np.int64], *, budget: int, attack: bool
    ) -> tuple[Floats, Floats, NDArray[np.bool_], list[Cells], Cells]:
        e, ends = self.ensemble, grid.ends(region)
        most = e.features if region.at_most is None else region.at_most
        points: list[Cells] = []

        def bounds(plus: Any, minus: Any) -> tuple[Floats, Floats]:
            low, high, found = _sum_bounds(grid, ends, np.asarray(plus), np.asarray(minus), most, budget, attack)
            points.extend(found if attack else ())
            return low, high

        n, nothing = len(region), np.full(len(region), NOTHING)
        everything = np.ones(n, np.bool_)
        if e.classes == 2:
            low, high = bounds(np.full(n, e.values.shape[1] - 1), nothing)
            if e.link == "mean":
                return np.clip(low, 0, 1), np.clip(high, 0, 1), everything, points, ends[2]
            return *score_intervals(low, high, unit=e.unit), everything, points, ends[2]
        margins = np.zeros((2, n, e.classes))
        for other in range(e.classes):
            rows = predicted != other
            if rows.any():
                low, high = bounds(np.full(n, other), np.where(rows, predicted, other))
                margins[0, rows, other], margins[1, rows, other] = low[rows], high[rows]
        if e.link == "softmax":
            low, high, certified = confidence_intervals(margins[0], margins[1], predicted, unit=e.unit)
            return low, high, certified, points, ends[2]
        low, high = bounds(predicted, nothing)
        own = np.arange(e.classes) == predicted[:, None]
        certified = np.where(own, -np.inf, margins[1]).max(axis=1) < 0
        return np.clip(low, 0, 1), np.clip(high, 0, 1), certified, points, ends[2]


def _sum_bounds(
    grid: CellGrid, ends: tuple[Cells, Cells, Cells], plus: Any, minus: Any, most: int, budget: int, attack: bool
) -> tuple[Floats, Floats, tuple[Cells, Cells]]:
    """Bounds on sums with the base and room for rounding, and points that come near them."""
    e, n = grid.ensemble, ends[0].shape[0]
    low, high, size = np.empty(n), np.empty(n), np.empty(n)
    found = np.empty_like(ends[2]), np.empty_like(ends[2])
    plus, minus = plus.astype(np.int32), minus.astype(np.int32)

    def block(start: int, stop: int) -> None:
        rows = slice(start, stop)
        arrays = [each[rows] for each in ends]
        out = [each[rows] for each in (low, high, size, *found)]
        bound_rows(*arrays, grid.forest, e.depth, plus[rows], minus[rows], most, budget, attack, *out)

    map_blocks(block, n, SMALL)
    # Class -1 is the last entry of what follows: 0.
    base = np.append(e.base, 0.0)
    total = e.roots.size + 4
    size += np.abs(base[plus]) + np.abs(base[minus])
    room = size * sum(1.01 * total * unit for unit in (e.unit, DOUBLE, DOUBLE))
    scale = 1.0 / e.roots.size if e.link == "mean" else 1.0
    shift = base[plus] - base[minus]
    return (low + shift - room) * scale, (high + shift + room) * scale, found


def tree_verifier(model: Any) -> TreeVerifier:
    """The verifier of a fitted ensemble of scikit-learn, XGBoost or LightGBM, or of what :func:`wrap` made of it."""
    from certcal.verification.conversion import ensemble_of

    inner = inside(model)
    return TreeVerifier(ensemble_of(inner))


def stack_trees(parts: list[dict[str, Any]], **facts: Any) -> Ensemble:
    """One ensemble from the arrays of its trees."""
    starts = np.cumsum([0, *(part["feature"].size for part in parts)])
    names = {"feature": np.int32, "threshold": np.float64, "missing_left": np.bool_, "values": np.float64}
    arrays = {name: np.concatenate([part[name] for part in parts]).astype(kind) for name, kind in names.items()}
    for side in ("left", "right"):
        arrays[side] = np.concatenate([part[side] + start for part, start in zip(parts, starts, strict=False)])
        arrays[side] = arrays[side].astype(np.int32)
    categories = {
        int(starts[k] + node): split for k, part in enumerate(parts) for node, split in part["categories"].items()
    }
    return Ensemble(roots=starts[:-1].astype(np.int32), categories=categories, **arrays, **facts)
