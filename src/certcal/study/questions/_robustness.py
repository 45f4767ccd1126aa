"""Question 2, whether robust models have well calibrated confidences, so that the one stands for the other."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from certcal.study._findings import Draft, Finding, Lines, listed, signed
from certcal.study._population import LABELS, Population, Sheet, of_models

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
        tops = population.tops(sheet.ranked(population.column)[0].size) if ranked else (len(sheet),)
        measures = dict.fromkeys((*columns, *_references(population, sheet)))
        grid = {name: _along(population, sheet, name, tops if ranked else (None,)) for name in measures}
        for name in columns:
            draft.findings += dict.fromkeys((grid[name][0], grid[name][-1]))
        draft.draw([_lines(population, sheet, grid, tops)])
        draft.parts.append(_sentence(population, sheet, {name: grid[name] for name in columns}, tops))
        draft.models.append(tops[-1])
    draft.cautions.append("Negative correlations say that models with a higher value have a smaller calibration error.")
    return draft


def _references(population: Population, sheet: Sheet) -> list[str]:
    """Accuracy and other calibration metrics, as far as they were measured."""
    names = ["accuracy", *(sheet.measured(m, population.bins) for m in _REFERENCES if m != population.metric)]
    return [name for name in names if name in sheet]


def _along(population: Population, sheet: Sheet, name: str, tops: Sequence[int | None]) -> list[Finding]:
    label = f"{name} with {population.label}"
    return [population.correlation(sheet, name, population.column, label, top=top) for top in tops]


def _lines(population: Population, sheet: Sheet, grid: Grid, tops: Sequence[int]) -> Lines:
    values, low, high = (
        np.array([[getattr(found, end) for found in row] for row in grid.values()]) for end in ("value", "low", "high")
    )
    labels = {sheet.measured(metric, population.bins): LABELS[metric] for metric in _REFERENCES}
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


def _sentence(population: Population, sheet: Sheet, grid: Grid, tops: Sequence[int]) -> str:
    """What holds among all models, and what only among the most accurate."""
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
            said.append(f"higher {_some(names, all_models, n)} {go} with a {word} {what}")
    if unclear:
        said.append(f"{_some(unclear, all_models, n)} {'shows' if len(unclear) == 1 else 'show'} no clear relation")
    if absent:
        verb = "has" if len(absent) == 1 else "have"
        said.append(f"{listed(absent, _NAMED)} {verb} too few values, or the same for all, to be related to anything")
    text = f"On {sheet.name}, among {of_models(n, n)}: {'; '.join(said)}."
    if len(tops) == 1:
        return text
    # Whether two intervals have no number in common; as they are of the same models, a strict rule.
    changed = [name for name, row in grid.items() if row[0].high < row[-1].low or row[-1].high < row[0].low]
    first = {name: row[0] for name, row in grid.items()}
    if changed:
        return f"{text} Among {of_models(tops[0], n)} that is different for {_some(changed, first, tops[0])}."
    return f"{text} The {tops[0]:,} most accurate do not clearly differ."


def _some(names: Sequence[str], found: dict[str, Finding], n: int) -> str:
    """Columns with their correlations, and from how many models where these are not the ``n`` that are spoken of."""
    fewer = {name: "" if found[name].n == n else f", of the {found[name].n:,} models that have it" for name in names}
    return listed([f"{name} ({signed(found[name])}{fewer[name]})" for name in names], _NAMED)
