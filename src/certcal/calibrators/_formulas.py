"""What a fitted map computes, as a formula: each map declares its own once, and every language writes it from that."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from certcal.data.grouping import GroupColumn, GroupRule

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

# Where a sigmoid is 2^-126, the least probability that a map gives, and 1 - 2^-53, the largest.
_LOWEST, _HIGHEST = -87.33654475055310, 36.7368005696771


@dataclass(frozen=True, eq=False)
class Term:
    """An operation on terms and numbers: "+", "-", "*", "/", "ln", "logistic", "clip", "number", or the "score"."""

    operation: str
    parts: tuple[Term, ...] = ()
    values: tuple[float, ...] = ()

    def __add__(self, other: Term | float) -> Term:
        return Term("+", (self, constant(other)))

    def __sub__(self, other: Term | float) -> Term:
        return Term("-", (self, constant(other)))

    def __mul__(self, other: Term | float) -> Term:
        return Term("*", (self, constant(other)))

    def __truediv__(self, other: Term | float) -> Term:
        return Term("/", (self, constant(other)))

    def ln(self) -> Term:
        """The natural logarithm."""
        return Term("ln", (self,))

    def logit(self, least: float | None) -> Term:
        """The log-odds of a term from 0 to 1: of a sigmoid what it is of, else 0 and 1 are pulled in if they occur."""
        if self.operation == "logistic":
            return self.parts[0]
        value = self if least is None else self.clip(least, 1 - 2.0**-53)
        return value.ln() - (constant(1.0) - value).ln()

    def of(self, score: Term) -> Term:
        """The same of another term than the score."""
        if self.operation == "score":
            return score
        return replace(self, parts=tuple(part.of(score) for part in self.parts)) if self.parts else self

    def clip(self, least: float, most: float) -> Term:
        """What is below or above two numbers is moved to them."""
        return Term("clip", (self,), (float(least), float(most)))

    def logistic(self, reach: float = math.inf) -> Term:
        """The sigmoid, never 0 or 1, of a term that is at most ``reach`` away from 0."""
        return Term("logistic", (self if reach < _HIGHEST else self.clip(_LOWEST, _HIGHEST),))


@dataclass(frozen=True, eq=False)
class Piecewise(Term):
    """A polynomial of (place - start) / width on each piece; pieces meet at inner edges, which belong to one side."""

    edges: Floats = field(default_factory=lambda: np.empty(0))
    start: Floats = field(default_factory=lambda: np.empty(0))
    width: Floats = field(default_factory=lambda: np.empty(0))
    coefficients: Floats = field(default_factory=lambda: np.empty((0, 1)))
    """One row per piece, the constant first."""
    closed: str = "left"
    """The side whose piece an edge ends: "left" for [a, b), "right" for (a, b]."""


@dataclass(frozen=True, eq=False)
class ByGroup(Term):
    """A number that depends on the values of other columns, and 0 for groups that are not listed."""

    columns: tuple[GroupColumn, ...] = ()
    places: tuple[tuple[int, ...], ...] = ()
    """Of each group, the place of its value among the names of each column."""
    numbers: tuple[float, ...] = ()
    """Of each group."""

    @staticmethod
    def of_rule(rule: GroupRule, codes: Rows, values: Floats) -> ByGroup:
        """The numbers of groups, but for those that are 0."""
        used = np.flatnonzero(values)
        shape = [len(column.names) for column in rule.columns]
        places = [np.unravel_index(int(code), shape) for code in codes[used]] if used.size else []
        listed = tuple(tuple(map(int, each)) for each in places)
        return ByGroup("group", (), (), rule.columns, listed, tuple(values[used].tolist()))


SCORE = Term("score")


def constant(value: Term | float) -> Term:
    return value if isinstance(value, Term) else Term("number", (), (float(value),))


def pieces(
    place: Term, edges: Floats, start: Floats, width: Floats, coefficients: Floats, closed: str = "left"
) -> Term:
    """:class:`Piecewise`, of which there are at least two; one alone is its polynomial."""
    if edges.size:
        return Piecewise("pieces", (place,), (), edges, start, width, coefficients, closed)
    *lower, value = (constant(float(each)) for each in coefficients[0])
    for each in reversed(lower):
        value = value * ((place - float(start[0])) / float(width[0])) + each
    return value


def steps(edges: Floats, values: Floats, closed: str) -> Term:
    """A value per bin; ``edges`` are the inner ones."""
    return pieces(SCORE, edges, np.zeros(values.size), np.ones(values.size), values[:, None], closed)


def lines(x: Floats, y: Floats) -> Term:
    """Straight lines between knots, constant outside."""
    rise = np.stack([np.append(y[0], y), np.concatenate([[0], np.diff(y), [0]])], axis=1)
    return pieces(SCORE, x, np.append(x[0], x), np.concatenate([[1], np.diff(x), [1]]), rise)


@dataclass(frozen=True, eq=False)
class ScoreFormula:
    """A map of one number."""

    value: Term
    words: str
    """What it is, in a sentence for those who read the exported text."""
    least: float = 0.0
    most: float = 1.0
    """Ends of the scores that it takes."""


@dataclass(frozen=True, eq=False)
class ClassFormula:
    """A map of one row of logits or probabilities of all classes, in one of three ways.

    softmax(linear · logits + intercept); or a map of each class's probability, made to sum to 1; or a map of the
    predicted class's, and the rest in proportion.
    """

    inputs: str
    classes: int
    words: str
    linear: Floats = field(default_factory=lambda: np.empty(0))
    """One factor per class, or a matrix."""
    intercept: Floats = field(default_factory=lambda: np.empty(0))
    floor: float = 0.0
    """What a probability of 0 counts as in the logarithms of probabilities."""
    each: tuple[ScoreFormula, ...] = ()
    top: ScoreFormula | None = None
    """The map of the predicted class's probability, where that class has none of its own."""
    tops: Mapping[int, ScoreFormula] = field(default_factory=dict[int, ScoreFormula])


Formula = ScoreFormula | ClassFormula
