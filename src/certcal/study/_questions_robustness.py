"""Question 2, whether robust models have well calibrated confidences, so that the one stands for the other."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from certcal.study._cautions import few
from certcal.study._findings import Answer, Finding, Lines
from certcal.study._population import LABELS, Population, Sheet, of_models
from certcal.study._words import excludes_zero, first, go, signed, told

QUESTION = "Can robustness be used as a calibration measurement?"
# Checked against the authors' public notebooks (q2.ipynb, fig34-37and41-q49.ipynb) and robustness tables.
PUBLISHED = (
    'Figure 3 has all robustness measures, and accuracy itself, correlate with the ECE at about +0.5 among the "top '
    "1000\" models on CIFAR-10: the more robust model has the larger error. The authors' notebooks sort by accuracy in "
    "ascending order and take the first rows, so these are the 1,000 least accurate models. Among all models the "
    "correlations of accuracy and of the AUROC on other data sets vanish; that of accuracy under PGD attacks is +0.27. "
    "Equal-mass ECE, KS error and MMCE agree with the ECE throughout. This review takes the most accurate models "
    "instead."
)
_REFERENCES = ("equal_mass_ece", "ks_error", "mmce")
# Columns that the sentences name, and data sets that are drawn.
_NAMED, _DRAWN = 4, 6


def robustness(population: Population) -> Answer:
    """Kendall's correlation of each robustness column with the metric, in growing parts of the population."""
    columns = [name for name in population.robustness if name != population.column]
    if not columns:
        text = (
            "The table has no robustness columns. Add some to the manifest (such as the accuracy on corrupted or "
            "attacked inputs) and name them as robustness, or measure with out-of-distribution files, which gives "
            "auroc_ columns."
        )
        return Answer(2, QUESTION, text, published=PUBLISHED)
    findings: list[Finding] = []
    charts: list[Lines] = []
    parts: list[str] = []
    smallest = math.inf
    for sheet in population.sheets:
        if "accuracy" in sheet:
            tops = population.tops(sheet.complete(population.column, "accuracy")[0].size)
        else:
            tops = (len(sheet),)
        measures = [*columns, *(name for name in _references(population, sheet) if name not in columns)]
        grid = {name: _along(population, sheet, name, tops) for name in measures}
        for name in columns:
            findings.extend(dict.fromkeys((grid[name][0], grid[name][-1])))
        if len(charts) < _DRAWN:
            charts.append(_lines(population, sheet, grid, tops))
        parts.append(_sentence(population, sheet, {name: grid[name] for name in columns}, tops))
        smallest = min(smallest, tops[-1])
    cautions = [
        *few(int(smallest), population.resampling.level),
        f"The sign is that of the plain correlation with {population.label}: negative says that models with a higher "
        "value have a smaller calibration error.",
    ]
    return Answer(2, QUESTION, told(parts), tuple(findings), tuple(charts), tuple(cautions), PUBLISHED)


def _references(population: Population, sheet: Sheet) -> list[str]:
    """Accuracy and other calibration metrics, as far as they were measured."""
    names = ["accuracy", *(sheet.measured(m, population.bins) for m in _REFERENCES if m != population.metric)]
    return [name for name in names if name in sheet]


def _along(population: Population, sheet: Sheet, name: str, tops: Sequence[int]) -> list[Finding]:
    label = f"{name} with {population.label}"
    if "accuracy" not in sheet:
        return [population.correlation(sheet, name, population.column, name=label)]
    return [population.correlation(sheet, name, population.column, top=top, name=label) for top in tops]


def _lines(population: Population, sheet: Sheet, grid: dict[str, list[Finding]], tops: Sequence[int]) -> Lines:
    values, low, high = (
        np.array([[getattr(found, end) for found in row] for row in grid.values()]) for end in ("value", "low", "high")
    )
    return Lines(
        f"{sheet.name}: correlation with {population.label} among the most accurate models",
        "most accurate models",
        "Kendall's correlation",
        tuple(float(top) for top in tops),
        tuple(_named(name) for name in grid),
        values,
        low,
        high,
        note="negative: models with a higher value have a smaller calibration error",
    )


def _named(column: str) -> str:
    for metric in _REFERENCES:
        if column.startswith(f"pre_{metric}"):
            return LABELS[metric]
    return column


def _sentence(population: Population, sheet: Sheet, grid: dict[str, list[Finding]], tops: Sequence[int]) -> str:
    """What holds among all models, and what only among the most accurate."""
    n = tops[-1]
    clear = [name for name, row in grid.items() if excludes_zero(row[-1])]
    better = [name for name in clear if grid[name][-1].value < 0]
    worse = [name for name in clear if name not in better]
    parts = [f"On {sheet.name}, among {of_models(n, n)}:"]
    said: list[str] = []
    if better:
        said.append(f"higher {_some(better, grid, -1, n)} {go(better)} with a smaller {population.label}")
    if worse:
        said.append(f"higher {_some(worse, grid, -1, n)} {go(worse)} with a larger one" if better else
                    f"higher {_some(worse, grid, -1, n)} {go(worse)} with a larger {population.label}")  # fmt: skip
    absent = [name for name, row in grid.items() if math.isnan(row[-1].value)]
    unclear = [name for name in grid if name not in (*clear, *absent)]
    if unclear:
        said.append(f"{_some(unclear, grid, -1, n)} {'shows' if len(unclear) == 1 else 'show'} no clear relation")
    if absent:
        verb = "has" if len(absent) == 1 else "have"
        said.append(f"{first(absent, _NAMED)} {verb} too few values, or the same for all, to be related to anything")
    parts.append("; ".join(said) + ".")
    if len(tops) > 1:
        changed = [name for name, row in grid.items() if _differ(row[0], row[-1])]
        top = of_models(tops[0], n)
        parts.append(
            f"Among {top} that is different for {_some(changed, grid, 0, tops[0])}." if changed else
            f"Among {top} nothing of this is clearly different."
        )  # fmt: skip
    return " ".join(parts)


def _differ(first: Finding, second: Finding) -> bool:
    """Whether two intervals have no number in common; as they are of the same models, a strict rule."""
    return first.high < second.low or second.high < first.low


def _some(names: Sequence[str], grid: dict[str, list[Finding]], place: int, n: int) -> str:
    """Columns with their correlations, and from how many models where these are not the ``n`` that are spoken of."""

    def one(name: str) -> str:
        found = grid[name][place]
        return f"{name} ({signed(found)}" + (")" if found.n == n else f", of the {found.n:,} models that have it)")

    return first([one(name) for name in names], _NAMED)
