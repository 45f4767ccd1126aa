"""Question 4, whether temperature scaling helps all models alike."""

from __future__ import annotations

import math

import numpy as np

from certcal.study._battery import BINNED
from certcal.study._findings import Draft, Finding, Matrix, across, listed, percent, plain, signed
from certcal.study._population import Population, Sheet
from certcal.study._ranks import correlations
from certcal.study._resampling import LEAST, growth
from certcal.study._table import Stage

# What happens to the order of the models, by the strength of the correlation of before and after.
_KEPT = {
    "strong positive": "mostly survives",
    "moderate positive": "survives in part",
    "weak positive": "survives a little",
    "negligible positive": "hardly survives",
    "practically no": "does not survive",
    "no clear": "does not clearly survive",
    "strong negative": "is mostly reversed",
    "moderate negative": "is reversed in part",
    "weak negative": "is reversed a little",
    "negligible negative": "hardly survives",
}


def scaling(population: Population) -> Draft | str:
    """Kendall's correlation of the metric before and after scaling, and the share of models that it improves."""
    before, after, label = population.column, population.scaled, population.label
    if after not in population:
        return f"The table has no column {after}: measure the models with temperature scaling (certcal study measure)."
    draft, orders, floors = Draft(), list[Finding](), list[str]()
    name = f"{label} before with after"
    for sheet in population.sheets:
        pre, post = sheet.complete(before, after)
        if pre.size < LEAST:
            draft.parts.append(f"On {sheet.name} {pre.size} models were measured before and after; this needs {LEAST}.")
            continue
        draft.models.append(pre.size)
        order = population.correlation(sheet, before, after, name)
        improved = population.resampling.share(
            f"{sheet.name}: share of models with a smaller {label} after scaling", int((post < pre).sum()), pre.size
        )
        ratio = population.resampling.finding(
            f"{sheet.name}: median {label} after / before",
            growth,
            pre,
            post,
            tag=f"scaling/{sheet.name}",
            scale="ratio",
        )
        draft.findings += (order, improved, ratio)
        orders.append(order)
        text = (
            f"On {sheet.name}, scaling lowers the {label} of {percent(improved)} of {improved.n:,} models"
            + ("" if math.isnan(ratio.value) else f", its median to {plain(ratio)} of what it was")
            + f". The order {_KEPT.get(order.strength, 'cannot be compared')} (correlation "
            f"{signed(order)}"
        )
        if "accuracy" in sheet:
            ranked = sheet.ranked(before, after)[0].size
            tops = population.tops(ranked)
            if len(tops) > 1:
                best = population.correlation(sheet, before, after, name, top=tops[0])
                draft.findings.append(best)
                text += f"; among the {tops[0]:,} most accurate {signed(best)}"
        draft.parts.append(f"{text}).")
        draft.draw([_matrix(population, sheet)])
        # Above the mean error of calibrated models, often by half or more: a median below it may still be no chance.
        limit, middle = sheet.error_by_chance(population.bins), float(np.median(post))
        if population.metric in ("ece", "equal_mass_ece") and middle <= limit:
            samples = f"{sheet.samples:,.0f} samples"
            floors.append(f"on {sheet.name} {middle:.4f}, against a limit of {limit:.4f} ({samples})")
    if floors:
        draft.cautions.append(
            f"After scaling, the median {label} is within what chance alone can make of perfectly calibrated models on "
            f"average: {listed(floors)}. The order may be mostly noise, and a correlation near zero says little."
        )
    draft.begin = across(orders, "The correlation of before and after")
    return draft


def _matrix(population: Population, sheet: Sheet) -> Matrix:
    """Before and after at every bin count, as in the benchmark study's Figure 4b."""
    metric, title = population.metric, f"{sheet.name}: {population.label} before and after temperature scaling"
    if metric not in BINNED:
        return correlations(sheet.numbers([population.column, population.scaled]), ["pre", "post"], title=title)
    pairs: list[tuple[Stage, int]] = [(s, bins) for s in ("pre", "post") for bins in sheet.bins(metric, s)]
    values = sheet.numbers([sheet.measured(metric, bins, stage) for stage, bins in pairs])
    return correlations(values, [f"{stage} {bins}" for stage, bins in pairs], title=f"{title}, by number of bins")
