"""What a review consists of: answers, the numbers behind them in words, and what is drawn beside them."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certcal._base.rounding import minus, signed
from certcal._base.text import counted
from certcal._base.told import Told
from certcal.claims import round_outward

Floats = NDArray[np.float64]

# Data sets that an answer goes through.
TOLD = 3
_PRINTED = 0.01
# Correlations below these are called so.
_STRENGTHS = ((0.1, "negligible"), (0.3, "weak"), (0.6, "moderate"), (1.1, "strong"))
# A size with at most so many values has a box for each; others are cut into so many brackets of equal numbers.
_DISTINCT, _BRACKETS = 8, 5


@dataclass(frozen=True)
class Finding(Told):
    """A number that an answer rests on, with an interval over models.

    The interval says how the number would vary with other models of the kind; it is an estimate, not a guarantee.
    It comes from resampling models, except for shares of models, whose interval is the exact binomial one (the note
    says so). Test samples are taken as given.
    """

    name: str
    """What was computed, in words."""
    value: float
    low: float
    high: float
    """The number and its interval; NaN where it cannot be had, and then ``note`` says why."""
    n: int
    """Models that it was computed from."""
    note: str = ""
    """A caution, or why there is no number."""

    @classmethod
    def undefined(cls, name: str, n: int, note: str) -> Finding:
        """No number, and why."""
        return cls(name, math.nan, math.nan, math.nan, n, note)

    @property
    def sentence(self) -> str:
        """What is claimed: an estimate over models.

        Examples
        --------
        >>> Finding("digits and fashion", 0.41678, 0.30999, 0.52001, 300).sentence
        'digits and fashion is 0.417 (0.309 to 0.521) over 300 models; an estimate, not a guarantee.'
        """
        if math.isnan(self.value):
            return f"{self.name} is undefined{f': {self.note}' if self.note else ''}."
        known = math.isfinite(self.low) and math.isfinite(self.high)
        ends = (round_outward(self.low, "lower", 3), round_outward(self.high, "upper", 3)) if known else ()
        between = f" ({' to '.join(map(minus, ends))})" if ends else ""
        over = counted(self.n, "model")
        return f"{self.name} is {minus(f'{self.value:.3f}')}{between} over {over}; an estimate, not a guarantee."

    def __format__(self, spec: str) -> str:
        """The number with its interval, whose ends are rounded outward: as a "correlation", a "number" or a "share".

        Examples
        --------
        >>> found = Finding("tau", 0.4167, 0.3099, 0.5201, 300)
        >>> f"{found:correlation}, {found:number}, {found:share}"
        '+0.42 [+0.30, +0.53], 0.42 [0.30, 0.53], 41.7 % [30.9 %, 52.1 %]'
        """
        if spec == "share":
            ends = (round_outward(100 * self.low, "lower", 1), round_outward(100 * self.high, "upper", 1))
            return f"{100 * self.value:.1f} % [{ends[0]} %, {ends[1]} %]"
        sign = {"correlation": "+", "number": ""}[spec]
        if math.isnan(self.value):
            return "undefined"
        value = minus(format(0.0 if abs(self.value) < 0.005 else self.value, f"{sign}.2f"))
        if math.isnan(self.low) or math.isnan(self.high):
            return f"{value} (no interval)"
        ends = (round_outward(self.low, "lower", 2), round_outward(self.high, "upper", 2))
        low, high = (minus(end) if end.startswith("-") else sign + end for end in ends)
        return f"{value} [{low}, {high}]"

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval is on one side of zero, as it is printed; False without one."""
        return self.low >= _PRINTED or self.high <= -_PRINTED

    @property
    def strength(self) -> str:
        """How strong a correlation is, as far as its interval tells: at most one word above that of its weaker end.

        Examples
        --------
        >>> Finding("tau", 0.65, 0.58, 0.7, 200).strength, Finding("tau", 0.65, 0.15, 0.9, 12).strength
        ('strong positive', 'moderate positive')
        >>> Finding("tau", 0.1, -0.2, 0.4, 20).strength, Finding("tau", 0.01, -0.03, 0.05, 900).strength
        ('no clear', 'practically no')
        """
        if math.isnan(self.value):
            return "an undefined"
        if not self.excludes_zero:
            return "practically no" if max(abs(self.low), abs(self.high)) <= _STRENGTHS[0][0] else "no clear"
        limits = [limit for limit, _ in _STRENGTHS]
        weaker = bisect(limits, min(abs(self.low), abs(self.high)))
        word = _STRENGTHS[min(bisect(limits, abs(self.value)), weaker + 1)][1]
        return f"{word} {'positive' if self.value > 0 else 'negative'}"


@dataclass(frozen=True, eq=False)
class Matrix(Told):
    """Rank correlations between columns; NaN where one of the two is constant."""

    title: str
    names: tuple[str, ...]
    values: Floats
    n: int
    method: str = "Kendall"
    note: str = ""


@dataclass(frozen=True)
class Box:
    """Five numbers of a distribution: the quartiles, and the last points within 1.5 of their distance."""

    name: str
    n: int
    low: float
    first: float
    median: float
    third: float
    high: float

    @classmethod
    def of(cls, name: str, values: Floats) -> Box:
        """The box of the values that are numbers."""
        known = values[np.isfinite(values)]
        if not known.size:
            return cls(name, 0, *(math.nan,) * 5)
        first, median, third = (float(q) for q in np.quantile(known, (0.25, 0.5, 0.75)))
        reach = 1.5 * (third - first)
        low = float(known[known >= first - reach].min())
        high = float(known[known <= third + reach].max())
        return cls(name, known.size, min(low, first), first, median, third, max(high, third))


@dataclass(frozen=True)
class BoxPlots:
    """Distributions side by side."""

    title: str
    across: str
    up: str
    boxes: tuple[Box, ...]
    note: str = ""


@dataclass(frozen=True, eq=False)
class ScatterPlot:
    """Models as points; ``colour`` may hold a third number per model. Large populations are thinned for drawing."""

    title: str
    across: str
    up: str
    x: Floats
    y: Floats
    names: tuple[str, ...]
    colour: Floats | None = None
    colour_name: str = ""
    note: str = ""


@dataclass(frozen=True, eq=False)
class Lines:
    """One line per name over common places, with an interval around each."""

    title: str
    across: str
    up: str
    x: tuple[float, ...]
    names: tuple[str, ...]
    values: Floats  # one row per name
    low: Floats
    high: Floats
    note: str = ""


@dataclass(frozen=True, eq=False)
class FindingTable(Told):
    """Rows of texts and numbers."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str | float, ...], ...]
    note: str = ""


Chart = Matrix | BoxPlots | ScatterPlot | Lines | FindingTable


@dataclass(frozen=True, eq=False)
class QuestionAnswer(Told):
    """The answer to one of the questions, for this population."""

    number: int
    """Its place among the seven questions of the benchmark study."""
    question: str
    """As asked there."""
    answer: str
    """One or two sentences with the numbers in them; why there is none when ``findings`` is empty."""
    findings: tuple[Finding, ...] = ()
    """The numbers, each with its interval."""
    charts: tuple[Chart, ...] = ()
    """What to draw."""
    cautions: tuple[str, ...] = ()
    """What the reader should know before believing it, such as that there are few models."""
    published: str = ""
    """What the benchmark study found, for comparison."""
    name: str = ""
    """What it is about, in a word or two."""


def join_words(words: Iterable[str], most: int | None = None) -> str:
    """Words as a list in a sentence, those beyond ``most`` only counted."""
    found = list(words)
    if most is not None and len(found) > most:
        found = [*found[:most], counted(len(found) - most, "other")]
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} and {found[-1]}"


def range_sentence(findings: Sequence[Finding], subject: str) -> str:
    """The range of a number over more data sets than an answer goes through; findings are named 'DATASET: …'."""
    known = [finding for finding in findings if not math.isnan(finding.value)]
    if len(known) <= TOLD:
        return ""
    least, most = (choose(known, key=lambda finding: finding.value) for choose in (min, max))
    if signed(least.value, 2) == signed(most.value, 2):
        return f"{subject} is {signed(least.value, 2)} on all {len(known)} data sets."
    ends = [f"{signed(each.value, 2)} ({each.name.partition(': ')[0]})" for each in (least, most)]
    return f"{subject} lies between {ends[0]} and {ends[1]} on {len(known)} data sets."


def brackets(size: Floats) -> list[tuple[str, NDArray[np.bool_]]]:
    """Parts of a column by its values: one for each if there are few, or brackets with about equally many models."""
    known = np.sort(size[np.isfinite(size)])
    values = np.unique(known)
    if values.size <= _DISTINCT:
        return [(f"{value:,.6g}", size == value) for value in values.tolist()]
    starts = np.unique(known[[known.size * part // _BRACKETS for part in range(_BRACKETS)]])
    found: list[tuple[str, NDArray[np.bool_]]] = []
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), np.inf], strict=True):
        which = (size >= start) & (size < end) & np.isfinite(size)
        found.append((f"{start:,.6g} to {float(size[which].max()):,.6g}", which))
    return found
