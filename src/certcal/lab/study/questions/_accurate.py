"""What goes with calibration among the most accurate models: accuracy (question 5) and robustness (question 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from certcal.lab.study._findings import (
    Draft,
    Finding,
    Lines,
    ScatterPlot,
    format_correlation,
    join_words,
    range_sentence,
)
from certcal.lab.study._population import LABELS, Population, Sheet, of_models
from certcal.lab.study._ranks import kendall
from certcal.lab.study._resampling import LARGEST, LEAST, POOL, kendall_draws, shrinkage

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
        n = sheet.columns_by_accuracy(population.column)[0].size
        if n < LEAST:
            draft.parts.append(f"On {sheet.name} there are {n} models with an accuracy; this needs at least {LEAST}.")
            continue
        draft.models.append(n)
        tops = population.tops(n)
        top = tops[0]
        along = [population.correlation(sheet, "accuracy", population.column, name, top=part) for part in tops]
        draft.findings += along
        whole.append(along[-1])
        says, best = _relation_text(population, along[-1]), _relation_text(population, along[0])
        text = f"On {sheet.name}, {says} among {of_models(n, n)} ({format_correlation(along[-1])})"
        if top < n:
            change = _change(population, sheet, top)
            draft.findings.append(change)
            clear = "clear" if change.excludes_zero else "perhaps chance"
            also = f"the same among the {top:,} most accurate"
            also = also if best == says else f"among the {top:,} most accurate, {best}"
            text += f"; {also} ({format_correlation(along[0])}, a difference of {format_correlation(change)}: {clear})"
            draft.cautions += _shared_luck(sheet, top)
        draft.parts.append(f"{text}.")
        draft.draw(_accuracy_scatter(population, sheet, part) for part in sorted({top, n}, reverse=True))
    draft.begin = range_sentence(whole, f"The correlation of accuracy and {population.label}")
    return draft


def _relation_text(population: Population, found: Finding) -> str:
    if not found.excludes_zero:
        return "there is no clear relation"
    return f"more accurate models have a {'larger' if found.value > 0 else 'smaller'} {population.label}"


def _change(population: Population, sheet: Sheet, top: int) -> Finding:
    """The correlation among the most accurate minus that among all, both of the same resamples."""
    x, y = sheet.columns_by_accuracy("accuracy", population.column)
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
    return population.resampling.finding_from_draws(name, value, draws, n, "difference", shrink=shrinkage(n, most))


def _shared_luck(sheet: Sheet, top: int) -> list[str]:
    """Caution that accuracy and error share their sampling error, where accuracies hardly differ."""
    best = sheet.columns_by_accuracy("accuracy")[0][:top]
    error, spread = sheet.error_by_chance(1, float(np.median(best))), float(best.std())
    if not error > 0.5 * spread:
        return []
    return [
        f"On {sheet.name} the accuracies of the top {top:,} differ by {spread:.4f} (standard deviation), with a "
        f"sampling error of about {error:.4f} each ({sheet.samples:,.0f} test samples). Luck that raises an "
        "overconfident model's accuracy lowers its error, so chance alone makes the two look related."
    ]


def _accuracy_scatter(population: Population, sheet: Sheet, top: int) -> ScatterPlot:
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


Grid = dict[str, list[Finding]]

_REFERENCES = ("equal_mass_ece", "ks_error", "mmce")
# Columns that the sentences name.
_NAMED = 4


def robustness(population: Population) -> Draft | str:
    """Kendall's correlation of each robustness column with the metric, in growing parts of the population."""
    columns = [name for name in population.robustness if name != population.column]
    if not columns:
        return (
            "The table has no robustness columns. Add some to the manifest (such as the accuracy on corrupted or "
            "attacked inputs) and name them as robustness, or measure with out-of-distribution files, which gives "
            "auroc_ columns."
        )
    draft = Draft()
    for sheet in population.sheets:
        ranked = "accuracy" in sheet
        tops = population.tops(sheet.columns_by_accuracy(population.column)[0].size) if ranked else (len(sheet),)
        measures = dict.fromkeys((*columns, *_references(population, sheet)))
        grid = {name: _correlations_by_top(population, sheet, name, tops if ranked else (None,)) for name in measures}
        for name in columns:
            draft.findings += dict.fromkeys((grid[name][0], grid[name][-1]))
        draft.draw([_robustness_lines(population, sheet, grid, tops)])
        draft.parts.append(_robustness_sentence(population, sheet, {name: grid[name] for name in columns}, tops))
        draft.models.append(tops[-1])
    draft.cautions.append("Negative correlations say that models with a higher value have a smaller calibration error.")
    return draft


def _references(population: Population, sheet: Sheet) -> list[str]:
    """Accuracy and other calibration metrics, as far as they were measured."""
    names = ["accuracy", *(sheet.column_of(m, population.bins) for m in _REFERENCES if m != population.metric)]
    return [name for name in names if name in sheet]


def _correlations_by_top(population: Population, sheet: Sheet, name: str, tops: Sequence[int | None]) -> list[Finding]:
    label = f"{name} with {population.label}"
    return [population.correlation(sheet, name, population.column, label, top=top) for top in tops]


def _robustness_lines(population: Population, sheet: Sheet, grid: Grid, tops: Sequence[int]) -> Lines:
    values, low, high = (
        np.array([[getattr(found, end) for found in row] for row in grid.values()]) for end in ("value", "low", "high")
    )
    labels = {sheet.column_of(metric, population.bins): LABELS[metric] for metric in _REFERENCES}
    return Lines(
        f"{sheet.name}: correlation with {population.label} among the most accurate models",
        "most accurate models",
        "Kendall's correlation",
        tuple(float(top) for top in tops),
        tuple(labels.get(name, name) for name in grid),
        values,
        low,
        high,
    )


def _robustness_sentence(population: Population, sheet: Sheet, grid: Grid, tops: Sequence[int]) -> str:
    """Relations among all models, and changes among the most accurate."""
    n, all_models = tops[-1], {name: row[-1] for name, row in grid.items()}
    absent = [name for name, found in all_models.items() if math.isnan(found.value)]
    better = [name for name, found in all_models.items() if found.excludes_zero and found.value < 0]
    worse = [name for name, found in all_models.items() if found.excludes_zero and found.value >= 0]
    unclear = [name for name in grid if name not in (*absent, *better, *worse)]
    said: list[str] = []
    for names, word in ((better, "smaller"), (worse, "larger")):
        if names:
            what = "one" if said else population.label
            go = "goes" if len(names) == 1 else "go"
            said.append(f"higher {_correlations_text(names, all_models, n)} {go} with a {word} {what}")
    if unclear:
        said.append(
            f"{_correlations_text(unclear, all_models, n)} {'shows' if len(unclear) == 1 else 'show'} no clear relation"
        )
    if absent:
        verb = "has" if len(absent) == 1 else "have"
        said.append(
            f"{join_words(absent, _NAMED)} {verb} too few values, or the same for all, to be related to anything"
        )
    text = f"On {sheet.name}, among {of_models(n, n)}: {'; '.join(said)}."
    if len(tops) == 1:
        return text
    # Whether two intervals have no number in common; as they are of the same models, a strict rule.
    changed = [name for name, row in grid.items() if row[0].high < row[-1].low or row[-1].high < row[0].low]
    first = {name: row[0] for name, row in grid.items()}
    if changed:
        return (
            f"{text} Among {of_models(tops[0], n)} that is different for {_correlations_text(changed, first, tops[0])}."
        )
    return f"{text} The {tops[0]:,} most accurate do not clearly differ."


def _correlations_text(names: Sequence[str], found: dict[str, Finding], n: int) -> str:
    """Columns with their correlations, and from how many models where these are not the ``n`` that are spoken of."""
    fewer = {name: "" if found[name].n == n else f", of the {found[name].n:,} models that have it" for name in names}
    return join_words([f"{name} ({format_correlation(found[name])}{fewer[name]})" for name in names], _NAMED)
