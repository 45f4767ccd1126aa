"""Tables of made-up models with known relations."""

from typing import Any

import numpy as np

from certcal._base.signature import settings_of
from certcal.lab.study import QuestionAnswer, StudyTable, review
from certcal.lab.study._population import populate
from certcal.lab.study._review import StudyReviewSettings
from certcal.lab.study.questions import QUESTIONS

BINS = (5, 15, 100)
BINNED = ("ece", "equal_mass_ece", "classwise_ece", "classwise_equal_mass_ece", "mce")
UNBINNED = ("ks_error", "kde_ece", "mmce", "nll", "brier_score")


def columns(models: int, datasets: int = 1, *, seed: int = 0, samples: int = 8000, **more: Any) -> dict[str, Any]:
    """Columns of models whose error is independent of everything, and whose metrics are the error with a little noise.

    ``more`` holds functions of (random generator, error, model numbers) that make further columns.
    """
    rng = np.random.default_rng(seed)
    rows = models * datasets
    numbers = np.tile(np.arange(models), datasets)
    error, after = 0.05 * np.exp(0.4 * rng.normal(size=rows)), 0.01 * np.exp(0.4 * rng.normal(size=rows))
    made: dict[str, Any] = {
        "model": [f"m{number}" for number in numbers],
        "data": [f"set{place}" for place in np.repeat(np.arange(datasets), models)],
        "accuracy": rng.uniform(0.6, 0.95, rows),
        "n": np.full(rows, float(samples)),
    }
    for stage, values in (("pre", error), ("post", after)):
        for bins in BINS:
            made |= {f"{stage}_{name}_{bins}": values * np.exp(0.1 * rng.normal(size=rows)) for name in BINNED}
        made |= {f"{stage}_{name}": values * np.exp(0.1 * rng.normal(size=rows)) for name in UNBINNED}
        made[f"{stage}_ece_15"] = values
    return made | {name: make(rng, error, numbers) for name, make in more.items()}


def population(models: int, datasets: int = 1, **options: Any) -> StudyTable:
    """:func:`columns` as a table."""
    return StudyTable.of(columns(models, datasets, **options))


def asked(number: int, table: StudyTable, **settings: Any) -> QuestionAnswer:
    """The answer to one question, without the time that the others take."""
    chosen, _ = populate(table, settings_of(review, StudyReviewSettings, **settings))
    return QUESTIONS[number - 1].answer(chosen, number)
