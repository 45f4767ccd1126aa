"""Question 5, whether accurate models are better calibrated."""

from __future__ import annotations

import math

import numpy as np

from certcal.study._findings import Draft, Finding, ScatterPlot, across, signed
from certcal.study._population import Population, Sheet, of_models
from certcal.study._ranks import kendall
from certcal.study._resampling import LARGEST, LEAST, POOL, kendall_draws, shrinkage

# Most accurate models in a resample, at least, where there are as many.
_SMALLEST = 100
# Points that are drawn at most.
_POINTS = 2000


def accuracy(population: Population) -> Draft | str:
    """Kendall's correlation of accuracy and the metric, among all models and among the most accurate."""
    if "accuracy" not in population:
        return "The table has no column accuracy: measure the models first."
    draft, whole = Draft(), list[Finding]()
    name = f"accuracy with {population.label}"
    for sheet in population.sheets:
        n = sheet.ranked(population.column)[0].size
        if n < LEAST:
            draft.parts.append(f"On {sheet.name} there are {n} models with an accuracy; this needs at least {LEAST}.")
            continue
        draft.models.append(n)
        tops = population.tops(n)
        top = tops[0]
        along = [population.correlation(sheet, "accuracy", population.column, name, top=part) for part in tops]
        draft.findings += along
        whole.append(along[-1])
        says, best = _says(population, along[-1]), _says(population, along[0])
        text = f"On {sheet.name}, {says} among {of_models(n, n)} ({signed(along[-1])})"
        if top < n:
            change = _change(population, sheet, top)
            draft.findings.append(change)
            clear = "clear" if change.excludes_zero else "perhaps chance"
            also = f"the same among the {top:,} most accurate"
            also = also if best == says else f"among the {top:,} most accurate, {best}"
            text += f"; {also} ({signed(along[0])}, a difference of {signed(change)}: {clear})"
            draft.cautions += _shared_luck(sheet, top)
        draft.parts.append(f"{text}.")
        draft.draw(_points(population, sheet, part) for part in sorted({top, n}, reverse=True))
    draft.begin = across(whole, f"The correlation of accuracy and {population.label}")
    return draft


def _says(population: Population, found: Finding) -> str:
    if not found.excludes_zero:
        return "there is no clear relation"
    return f"more accurate models have a {'larger' if found.value > 0 else 'smaller'} {population.label}"


def _change(population: Population, sheet: Sheet, top: int) -> Finding:
    """The correlation among the most accurate minus that among all, both of the same resamples."""
    x, y = sheet.ranked("accuracy", population.column)
    n = x.size
    name = f"{sheet.name}: accuracy with {population.label}, top {top:,} minus all models"
    value = kendall(x[:top], y[:top]) - kendall(x, y)
    if math.isnan(value):
        return Finding.undefined(name, n, "one of the two is the same for all models")
    # Resamples of large populations are small, but not so small that few of the most accurate models are in them.
    most = min(n, max(LARGEST, _SMALLEST * n // top))
    rows = population.resampling.rows(n, tag=f"{sheet.name}/change/{top}", most=most)
    first = rows[:, : max(LEAST, round(top * rows.shape[1] / n))]
    step = max(1, top // POOL)
    draws = kendall_draws(x, y, first, step) - kendall_draws(x, y, rows, step)
    return population.resampling.found(name, value, draws, n, "difference", shrink=shrinkage(n, most))


def _shared_luck(sheet: Sheet, top: int) -> list[str]:
    """That the luck of the test samples is in both accuracy and error, where accuracies hardly differ."""
    best = sheet.ranked("accuracy")[0][:top]
    error, spread = sheet.error_by_chance(1, float(np.median(best))), float(best.std())
    if not error > 0.5 * spread:
        return []
    return [
        f"On {sheet.name} the accuracies of the top {top:,} differ by {spread:.4f} (standard deviation), with a "
        f"sampling error of about {error:.4f} each ({sheet.samples:,.0f} test samples). Luck that raises an "
        "overconfident model's accuracy lowers its error, so chance alone makes the two look related."
    ]


def _points(population: Population, sheet: Sheet, top: int) -> ScatterPlot:
    """Accuracy against the metric, as in the benchmark study's Figure 5."""
    both = np.flatnonzero(~np.isnan(sheet.numbers([population.column, "accuracy"])).any(axis=1))
    n = min(top, both.size)
    rows, note = both[:n], ""
    if n > _POINTS:
        rows, note = (
            both[np.arange(_POINTS) * n // _POINTS],
            f"{_POINTS:,} of {n:,} models are drawn, evenly spaced by accuracy",
        )
    colour = next((name for name in population.robustness if name in sheet), "")
    return ScatterPlot(
        f"{sheet.name}: {of_models(n, both.size)}",
        "accuracy",
        f"{population.label} before temperature scaling",
        sheet["accuracy"][rows],
        sheet[population.column][rows],
        tuple(sheet.raw("model")[rows].tolist()),
        sheet[colour][rows] if colour else None,
        colour,
        note,
    )
