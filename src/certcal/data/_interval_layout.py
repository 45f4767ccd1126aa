"""Which columns of a table hold certified intervals: found by sensible names, or given; never by values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from certcal._checks import InputError
from certcal.data._layout import Resolver, by_role
from certcal.data._roles import (
    ALPHA,
    CERTIFIED,
    CORRECT,
    GROUP,
    LABEL,
    LOWER,
    PREDICTION,
    RADIUS,
    SAMPLE,
    SCORE,
    TOP_CONFIDENCE,
    UPPER,
)
from certcal.data._table import Column
from certcal.data.families import find_families

# Tables that are easily mistaken for intervals, by columns that they have.
_OTHERS = {
    frozenset({"idx", "predict", "radius"}): "this looks like a log of certified radii, which certcal compare reads",
    frozenset({"inputs", "labels"}): "these are inputs of a model, around which certcal sample draws noise",
}

INTERVAL_OPTIONS = ("lower", "upper", "correct", "prediction", "label", "certified", "radius", "by")
# Further ones, where it matters which sample a row is of.
SAMPLE_OPTIONS = (*INTERVAL_OPTIONS, "confidence", "sample")


@dataclass(frozen=True)
class IntervalLayout:
    """Which columns of a table hold the intervals and what belongs to them.

    Examples
    --------
    >>> resolve_interval_columns(["lo", "hi", "pred", "label", "eps"]).description
    "lower 'lo', upper 'hi', correct where 'pred' equals 'label', radius 'eps'"
    """

    lower: str
    upper: str
    correct: str | None = None
    prediction: str | None = None
    label: str | None = None
    certified: str | None = None
    radius: str | None = None
    alpha: str | None = None
    group: str | None = None
    confidence: str | None = None
    sample: str | None = None

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns that hold numbers."""
        found = (self.lower, self.upper, self.radius, self.alpha, self.confidence)
        return tuple(name for name in found if name is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column to read."""
        words = (self.correct, self.prediction, self.label, self.certified, self.group, self.sample)
        return tuple(dict.fromkeys((*self.numbers, *(name for name in words if name is not None))))

    @property
    def description(self) -> str:
        """What was taken for what, for people."""
        correct = (
            f"correct {self.correct!r}" if self.correct else f"correct where {self.prediction!r} equals {self.label!r}"
        )
        roles = ("certified", "radius", "alpha", "group", "confidence", "sample")
        rest = [f"{role} {name!r}" for role in roles if (name := getattr(self, role))]
        return ", ".join([f"lower {self.lower!r}", f"upper {self.upper!r}", correct, *rest])

    def to_dict(self) -> dict[str, str]:
        """Roles and column names, for machines.

        Examples
        --------
        >>> resolve_interval_columns(["lower", "upper", "correct"]).to_dict()
        {'lower': 'lower', 'upper': 'upper', 'correct': 'correct'}
        """
        roles = [each.name for each in fields(self)]
        return {role: name for role in roles if (name := getattr(self, role)) is not None}


def resolve_interval_columns(
    columns: Sequence[Column | str], overrides: Mapping[str, Any] | None = None, *, samples: bool = False
) -> IntervalLayout:
    """Find the columns that hold intervals of confidences.

    Parameters
    ----------
    columns
        The columns of the table, or only their names.
    overrides
        Column names by role: lower, upper, correct, prediction, label, certified, radius, by.
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
    certcal._checks.InputError: no column of lower ends was found; name it as lower; did you mean 'lowr'?
    The columns are 'lowr', 'upper', 'correct'
    """
    table = [column if isinstance(column, Column) else Column(column) for column in columns]
    given = by_role(overrides, SAMPLE_OPTIONS if samples else INTERVAL_OPTIONS)
    return _IntervalResolver(table, given).intervals(samples=samples)


class _IntervalResolver(Resolver):
    def intervals(self, *, samples: bool) -> IntervalLayout:
        self._refuse_confidences()
        lower = self._needed("lower", LOWER, "lower ends")
        upper = self._needed("upper", UPPER, "upper ends")
        correct, prediction, label = self._correctness()
        return IntervalLayout(
            lower,
            upper,
            correct,
            prediction,
            label,
            certified=self.optional("certified", CERTIFIED),
            radius=self.optional("radius", RADIUS),
            alpha=self._pick("alpha", ALPHA),
            group=self.optional("by", GROUP),
            confidence=self.optional("confidence", TOP_CONFIDENCE) if samples else None,
            sample=self.optional("sample", SAMPLE) if samples else None,
        )

    def _refuse_confidences(self) -> None:
        """Send a table that holds confidences, and no ends at all, to the command for it."""
        if {"lower", "upper"} & self.given.keys() or self._find(LOWER, UPPER):
            return
        for columns, what in _OTHERS.items():
            if columns <= {name.strip().lower() for name in self.names}:
                raise InputError(f"no columns of lower and upper ends were found; {what}")
        try:
            found = [family.description for family in find_families(self.table).values()]
        except InputError:  # several families: which one is the other command's question
            found = ["of several kinds"]
        found += map(repr, self._find(TOP_CONFIDENCE, SCORE))
        if found:
            raise InputError(
                f"no columns of lower and upper ends were found, only confidences ({found[0]}); use measure for "
                "those, or name the ends as lower and upper"
            )

    def _needed(self, role: str, names: Sequence[str], what: str) -> str:
        found = self.optional(role, names)
        lists = [each.name for each in self.table if each.kind == "list" and each.name.strip().lower() in names]
        if found is None and lists:
            raise InputError(f"column {lists[0]!r} holds lists; give {what} one by one, a row per sample and radius")
        if found is None:
            raise InputError(f"no column of {what} was found; name it as {role}{self.listing(*names)}")
        return found

    def _correctness(self) -> tuple[str | None, str | None, str | None]:
        """The column of correctness, or those of predictions and labels to compare."""
        if "correct" in self.given:
            self._refuse_with("correct", "prediction", "label")
            return self._column("correct"), None, None
        if "prediction" not in self.given and "label" not in self.given:
            correct = self._pick("correct", CORRECT)
            if correct is not None:
                return correct, None, None
        prediction, label = self.optional("prediction", PREDICTION), self.optional("label", LABEL)
        if prediction is None or label is None:
            raise InputError(
                "no column says which predictions are correct; name it as correct, or name both prediction and "
                f"label{self.listing(*CORRECT)}"
            )
        return None, prediction, label
