"""What a review of a population consists of: answers, the numbers they rest on, and what is drawn beside them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._text import counted
from certcal.claims import round_outward

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Finding:
    """A number that an answer rests on, with an interval over models.

    The interval says how the number would vary with other models of the kind; it is an estimate, not a guarantee.
    It comes from resampling models, except for shares of models, whose interval is the exact binomial one (the note
    says so). Test samples are taken as given.

    Attributes
    ----------
    name
        What was computed, in words.
    value, low, high
        The number and its interval; NaN where it cannot be had, and then ``note`` says why.
    n
        Models that it was computed from.
    note
        A caution, or why there is no number.
    """

    name: str
    value: float
    low: float
    high: float
    n: int
    note: str = ""

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
        between = f" ({' to '.join(ends)})" if ends else ""
        over = counted(self.n, "model")
        return f"{self.name} is {self.value:.3f}{between} over {over}; an estimate, not a guarantee."


@dataclass(frozen=True, eq=False)
class Matrix:
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


@dataclass(frozen=True)
class Boxes:
    """Distributions side by side."""

    title: str
    across: str
    up: str
    boxes: tuple[Box, ...]
    note: str = ""


@dataclass(frozen=True, eq=False)
class Points:
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
class Table:
    """Rows of texts and numbers."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str | float, ...], ...]
    note: str = ""


Chart = Matrix | Boxes | Points | Lines | Table


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer to one of the questions, for this population.

    Attributes
    ----------
    number
        Its place among the seven questions of the benchmark study.
    question
        As asked there.
    answer
        One or two sentences with the numbers in them; why there is none when ``findings`` is empty.
    findings
        The numbers, each with its interval.
    charts
        What to draw.
    cautions
        What the reader should know before believing it, such as that there are few models.
    published
        What the benchmark study found, for comparison.
    """

    number: int
    question: str
    answer: str
    findings: tuple[Finding, ...] = ()
    charts: tuple[Chart, ...] = ()
    cautions: tuple[str, ...] = ()
    published: str = ""


def plain_values(value: Any) -> Any:
    """What JSON knows: lists for tuples and arrays, None for numbers that do not exist."""
    if isinstance(value, dict):
        return {name: plain_values(each) for name, each in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, (tuple, list)):
        return [plain_values(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, np.ndarray):
        return plain_values(value.tolist())  # pyright: ignore[reportUnknownMemberType]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value
