"""Question 4, whether temperature scaling helps all models alike."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from certcal.study._battery import BINNED
from certcal.study._cautions import by_chance, few
from certcal.study._findings import Answer, Finding, Matrix
from certcal.study._population import Population, Sheet, of_models
from certcal.study._resampling import LEAST
from certcal.study._words import listed, overview, percent, plain, signed, size, strength, told

Floats = NDArray[np.float64]

QUESTION = "Does a post-hoc calibration method affect all models uniformly?"
PUBLISHED = (
    "No: the ECE before and after temperature scaling are almost uncorrelated on CIFAR-10, and alike on the other "
    "data sets and among the most accurate models. A well calibrated model need not be one after scaling, so that "
    "comparisons without post-hoc calibration may be unfair."
)
_DRAWN = 6


def scaling(population: Population) -> Answer:
    """Kendall's correlation of the metric before and after scaling, and the share of models that it improves."""
    before, after = population.column, population.scaled
    if after not in population:
        text = f"The table has no column {after}: measure the models with temperature scaling (certcal study measure)."
        return Answer(4, QUESTION, text, published=PUBLISHED)
    findings: list[Finding] = []
    charts: list[Matrix] = []
    floors: list[str] = []
    parts: list[str] = []
    orders: list[Finding] = []
    smallest = math.inf
    for sheet in population.sheets:
        pre, post = sheet.complete(before, after)
        if pre.size < LEAST:
            parts.append(f"On {sheet.name} {pre.size} models were measured before and after; this needs {LEAST}.")
            continue
        smallest = min(smallest, pre.size)
        name = f"{population.label} before with after"
        order = population.correlation(sheet, before, after, name=name)
        improved = population.resampling.share(
            f"{sheet.name}: share of models with a smaller {population.label} after scaling",
            int((post < pre).sum()),
            pre.size,
        )
        ratio = population.resampling.finding(
            f"{sheet.name}: median {population.label} after / before",
            _ratio,
            post,
            pre,
            tag=f"scaling/{sheet.name}",
            scale="ratio",
        )
        findings.extend((order, improved, ratio))
        orders.append(order)
        text = _sentence(population, sheet, order, improved, ratio)
        if "accuracy" in sheet:
            ranked = sheet.ranked(before, after)[0].size
            tops = population.tops(ranked)
            if len(tops) > 1:
                best = population.correlation(sheet, before, after, top=tops[0], name=name)
                findings.append(best)
                text += f" Among {of_models(tops[0], ranked)} the correlation is {signed(best)}."
        parts.append(text)
        if len(charts) < _DRAWN:
            charts.append(_matrix(population, sheet))
        floors.extend(_floor(population, sheet, post))
    cautions = [*(few(int(smallest), population.resampling.level) if findings else ())]
    if floors:
        cautions.append(
            f"After scaling, the median {population.label} is within the limit of what chance alone makes of perfectly "
            f"calibrated models on average, with these test samples and bins: {listed(floors)}. Then the order after "
            "scaling may be mostly noise, and a correlation near zero says little about the method."
        )
    text = told(parts, overview(orders, "The correlation of before and after"))
    return Answer(4, QUESTION, text, tuple(findings), tuple(charts), tuple(cautions), PUBLISHED)


def _ratio(above: Floats, below: Floats) -> float:
    middle = float(np.median(below))
    return float(np.median(above)) / middle if middle > 0 else math.nan


def _sentence(population: Population, sheet: Sheet, order: Finding, improved: Finding, ratio: Finding) -> str:
    label = population.label
    kept = {
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
    }.get(strength(order), "cannot be compared")
    text = (
        f"On {sheet.name}, temperature scaling lowers the {label} of {percent(improved)} of {improved.n:,} models, "
        f"and the order of the models {kept}: the correlation of before and after is {signed(order)}."
    )
    return text if math.isnan(ratio.value) else f"{text} The median after is {plain(ratio)} of that before."


def _matrix(population: Population, sheet: Sheet) -> Matrix:
    """Before and after at every bin count, as in the benchmark study's Figure 4b."""
    from certcal.study._ranks import correlations

    if population.metric in BINNED:
        pairs = [(stage, bins) for stage in ("pre", "post") for bins in sheet.bins(population.metric, stage)]
    else:
        pairs = [("pre", None), ("post", None)]
    names = [f"{stage}_{population.metric}" + (f"_{bins}" if bins else "") for stage, bins in pairs]
    labels = [f"{stage} {bins}" if bins else stage for stage, bins in pairs]
    title = f"{sheet.name}: {population.label} before and after temperature scaling" + (
        ", by number of bins" if population.metric in BINNED else ""
    )
    return correlations(sheet.numbers(names), labels, title=title)


def _floor(population: Population, sheet: Sheet, post: Floats) -> list[str]:
    """That errors after scaling are no larger than the limit of what chance alone makes of calibrated models.

    The limit is above the mean of such models, often by half or more: a median below it may still be no chance.
    """
    limit = by_chance(sheet, population.bins)
    if population.metric not in ("ece", "equal_mass_ece") or not np.median(post) <= limit:
        return []
    middle = float(np.median(post))
    return [f"on {sheet.name} {size(middle)}, against a limit of {size(limit)} ({sheet.samples:,.0f} samples)"]
