"""The benchmark study's seven questions, asked of any population of models, and what to know before believing it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from certcal._base.checks import InputError
from certcal._base.progress import SILENT, Progress, ProgressLike, as_reporter
from certcal._base.signature import SEED, Option, Range, Takes, gather, settings_of, verb
from certcal._base.text import counted
from certcal.lab.study._designs import match_columns
from certcal.lab.study._findings import Chart, Finding, QuestionAnswer, join_words
from certcal.lab.study._overview import StudyOverview, open_study_table
from certcal.lab.study._population import SMALLEST_TOP, Population, Sheet, populate
from certcal.lab.study._ranks import correlations
from certcal.lab.study._table import OK, StudyTable
from certcal.lab.study.questions import QUESTIONS, Question
from certcal.result import Result

# Settings that are told only where they were given.
_UNSAID = ("questions", "data", "least")
# Data sets whose whole matrices are computed, and columns of one.
_MATRICES, _COLUMNS = 6, 300
_MORE = {"most": "more", "least": "less"}
# More than this share of the most accurate models that are no more accurate than others is pointed out.
_TIED = 0.1


@dataclass(frozen=True)
class StudyReviewSettings:
    """What :func:`review` was asked."""

    questions: tuple[int, ...] | None
    metric: str
    bins: int
    data: tuple[str, ...] | None
    split: str | None
    tops: tuple[int, ...] | None
    least: tuple[int, ...] | None
    hcs_beta: float
    resamples: int
    level: float
    seed: int
    robustness: tuple[str, ...] | None
    sizes: tuple[str, ...] | None
    architecture: tuple[str, ...] | None
    matrix: tuple[str, ...] | None
    unique: str


@dataclass(frozen=True, eq=False, repr=False)
class StudyReview(
    Result, kind="study_review", keys="source answers charts models datasets split failed settings cautions"
):
    """What a population of models says about calibration and how it is measured.

    Examples
    --------
    >>> answer = QuestionAnswer(1, "Does it transfer?", "Hardly.", (Finding("a and b", 0.25, 0.125, 0.5, 9),))
    >>> found = StudyReview((answer,), (), 9, ("a", "b"), "test", 0, {"level": 0.95})
    >>> found
    <StudyReview of table: 9 models on 2 data sets, 1 of 1 question answered>
    >>> print(found.to_csv(), end="")
    question,finding,value,low,high,models,note
    1,a and b,0.25,0.125,0.5,9,
    """

    view: ClassVar[str] = "certcal.lab.study.review_view"
    stated = "fact"

    answers: tuple[QuestionAnswer, ...]
    """To the seven questions, in their order."""
    charts: tuple[Chart, ...]
    """What belongs to no question: the whole matrices, the ranking by harmonic calibration score."""
    models: int
    datasets: tuple[str, ...]
    split: str
    failed: int
    """What was reviewed, and how many rows had failed."""
    settings: Mapping[str, Any]
    """Metric, bins, resamples, level and seed of the review."""
    cautions: tuple[str, ...] = ()
    """What concerns every answer: few models, duplicates, few test samples, what the intervals leave out."""
    source: str = "table"
    """Name of the file, or what was reviewed."""

    def __iter__(self) -> Iterator[QuestionAnswer]:
        return iter(self.answers)

    def __repr__(self) -> str:
        asked, answered = len(self.answers), sum(bool(each.findings) for each in self.answers)
        reviewed = f"{counted(self.models, 'model')} on {counted(len(self.datasets), 'data set')}"
        return f"<StudyReview of {self.source}: {reviewed}, {answered} of {counted(asked, 'question')} answered>"

    @property
    def description(self) -> str:
        """What was reviewed, in a line for people."""
        named = f" ({', '.join(self.datasets)})" if self.datasets else ""
        split = f", split {self.split!r}" if self.split else ""
        failed = f"; {counted(self.failed, 'row')} failed and left out" if self.failed else ""
        return f"{counted(self.models, 'model')} on {counted(len(self.datasets), 'data set')}{named}{split}{failed}"

    @property
    def seeds(self) -> Mapping[str, int]:
        """The seed of the bootstrap."""
        return {"bootstrap over models": self.settings["seed"]} if "seed" in self.settings else {}

    def claims(self) -> Sequence[Finding]:
        """The numbers of all answers, each an estimate over models with its sentence."""
        return tuple(found for answer in self.answers for found in answer.findings)

    def top(self) -> Sequence[str]:
        """How many of the questions these models answer."""
        asked = counted(len(self.answers), "question")
        answered = sum(bool(each.findings) for each in self.answers)
        how_many = "all" if answered == len(self.answers) else f"{answered}" if answered else "none"
        told = (
            f"Of the {asked} of the benchmark study, {how_many} can be answered with {counted(self.models, 'model')}."
        )
        return (told,)

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """One line per finding, with all digits."""
        lines = [(answer.number, found) for answer in self.answers for found in answer.findings]
        numbers = {name: [float(getattr(each, name)) for _, each in lines] for name in ("value", "low", "high")}
        return {
            "question": [number for number, _ in lines],
            "finding": [each.name for _, each in lines],
            **numbers,
            "models": [each.n for _, each in lines],
            "note": [each.note for _, each in lines],
        }


@verb()
def review(
    table: StudyTable | StudyOverview | str | os.PathLike[str],
    *,
    questions: Annotated[int | Iterable[int] | None, Range(1, len(QUESTIONS)), Option("--question")] = None,
    metric: Annotated[
        Literal["ece", "equal_mass_ece", "classwise_ece", "classwise_equal_mass_ece", "mce", "ks_error"]
        | Literal["kde_ece", "mmce", "nll", "brier_score"],
        Option(metavar="NAME"),
    ] = "ece",
    bins: Annotated[int, Range(1, 10_000_000)] = 15,
    data: Annotated[str | Iterable[str] | None, Takes("name"), Option("--dataset", "NAME")] = None,
    split: Annotated[str | None, Takes("text"), Option(metavar="NAME")] = None,
    tops: Annotated[int | Iterable[int] | None, Range(2, 10**9), Option("--top")] = None,
    least: Annotated[int | Iterable[int] | None, Range(2, 10**9), Option("--least")] = None,
    hcs_beta: Annotated[float, Takes("positive"), Option("--beta", "B")] = 1.0,
    resamples: Annotated[int, Range(20, 100_000)] = 200,
    level: Annotated[float, Takes("level")] = 0.95,
    seed: Annotated[int, SEED] = 0,
    robustness: Annotated[str | Iterable[str] | None, Takes("name"), Option(metavar="COLUMN")] = None,
    sizes: Annotated[str | Iterable[str] | None, Takes("name"), Option("--size", "COLUMN")] = None,
    architecture: Annotated[str | Iterable[str] | None, Takes("name"), Option(metavar="COLUMN")] = None,
    matrix: Annotated[str | Iterable[str] | None, Takes("name"), Option(metavar="COLUMN")] = None,
    unique: Annotated[Literal["published", "function", "none"], Option(metavar="RULE")] = "published",
    source: str | None = None,
    progress: ProgressLike = True,
) -> StudyReview:
    """Answer the seven questions of Tao et al. (2024) for the models of a table.

    Each answer has its numbers, with intervals over models, and what to be cautious about. What is random in an
    interval is which models there are, drawn independently from a population of them, each with all its data sets. Not
    covered are the sampling error of each measurement, models that are copies of one another, and that there are many
    intervals. Rows that failed are left out.

    Parameters
    ----------
    table
        From :func:`certcal.lab.study.measure` or :func:`certcal.lab.study.convert`, made of columns with
        :meth:`StudyTable.of`, or the name of its file.
    questions
        Only answer these questions, 1 to 7. Default: all.
    metric
        Calibration metric.
    bins
        Number of bins of the metric.
    data
        Data sets to review. Default: all.
    split
        Split of the table. Default: its only one, or test.
    tops
        Also review only the N most accurate models. Default: a tenth, a quarter and a half of them.

        In populations of at least 5,000 by default those of the benchmark study, 1,000 to 5,000. There is a matrix of
        each of these parts too.
    least
        The same with the N least accurate models, which are the "top" models of the benchmark study's notebooks.
    hcs_beta
        Weight of calibration in the harmonic calibration score.
    resamples
        Number of bootstrap resamples of the models.
    level
        Confidence level of the intervals.
    seed
        Random seed of the bootstrap.
    robustness
        Robustness, such as accuracy under attack; patterns such as 'pgd_*' work. Default: known names, and
        out-of-distribution AUROC in any case.

        Joined by all columns whose names begin with ``auroc_``; known are those of the benchmark study's figures 41 to
        49, or else all with the names of its table.
    sizes
        Sizes, such as parameters, width or depth; patterns work. Default: all other columns of numbers.
    architecture
        Design choices, such as an operation; patterns work. Default: all columns of text with few values.

        That is, at most twelve.
    matrix
        Columns of the correlation matrices; patterns such as 'pre_*_15' work. Default: all measurements.

        Named columns of several data sets are also put into one matrix, as in the benchmark study's figures 30 to 37.
    unique
        Which cells of NATS-Bench count as one, so that intervals do not count copies: published (6,466 differ),
        function (5,044), or none to keep every row.

        Of those that are the same, the first in the table is reviewed.
    source
        What is reviewed, in a few words; by default the file's name.
    progress
        Whether to show how far the work is; or a function or an object that is told.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> error = rng.uniform(0, 0.1, 60)
    >>> table = StudyTable.of(
    ...     {
    ...         "model": [f"m{k}" for k in range(60)],
    ...         "accuracy": 0.9 - error + rng.normal(0, 0.005, 60),
    ...         "pre_ece_15": error,
    ...     }
    ... )
    >>> found = review(table)
    >>> print(found.answers[4].answer.split(" (")[0])
    On data, more accurate models have a smaller ECE among all 60 models
    """
    progress = as_reporter(progress)
    asked = gather(StudyReviewSettings, locals())
    numbers = range(1, len(QUESTIONS) + 1) if asked.questions is None else asked.questions
    return _review_table(table, asked, [(number, QUESTIONS[number - 1]) for number in numbers], source, progress)


def ask(
    table: StudyTable | StudyOverview | str | os.PathLike[str], *questions: Question, **settings: Any
) -> StudyReview:
    """Answer questions of your own, or the seven with other columns, subsets and charts.

    Parameters
    ----------
    table
        As for :func:`review`.
    questions
        What to answer, numbered in this order.
    settings
        Of :func:`review`.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import numpy as np
    >>> from certcal.lab.study.questions import QUESTIONS, BracketBoxes
    >>> columns = {name: np.linspace(0.1, 0.9, 30) for name in ("accuracy", "pre_ece_15", "params")}
    >>> table = StudyTable.of({"model": [f"m{k}" for k in range(30)], **columns})
    >>> figure = replace(QUESTIONS[4], charts=(BracketBoxes("params", "accuracy"),))
    >>> ask(table, figure, resamples=20).answers[0].charts[0].title
    'data: accuracy by params'
    """
    asked = settings_of(review, StudyReviewSettings, **settings)
    return _review_table(table, asked, list(enumerate(questions, 1)))


def _review_table(
    table: StudyTable | StudyOverview | str | os.PathLike[str],
    asked: StudyReviewSettings,
    questions: Sequence[tuple[int, Question]],
    source: str | None = None,
    progress: Progress = SILENT,
) -> StudyReview:
    if asked.tops is not None and asked.least is not None:
        raise InputError("it is given with tops, which are the most accurate", argument="least", remedy="give one")
    progress.stage("reading")
    whole, name = open_study_table(table)
    progress.stage("reviewing")
    population, split = populate(whole, asked)
    drawn = None if asked.matrix is None else match_columns(whole, asked.matrix, "matrix", numbers=True)
    rows = whole["split"] == split
    given = {name: value for name, value in asdict(asked).items() if value is not None or name not in _UNSAID}
    return StudyReview(
        tuple(question.answer(population, number) for number, question in questions),
        tuple(_charts(population, drawn)),
        len(population.models),
        tuple(sheet.name for sheet in population.sheets),
        split,
        int((rows & (whole["status"] != OK)).sum()),
        {
            **given,
            "split": split,
            "tops": None if asked.tops is None else list(asked.tops),
            **{name: list(getattr(population, name)) for name in ("sizes", "robustness", "architecture")},
        },
        tuple(_cautions(population)),
        name if source is None else source,
    )


def _charts(population: Population, matrix: Sequence[str] | None) -> Iterator[Chart]:
    """The matrices of every data set, and its best models."""
    for sheet in population.sheets[:_MATRICES]:
        yield from _matrices(population, sheet, matrix)
    for sheet in population.sheets:
        found = population.ranking(sheet)
        if found is not None:
            yield found
    if matrix is not None and len(population.sheets) > 1:
        yield from _matrices_across(population, matrix)


def _matrices(population: Population, sheet: Sheet, chosen: Sequence[str] | None) -> Iterator[Chart]:
    """Correlation matrices of all models, and of the most accurate ones if so many were asked for."""
    names, what = list(chosen or ()), "chosen columns"
    if chosen is None:
        names, what = [str(measurement) for measurement in sheet.source.measurements], "all measurements"
        names += [name for name in sheet.source.columns if name == "accuracy" or name.startswith("auroc_")]
    if not 2 <= len(names) <= _COLUMNS or len(sheet) < 2:
        return
    values = sheet.numbers(names)
    for method in ("kendall", "spearman"):
        title = f"{sheet.name}: {what} ({method.capitalize()})"
        yield correlations(values, names, method=method, title=title)
    known = np.flatnonzero(~np.isnan(sheet["accuracy"])) if "accuracy" in sheet else np.empty(0, np.int64)
    yield from _part_matrices(population, values[known], names, f"{sheet.name}: {what}")


def _matrices_across(population: Population, columns: Sequence[str]) -> Iterator[Chart]:
    """Columns of every data set in one matrix, of all models and of the most accurate by their mean rank."""
    names = [f"{sheet.name} {column}" for sheet in population.sheets for column in columns]
    found, score = population.by_mean_rank(*columns)
    values = np.stack(found, axis=2).reshape(len(score), -1)
    if len(names) > _COLUMNS or len(values) < 2:
        return
    title = "All data sets: chosen columns"
    yield correlations(values, names, title=f"{title} (Kendall)")
    yield from _part_matrices(population, values[~np.isnan(score)], names, title)


def _part_matrices(population: Population, values: Any, names: Sequence[str], title: str) -> Iterator[Chart]:
    for top in sorted(set(population.wanted or ())):
        if SMALLEST_TOP <= top < len(values):
            which = population.models_text(top, len(values))
            yield correlations(values[:top], names, title=f"{title}, {which} (Kendall)")


def _cautions(population: Population) -> Iterator[str]:
    how, sheets = population.resampling, population.sheets
    yield (
        f"Intervals are at {100 * how.level:g} % each, not jointly ({how.resamples} resamples of models), and take the "
        "test samples as given."
    )
    if population.copies:
        kept = f"one of each is reviewed ({population.rule} rule)" if population.rule != "none" else "all are reviewed"
        narrow = "" if population.rule != "none" else ": intervals count copies as further evidence and are too narrow"
        yield f"{population.copies:,} models are the same cell of NATS-Bench as another one; {kept}{narrow}."
    if found := [each for sheet in sheets for each in _duplicates(sheet)]:
        yield (
            f"Some models have exactly the measurements of another ({join_words(found)}): intervals count copies as "
            "further evidence and are too narrow."
        )
    if found := [each for sheet in sheets for each in _noise_cautions(population, sheet)]:
        yield (
            f"{' '.join(found)} Such noise makes correlations between data sets too small, and those between "
            "measurements on the same test samples too small or too large."
        )
    if found := [each for sheet in sheets for each in _tie_cautions(population, sheet)]:
        yield (
            f"The {population.most} accurate models are not all {_MORE[population.most]} accurate than the rest "
            f"({join_words(found)}): the table's "
            "order decides."
        )
    models = [len(sheet) for sheet in sheets]
    if min(models) < max(models):
        yield f"The data sets have {min(models):,} to {max(models):,} models; comparisons of two use those of both."
    samples = [sheet.samples for sheet in sheets if not math.isnan(sheet.samples)]
    if samples and max(samples) > 2 * min(samples):
        yield (
            f"The data sets have {min(samples):,.0f} to {max(samples):,.0f} test samples: binned errors are larger on "
            "small ones by chance alone, so compare orders of models, not sizes of errors."
        )
    wanted, count = population.wanted or (), len(population.models)
    few, only = f"fewer than {SMALLEST_TOP} models are too few", f"there are only {counted(count, 'model')}"
    found = [f"the {population.part_text(top)} ({few})" for top in wanted if top < SMALLEST_TOP]
    found += [f"the {population.part_text(top)} ({only})" for top in wanted if top > count]
    if found:
        yield f"Not reviewed: {join_words(found)}."


def _duplicates(sheet: Sheet) -> Iterator[str]:
    values = sheet.numbers([str(measurement) for measurement in sheet.source.measurements])
    values[values == 0] = 0.0  # one zero
    known = values[~np.isnan(values).any(axis=1)]
    same = len(known) - len({row.tobytes() for row in known})
    if same:
        yield f"{same:,} of {len(known):,} on {sheet.name}"


def _noise_cautions(population: Population, sheet: Sheet) -> Iterator[str]:
    """Cautions that one model's sampling error is not small against the differences between models.

    For given confidences, the standard error of these metrics is at most √(a(1 - a)/n), calibrated or not: another
    outcome of one sample changes them by at most 1/n, so that (Efron and Stein) their variance is at most Σ p(1 - p)/n²
    with p the probabilities of being correct, and Jensen's inequality does the rest, a being the mean of p. That is
    nearly reached where all bins err to one side.
    """
    values = sheet.complete(population.column)[0]
    if population.metric not in ("ece", "equal_mass_ece", "ks_error") or values.size < 2:
        return
    first, third = np.quantile(values, (0.25, 0.75))
    error, spread = sheet.error_by_chance(1), float(third - first) / 1.349  # deviation of a normal sample like this
    if spread > 0 and error > 0.5 * spread:
        yield (
            f"{sheet.name}: one model's {population.label} has a sampling error of about {error:.4f} "
            f"({sheet.samples:,.0f} test samples); models differ by {spread:.4f}."
        )


def _tie_cautions(population: Population, sheet: Sheet) -> Iterator[str]:
    """A cut of the most accurate models that falls among models of the same accuracy."""
    best = sheet.columns_by_accuracy("accuracy", population.column)[0] if "accuracy" in sheet else np.empty(0)
    for top in population.tops(best.size)[:-1]:
        same = best == best[top]
        chosen = int(same[:top].sum())
        if chosen > _TIED * top:
            yield f"{chosen:,} of the {top:,} on {sheet.name} are as accurate as {same[top:].sum():,} others"
            return
