"""Reviews of populations as ``certcal study review`` would find them, with made-up numbers."""

import math
from typing import Any

import numpy as np

from certcal.lab.study import (
    Box,
    BoxPlots,
    Finding,
    FindingTable,
    Lines,
    Matrix,
    QuestionAnswer,
    ScatterPlot,
    StudyReview,
)
from certcal.lab.study._battery import BINNED, UNBINNED
from certcal.metrics import STUDY_BINS

QUESTIONS = (
    "Can model calibration be generalized across different data sets?",
    "Can robustness be used as a calibration measurement?",
    "How reliable are calibration metrics?",
    "Does a post-hoc calibration method affect all models uniformly?",
    "How does calibration interact with accuracy?",
    "What is the impact of the number of bins on calibration measurement?",
    "Which architectural designs are beneficial for calibration?",
)
NAMES = ("Data sets", "Robustness", "Metrics", "Temperature scaling", "Accuracy", "Bins", "Architecture")


def measurement_names() -> list[str]:
    """The 102 columns of the benchmark study."""
    own = [f"{metric}_{bins}" for metric in BINNED for bins in STUDY_BINS] + list(UNBINNED)
    return [f"{stage}_{name}" for stage in ("pre", "post") for name in own] + ["auroc_svhn", "auroc_texture"]


def matrix(names: Any, title: str = "All measurements", *, seed: int = 0, **changes: Any) -> Matrix:
    """Symmetric correlations in blocks, some of them negative, the last column constant."""
    count = len(names)
    angles = np.random.default_rng(seed).normal(np.arange(count) * 2 / max(count, 1), 0.5)
    values = np.cos(angles[:, None] - angles[None, :])
    np.fill_diagonal(values, 1.0)
    if count > 3:
        values[-1, :] = values[:, -1] = math.nan
    return Matrix(title, tuple(names), values, 300, **{"note": "The last column is constant.", **changes})


def boxes(count: int = 9, *, title: str = "ECE by number of bins", named: str = "{} bins") -> BoxPlots:
    """Distributions that rise and widen."""
    made = [
        Box(
            named.format(5 * (k + 1)), 300, 0.01 * k, 0.02 * k + 0.01, 0.03 * k + 0.02, 0.04 * k + 0.03, 0.05 * k + 0.05
        )
        for k in range(count)
    ]
    return BoxPlots(title, "bins", "ECE before scaling", tuple(made))


def points(count: int = 300, *, names: tuple[str, ...] | None = None, coloured: bool = True) -> ScatterPlot:
    """Models whose error falls with their accuracy; one of them has no error."""
    rng = np.random.default_rng(4)
    x = rng.beta(9, 3, count)
    y = np.clip(0.3 - 0.25 * x + rng.normal(0, 0.02, count), 0, 1)
    y[:1] = math.nan
    colour = rng.gamma(2, 1e5, count) if coloured else None
    named = names or tuple(f"|nor_conv_3x3~0|+|none~{place}|" for place in range(count))
    return ScatterPlot("Accuracy and ECE", "accuracy", "ECE", x, y, named, colour, "parameters")


def lines(count: int = 5) -> Lines:
    """Correlations that shrink among the best models."""
    x = (100.0, 250.0, 500.0, 1000.0, 5000.0)
    values = np.linspace(-0.3, 0.5, count)[:, None] * np.linspace(0.4, 1, len(x))
    if count > 1:
        values[1, 2] = math.nan
    names = tuple(f"robustness {place}" for place in range(count))
    return Lines(
        "Kendall with ECE", "most accurate models", "Kendall's tau", x, names, values, values - 0.1, values + 0.1
    )


def ranking(rows: int = 20) -> FindingTable:
    """The models with the highest scores."""
    made = [(place + 1, f"model {place}", 0.95 - 0.01 * place, 0.02 + 0.001 * place) for place in range(rows)]
    return FindingTable("Ranking by harmonic calibration score", ("rank", "model", "accuracy", "ECE"), tuple(made))


def review(*, name: str = "", columns: int = 24, source: str = "study.parquet") -> StudyReview:
    """Seven answers with every kind of chart; the second question has none. ``name`` stands for all names."""

    def findings(*words: str) -> tuple[Finding, ...]:
        made = [Finding(name or word, 0.41678, 0.30999, 0.52001, 300) for word in words]
        return (*made, Finding(name or "cannot be had", math.nan, math.nan, math.nan, 0, name or "all are constant"))

    datasets = (name or "digits", "fashion", "a data set with a name that is long")
    charts: dict[int, tuple[Any, ...]] = {
        1: (matrix(datasets, name or "Top 100"), matrix(datasets, "All models", seed=3)),
        2: (),
        3: (matrix([f"metric {k}" for k in range(9)], "Metrics"),),
        4: (matrix([f"{stage} {bins}" for stage in ("before", "after") for bins in STUDY_BINS], "Bins"),),
        5: (points(60, names=(name,) * 60 if name else None), ranking(5)),
        6: (boxes(), boxes(title="ECE by number of bins, after", named="{} bins after scaling")),
        7: (boxes(16, title=name or "ECE by width"), lines()),
    }
    answers = [
        QuestionAnswer(
            number,
            question,
            name or f"The answer to question {number} is that tau is 0.42 [0.31, 0.52].",
            findings("Kendall's tau, digits and fashion", "the same, top 100") if number != 2 else (),
            charts[number],
            (name or "There are few models: intervals below 30 models are wide.",) if number in (1, 2) else (),
            name or "It found that it does not, among the most accurate networks.",
            NAMES[number - 1],
        )
        for number, question in enumerate(QUESTIONS, 1)
    ]
    whole = matrix([name or "a name of its own", *measurement_names()[: columns - 1]])
    settings = {"metric": "ece", "bins": 15, "resamples": 200, "level": 0.95, "seed": 0, "tops": (100, 300)}
    cautions = (name or "Two rows failed.",)
    return StudyReview(tuple(answers), (whole, ranking()), 300, datasets, "test", 2, settings, cautions, source)
