"""Bounds on margins or logits, a column per class, as verifiers of networks write them; intervals are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal._base.margins import SINGLE, predicted_intervals
from certcal.data.formats import TableColumn
from certcal.data.layout import Family, find_families
from certcal.data.pieces import CellError
from certcal.data.roles import CLASS_BOUNDS

Floats = NDArray[np.float64]

_FILL = "fill it, with -inf or inf where nothing is known, or say in a column 'certified' that the row is not certified"


@dataclass(frozen=True)
class ClassBounds:
    """Columns of bounds per class.

    Attributes
    ----------
    of
        "margin", how far the predicted class A is ahead of class k, l_A - l_k; or "logit", l_k.
    lower, upper
        Columns of the bounds; margins can do without upper ones.

    Examples
    --------
    >>> names = ["margin_lower_0", "margin_lower_1", "margin_lower_2", "prediction", "label"]
    >>> found = find_class_bounds([TableColumn(name) for name in names])
    >>> found.of, found.description, found.upper
    ('margin', "margin_lower 'margin_lower_0' … 'margin_lower_2'", None)
    """

    of: str
    lower: Family
    upper: Family | None

    @property
    def families(self) -> dict[str, Family]:
        """Those that are there, by role."""
        both = {f"{self.of}_lower": self.lower, f"{self.of}_upper": self.upper}
        return {role: family for role, family in both.items() if family is not None}

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""
        return tuple(name for family in self.families.values() for name in family.columns)

    @property
    def description(self) -> str:
        """What was taken for what, for people."""
        return ", ".join(f"{role} {family.description}" for role, family in self.families.items())

    def piece(
        self,
        batch: Any,
        first_row: int,
        certified: NDArray[np.bool_] | None,
        prediction: str | None,
        label: str | None,
        correct: str | None,
    ) -> dict[str, NDArray[Any]]:
        """Intervals of the rows of a batch, and what was true: of two classes those of the score of class 1.

        What is claimed holds wherever the bounds do, for a softmax in exact arithmetic and in float32. Of more than two
        classes it also says where the predicted one cannot change.

        Parameters
        ----------
        batch, first_row
            The rows, and how many precede them.
        certified
            Rows whose bounds must be there; nothing is known of the others.
        prediction, label, correct
            Columns of the predicted class, and of the true one or of whether it was predicted.
        """
        from certcal.data import values

        assert prediction is not None
        predicted = self._classes(batch, prediction, first_row)
        told = np.ones(predicted.size, np.bool_) if certified is None else certified
        lower, upper = self._margins(batch, prediction, predicted, told, first_row)
        low, high, kept = predicted_intervals(-upper, -lower, predicted, unit=SINGLE)
        if label is not None:
            right = self._classes(batch, label, first_row) == predicted
        else:
            assert correct is not None
            right = values.outcomes(batch.column(correct), correct, first_row).view(np.bool_)
        found: dict[str, NDArray[Any]] = {"lower": np.where(told, low, 0.0), "upper": np.where(told, high, 1.0)}
        if lower.shape[1] == 2:
            return {**found, "correct": (right == (predicted == 1)).view(np.uint8)}
        return {**found, "correct": right.view(np.uint8), "certified": kept & told}

    def _classes(self, batch: Any, name: str, first_row: int) -> NDArray[np.int64]:
        from certcal.data import values

        known, column = self.lower.classes, batch.column(name)
        found = values.class_numbers(column, name, first_row, known, is_ordered=self.lower.is_ordered)
        self._refuse_classes(found, len(known) if known else None, name, first_row)
        return found.astype(np.int64)

    def _refuse_classes(self, found: NDArray[Any], count: int | None, name: str, first_row: int) -> None:
        bad = (found < 0) | (found != np.floor(found)) | (found >= (np.inf if count is None else count))
        if bad.any():
            index = int(np.argmax(bad))
            reason = f"is {found[index]:.9g}, and there are bounds {self.lower.description}"
            reason += "" if count is None else f" of {count} classes"
            raise CellError(name, first_row + index + 1, reason, "number the classes as the bounds do, from 0")

    def _margins(
        self, batch: Any, name: str, predicted: NDArray[np.int64], told: NDArray[np.bool_], first_row: int
    ) -> tuple[Floats, Floats]:
        """Bounds of l_A - l_k."""
        own = self.of == "logit"
        lower = _matrix(batch, self.lower, predicted, told, first_row, own=own)
        self._refuse_classes(predicted, lower.shape[1], name, first_row)
        upper = np.full_like(lower, np.inf)
        if self.upper is not None:
            upper = _matrix(batch, self.upper, predicted, told, first_row, own=own)
            if upper.shape != lower.shape:
                there = f"{upper.shape[1]} entries where {self.lower.columns[0]!r} has {lower.shape[1]}"
                raise CellError(self.upper.columns[0], None, f"has {there}", "give a bound per class")
            _refuse_crossed(self.lower, self.upper, lower, upper, first_row)
        if not own:
            return lower, upper
        least, most = (np.take_along_axis(each, predicted[:, None], axis=1) for each in (lower, upper))
        return np.nextafter(least - upper, -np.inf), np.nextafter(most - lower, np.inf)


def find_class_bounds(table: Sequence[TableColumn]) -> ClassBounds | None:
    """Bounds per class, found by the names of their columns; None without any."""
    found = find_families(table, CLASS_BOUNDS)
    kinds = dict.fromkeys(role.partition("_")[0] for role in found)
    if not kinds:
        return None
    if len(kinds) > 1:
        raise InputError("there are bounds of margins and bounds of logits; leave one of them out")
    (of,) = kinds
    lower, upper = found.get(f"{of}_lower"), found.get(f"{of}_upper")
    if lower is None or (upper is None and of == "logit"):
        missing = "lower" if lower is None else "upper"
        raise InputError(f"there are columns of {of} bounds, and none of the {missing} ones ({of}_{missing}_0, …)")
    if upper is not None and upper.classes != lower.classes:
        first, second = lower.description, upper.description
        raise InputError(f"the bounds {first} and {second} are not of the same classes; give both of every class")
    return ClassBounds(of, lower, upper)


def _matrix(
    batch: Any, family: Family, predicted: NDArray[np.int64], told: NDArray[np.bool_], first_row: int, *, own: bool
) -> Floats:
    """The columns, with 0 where nothing must be told: in rows without bounds, and of the predicted class's margin."""
    from certcal.data import values

    def needed(k: Any) -> Any:
        return told if own else told & (predicted != k)

    if family.is_list:
        found = values.list_matrix(batch.column(family.columns[0]), family.columns[0], first_row)
    else:
        filled = [values.without_gaps(batch.column(name), needed(k), 0) for k, name in enumerate(family.columns)]
        found = values.matrix(filled, family.columns, first_row)
    found = found.astype(np.float64)
    asked = np.stack([needed(k) for k in range(found.shape[1])], axis=1)
    lost = asked & np.isnan(found)
    if lost.any():
        row, k = (int(place) for place in np.argwhere(lost)[0])
        raise CellError(family.columns[0 if family.is_list else k], first_row + row + 1, "is NaN", _FILL)
    return np.where(asked, found, 0.0)


def _refuse_crossed(first: Family, second: Family, lower: Floats, upper: Floats, first_row: int) -> None:
    bad = (lower > upper) | (lower == np.inf) | (upper == -np.inf)
    if bad.any():
        row, k = (int(place) for place in np.argwhere(bad)[0])
        names = [each.columns[0 if each.is_list else k] for each in (first, second)]
        reason = f"is {lower[row, k]:.9g}, with {upper[row, k]:.9g} in column {names[1]!r}"
        raise CellError(names[0], first_row + row + 1, reason, "are the two swapped?")
