"""The benchmark study's seven questions, asked of any population of models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from certcal._checks import InputError, confidence_level, positive, whole_number
from certcal.study import _cautions
from certcal.study._findings import Answer, Chart, StudyReview
from certcal.study._population import Population, Sheet, populate
from certcal.study._questions_accuracy import accuracy
from certcal.study._questions_architecture import architecture as designs
from certcal.study._questions_bins import bin_counts
from certcal.study._questions_datasets import across_datasets
from certcal.study._questions_metrics import agreement
from certcal.study._questions_robustness import robustness as robust
from certcal.study._questions_scaling import scaling
from certcal.study._ranking import ranking
from certcal.study._resampling import Resampling
from certcal.study._table import OK, StudyTable

_QUESTIONS = (across_datasets, robust, agreement, scaling, accuracy, bin_counts, designs)
# Data sets whose whole matrices are computed, and columns of one.
_MATRICES, _COLUMNS = 6, 300


def review(
    table: StudyTable,
    *,
    metric: str = "ece",
    bins: int = 15,
    split: str | None = None,
    tops: Sequence[int] | None = None,
    sizes: Sequence[str] | None = None,
    robustness: Sequence[str] | None = None,
    architecture: Sequence[str] | None = None,
    resamples: int = 200,
    level: float = 0.95,
    seed: int = 0,
    hcs_beta: float = 1.0,
) -> StudyReview:
    """Answer the seven questions of Tao et al. (2024) for the models of a table.

    Each answer has its numbers, with intervals over models, and what to be cautious about. What is random in an
    interval is which models there are, drawn independently from a population of them, each with all its data sets. Not
    covered are the sampling error of each measurement, models that are copies of one another, and that there are many
    intervals. Rows that failed are left out.

    Parameters
    ----------
    table
        From :func:`certcal.study.measure`, or made of columns with :meth:`StudyTable.of`.
    metric, bins
        The metric that the answers are about, and its number of bins.
    split
        Which rows; None for the only split, or "test".
    tops
        Numbers of most accurate models to look at beside all; None for a tenth, a quarter and a half, or the study's
        1,000 to 5,000 in populations of at least 5,000.
    sizes
        Columns of numbers that describe the models; None for all that came with them.
    robustness
        Columns of robustness, such as the accuracy on corrupted inputs; ``auroc_`` columns are always among them.
    architecture
        Columns of text that describe the models; None for those with at most twelve different values.
    resamples, level, seed
        Of the intervals.
    hcs_beta
        β of the harmonic calibration score; a larger one prefers calibration over accuracy.

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
    how = Resampling(
        whole_number(resamples, 20, 100_000, "resamples", "pass a number from 20 to 100,000"),
        confidence_level(level),
        whole_number(seed, 0, 2**63 - 1, "seed", "pass a whole number of at least 0"),
    )
    count = whole_number(bins, 1, 10_000_000, "bins", "pass a number of bins that the table has")
    wanted = None if tops is None else _tops(tops)
    population, chosen = populate(
        table, metric, count, split, how, positive(hcs_beta, "hcs_beta"), wanted, robustness, sizes, architecture
    )
    rows = table["split"] == chosen
    return StudyReview(
        tuple(_answer(population)),
        tuple(_charts(population)),
        len(population.models),
        tuple(sheet.name for sheet in population.sheets),
        chosen,
        int((rows & (table["status"] != OK)).sum()),
        {
            "metric": metric,
            "bins": count,
            "split": chosen,
            "tops": None if wanted is None else list(wanted),
            "sizes": list(population.sizes),
            "robustness": list(population.robustness),
            "architecture": list(population.architecture),
            "resamples": how.resamples,
            "level": how.level,
            "seed": how.seed,
            "hcs_beta": population.beta,
        },
        tuple(_general(population)),
    )


def _tops(tops: Sequence[int]) -> tuple[int, ...]:
    if isinstance(tops, str) or not isinstance(tops, Sequence | np.ndarray) or not len(tops):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"tops is {tops!r}; pass numbers of models, such as [100, 1000]")
    remedy = "pass numbers of models of at least 1"
    return tuple(whole_number(top, 1, 2**40, f"tops[{k}]", remedy) for k, top in enumerate(tops))


def _answer(population: Population) -> Iterator[Answer]:
    for question in _QUESTIONS:
        yield question(population)


def _general(population: Population) -> Iterator[str]:
    yield _cautions.of_intervals(population)
    yield from _cautions.duplicates(population)
    yield from _cautions.noisy(population)
    yield from _cautions.tied(population)
    yield from _cautions.uneven(population)


def _charts(population: Population) -> Iterator[Chart]:
    """The whole matrices of every data set, and its best models."""
    for sheet in population.sheets[:_MATRICES]:
        yield from _matrices(sheet)
    for sheet in population.sheets:
        found = ranking(population, sheet)
        if found is not None:
            yield found


def _matrices(sheet: Sheet) -> Iterator[Chart]:
    from certcal.study._ranks import correlations

    names = [str(measurement) for measurement in sheet.source.measurements]
    names += [name for name in sheet.source.columns if name == "accuracy" or name.startswith("auroc_")]
    if 2 <= len(names) <= _COLUMNS and len(sheet) >= 2:
        values = sheet.numbers(names)
        for method in ("kendall", "spearman"):
            title = f"{sheet.name}: all measurements ({method.capitalize()})"
            yield correlations(values, names, method=method, title=title)
