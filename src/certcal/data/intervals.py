"""Tables of certified intervals: which columns hold them, and their values, checked. Any verifier's output will do."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal.data.class_bounds import ClassBounds, find_class_bounds
from certcal.data.formats import TableColumn, check_memory, open_table
from certcal.data.interval_table import IntervalTable
from certcal.data.layout import find_families
from certcal.data.pieces import Arrays, CellError, Groups, gather, in_file, pieces
from certcal.data.roles import (
    CORRECT,
    INTERVAL_OPTIONS,
    OUTCOME,
    ROLES,
    SAMPLE_OPTIONS,
    Resolver,
    by_role,
    plain_name,
    table_kind,
)
from certcal.data.writing import METADATA, IntervalOrigin

if TYPE_CHECKING:
    from certcal.data.values import Codes

# Tables that are easily mistaken for intervals.
_OTHERS = {
    "log": "this looks like a log of certified radii, which certcal compare reads",
    "inputs": "these are inputs of a model, around which certcal sample draws noise",
}
# What to do about values of a role that are no numbers, and about others.
_ENDS = (
    "drop the row, or say in a column 'certified' that it is not certified",
    "intervals are of confidences, so clip or rescale them",
)
_CONFIDENCES = (
    "fill it in, or rename the column if it holds something else",
    "name the column of confidences (confidence), or rename it if it holds something else",
)
_RADII = ("use finite numbers from 0, or name another column as radius",)
_ALPHAS = ("rename the column, or give alpha",)
# One line per radius: more than this is each sample's own radius, or noise.
MAX_RADII = 100
MAX_SAMPLES = 10**9


@dataclass(frozen=True)
class IntervalLayout:
    """Which columns of a table hold the intervals and what belongs to them.

    Examples
    --------
    >>> resolve_interval_columns(["lo", "hi", "pred", "label", "eps"]).description
    "lower 'lo', upper 'hi', correct where 'pred' equals 'label', radius 'eps'"
    >>> resolve_interval_columns(["lower", "upper", "outcome"]).description
    "lower 'lower', upper 'upper', outcome 'outcome'"
    """

    lower: str | None = None
    upper: str | None = None
    correct: str | None = None
    outcome: str | None = None
    prediction: str | None = None
    label: str | None = None
    certified: str | None = None
    radius: str | None = None
    alpha: str | None = None
    group: str | None = None
    confidence: str | None = None
    sample: str | None = None
    bounds: ClassBounds | None = None

    @property
    def _single(self) -> dict[str, str]:
        roles = [each.name for each in fields(self) if each.name != "bounds"]
        return {role: name for role in roles if (name := getattr(self, role)) is not None}

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns that hold numbers."""
        single = (name for role, name in self._single.items() if role in ROLES and ROLES[role].holds == "number")
        return (*single, *(() if self.bounds is None else self.bounds.columns))

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column to read."""
        return tuple(dict.fromkeys((*self.numbers, *self._single.values())))

    @property
    def description(self) -> str:
        """What was taken for what, for people."""
        compared = self.label is not None and self.bounds is None
        roles = ["lower", "upper", "correct", "outcome", *([] if compared else ["prediction", "label"])]
        parts = [] if self.bounds is None else [self.bounds.description]
        parts += [f"{role} {name!r}" for role in roles if (name := getattr(self, role))]
        parts += [f"correct where {self.prediction!r} equals {self.label!r}"] if compared else []
        roles = ("certified", "radius", "alpha", "group", "confidence", "sample")
        return ", ".join([*parts, *(f"{role} {name!r}" for role in roles if (name := getattr(self, role)))])

    def to_dict(self) -> dict[str, Any]:
        """Roles and column names, for machines.

        Examples
        --------
        >>> resolve_interval_columns(["lower", "upper", "correct"]).to_dict()
        {'lower': 'lower', 'upper': 'upper', 'correct': 'correct'}
        """
        families = {} if self.bounds is None else self.bounds.families
        return {**{role: list(family.columns) for role, family in families.items()}, **self._single}


def resolve_interval_columns(
    columns: Sequence[TableColumn | str], overrides: Mapping[str, Any] | None = None, *, samples: bool = False
) -> IntervalLayout:
    """Find the columns that hold intervals of confidences.

    Parameters
    ----------
    columns
        The columns of the table, or only their names.
    overrides
        Column names by role: lower, upper, correct, outcome, prediction, label, certified, radius, by.
    samples
        Whether to look for two more roles: confidence, without a perturbation, and sample, which says of rows at
        several radii that they are of the same sample.

    Examples
    --------
    >>> resolve_interval_columns(["lower_bound", "upper_bound", "is_correct", "certified"]).description
    "lower 'lower_bound', upper 'upper_bound', correct 'is_correct', certified 'certified'"
    >>> resolve_interval_columns(["lowr", "upper", "correct"])
    Traceback (most recent call last):
        ...
    certcal.InputError: no column of lower ends was found; name it as lower; did you mean 'lowr'?
    The columns are 'lowr', 'upper', 'correct'
    """
    given = by_role(overrides, SAMPLE_OPTIONS if samples else INTERVAL_OPTIONS)
    return _IntervalResolver(columns, given).intervals(samples=samples)


class _IntervalResolver(Resolver):
    def intervals(self, *, samples: bool) -> IntervalLayout:
        ends = {"lower", "upper"} & self.given.keys() or self.find("lower") or self.find("upper")
        bounds = None if ends else find_class_bounds(self.table)
        if bounds is None:
            self._refuse_confidences()
            self._refuse_lists()
        return IntervalLayout(
            None if bounds else self.needed("lower"),
            None if bounds else self.needed("upper"),
            **(self._truth() if bounds is None else self._classes()),
            bounds=bounds,
            certified=self.optional("certified"),
            radius=self.optional("radius"),
            alpha=self.pick("alpha"),
            group=self.optional("by"),
            confidence=self.optional("confidence") if samples else None,
            sample=self.optional("sample") if samples else None,
        )

    def _truth(self) -> dict[str, str | None]:
        """The columns that say what was true of intervals: of a binary score its outcome, else what was correct."""
        if "outcome" in self.given:
            self.refuse_with("outcome", "correct", "prediction", "label", "certified")
            return {"outcome": self.column("outcome")}
        correct = self.correctness()
        if correct is not None and "correct" not in self.given and plain_name(correct) in OUTCOME:
            # The outcome of a score is no class that could change, and nobody certifies that it does not.
            return {"correct" if self.optional("certified") else "outcome": correct}
        prediction, label = (None, None) if correct else (self.optional("prediction"), self.optional("label"))
        if correct is None and (prediction is None or label is None):
            remedy, roles = "name it as correct, or name both prediction and label", ("correct", "prediction", "label")
            reason = "no column says which predictions are correct"
            raise InputError(reason, remedy=remedy, roles=roles, more=self.listing("correct"))
        return {"correct": correct, "prediction": prediction, "label": label}

    def _classes(self) -> dict[str, str | None]:
        """The same beside bounds per class, which need to know the predicted one."""
        prediction, label = self.needed("prediction"), self.optional("label")
        if "correct" in self.given:
            self.refuse_with("correct", "label")
            return {"prediction": prediction, "correct": self.column("correct")}
        if label is None and (label := self.optional("outcome")) is None:
            correct = self.pick("correct", (CORRECT,))
            return {"prediction": prediction, "correct": correct or self.needed("label")}
        return {"prediction": prediction, "label": label}

    def _refuse_confidences(self) -> None:
        """Send a table that holds confidences, and no ends at all, to the command for it."""
        if {"lower", "upper"} & self.given.keys() or self.find("lower") or self.find("upper"):
            return
        kind = table_kind(self.names)
        if kind in _OTHERS:
            raise InputError(f"no columns of lower and upper ends were found; {_OTHERS[kind]}")
        try:
            found = [family.description for family in find_families(self.table).values()]
        except InputError:  # several families: which one is the other command's question
            found = ["of several kinds"]
        found += map(repr, self.find("confidence"))
        if found:
            raise InputError(
                f"no columns of lower and upper ends were found, only confidences ({found[0]}); use measure for "
                "those, or name the ends as lower and upper"
            )

    def _refuse_lists(self) -> None:
        for role in ("lower", "upper"):
            for each in self.table:
                if each.kind == "list" and role not in self.given and plain_name(each.name) in ROLES[role].names[0]:
                    raise InputError(
                        f"column {each.name!r} holds lists; give {ROLES[role].plural} one by one, a row per sample and "
                        "radius"
                    )


def read_intervals(
    path: str | os.PathLike[str],
    overrides: Mapping[str, Any] | None = None,
    *,
    alpha: bool = True,
    samples: bool = False,
    advance: Callable[[int], None] = lambda rows: None,
) -> IntervalTable:
    """Read intervals of confidences from a file or a table in memory.

    Rows that are not certified may leave the interval and the correctness empty: nothing is claimed about them.
    Intervals can also be given as bounds per class, of margins (``margin_lower_0`` …: how far the predicted class is
    ahead, l_A - l_k; ``margin_upper_0`` … if known) or of logits (``logit_lower_0`` …, ``logit_upper_0`` …), with the
    predicted class and the label. A sample is then certified when its class cannot change; of two classes the interval
    is of the score of class 1, and the label is its outcome.

    Parameters
    ----------
    path
        The file.
    overrides
        Columns by role where their names do not say it; see :func:`resolve_interval_columns`.
    alpha
        Whether to read a column ``alpha``: the probability with which each row's interval may fail.
    samples
        Whether to read confidences without a perturbation, and which sample each row is of. With such confidences the
        correctness of every row is needed.
    advance
        Called with the number of rows of each piece read.

    Examples
    --------
    >>> rows = {"lo": [0.6, 0.2, None], "hi": [0.9, 0.4, None], "correct": [1, 0, None]}
    >>> table = read_intervals({**rows, "certified": [1, 1, 0], "radius": [0.5, 0.25, 0.5]})
    >>> [(part.radius, part.lower.tolist(), part.upper.tolist()) for part in table.parts()]
    [('0.25', [0.2], [0.4]), ('0.5', [0.6, 0.0], [0.9, 1.0])]
    >>> rows = {"margin_lower_0": [None, 1.0], "margin_lower_1": [2.0, None], "margin_lower_2": [3.0, -1.0]}
    >>> table = read_intervals({**rows, "prediction": [0, 1], "label": [0, 2]})
    >>> table.lower.round(4), table.certified, table.correct
    (array([0.8438, 0.2447]), array([ True, False]), array([1, 0], dtype=uint8))
    """
    from certcal.data.values import Codes

    table = open_table(path)
    with in_file(table.path):
        layout = resolve_interval_columns(table.columns, overrides, samples=samples)
        layout = layout if alpha else replace(layout, alpha=None)
        if table.rows is not None:
            check_memory(table.path, 40 * table.rows, "certify a part of the table")
        classes, groups = Codes(of_classes=True), Groups(layout.group)
        names = Codes(layout.sample or "", limit=MAX_SAMPLES)

        def convert(batch: Any, first_row: int) -> Arrays:
            return _piece(batch, layout, first_row, classes, names)

        width = 1 if layout.bounds is None else 64 if layout.bounds.lower.is_list else len(layout.numbers)
        parts = pieces(table, layout.columns, convert, numbers=layout.numbers, width=width, groups=groups)
        arrays = gather(parts, table.rows, advance)
        return IntervalTable(
            table.path,
            layout,
            arrays["lower"],
            arrays["upper"],
            arrays["correct"],
            arrays.get("certified"),
            *_radii(arrays.get("radius"), layout.radius),
            *groups.in_order(arrays.get("group")),
            alpha=float(arrays["alpha"].max()) if "alpha" in arrays else None,
            origin=IntervalOrigin.parse(table.metadata.get(METADATA)),
            confidence=arrays.get("confidence"),
            sample_names=tuple(names.names),
            sample_codes=arrays.get("sample"),
            binary=layout.outcome is not None or (layout.bounds is not None and "certified" not in arrays),
        )


def _piece(batch: Any, layout: IntervalLayout, first_row: int, classes: Codes, names: Codes) -> Arrays:
    """Checked arrays of one record batch."""
    from certcal.data import values

    certified = None
    if layout.certified is not None:
        column, marks = batch.column(layout.certified), "mark certified rows with 1 and the others with 0"
        remedy = f"{marks}, or name another column as certified"
        certified = values.outcomes(column, layout.certified, first_row, remedy).view(np.bool_)

    def filled(name: str, instead: float = 0) -> Any:
        return values.without_gaps(batch.column(name), certified, instead)

    if layout.bounds is not None:
        piece = layout.bounds.piece(batch, first_row, certified, layout.prediction, layout.label, layout.correct)
    else:
        assert layout.lower is not None
        assert layout.upper is not None
        lower, upper = (
            values.unit_interval(filled(name, instead), name, first_row, "ends of intervals", _ENDS)
            for name, instead in ((layout.lower, 0), (layout.upper, 1))
        )
        if (lower > upper).any():
            index = int(np.argmax(lower > upper))
            reason = f"is {lower[index]:.9g}, above {upper[index]:.9g} in column {layout.upper!r}"
            raise CellError(layout.lower, first_row + index + 1, reason, "are the two swapped?")
        # Without a perturbation nobody is excused: where confidences are known, so must be whether they were right.
        told = filled if layout.confidence is None else batch.column
        if (name := layout.outcome or layout.correct) is not None:
            remedy = "for classes name the columns of prediction and label"
            correct = values.outcomes(told(name), name, first_row, remedy)
        else:
            assert layout.label is not None
            assert layout.prediction is not None
            truth, prediction = ((name, told(name)) for name in (layout.label, layout.prediction))
            correct = values.equal_classes(classes, truth, prediction, first_row).view(np.uint8)
        piece = {"lower": lower, "upper": upper, "correct": correct}
        if certified is not None:
            piece["certified"] = certified
    if layout.confidence is not None:
        column = batch.column(layout.confidence)
        piece["confidence"] = values.unit_interval(column, layout.confidence, first_row, "confidences", _CONFIDENCES)
    if layout.sample is not None:
        piece["sample"] = names.add(batch.column(layout.sample), first_row)
    if layout.radius is not None:
        column = batch.column(layout.radius)
        piece["radius"] = values.numbers_within(
            column, layout.radius, first_row, lambda radii: (radii >= 0) & (radii < np.inf), "no radius", _RADII
        )
    if layout.alpha is not None:
        what = "no probability from 0 to below 1 with which the row's interval may fail"
        piece["alpha"] = values.numbers_within(
            filled(layout.alpha), layout.alpha, first_row, lambda alphas: (alphas >= 0) & (alphas < 1), what, _ALPHAS
        )
    return piece


def _radii(values: NDArray[Any] | None, column: str | None) -> tuple[tuple[str, ...], NDArray[np.int64] | None]:
    """Distinct radii as the shortest text that means them, ascending, and which one each row has."""
    if values is None:
        return (), None
    distinct, codes = np.unique(values, return_inverse=True)
    if distinct.size > MAX_RADII:
        raise InputError(
            f"column {column!r} has {distinct.size} distinct values; it must hold the radius that a row's interval is "
            "for, not each sample's own certified radius; name another as radius, or rename it"
        )
    return tuple(np.format_float_positional(value, trim="-") for value in distinct), codes.astype(np.int64)
