"""Question 5, whether accurate models are better calibrated."""

from __future__ import annotations

import math

import numpy as np

from certcal.study._boxes import thinned
from certcal.study._cautions import by_chance, few
from certcal.study._findings import Answer, Chart, Finding, Points
from certcal.study._population import Population, Sheet, of_models
from certcal.study._resampling import LARGEST, LEAST, POOL, kendall_draws, shrinkage
from certcal.study._words import excludes_zero, overview, signed, size, told

QUESTION = "How does calibration interact with accuracy?"
PUBLISHED = (
    "On CIFAR-10, models of more than 90 % accuracy are the better calibrated the more accurate they are; among all "
    "models there is no such pattern. So accuracy and calibration go together only among good models, and are no "
    "trade-off there."
)
_DRAWN = 6
# Most accurate models in a resample, at least, where there are as many.
_SMALLEST = 100


def accuracy(population: Population) -> Answer:
    """Kendall's correlation of accuracy and the metric, among all models and among the most accurate."""
    if "accuracy" not in population:
        return Answer(5, QUESTION, "The table has no column accuracy: measure the models first.", published=PUBLISHED)
    findings: list[Finding] = []
    charts: list[Chart] = []
    parts: list[str] = []
    whole: list[Finding] = []
    cautions: list[str] = []
    smallest = math.inf
    for sheet in population.sheets:
        n = sheet.ranked(population.column)[0].size
        if n < LEAST:
            parts.append(f"On {sheet.name} there are {n} models with an accuracy; this needs at least {LEAST}.")
            continue
        smallest = min(smallest, n)
        tops = population.tops(n)
        top = tops[0]
        name = f"accuracy with {population.label}"
        along = [population.correlation(sheet, "accuracy", population.column, top=part, name=name) for part in tops]
        findings.extend(along)
        whole.append(along[-1])
        text = f"On {sheet.name}, {_says(population, along[-1])} among {of_models(n, n)} ({signed(along[-1])})."
        if top < n:
            change = _change(population, sheet, top)
            findings.append(change)
            text += f" {_compare(population, along[0], change, top, n)}"
            cautions.extend(_shared_luck(population, sheet, top))
        parts.append(text)
        if len(charts) < _DRAWN:
            charts.extend(_points(population, sheet, part) for part in sorted({top, n}, reverse=True))
    cautions = [*(few(int(smallest), population.resampling.level) if findings else ()), *cautions]
    answer = told(parts, overview(whole, f"The correlation of accuracy and {population.label}"))
    return Answer(5, QUESTION, answer, tuple(findings), tuple(charts), tuple(cautions), PUBLISHED)


def _says(population: Population, found: Finding) -> str:
    if not excludes_zero(found):
        return f"accuracy and {population.label} have no clear relation"
    return f"more accurate models have a {'larger' if found.value > 0 else 'smaller'} {population.label}"


def _change(population: Population, sheet: Sheet, top: int) -> Finding:
    """The correlation among the most accurate minus that among all, both of the same resamples."""
    from certcal.study._ranks import kendall

    x, y = sheet.ranked("accuracy", population.column)
    n = x.size
    name = f"{sheet.name}: accuracy with {population.label}, top {top:,} minus all models"
    value = kendall(x[:top], y[:top]) - kendall(x, y)
    if math.isnan(value):
        return Finding(name, math.nan, math.nan, math.nan, n, "one of the two is the same for all models")
    # Resamples of large populations are small, but not so small that few of the most accurate models are in them.
    most = min(n, max(LARGEST, _SMALLEST * n // top))
    rows = population.resampling.rows(n, tag=f"{sheet.name}/change/{top}", most=most)
    first = rows[:, : max(LEAST, round(top * rows.shape[1] / n))]
    step = max(1, top // POOL)
    draws = kendall_draws(x, y, first, step) - kendall_draws(x, y, rows, step)
    return population.resampling.found(name, value, draws, n, "difference", shrink=shrinkage(n, most))


def _compare(population: Population, best: Finding, change: Finding, top: int, n: int) -> str:
    text = f"Among {of_models(top, n)}, {_says(population, best)} ({signed(best)})"
    if excludes_zero(change):
        return f"{text}: clearly different from all (by {signed(change)})."
    return f"{text}; the difference to all ({signed(change)}) may be chance."


def _shared_luck(population: Population, sheet: Sheet, top: int) -> list[str]:
    """That the luck of the test samples is in both accuracy and error, where accuracies hardly differ."""
    best = sheet.ranked("accuracy")[0][:top]
    error = by_chance(sheet, 1, float(np.median(best)))
    spread = float(best.std())
    if not error > 0.5 * spread:
        return []
    return [
        f"The accuracies of the {top:,} most accurate models on {sheet.name} differ by {size(spread)} (standard "
        f"deviation), and the sampling error of one is about {size(error)} ({sheet.samples:,.0f} test samples). The "
        "same luck lowers the error of an overconfident model as it raises its accuracy, so that chance alone makes "
        "the two look related."
    ]


def _points(population: Population, sheet: Sheet, top: int) -> Points:
    """Accuracy against the metric, as in the benchmark study's Figure 5."""
    both = np.flatnonzero(~np.isnan(sheet[population.column]) & ~np.isnan(sheet["accuracy"]))
    chosen, note = thinned(min(top, both.size))
    rows = both[chosen]
    colour = next((name for name in population.robustness if name in sheet), "")
    return Points(
        f"{sheet.name}: {of_models(min(top, both.size), both.size)}",
        "accuracy",
        f"{population.label} before temperature scaling",
        sheet["accuracy"][rows],
        sheet[population.column][rows],
        tuple(sheet.raw("model")[rows].tolist()),
        sheet[colour][rows] if colour else None,
        colour,
        note,
    )
