"""What a review of a population consists of: answers, the numbers they rest on, and what is drawn beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


@dataclass(frozen=True, eq=False)
class StudyReview:
    """What a population of models says about calibration and how it is measured.

    Attributes
    ----------
    answers
        To the seven questions, in their order.
    charts
        What belongs to no question: the whole matrices, the ranking by harmonic calibration score.
    models, datasets, split, failed
        What was reviewed, and how many rows had failed.
    settings
        Metric, bins, resamples, level and seed of the review.
    cautions
        What concerns every answer: few models, duplicates, few test samples, what the intervals leave out.
    """

    answers: tuple[Answer, ...]
    charts: tuple[Chart, ...]
    models: int
    datasets: tuple[str, ...]
    split: str
    failed: int
    settings: dict[str, Any]
    cautions: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; numbers that do not exist are null."""
        return _plain(asdict(self))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())  # pyright: ignore[reportUnknownMemberType]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value
